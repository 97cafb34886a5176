"""Reading the log: by queue and offset, by position, by time, by key."""

from collections.abc import Iterator
from typing import Literal

from pocketmq.log.index import Index
from pocketmq.log.key_index import KeyQuery
from pocketmq.log.key_search import search
from pocketmq.log.queues import UNIT, UNIT_BYTES, LogQueue
from pocketmq.log.reading import UNITS_MAX, Accept, Picker, ReadStatus, Slice
from pocketmq.log.run_store import RunStore
from pocketmq.log.staging import NOWHERE
from pocketmq.log.tail import LogTail
from pocketmq.wire.record import MAGIC_V1, MAGIC_V2, RECORD_BYTES_MIN, RECORD_FRONT

UNITS_SCANNED_MAX = 4096
"""Most index units that one read looks at when a filter turns records away."""


class LogReader(LogTail):
    """A log that can be read. What is staged is written before anything is read."""

    index: Index
    runs: RunStore
    readable_limit = NOWHERE
    """Consumers see nothing at or beyond it, even when it is written."""
    _hidden: dict[LogQueue, None]
    """Queues with records beyond the limit that somebody waits for."""

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
        record = self.written_record_at(position)
        return record if position < self.readable_position else None

    def written_record_at(self, position: int) -> memoryview | None:
        """The same, readable or not: for the broker's own work, whose results are not readable before it either."""
        if self._staged and position >= self.written_position:
            self.write_for_reader()
        if not self.min_position <= position < self.written_position:
            return None
        segment = self.segments.find(position)
        if segment is None or segment.view is None or segment.end - position < RECORD_BYTES_MIN:
            return None
        offset = position - segment.start
        front = segment.read(offset, RECORD_FRONT.size)
        size, magic, _, _, _, _, own_position, _, _ = RECORD_FRONT.unpack(front)
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
        if low < queue.next_offset:
            self._hide({queue: None})
        return low

    def _show(self, woken: dict[LogQueue, None]) -> None:
        if self.readable_limit < self.written_position:
            self._hide(woken)
        else:
            super()._show(woken)

    def _hide(self, queues: dict[LogQueue, None]) -> None:
        """Somebody waits for what lies beyond the limit."""
        self._hidden.update(queues)

    def show_until(self, position: int) -> None:
        """Let consumers see what lies before `position`, and tell those who wait for it."""
        self.readable_limit = position
        if self._hidden:
            hidden, self._hidden = self._hidden, {}
            super()._show({queue: None for queue in hidden if queue.waiters})


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
