"""A simulated machine: a disk, a clock, an address on the network, and one program that can end at any moment.

    network = SimulatedNetwork(clock, seed=1)
    machine = Machine(network, "10.0.0.2", seed=1)
    machine.start(serve)        # a coroutine function: serve(machine) uses the machine's clock, disk and network
    machine.power_off()         # what was not synced may be lost; nobody is told
    machine.power_on()
    machine.start(serve)

All machines of a simulation share one `VirtualLoop`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.testing.program import Program

Result = TypeVar("Result")

Main = Callable[["Machine"], Coroutine[Any, Any, Result]]


class Machine:
    """One machine. Its `disk` and `program` are new ones after each crash; the clock and the address stay.

    Args:
        network: what connects it to the others.
        address: its address; by default the next free one.
        seed: of its disk.
    """

    def __init__(self, network: SimulatedNetwork, address: str | None = None, *, seed: int = 0) -> None:
        self.network = network.host(address)
        self.address = self.network.address
        self.clock = VirtualClock()
        self.disk = SimulatedDisk(seed, clock=self.clock)
        self.program = Program(self.address)
        self.is_on = True
        self._fabric = network

    def start(self, main: Main[Result]) -> asyncio.Task[Result]:
        """Start a program: the coroutine `main(machine)` and all that comes of it. The one before must have ended."""
        if not self.is_on:
            raise RuntimeError(f"{self.address} has no power")
        if not self.program.is_alive:
            self.program = Program(self.address)
        return self.program.start(main(self), name=self.address)

    def kill(self) -> None:
        """End the program as SIGKILL does: what it wrote is there, its connections are reset."""
        self._fabric.crash(self.address)
        self.program.kill()
        self.disk = self.disk.kill()

    def power_off(self) -> None:
        """Take the power away: the program ends, what was not synced may be lost, and nobody hears of it."""
        self.is_on = False
        self._fabric.crash(self.address, silently=True)
        self.program.kill()
        self.disk = self.disk.crash()

    def power_on(self) -> None:
        """Give it power again; nothing runs yet."""
        self.is_on = True
        self._fabric.restart(self.address)

    def pause(self) -> None:
        """Let the program stand still (SIGSTOP, a long garbage collection, a suspended virtual machine)."""
        self.program.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.program.resume()

    def crash_at(self, steps: int, crash: Callable[[], object] | None = None) -> None:
        """Lose the power (or do `crash`) after so many more steps of the program: at any `await` that is wanted."""
        self.program.stop_at(self.program.steps + steps, crash or self.power_off)
