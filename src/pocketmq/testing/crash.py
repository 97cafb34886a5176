"""Runs a scenario again and again, with the power going at every disk operation in turn, and checks what is left.

    def test_nothing_acknowledged_is_lost():
        explore(scenario, check, history=list, seeds=range(3))

`scenario(disk, clock, history)` does the work and writes down in `history` what it was promised, in the moment that it
is promised. The power goes at operation 0, then at 1, and so on until the scenario reaches its end. `check(disk, clock,
history)` then gets the disk as the power loss left it, and raises when a promise is broken. Both run on virtual time.
"""

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import PowerLoss, SimulatedDisk
from pocketmq.testing.loop import VirtualLoop

History = TypeVar("History")

Part = Callable[[SimulatedDisk, VirtualClock, History], Coroutine[Any, Any, None]]

OPERATIONS_MAX = 100_000


class BrokenPromiseError(AssertionError):
    """A check failed after a power loss; the message says at which operation and seed, the cause says what."""


def play(scenario: Part[History], disk: SimulatedDisk, history: History, *, stop_at: int | None = None) -> bool:
    """Run a scenario on virtual time until its end, or until the power goes at operation `stop_at`.

    Returns whether it reached its end. What it raises is raised here, except for the power loss.
    """
    loop = VirtualLoop()
    disk.clock = clock = VirtualClock(loop)
    disk.stop_at = stop_at
    disk.on_power_loss = loop.halt
    try:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(scenario(disk, clock, history))
    except PowerLoss:
        return False
    finally:
        disk.on_power_loss = None
    return True


def explore(
    scenario: Part[History],
    check: Part[History],
    *,
    history: Callable[[], History],
    seeds: Iterable[int] = range(3),
    step: int = 1,
    sync_seconds_max: float = 0.01,
) -> int:
    """Try every crash point (or every `step`th) of a scenario with every seed; returns how many were tried.

    Raises:
        BrokenPromiseError: `check` failed; its cause is what `check` raised.
    """
    tried = 0
    for seed in seeds:
        for number in itertools.count(0, step):
            if number > OPERATIONS_MAX:
                raise ValueError(f"the scenario does more than {OPERATIONS_MAX} disk operations")
            disk = SimulatedDisk(seed=seed * 1_000_003 + number)
            disk.sync_seconds_max = sync_seconds_max
            promises = history()
            finished = play(scenario, disk, promises, stop_at=number)
            done = disk.operations[-1] if disk.operations else None
            try:
                play(check, disk.crash(), promises)
            except Exception as error:
                place = f"after the last operation, {done}" if finished else f"at operation {number}, after {done}"
                raise BrokenPromiseError(f"power loss {place}, seed {seed}: {error}") from error
            tried += 1
            if finished:
                break
    return tried
