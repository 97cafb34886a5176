"""The crash-point test of the log can fail: each bug that is planted here is found."""

from collections.abc import Callable

import pytest

from pocketmq.log import flusher as flusher_module
from pocketmq.log.flusher import Callback, Flusher
from pocketmq.log.log import Log
from pocketmq.model.seams import Disk, DiskFile
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import BrokenPromiseError, explore
from pocketmq.testing.disk import SimulatedDisk, SimulatedFile
from pocketmq.testing.log_workload import History, Workload, check_promises, content_of, opened

SETTINGS = StoreSettings(data_dir="data", segment_bytes=4096, index_stretch_bytes=2048, flush="sync")


async def fill(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    workload = Workload(history, clock, uniform=True)
    async with opened(disk, clock, SETTINGS) as log:
        for _ in range(10):
            workload.burst(log, 3)
            history.seen.update(content_of(log))
            await clock.sleep(0.004)
        await clock.sleep(1)


async def reopen(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    async with opened(disk, clock, SETTINGS) as log:
        history.forget_lost(content_of(log))
        workload = Workload(history, clock, seed=2, uniform=True)
        for _ in range(5):
            workload.burst(log, 1)
            await clock.sleep(0.02)


async def check(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    async with opened(disk, clock, SETTINGS) as log:
        content = content_of(log)
    check_promises(content, history)


def skip_the_fsync_of_the_log(patch: pytest.MonkeyPatch) -> None:
    sync = SimulatedDisk.sync

    async def forgetful(disk: SimulatedDisk, file: DiskFile) -> None:
        if "commitlog" not in file.path:
            await sync(disk, file)

    patch.setattr(SimulatedDisk, "sync", forgetful)


def forget_the_fsync_of_the_folder(patch: pytest.MonkeyPatch) -> None:
    async def forgetful(disk: Disk, path: str) -> None:
        pass

    patch.setattr(flusher_module, "sync_folder", forgetful)


def answer_before_the_fsync(patch: pytest.MonkeyPatch) -> None:
    def hasty(flusher: Flusher, position: int, callback: Callback, *, force: bool = False) -> None:
        flusher.arm()
        callback(True)

    patch.setattr(Flusher, "when_durable", hasty)


def take_what_came_during_an_fsync_for_durable(patch: pytest.MonkeyPatch) -> None:
    flush = Flusher._flush

    async def hasty(flusher: Flusher) -> None:
        await flush(flusher)
        flusher.durable_position = flusher._tail.written_position
        flusher._answer()

    patch.setattr(Flusher, "_flush", hasty)


def write_the_index_before_the_log(patch: pytest.MonkeyPatch) -> None:
    async def hasty(log: Log, position: int) -> bool:
        return True

    patch.setattr(Log, "_wait_flushed", hasty)


def show_what_is_not_durable(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Log, "readable_position", property(lambda log: log.written_position))
    patch.setattr(Log, "_readable_offset", lambda log, queue: queue.next_offset)


def leave_the_torn_tail(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SimulatedFile, "clear_from", lambda file, offset: None)


@pytest.mark.parametrize(
    "bug",
    [
        skip_the_fsync_of_the_log,
        forget_the_fsync_of_the_folder,
        answer_before_the_fsync,
        take_what_came_during_an_fsync_for_durable,
        write_the_index_before_the_log,
        show_what_is_not_durable,
        leave_the_torn_tail,
    ],
)
def test_a_planted_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(BrokenPromiseError, match="power loss"):
        explore(fill, check, history=History, recover=reopen, seeds=range(30), step=3)


def test_without_a_bug_nothing_is_found() -> None:
    assert explore(fill, check, history=History, recover=reopen, seeds=range(3), step=3) > 80
