"""What a read gives, and how a stretch of index units becomes slices of the log.

A queue that is written alone is handed out as a single piece of the file, whatever the number of messages. Otherwise
each record is a slice of its own: joining them costs less than looking for neighbours.
"""

import struct
from collections.abc import Callable
from enum import Enum

from pocketmq.log.queues import UNIT, UNIT_BYTES
from pocketmq.log.segments import Segments

Accept = Callable[[int, int, int], bool]
"""(tag code, position, size) -> whether the reader wants the record."""

UNITS_MAX = 128
"""Most units that are looked at together; a read looks at more when a filter turns records away."""


class ReadStatus(Enum):
    """Why a read gave what it gave."""

    FOUND = "found"
    NO_MATCH = "no match"
    """Records were looked at and none was accepted; `next_offset` is behind them."""
    EMPTY = "empty"
    """The queue never had a record."""
    AT_END = "at end"
    BEYOND_END = "beyond end"
    TOO_SMALL = "too small"
    REMOVED = "removed"
    """The record is no longer in the log."""


class Slice:
    """What one read found."""

    __slots__ = ("count", "max_offset", "min_offset", "next_offset", "records", "size_bytes", "status")

    def __init__(
        self,
        status: ReadStatus,
        next_offset: int,
        min_offset: int,
        max_offset: int,
        records: list[memoryview],
        count: int,
        size_bytes: int,
    ) -> None:
        self.status = status
        self.next_offset = next_offset
        """Where to read on."""
        self.min_offset = min_offset
        self.max_offset = max_offset
        self.records = records
        """Slices of the log; each holds one or more whole records."""
        self.count = count
        """Number of records in them."""
        self.size_bytes = size_bytes


_UNPACK_UNITS = [struct.Struct(">" + "qiq" * count).unpack for count in range(UNITS_MAX + 1)]


class Picker:
    """Collects the records of one read."""

    __slots__ = ("_segments", "bytes_max", "count", "count_max", "full", "missing", "offset", "records", "size_bytes")

    def __init__(self, segments: Segments, offset: int, count_max: int, bytes_max: int) -> None:
        self._segments = segments
        self.offset = offset
        """The offset after the last unit that was looked at."""
        self.count_max = count_max
        self.bytes_max = bytes_max
        self.records: list[memoryview] = []
        self.count = 0
        self.size_bytes = 0
        self.full = False
        self.missing = False
        """A record was no longer in the log."""

    def take_all(self, units: bytes | bytearray | memoryview) -> None:
        """Take the records of up to UNITS_MAX units, as long as they fit."""
        count = len(units) // UNIT_BYTES
        values = _UNPACK_UNITS[count](units)
        sizes = values[1::3]
        size = sum(sizes)
        first = values[0]
        end = values[-3] + values[-2]
        segment = self._segments.find(first)
        if segment is None or segment.view is None:
            self.missing = True
            return
        start = segment.start
        if size > self.bytes_max - self.size_bytes or 0 in sizes or end > start + segment.size:
            self.take_some(units, None)
            return
        view = segment.view
        if end - first == size:
            self.records.append(view[first - start : end - start])
        else:
            self.records += [
                view[position - start : position - start + length]
                for position, length in zip(values[0::3], sizes, strict=True)
            ]
        self.count += count
        self.size_bytes += size
        self.offset += count

    def take_some(self, units: bytes | bytearray | memoryview, accept: Accept | None) -> None:
        """Take the records that `accept` wants, one by one, as long as they fit. The first always fits."""
        start = end = -1
        for position, size, code in UNIT.iter_unpack(units):
            if size > 0 and (accept is None or accept(code, position, size)):
                if self.count and self.size_bytes + size > self.bytes_max:
                    self.full = True
                    break
                if position != end:
                    if end >= 0 and not self._add(start, end):
                        return
                    start = position
                end = position + size
                self.count += 1
                self.size_bytes += size
            self.offset += 1
            if self.count >= self.count_max:
                self.full = True
                break
        if end >= 0:
            self._add(start, end)

    def _add(self, start: int, end: int) -> bool:
        segment = self._segments.find(start)
        if segment is None or segment.view is None:
            self.missing = True
            return False
        self.records.append(segment.view[start - segment.start : end - segment.start])
        return True
