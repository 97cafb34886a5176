"""The log: append, write, read, and what runs beside them.

One `Log` owns one data directory. All calls come from one event loop; only the fsync of a file runs in a thread. See
`docs/internals/` for the formats on disk.
"""

from collections.abc import Awaitable, Callable, Container

from pocketmq.log.queues import UNIT, UNIT_BYTES, LogQueue, QueueTable
from pocketmq.log.reading import UNITS_MAX, Accept, Picker, ReadStatus, Slice
from pocketmq.log.segments import Segments
from pocketmq.log.tail import NOWHERE, LogTail
from pocketmq.model.errors import StoreLockedError
from pocketmq.model.seams import Clock, Disk, DiskLock
from pocketmq.model.settings import StoreSettings

UNITS_SCANNED_MAX = 4096
"""Most index units that one read looks at when a filter turns records away."""


class Log(LogTail):
    """The commit log of one data directory."""

    def __init__(
        self, disk: Disk, clock: Clock, settings: StoreSettings, lock: DiskLock, segments: Segments, queues: QueueTable
    ) -> None:
        super().__init__(clock, segments, queues, segment_bytes=settings.segment_bytes, record_crc=settings.record_crc)
        self.disk = disk
        self.settings = settings
        self.durable_position = 0
        self.readable_limit = NOWHERE
        """Consumers see nothing at or beyond it, even when it is written."""
        self._lock = lock

    @classmethod
    async def open(
        cls,
        disk: Disk,
        clock: Clock,
        settings: StoreSettings,
        *,
        replay: Callable[[object], None] = lambda record: None,
        replay_from: int = 0,
        replay_topics: Container[str] = (),
        progress: Callable[[object], None] | None = None,
    ) -> "Log":
        """Lock the data directory, load the index, read the tail of the log, and begin to work.

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
        disk.make_folder(f"{root}/commitlog")
        segments = Segments(disk, f"{root}/commitlog")
        segments.load(settings.segment_bytes)
        log = cls(disk, clock, settings, lock, segments, QueueTable())
        log.start_at(0)
        return log

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
        raise NotImplementedError

    def record_at(self, position: int) -> memoryview | None:
        """The record that begins at `position`, None when none does."""
        raise NotImplementedError

    # -- durability ---------------------------------------------------------------------------------------------

    def when_durable(self, position: int, callback: Callable[[bool], None], *, force: bool = False) -> None:
        """Call `callback(True)` once everything before `position` is as durable as the settings ask."""
        callback(True)

    async def wait_durable(self, position: int, *, force: bool = False) -> bool:
        """The same, awaited."""
        return True

    async def close(self) -> None:
        """Flush, store the index, give the data directory free."""
        self.write()
        self.segments.close()
        self._lock.release()

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


Hook = Callable[[int, int], Awaitable[None]]
