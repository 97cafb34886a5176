"""The format of a run: the index of one stretch of the log, written once. See `docs/internals/queue-index.md`.

    header | units, grouped by queue | key lists | directory

The directory holds what is needed to find anything (queues, topics, blocks, key lists, a checksum per page of the two
large parts) and is covered by a checksum of its own, so that opening a run costs the same whatever its size, and each
page of it is checked when it is first used. Pure: bytes in, values out.
"""

import struct
import sys
from array import array
from binascii import crc32
from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from pocketmq.log.queues import UNIT_BYTES
from pocketmq.model.errors import StoreCorruptError

MAGIC = b"PMQRUN\x00\x01"
HEADER = struct.Struct("<8sqqqqIIIIQQQII")
HEADER_BYTES = 128
PAGE_BYTES = 16 * 1024

ENTRY = struct.Struct("<qqqII")
"""One queue of the directory: first offset, previous run, first unit, number of units, topic."""

KEY_BYTES = 8


class RunHeader(NamedTuple):
    """What a run covers and where its parts are."""

    start: int
    """The run indexes the records at the positions `[start, end)`, all in one segment."""
    end: int
    first_timestamp: int
    """No record in it has an earlier store timestamp (ms) ..."""
    last_timestamp: int
    """... and none a later one."""
    queue_count: int
    topic_count: int
    block_count: int
    list_count: int
    unit_count: int
    key_count: int
    directory_bytes: int
    directory_crc: int

    @property
    def data_bytes(self) -> int:
        """Size of the units and the key lists."""
        return self.unit_count * UNIT_BYTES + self.key_count * KEY_BYTES

    @property
    def file_bytes(self) -> int:
        """Size of the whole file."""
        return HEADER_BYTES + self.data_bytes + self.directory_bytes


class RunEntry(NamedTuple):
    """The units of one queue in a run: offsets `[first, end)`."""

    first: int
    end: int
    first_unit: int
    """Number of the unit of `first`, from 0."""
    previous: int
    """Start of the run with the queue's units before `first`; -1 when there is none."""


class DirectoryEntry(NamedTuple):
    """One queue, as a writer of runs knows it."""

    key: int
    topic: str
    queue_id: int
    first: int
    unit_count: int
    previous: int
    first_unit: int = 0
    """Number of its first unit; known when read, not needed for writing."""


def queue_key(topic: str, queue_id: int) -> int:
    """What queues are sorted by in a directory. Queues of one topic have neighbouring keys."""
    return crc32(topic.encode()) << 32 | queue_id


def pack_header(header: RunHeader) -> bytes:
    """128 bytes, the last four before the padding a checksum of those before."""
    values = HEADER.pack(
        MAGIC,
        header.start,
        header.end,
        header.first_timestamp,
        header.last_timestamp,
        header.queue_count,
        header.topic_count,
        header.block_count,
        header.list_count,
        header.unit_count,
        header.key_count,
        header.directory_bytes,
        header.directory_crc,
        0,
    )[:-4]
    return (values + crc32(values).to_bytes(4, "little")).ljust(HEADER_BYTES, b"\0")


def parse_header(data: bytes, path: str) -> RunHeader:
    """The header of a run. Raises StoreCorruptError when it is none."""
    if len(data) < HEADER_BYTES or data[:8] != MAGIC:
        raise StoreCorruptError(f"{path} is not an index run")
    end = HEADER.size - 4
    if crc32(data[:end]) != int.from_bytes(data[end : end + 4], "little"):
        raise StoreCorruptError(f"{path}: the header does not match its checksum")
    return RunHeader(*HEADER.unpack_from(data)[1:-1])


class DirectoryPacker:
    """Builds a directory, queue by queue, in the order of their keys, which is the order of their units."""

    def __init__(self) -> None:
        self._keys = array("Q")
        self._rows: list[bytes] = []
        self._topics: dict[str, int] = {}
        self._unit_count = 0

    def add(self, entry: DirectoryEntry) -> None:
        """The next queue."""
        topic = self._topics.setdefault(entry.topic, len(self._topics))
        self._keys.append(entry.key)
        self._rows.append(ENTRY.pack(entry.first, entry.previous, self._unit_count, entry.unit_count, topic))
        self._unit_count += entry.unit_count

    @property
    def topic_count(self) -> int:
        """Number of different topics so far."""
        return len(self._topics)

    def finish(self, blocks: Sequence[int], list_counts: Sequence[int], page_crcs: Sequence[int]) -> bytes:
        """The whole directory."""
        names = [topic.encode() for topic in self._topics]
        parts = [
            _column("Q", self._keys),
            b"".join(self._rows),
            _column("Q", blocks),
            _column("I", list_counts),
            _column("I", page_crcs),
            _column("I", list(accumulate(map(len, names)))),
            b"".join(names),
        ]
        return b"".join(parts)


class Run:
    """A run that is open. Everything in it is read in place."""

    def __init__(self, path: str, view: memoryview) -> None:
        """Check the header and the directory. Raises StoreCorruptError."""
        self.path = path
        self.header = header = parse_header(bytes(view[:HEADER_BYTES]), path)
        if len(view) != header.file_bytes:
            raise StoreCorruptError(f"{path} has {len(view)} bytes instead of {header.file_bytes}")
        directory_at = HEADER_BYTES + header.data_bytes
        directory = view[directory_at:]
        if crc32(directory) != header.directory_crc:
            raise StoreCorruptError(f"{path}: the directory does not match its checksum")
        units_end = HEADER_BYTES + header.unit_count * UNIT_BYTES
        page_count = -(-header.data_bytes // PAGE_BYTES)
        self._view = view
        self._units = view[HEADER_BYTES:units_end]
        self._keys = _read_column("Q", view[units_end:directory_at])
        self._data = view[HEADER_BYTES:directory_at]
        cutter = _Cutter(directory)
        self._queue_keys = cutter.column("Q", header.queue_count)
        self._entries = cutter.bytes(header.queue_count * ENTRY.size)
        self.blocks = cutter.column("Q", header.block_count)
        self._list_counts = cutter.column("I", header.list_count)
        self._page_crcs = cutter.column("I", page_count)
        self._name_ends = cutter.column("I", header.topic_count)
        self._names = cutter.rest()
        self._checked = bytearray(page_count)

    def find(self, topic: str, queue_id: int) -> RunEntry | None:
        """The queue's entry, or None when the run has no units of it."""
        key = queue_key(topic, queue_id)
        keys = self._queue_keys
        number = bisect_left(keys, key)
        while number < len(keys) and keys[number] == key:
            first, previous, index, count, topic_number = ENTRY.unpack_from(self._entries, number * ENTRY.size)
            if self._topic(topic_number) == topic:
                return RunEntry(first, first + count, index, previous)
            number += 1
        return None

    def directory(self, start: int = 0, stop: int | None = None) -> list[DirectoryEntry]:
        """Some or all queues of the run, in the order of their keys."""
        names: dict[int, str] = {}
        found = []
        for number in range(start, min(stop or self.header.queue_count, self.header.queue_count)):
            first, previous, index, count, topic_number = ENTRY.unpack_from(self._entries, number * ENTRY.size)
            topic = names.get(topic_number) or names.setdefault(topic_number, self._topic(topic_number))
            key = self._queue_keys[number]
            found.append(DirectoryEntry(key, topic, key & 0xFFFFFFFF, first, count, previous, index))
        return found

    def units(self, index: int, count: int) -> memoryview:
        """`count` units from number `index` on. Raises StoreCorruptError when they do not match their checksum."""
        self._check(index * UNIT_BYTES, (index + count) * UNIT_BYTES)
        return self._units[index * UNIT_BYTES : (index + count) * UNIT_BYTES]

    def key_blocks(self, key_hash: int) -> list[int]:
        """Numbers of the blocks in which a record has a key with this hash, the last one first.

        Raises StoreCorruptError when the part of the key lists that says so does not match its checksum.
        """
        keys = self._keys
        found: set[int] = set()
        low = 0
        for count in self._list_counts:
            high = low + count
            start = bisect_left(keys, key_hash << 32, low, high)
            stop = bisect_left(keys, (key_hash + 1) << 32, start, high)
            # Both neighbours are checked as well: if they are right, so is the place that the search ended at.
            self._check_keys(max(start - 1, low), min(stop + 1, high))
            found.update(key & 0xFFFFFFFF for key in keys[start:stop])
            low = high
        return sorted(found, reverse=True)

    @property
    def list_counts(self) -> Sequence[int]:
        """How many keys each of the sorted key lists has; they stand one behind the other."""
        return self._list_counts

    def keys(self, start: int, stop: int) -> Sequence[int]:
        """Some entries of the key lists, `hash << 32 | block`. Raises StoreCorruptError."""
        self._check_keys(start, stop)
        return self._keys[start:stop]

    def _check_keys(self, start: int, stop: int) -> None:
        at = len(self._units)
        self._check(at + start * KEY_BYTES, at + stop * KEY_BYTES)

    def _check(self, start: int, end: int) -> None:
        """Compare each page of the data that was not used before with its checksum."""
        for page in range(start // PAGE_BYTES, -(-end // PAGE_BYTES)):
            if not self._checked[page]:
                data = self._data[page * PAGE_BYTES : (page + 1) * PAGE_BYTES]
                if crc32(data) != self._page_crcs[page]:
                    raise StoreCorruptError(f"{self.path}: page {page} does not match its checksum")
                self._checked[page] = 1

    def _topic(self, number: int) -> str:
        start = self._name_ends[number - 1] if number else 0
        return str(self._names[start : self._name_ends[number]], "utf-8")


class _Cutter:
    """Takes a directory apart, from front to back."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def bytes(self, count: int) -> memoryview:
        part = self._view[self._at : self._at + count]
        self._at += count
        return part

    def column(self, code: str, count: int) -> Sequence[int]:
        return _read_column(code, self.bytes(count * array(code).itemsize))

    def rest(self) -> memoryview:
        return self._view[self._at :]


def _column(code: str, values: Sequence[int]) -> bytes:
    column = array(code, values)
    if sys.byteorder == "big":
        column.byteswap()
    return column.tobytes()


def _read_column(code: str, view: memoryview) -> Sequence[int]:
    if sys.byteorder == "little":
        return view.cast(code)  # type: ignore[call-overload, no-any-return]
    column = array(code, view.tobytes())
    column.byteswap()
    return column
