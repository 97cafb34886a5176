"""The log: append, write, read, and what runs beside them.

One `Log` owns one data directory. All calls come from one event loop; only the fsync of a file runs in a thread. See
`docs/internals/` for the formats on disk.
"""

from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Literal

from pocketmq.log.flusher import Flusher
from pocketmq.log.index import Index
from pocketmq.log.key_index import KeyQuery
from pocketmq.log.key_search import search
from pocketmq.log.queues import UNIT, UNIT_BYTES, LogQueue, QueueTable
from pocketmq.log.reading import UNITS_MAX, Accept, Picker, ReadStatus, Slice
from pocketmq.log.rebuild import rebuild_run
from pocketmq.log.recovery import Progress, Recovery, RecoveryReport
from pocketmq.log.retention import Retention
from pocketmq.log.run_store import RunFile, RunStore
from pocketmq.log.scanner import Replay
from pocketmq.log.segments import Segments
from pocketmq.log.snapshots import SnapshotStore
from pocketmq.log.tail import NOWHERE, LogTail
from pocketmq.model.errors import StoreError, StoreLockedError
from pocketmq.model.seams import Clock, Disk, DiskLock
from pocketmq.model.settings import StoreSettings
from pocketmq.wire.record import MAGIC_V1, MAGIC_V2, RECORD_BYTES_MIN, RECORD_FRONT

TORN_BYTES_MAX = 64 * 1024 * 1024
"""Valid records that begin further than this behind a damaged place cannot be left from an unfinished write."""

UNITS_SCANNED_MAX = 4096
"""Most index units that one read looks at when a filter turns records away."""


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


class Log(LogTail):
    """The commit log of one data directory."""

    def __init__(
        self, disk: Disk, clock: Clock, settings: StoreSettings, lock: DiskLock, segments: Segments, queues: QueueTable
    ) -> None:
        super().__init__(clock, segments, queues, segment_bytes=settings.segment_bytes, record_crc=settings.record_crc)
        root = settings.data_dir
        self.disk = disk
        self.settings = settings
        self.readable_limit = NOWHERE
        """Consumers see nothing at or beyond it, even when it is written."""
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

    # -- reading ------------------------------------------------------------------------------------------------

    @property
    def min_position(self) -> int:
        """The first byte that is still in the log."""
        return self.segments[0].start

    @property
    def readable_position(self) -> int:
        """Reads give nothing at or beyond it."""
        return min(self.written_position, self.readable_limit)

    def min_offset(self, queue: LogQueue) -> int:
        """The first offset of the queue whose record is in the log; `max_offset` when there is none."""
        return queue.min_offset

    def max_offset(self, queue: LogQueue) -> int:
        """The offset after the last record that a reader may see."""
        if self._staged:
            self.write_for_reader()
        if self.readable_limit < self.written_position:
            return self._readable_offset(queue)
        return queue.next_offset

    def read(self, queue: LogQueue, offset: int, count_max: int, bytes_max: int, accept: Accept | None = None) -> Slice:
        """The records of a queue from `offset` on: at most `count_max`, and `bytes_max` bytes but at least one."""
        if self._staged:
            self.write_for_reader()
        min_offset = queue.min_offset
        max_offset = queue.next_offset
        if self.readable_limit < self.written_position:
            max_offset = self._readable_offset(queue)
        if not min_offset <= offset < max_offset:
            return _nothing(offset, min_offset, max_offset)
        picker = Picker(self.segments, offset, count_max, bytes_max)
        scan_end = min(max_offset, offset + UNITS_SCANNED_MAX)
        while not picker.full and not picker.missing and picker.offset < scan_end and picker.count < count_max:
            wanted = min(UNITS_MAX, scan_end - picker.offset)
            if accept is None:
                wanted = min(wanted, count_max - picker.count)
                picker.take_all(self.unit_bytes(queue, picker.offset, wanted))
            else:
                picker.take_some(self.unit_bytes(queue, picker.offset, wanted), accept)
        if picker.count and picker.records:
            status = ReadStatus.FOUND
        else:
            status = ReadStatus.REMOVED if picker.missing else ReadStatus.NO_MATCH
        return Slice(status, picker.offset, min_offset, max_offset, picker.records, picker.count, picker.size_bytes)

    def unit_bytes(self, queue: LogQueue, offset: int, count: int) -> bytes | bytearray | memoryview:
        """The units of up to `count` offsets from `offset` on; at least one when the offset is in the queue."""
        units = queue.units
        start = len(units) - (queue.next_offset - offset) * UNIT_BYTES
        if start >= 0:
            return units[start : start + count * UNIT_BYTES]
        return self.runs.units(queue, offset, min(count, queue.memory_offset - offset))

    def units(self, queue: LogQueue, offset: int, count: int) -> Iterator[tuple[int, int, int]]:
        """(position, size, tag code) of up to `count` offsets from `offset` on; a size of 0 is a gap."""
        if self._staged:
            self.write_for_reader()
        offset = max(offset, queue.min_offset)
        end = min(offset + count, self.max_offset(queue))
        while offset < end:
            units = self.unit_bytes(queue, offset, min(end - offset, UNITS_MAX))
            yield from UNIT.iter_unpack(units)
            offset += len(units) // UNIT_BYTES

    def record_at(self, position: int) -> memoryview | None:
        """The record that begins at `position`, None when none does or it may not be read yet."""
        if self._staged and position >= self.written_position:
            self.write_for_reader()
        if not self.min_position <= position < self.readable_position:
            return None
        segment = self.segments.find(position)
        if segment is None or segment.view is None or segment.end - position < RECORD_BYTES_MIN:
            return None
        offset = position - segment.start
        size, magic, _, _, _, _, own_position, _, _ = RECORD_FRONT.unpack_from(segment.view, offset)
        if magic not in (MAGIC_V1, MAGIC_V2) or own_position != position or not 0 < size <= segment.end - position:
            return None
        return segment.view[offset : offset + size]

    # -- searching ----------------------------------------------------------------------------------------------

    def offset_by_time(self, queue: LogQueue, timestamp: int, boundary: Literal["lower", "upper"] = "lower") -> int:
        """The first offset stored at or after `timestamp` (ms), or with `upper` the last one stored at or before it.

        Always in `[min_offset, max_offset]`: the end when all are older, the beginning when all are newer.
        """
        low = first = queue.min_offset
        high = self.max_offset(queue)
        if boundary == "upper":
            timestamp += 1
        while low < high:
            middle = (low + high) // 2
            if self._timestamp_of(queue, middle) < timestamp:
                low = middle + 1
            else:
                high = middle
        return low if boundary == "lower" else max(low - 1, first)

    def _timestamp_of(self, queue: LogQueue, offset: int) -> int:
        position, _, _ = UNIT.unpack(self.unit_bytes(queue, offset, 1))
        segment = self.segments.find(position)
        return 0 if segment is None else segment.timestamp_at(position) or 0

    def find_by_key(self, topic: str, key: str, count_max: int, begin_ms: int = 0, end_ms: int = NOWHERE) -> list[int]:
        """Positions of the records of a topic with a key, or with this unique key, the newest first.

        Only those with a store timestamp in `[begin_ms, end_ms]`. Raises StoreCorruptError (retryable) when a part of
        the index that is needed is damaged and is being made again.
        """
        if self._staged:
            self.write_for_reader()
        query = KeyQuery(
            self.segments,
            topic,
            key,
            count_max=count_max,
            begin_ms=begin_ms,
            end_ms=end_ms,
            limit=self.readable_position,
        )
        search(query, self.index, self.runs, self.written_position)
        return query.positions

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

    def _readable_offset(self, queue: LogQueue) -> int:
        """The offset of the first record at or beyond `readable_limit`."""
        low, high = queue.min_offset, queue.next_offset
        while low < high:
            middle = (low + high) // 2
            position, _, _ = UNIT.unpack(self.unit_bytes(queue, middle, 1))
            if position < self.readable_limit:
                low = middle + 1
            else:
                high = middle
        return low


def _nothing(offset: int, min_offset: int, max_offset: int) -> Slice:
    if max_offset == 0:
        status, next_offset = ReadStatus.EMPTY, 0
    elif offset == max_offset:
        status, next_offset = ReadStatus.AT_END, offset
    elif offset > max_offset:
        status, next_offset = ReadStatus.BEYOND_END, max_offset
    else:
        status, next_offset = ReadStatus.TOO_SMALL, min_offset
    return Slice(status, next_offset, min_offset, max_offset, [], 0, 0)
