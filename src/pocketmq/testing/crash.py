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
from random import Random
from typing import Any, TypeVar

from pocketmq.testing.clock import START_MS, VirtualClock
from pocketmq.testing.disk import PowerLoss, SimulatedDisk
from pocketmq.testing.loop import VirtualLoop

History = TypeVar("History")

Part = Callable[[SimulatedDisk, VirtualClock, History], Coroutine[Any, Any, None]]

OPERATIONS_MAX = 100_000
RECOVERY_OPERATIONS = 40
"""A second crash comes before this operation of the recovery."""


class BrokenPromiseError(AssertionError):
    """A check failed after a power loss; the message says at which operation and seed, the cause says what."""


def play(scenario: Part[History], disk: SimulatedDisk, history: History, *, stop_at: int | None = None) -> bool:
    """Run a scenario on virtual time until its end, or until the power goes at operation `stop_at`.

    The wall clock goes on from where it stood when the disk was last used; monotonic time begins anew, as after a
    restart. Returns whether it reached its end. What it raises is raised here, except for the power loss.
    """
    loop = VirtualLoop()
    start_ms = START_MS if disk.clock is None else disk.clock.time_ms()
    disk.clock = clock = VirtualClock(loop, start_ms=start_ms)
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
    crash: Callable[[SimulatedDisk], SimulatedDisk] = SimulatedDisk.crash,
    recover: Part[History] | None = None,
) -> int:
    """Try every crash point (or every `step`th) of a scenario with every seed; returns how many were tried.

    Args:
        scenario: does the work, and writes into the history.
        check: looks at what is left, and raises when it breaks a promise.
        history: makes an empty history for each try.
        seeds: seeds of the disk; each gives other times for the syncs, and other losses.
        step: 1 for every crash point; above, others with every seed.
        sync_seconds_max: how long a sync takes at most, in virtual seconds.
        crash: what happens to the disk; `SimulatedDisk.kill` for the end of the process alone.
        recover: runs after the crash, and is cut short by a second one at some operation, before `check`.

    Raises:
        BrokenPromiseError: `check` failed; its cause is what `check` raised.
    """
    tried = 0
    for offset, seed in enumerate(seeds):
        for number in itertools.count(offset % step, step):
            if number > OPERATIONS_MAX:
                raise ValueError(f"the scenario does more than {OPERATIONS_MAX} disk operations")
            disk = SimulatedDisk(seed=seed * 1_000_003 + number)
            disk.sync_seconds_max = sync_seconds_max
            promises = history()
            finished = play(scenario, disk, promises, stop_at=number)
            done = disk.operations[-1] if disk.operations else None
            place = f"after the last operation, {done}" if finished else f"at operation {number}, after {done}"
            try:
                disk = crash(disk)
                if recover is not None:
                    second = Random(disk.seed).randrange(RECOVERY_OPERATIONS)
                    place += f", then at operation {second} of the recovery"
                    play(recover, disk, promises, stop_at=second)
                    disk = disk.crash()
                play(check, disk, promises)
            except Exception as error:
                raise BrokenPromiseError(f"power loss {place}, seed {seed}: {error}") from error
            tried += 1
            if finished:
                break
    return tried
