"""Waiting on a virtual loop takes no time, keeps its order, and never hangs."""

import asyncio

import pytest

from pocketmq.testing.loop import DeadlockError, VirtualLoop, run


def test_a_day_of_waiting_takes_no_time() -> None:
    async def main() -> float:
        await asyncio.sleep(86_400)
        return asyncio.get_running_loop().time()

    assert run(main()) == 86_400


def test_timers_of_one_moment_fire_in_the_order_they_were_set() -> None:
    async def main() -> list[int]:
        fired: list[int] = []
        loop = asyncio.get_running_loop()
        for number in range(50):
            loop.call_later(1.0, fired.append, number)
        await asyncio.sleep(2)
        return fired

    assert run(main()) == list(range(50))


def test_time_stands_still_while_anything_is_ready() -> None:
    async def main() -> float:
        loop = asyncio.get_running_loop()
        timer = loop.call_later(1.0, lambda: None)
        for _ in range(1000):
            await asyncio.sleep(0)
        timer.cancel()
        return loop.time()

    assert run(main()) == 0.0


def test_a_wait_that_can_never_end_is_an_error_that_names_who_waits() -> None:
    async def wait_for_nobody() -> None:
        await asyncio.get_running_loop().create_future()

    async def main() -> None:
        await asyncio.create_task(wait_for_nobody(), name="the forgotten one")

    with pytest.raises(DeadlockError, match=r"the forgotten one .*wait_for_nobody at .*test_loop\.py:\d+"):
        run(main())


def test_periodic_work_does_not_hide_a_wait_that_never_ends() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def tick() -> None:
            loop.call_later(1, tick)

        tick()
        await loop.create_future()

    with pytest.raises(DeadlockError, match="60 s of virtual time"):
        run(main(), limit_s=60)


def test_functions_for_a_thread_run_on_the_loop() -> None:
    def fail() -> None:
        raise ValueError("told you")

    async def main() -> int:
        with pytest.raises(ValueError, match="told you"):
            await asyncio.to_thread(fail)
        return await asyncio.to_thread(lambda: 7)

    assert run(main()) == 7


def test_time_outs_and_cancellation_work_as_on_a_real_loop() -> None:
    async def main() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await asyncio.sleep(10)
        return asyncio.get_running_loop().time()

    assert run(main()) == 3


def test_halting_stops_every_task_where_it_stands() -> None:
    class Stop(BaseException):
        pass

    trace: list[str] = []

    async def work(name: str) -> None:
        try:
            while True:
                await asyncio.sleep(1)
                trace.append(name)
        finally:
            await asyncio.sleep(1)
            trace.append(f"{name} cleaned up")

    async def main() -> None:
        tasks = [asyncio.create_task(work(name)) for name in "ab"]
        await asyncio.sleep(1.5)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.halt(Stop())
        loop.call_soon(trace.append, "after the end")
        await asyncio.gather(*tasks)

    loop = VirtualLoop()
    with pytest.raises(Stop):
        loop.run_until_complete(main())
    loop.close()
    assert trace == ["a", "b"]
