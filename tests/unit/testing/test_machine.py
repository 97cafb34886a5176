"""A simulated machine runs one program that can be killed at any await, paused, and started again on what it left."""

import asyncio

import pytest

from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import run
from pocketmq.testing.machine import Machine
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.testing.program import Program


def two_machines() -> tuple[Machine, Machine]:
    network = SimulatedNetwork(VirtualClock())
    return Machine(network, seed=1), Machine(network, seed=2)


class Counter:
    """A program that counts on the disk once a second, syncs every tenth time, and tells everybody who connects."""

    def __init__(self) -> None:
        self.counts: list[int] = []
        self.cleaned_up = False

    async def __call__(self, machine: Machine) -> None:
        machine.disk.make_folder("data")
        file = machine.disk.open("data/count", create_size=1)
        machine.disk.sync_folder("data")
        await machine.network.listen("0.0.0.0", 1, asyncio.Protocol)
        try:
            while True:
                await machine.clock.sleep(1)
                count = file.read_at(0, 1)[0] + 1
                file.write_at(0, bytes([count]))
                if count % 10 == 0:
                    await machine.disk.sync(file)
                self.counts.append(count)
        finally:
            await asyncio.sleep(0)
            self.cleaned_up = True


def test_a_killed_program_stops_at_once_and_leaves_what_it_wrote() -> None:
    async def main() -> None:
        machine, other = two_machines()
        counter = Counter()
        machine.start(counter)
        await other.network.connect(machine.address, 1, asyncio.Protocol, timeout=1)
        await machine.clock.sleep(5.5)
        machine.kill()
        await machine.clock.sleep(60)
        assert counter.counts == [1, 2, 3, 4, 5]
        assert not counter.cleaned_up
        with pytest.raises(ConnectionRefusedError):
            await other.network.connect(machine.address, 1, asyncio.Protocol, timeout=1)
        machine.start(counter)
        await machine.clock.sleep(2.5)
        assert counter.counts == [1, 2, 3, 4, 5, 6, 7]

    run(main())


def test_a_power_loss_takes_what_was_not_synced_and_says_nothing() -> None:
    async def main() -> None:
        machine, other = two_machines()
        counter = Counter()
        machine.start(counter)
        await machine.clock.sleep(15.5)
        machine.power_off()
        with pytest.raises(RuntimeError, match="no power"):
            machine.start(counter)
        with pytest.raises(TimeoutError):
            await other.network.connect(machine.address, 1, asyncio.Protocol, timeout=1)
        machine.power_on()
        assert 10 <= machine.disk.open("data/count").read_at(0, 1)[0] <= 15
        machine.start(counter)
        await other.network.connect(machine.address, 1, asyncio.Protocol, timeout=1)

    run(main())


def test_a_paused_program_finds_that_time_has_passed() -> None:
    async def main() -> None:
        machine, _ = two_machines()
        times: list[float] = []

        async def tick(machine: Machine) -> None:
            while True:
                await machine.clock.sleep(1)
                times.append(machine.clock.monotonic())

        machine.start(tick)
        await machine.clock.sleep(2.5)
        machine.pause()
        await machine.clock.sleep(60)
        machine.resume()
        await machine.clock.sleep(1.5)
        assert times == [1, 2, 62.5, 63.5]

    run(main())


def test_it_can_crash_at_every_await_of_a_program() -> None:
    async def three_steps(machine: Machine) -> None:
        for step in range(3):
            reached.append(step)
            await asyncio.sleep(0)

    async def main(steps: int) -> None:
        machine, _ = two_machines()
        machine.crash_at(steps)
        machine.start(three_steps)
        await machine.clock.sleep(1)
        assert machine.is_on == (steps >= 4)

    found = []
    for steps in range(5):
        reached: list[int] = []
        run(main(steps))
        found.append(len(reached))
    assert found == [0, 1, 2, 3, 3]


def test_what_a_program_starts_belongs_to_it() -> None:
    async def main() -> None:
        ticks: list[str] = []
        loop = asyncio.get_running_loop()

        async def child() -> None:
            loop.call_later(5, ticks.append, "timer of a child")
            await asyncio.sleep(6)
            ticks.append("child")

        async def parent() -> None:
            await asyncio.gather(child(), asyncio.create_task(child()))

        program = Program()
        program.start(parent())
        bystander = asyncio.create_task(child())
        await asyncio.sleep(1)
        program.kill()
        await bystander
        assert ticks == ["timer of a child", "child"]

    run(main())
