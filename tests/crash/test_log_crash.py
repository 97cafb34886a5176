"""The log keeps its promises at every crash point."""

from functools import partial
from typing import Literal

import pytest

from pocketmq.model.errors import StoreError, StoreFullError
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import explore
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.log_workload import History, Workload, check_promises, content_of, opened

SYNC_SECONDS = 0.01
Flush = Literal["async", "sync"]


def settings(flush: Flush = "sync") -> StoreSettings:
    """Small segments, and several index runs in each."""
    return StoreSettings(data_dir="data", segment_bytes=8192, index_stretch_bytes=2048, flush=flush)


async def fill(disk: SimulatedDisk, clock: VirtualClock, history: History, *, flush: Flush = "sync") -> None:
    """Fills several segments in two lives of the log, some bursts on top of others that are still being synced."""
    workload = Workload(history, clock)
    for life in range(2):
        async with opened(disk, clock, settings(flush)) as log:
            for burst in range(8):
                workload.burst(log, 4)
                if flush == "sync":
                    history.seen.update(content_of(log))
                if burst % 3:
                    await clock.sleep(0.003)
            await log.wait_durable(log.max_position, force=True)
            workload.burst(log, 2)
            if life == 0:
                await clock.sleep(0.7)


async def expire(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """Fills segments, and lets time pass until the oldest ones are deleted."""
    workload = Workload(history, clock)
    hasty = settings()
    hasty.retention_hours = 1 / 60
    async with opened(disk, clock, hasty) as log:
        for _ in range(3):
            for _ in range(4):
                workload.burst(log, 5)
                await clock.sleep(0.02)
            history.kept_from = log.max_position
            await clock.sleep(100)
        assert log.min_position > 0


async def meet_full_disk(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """The disk is full in the middle of a burst, and has room again later."""
    workload = Workload(history, clock)
    lenient = settings()
    lenient.disk_used_max = lenient.disk_used_clean = lenient.disk_used_refuse = 101.0
    async with opened(disk, clock, lenient) as log:
        workload.burst(log, 4)
        disk.capacity_bytes = disk.used_bytes + 2048
        with pytest.raises(StoreFullError):
            for _ in range(50):
                workload.burst(log, 4)
        content_of(log)
        disk.capacity_bytes = None
        for _ in range(4):
            workload.burst(log, 4)
            await clock.sleep(0.02)


async def fail_to_sync(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """A sync of the log fails: nothing is acknowledged after that, and what is stored can still be read."""
    workload = Workload(history, clock)
    async with opened(disk, clock, settings()) as log:
        workload.burst(log, 4)
        await clock.sleep(1)
        disk.fail("sync", path="commitlog")
        workload.burst(log, 4)
        await clock.sleep(1)
        with pytest.raises(StoreError):
            workload.burst(log, 4)
        content_of(log)


async def reopen(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """What a start after a crash does: recovery, then more records."""
    async with opened(disk, clock, settings()) as log:
        content = content_of(log)
        check_promises(content, history)
        history.forget_lost(content)
        workload = Workload(history, clock, seed=3)
        for _ in range(4):
            workload.burst(log, 3)
            await clock.sleep(0.02)


async def check(disk: SimulatedDisk, clock: VirtualClock, history: History, *, lag_s: float = 0.0) -> None:
    """What was acknowledged is there after reopening, again after reopening twice, and the log takes new messages."""
    async with opened(disk, clock, settings()) as log:
        content = content_of(log)
        assert log.min_position <= history.kept_from
    check_promises(content, history, lag_s=lag_s)
    disk.capacity_bytes = None
    async with opened(disk, clock, settings()) as log:
        assert content_of(log) == content
        Workload(history, clock, seed=2).burst(log, 5)
        assert await log.wait_durable(log.max_position)
        assert len(content_of(log)) == len(content) + 5


def test_nothing_acknowledged_is_lost() -> None:
    assert explore(fill, check, history=History, seeds=range(2)) > 300


def test_recovery_may_crash_too() -> None:
    assert explore(fill, check, history=History, recover=reopen, seeds=range(3), step=3) > 150


def test_a_killed_process_loses_nothing_even_when_the_power_goes_later() -> None:
    tried = explore(fill, check, history=History, crash=SimulatedDisk.kill, recover=reopen, seeds=range(3), step=3)
    assert tried > 150


def test_with_asynchronous_flush_a_bounded_tail_is_lost_and_nothing_else() -> None:
    lag_s = settings().flush_interval_s + 10 * SYNC_SECONDS
    scenario = partial(fill, flush="async")
    assert explore(scenario, partial(check, lag_s=lag_s), history=History, seeds=range(2)) > 300


def test_deleting_old_segments_leaves_a_whole_log() -> None:
    assert explore(expire, check, history=History, seeds=range(2)) > 400


def test_a_full_disk_breaks_no_promise() -> None:
    assert explore(meet_full_disk, check, history=History, seeds=range(3)) > 250


def test_a_sync_that_fails_is_never_taken_for_one_that_did_not() -> None:
    assert explore(fail_to_sync, check, history=History, seeds=range(20)) > 300
