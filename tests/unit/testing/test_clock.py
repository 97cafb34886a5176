"""The virtual clock shows the loop's time; the advanceable clock fires what became due, in order."""

import asyncio
import itertools

import pytest

from pocketmq.model.seams import Clock
from pocketmq.testing.clock import START_MS, AdvanceableClock, VirtualClock
from pocketmq.testing.loop import run


def test_virtual_clock_is_a_clock_on_virtual_time() -> None:
    async def main() -> None:
        clock: Clock = VirtualClock()
        fired: list[float] = []
        clock.call_later(2, lambda: fired.append(clock.monotonic()))
        cancelled = clock.call_later(1, fired.append, -1.0)
        cancelled.cancel()
        await clock.sleep(5)
        assert fired == [2.0]
        assert clock.monotonic() == 5.0
        assert clock.time_ms() == START_MS + 5000

    run(main())


def test_a_wall_clock_that_jumps_disturbs_no_timer() -> None:
    async def main() -> None:
        clock = VirtualClock()
        clock.jump(-3_600_000)
        await clock.sleep(1)
        assert clock.monotonic() == 1.0
        assert clock.time_ms() == START_MS - 3_600_000 + 1000

    run(main())


async def test_advancing_fires_what_became_due_in_order_each_at_its_moment() -> None:
    clock = AdvanceableClock()
    start = clock.monotonic()
    fired: list[tuple[str, float]] = []

    def fire(name: str) -> None:
        fired.append((name, round(clock.monotonic() - start)))

    clock.call_later(30, fire, "late")
    clock.call_later(10, fire, "early")
    clock.call_later(3600, fire, "not yet")
    clock.call_later(20, fire, "cancelled").cancel()
    await clock.advance(60)
    assert fired == [("early", 10), ("late", 30)]
    assert clock.monotonic() - start >= 60


async def test_advancing_lets_tasks_set_their_next_timer_before_time_moves_on() -> None:
    clock = AdvanceableClock()
    ticks: list[float] = []

    async def tick() -> None:
        while True:
            await clock.sleep(1)
            ticks.append(clock.monotonic())

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0)
    await clock.advance(60.5)
    ticking.cancel()
    assert len(ticks) == 60
    assert all(round(later - earlier, 6) == 1 for earlier, later in itertools.pairwise(ticks))


async def test_wall_time_and_monotonic_time_advance_together() -> None:
    clock = AdvanceableClock()
    wall, steady = clock.time_ms(), clock.monotonic()
    await clock.advance(86_400)
    assert 0 <= clock.time_ms() - wall - 86_400_000 < 60_000
    assert 0 <= clock.monotonic() - steady - 86_400 < 60


async def test_without_being_advanced_it_runs_by_itself() -> None:
    clock = AdvanceableClock()
    fired = asyncio.Event()
    clock.call_later(0.01, fired.set)
    clock.call_later(3600, fired.clear)
    async with asyncio.timeout(10):
        await fired.wait()
    async with asyncio.timeout(10):
        await clock.sleep(0.001)


async def test_time_cannot_be_moved_back() -> None:
    with pytest.raises(ValueError, match="forward only"):
        await AdvanceableClock().advance(-1)


async def test_a_timer_that_fails_is_reported_and_stops_nothing() -> None:
    clock = AdvanceableClock()
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
    fired: list[int] = []
    clock.call_later(1, lambda: 1 / 0)
    clock.call_later(1, fired.append, 1)
    await clock.advance(1)
    assert fired == [1]
    assert [type(error) for error in reported] == [ZeroDivisionError]
