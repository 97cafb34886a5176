"""Finding records by key: UNIQ_KEY and the blank-separated words of KEYS.

Nothing is done for keys while a record is sent. Beside that, block by block (about 64 KiB, from one record start to
another), one search over the bytes collects whatever looks like a key; each gives `CRC32(key) << 32 | block`. Finding a
key means: the blocks that its hash leads to, the bytes of the key in them, the record around those bytes, and whether
that record really has this topic and this key. So the collected keys may hold too much (bytes in a body that look like
a property), but never too little. The topic is not part of the hash: it is compared in the record.
"""

import re
from array import array
from binascii import crc32
from bisect import bisect_left
from collections.abc import Iterator

from pocketmq.log.segments import Segments
from pocketmq.model.errors import RecordError
from pocketmq.wire.properties import find_property
from pocketmq.wire.record import Record, decode_record

# UNIQ_KEY\x01... and KEYS\x01... ; one literal beginning, so that the search runs at the speed of memory.
_KEYS = re.compile(rb"KEYS?\x01([^\x00-\x02]+)")

LIST_KEYS = 16 * 1024
"""How many keys are sorted at once: a few milliseconds."""


def collect_keys(data: bytes, block: int) -> list[int]:
    """One `hash << 32 | block` for each key in a block of records, unsorted."""
    words = b" ".join(_KEYS.findall(data)).split()
    return [key_hash << 32 | block for key_hash in map(crc32, words)]


class KeyCollector:
    """The keys of the stretch that is not in a run yet."""

    def __init__(self, segments: Segments, start: int) -> None:
        self._segments = segments
        self.blocks = [start]
        """Record starts; block `i` goes from `blocks[i]` to `blocks[i + 1]`, the last one to the end of the log."""
        self.lists: list[array[int]] = []
        self._keys: list[int] = []
        self._next = 0

    def add_blocks(self, marks: list[int], end: int) -> int:
        """Take record starts before `end` from the front of `marks`; returns how many were taken."""
        taken = bisect_left(marks, end)
        last = self.blocks[-1]
        for mark in marks[:taken]:
            if mark > last:
                self.blocks.append(mark)
                last = mark
        return taken

    @property
    def behind(self) -> int:
        """Number of whole blocks whose keys are not collected yet."""
        return len(self.blocks) - 1 - self._next

    @property
    def collected_position(self) -> int:
        """The keys of all records before it are collected."""
        return self.blocks[self._next]

    def collect_block(self) -> None:
        """Collect the keys of one whole block."""
        number = self._next
        self._collect(number, self.blocks[number + 1])
        self._next = number + 1

    def finish(self, end: int) -> None:
        """Collect the last block, which ends at `end`; there must be no other left."""
        assert self._next == len(self.blocks) - 1
        if self.blocks[-1] < end:
            self._collect(self._next, end)
        self._sort()

    def find_blocks(self, key_hash: int) -> list[int]:
        """Numbers of the collected blocks that may hold a key with this hash, the last one first."""
        found = {key & 0xFFFFFFFF for key in self._keys if key >> 32 == key_hash}
        for keys in self.lists:
            start = bisect_left(keys, key_hash << 32)
            stop = bisect_left(keys, (key_hash + 1) << 32, start)
            found.update(key & 0xFFFFFFFF for key in keys[start:stop])
        return sorted(found, reverse=True)

    def _collect(self, number: int, end: int) -> None:
        segment = self._segments.find(self.blocks[number])
        if segment is None or segment.file is None:
            return
        start = self.blocks[number]
        self._keys += collect_keys(segment.file.read_at(start - segment.start, end - start), number)
        if len(self._keys) >= LIST_KEYS:
            self._sort()

    def _sort(self) -> None:
        if self._keys:
            self._keys.sort()
            self.lists.append(array("Q", self._keys))
            self._keys = []


class KeyQuery:
    """One search for a key: goes through blocks, newest first, and keeps the positions of the records that match."""

    def __init__(
        self, segments: Segments, topic: str, key: str, *, count_max: int, begin_ms: int, end_ms: int, limit: int
    ) -> None:
        self.segments = segments
        self.key = key.encode()
        self.key_hash = crc32(self.key.split()[0]) if self.key.strip() else 0
        self.positions: list[int] = []
        self._topic = topic
        self._pattern = re.compile(re.escape(self.key))
        self._count_max = count_max
        self.begin_ms = begin_ms
        self.end_ms = end_ms
        self._limit = limit

    @property
    def full(self) -> bool:
        """Enough was found."""
        return len(self.positions) >= self._count_max

    def search_block(self, start: int, end: int) -> None:
        """Look at the records in `[start, end)`, which begins with a record, inside one segment."""
        segment = self.segments.find(start)
        if segment is None or segment.view is None:
            return
        view = segment.view[start - segment.start : min(end, self._limit, segment.end) - segment.start]
        hits = [match.start() for match in self._pattern.finditer(view)]
        matching = [start + offset for offset in _records_around(view, hits) if self._matches(view, offset)]
        for position in reversed(matching):
            if not self.full:
                self.positions.append(position)

    def _matches(self, view: memoryview, offset: int) -> bool:
        try:
            record = decode_record(view, offset)
        except RecordError:
            return False
        return (
            record.topic == self._topic
            and self.begin_ms <= record.store_timestamp <= self.end_ms
            and has_key(record, self.key)
        )


def has_key(record: Record, key: bytes) -> bool:
    """Whether the record can be found by this key."""
    properties = record.properties
    if find_property(properties, b"UNIQ_KEY") == key:
        return True
    keys = find_property(properties, b"KEYS")
    return keys is not None and bool(key) and key in keys.split(b" ")


def _records_around(view: memoryview, hits: list[int]) -> Iterator[int]:
    """Offsets of the records that hold the offsets in `hits` (rising), each once."""
    offset = 0
    for hit in hits:
        if hit < offset:
            continue
        while offset < len(view):
            size = int.from_bytes(view[offset : offset + 4], "big")
            if size <= 0:
                return
            if offset + size > hit:
                yield offset
                offset += size
                break
            offset += size
