"""The log: append, write, read, and what runs beside them.

One `Log` owns one data directory. All calls come from one event loop; only the fsync of a file runs in a thread. See
`docs/internals/` for the formats on disk.
"""

from collections.abc import Callable, Container
from dataclasses import dataclass

from pocketmq.log.flusher import Flusher
from pocketmq.log.index import Index
from pocketmq.log.queues import LogQueue, QueueTable
from pocketmq.log.reader import LogReader
from pocketmq.log.rebuild import rebuild_run
from pocketmq.log.recovery import Progress, Recovery, RecoveryReport
from pocketmq.log.retention import Retention
from pocketmq.log.run_store import RunFile, RunStore
from pocketmq.log.scanner import Replay
from pocketmq.log.segments import Segments
from pocketmq.log.snapshots import SnapshotStore
from pocketmq.model.errors import StoreError, StoreLockedError
from pocketmq.model.seams import Clock, Disk, DiskLock
from pocketmq.model.settings import StoreSettings

TORN_BYTES_MAX = 64 * 1024 * 1024
"""Valid records that begin further than this behind a damaged place cannot be left from an unfinished write."""


@dataclass(frozen=True, slots=True)
class LogStatistics:
    """Figures for metrics and for people."""

    min_position: int
    max_position: int
    written_position: int
    durable_position: int
    indexed_position: int
    segments: int
    runs: int
    queues_in_memory: int
    """Queues with index units in memory."""
    appended_records: int
    flushes: int
    write_failures: int
    deleted_segments: int
    disk_used_percent: float


class Log(LogReader):
    """The commit log of one data directory."""

    def __init__(
        self, disk: Disk, clock: Clock, settings: StoreSettings, lock: DiskLock, segments: Segments, queues: QueueTable
    ) -> None:
        super().__init__(clock, segments, queues, segment_bytes=settings.segment_bytes, record_crc=settings.record_crc)
        root = settings.data_dir
        self.disk = disk
        self.settings = settings
        self.flusher = Flusher(
            disk,
            clock,
            self,
            synchronous=settings.flush == "sync",
            interval_s=settings.flush_interval_s,
            timeout_s=settings.flush_timeout_s,
        )
        self.runs = RunStore(disk, f"{root}/index", open_max=settings.index_runs_open_max)
        self._tables = SnapshotStore(disk, f"{root}/index")
        self.index = Index(
            disk,
            clock,
            self,
            self.runs,
            self._tables,
            stretch_bytes=settings.index_stretch_bytes,
            wait_durable=self._wait_flushed,
        )
        self.retention = Retention(disk, clock, self, self.index, settings)
        self.recovery = RecoveryReport()
        """What was found when the log was opened."""
        self._lock = lock
        self._closed = False
        self._hidden = {}
        if settings.flush == "sync":
            # What a power loss can take back must not be seen: its offsets would be given to other messages, and
            # consumers that have gone past them would never get those.
            self.readable_limit = 0
            self.flusher.on_durable = self.show_until

    @classmethod
    async def open(
        cls,
        disk: Disk,
        clock: Clock,
        settings: StoreSettings,
        *,
        replay: Replay = lambda record: None,
        replay_from: int = 0,
        replay_topics: Container[str] = (),
        progress: Callable[[Progress], None] | None = None,
    ) -> "Log":
        """Lock the data directory, load the index, read the tail of the log, and begin to work beside the caller.

        `replay` is given each record of `replay_topics` from the position `replay_from` on, in the order of the log.
        Raises StoreLockedError, StoreCorruptError, OSError.
        """
        root = settings.data_dir
        disk.make_folder(root)
        try:
            lock = disk.lock(f"{root}/lock")
        except BlockingIOError as error:
            raise StoreLockedError(
                f"the data directory {root} is in use by another process; stop it, or choose another data directory",
                cause=error,
            ) from error
        try:
            disk.make_folder(f"{root}/commitlog")
            segments = Segments(disk, f"{root}/commitlog")
            segments.load(settings.segment_bytes, fill_gaps=settings.accept_damage)
            log = cls(disk, clock, settings, lock, segments, QueueTable())
            await log._recover(replay, replay_from, replay_topics, progress)
        except BaseException:
            lock.release()
            raise
        log.flusher.start()
        if settings.flush == "sync":
            log.show_until(log.durable_position)
            await log.wait_durable(log.written_position)
        log.index.start()
        log.retention.start()
        return log

    async def _recover(
        self,
        replay: Replay,
        replay_from: int,
        replay_topics: Container[str],
        progress: Callable[[Progress], None] | None,
    ) -> None:
        starts = [segment.start for segment in self.segments]
        if starts:
            self.disk.sync_folder(self.segments.folder)
        self.flusher.start_at(starts[0] if starts else 0, starts)
        recovery = Recovery(
            self.disk,
            self.clock,
            self.settings.data_dir,
            self,
            self.index,
            replay=replay,
            replay_from=replay_from,
            replay_topics=replay_topics,
            progress=progress,
            torn_bytes_max=max(self.settings.index_stretch_bytes, TORN_BYTES_MAX),
            accept_damage=self.settings.accept_damage,
        )
        self.recovery = recovery.report
        end = await recovery.run(self.runs, self._tables)
        self.start_at(end)
        self.flusher.start_at(self.index.covered, starts)
        self.index.rebuild = self._rebuild_run

    def _hide(self, queues: dict[LogQueue, None]) -> None:
        super()._hide(queues)
        self.flusher.hurry()

    async def _rebuild_run(self, file: RunFile) -> None:
        for sentence in await rebuild_run(self.disk, self.clock, self.segments, self.runs, file.start, file.end):
            self.recovery.notes.append(f"the log is damaged at {sentence}")

    async def _wait_flushed(self, position: int) -> bool:
        return await self.flusher.wait_durable(position, force=True)

    def _notice_progress(self) -> None:
        self.flusher.arm()
        if self.written_position >= self.index.notice_at:
            self.index.wake()
        self.plan_notice()

    def plan_notice(self) -> None:
        """Say from which position on `write` must call `_notice_progress`."""
        self._notice_at = self.index.notice_at if self.flusher.armed or self.flusher.failed else 0

    # -- queues -------------------------------------------------------------------------------------------------

    def queue(self, topic: str, queue_id: int) -> LogQueue | None:
        """The queue, or None when it does not exist."""
        return self.queues.get(topic, queue_id)

    def ensure_queue(self, topic: str, queue_id: int) -> LogQueue:
        """The queue, made when it does not exist yet. Raises UsageError."""
        return self.queues.ensure(topic, queue_id)

    def queues_of(self, topic: str) -> list[LogQueue]:
        """The queues of a topic by rising id."""
        return self.queues.of_topic(topic)

    def topics(self) -> list[str]:
        """Every topic that has a queue."""
        return self.queues.topics()

    def drop_topic(self, topic: str) -> None:
        """Forget the queues of a topic: their records cannot be read any more.

        The records stay in the log until their segments go. When the topic comes back, its offsets go on. The index
        stores this soon, not at once: after a crash in between, the queues are there again, so whoever knows which
        topics exist drops the others after opening the log.
        """
        if self._staged:
            self.write_for_reader()
        if self.queues.drop(topic):
            self.index.table_due = True
            self.index.wake()

    # -- durability ---------------------------------------------------------------------------------------------

    @property
    def durable_position(self) -> int:
        """Everything before it survives a power loss."""
        return self.flusher.durable_position

    def when_durable(self, position: int, callback: Callable[[bool], None], *, force: bool = False) -> None:
        """Call back with True once everything before `position` is as durable as the settings ask.

        See `Flusher.when_durable`. What is staged is not written yet: call `write` first.
        """
        self.flusher.when_durable(position, callback, force=force)

    async def wait_durable(self, position: int, *, force: bool = False) -> bool:
        """The same, awaited."""
        return await self.flusher.wait_durable(position, force=force)

    async def close(self) -> None:
        """Write and flush everything, store the index, give the data directory free. A second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self.write()
        except StoreError:
            pass  # whoever staged it was told, or never asked
        self.refuse("closed", StoreError("the log is closed"))
        await self.retention.close()
        await self.index.close()
        await self.flusher.close()
        self.segments.close()
        self._lock.release()

    def problems(self) -> list[str]:
        """What is wrong at the moment, one sentence each; empty when all is well."""
        found = []
        if self.refusal is not None:
            found.append(self.refusal.message)
        if self.index.last_error is not None:
            found.append(f"the index cannot be written and stays in memory: {self.index.last_error}")
        if self.retention.last_error is not None:
            found.append(f"old segments cannot be deleted: {self.retention.last_error}")
        return found

    def statistics(self) -> LogStatistics:
        """Figures for metrics and for people."""
        return LogStatistics(
            min_position=self.min_position,
            max_position=self.max_position,
            written_position=self.written_position,
            durable_position=self.durable_position,
            indexed_position=self.index.covered,
            segments=len(self.segments),
            runs=len(self.runs.files),
            queues_in_memory=len(self.touched),
            appended_records=self.appended_records,
            flushes=self.flusher.flush_count,
            write_failures=self.write_failures,
            deleted_segments=self.retention.deleted_segments,
            disk_used_percent=self.retention.used_percent,
        )
