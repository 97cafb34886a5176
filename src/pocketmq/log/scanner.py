"""Reading the log record by record, to check it and to index it again.

One pass over the bytes of a segment: each record is checked (lengths that add up, its own position, the checksum of its
body, no zeros where text must be) and gives its queue a unit. Records of the usual shape take the fast path of
`_scan_chunk`, which does per record what is needed and no more; everything else goes through `check_record`.
"""

import re
import struct
from binascii import crc32
from collections.abc import Callable, Container
from enum import Enum
from typing import NamedTuple

from pocketmq.log.queues import UNIT, LogQueue, QueueTable
from pocketmq.log.segments import Segment
from pocketmq.log.staging import MARK_BYTES, RECORD_CRC_BYTES, TimeRange, record_crc_property
from pocketmq.model.errors import RecordError, UsageError
from pocketmq.model.hashing import tag_code
from pocketmq.wire.properties import find_property
from pocketmq.wire.record import (
    BLANK_BYTES,
    HEAD_BYTES,
    MAGIC_BLANK,
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    RECORD_FRONT,
    STORE_TIMESTAMP_AT,
    Record,
    SysFlag,
    decode_record,
)

CHUNK_BYTES = 64 * 1024
"""How much is looked at together; a record that does not end in it is looked at by itself."""

TAGS_KEPT_MAX = 10_000
"""Most tags whose codes are remembered."""

SECTOR_BYTES = 512
"""The least that a disk writes whole, or not at all."""

GAP_UNITS_MAX = 1_000_000
"""A queue whose offsets jump further than this begins anew at the higher offset."""

_FRONT = struct.Struct(">iIiiiqqi44xi")
_unpack_front = _FRONT.unpack_from
_pack_unit = UNIT.pack
_SIZE_AND_MAGIC = struct.Struct(">iI")
_UNUSUAL = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6 | SysFlag.TRANSACTION_PREPARED
_TOPIC = re.compile(rb"[^\x00-\x20\x7f]+\Z")
_CRC_KEY = b"__CRC32#\x01"
_TORN = b"\0" * 16


class Stop(Enum):
    """Why a scan stopped."""

    LIMIT = "limit"
    SEGMENT_END = "segment end"
    ZEROS = "zeros"
    DAMAGE = "damage"


class ScanEnd(NamedTuple):
    """Where a scan stopped, and why."""

    position: int
    stop: Stop
    reason: str = ""


class ReplayedRecord:
    """One record of a topic that is replayed at the start."""

    __slots__ = ("position", "queue_id", "queue_offset", "record", "topic")

    def __init__(self, topic: str, position: int, record: Record) -> None:
        self.topic = topic
        self.position = position
        self.queue_id = record.queue_id
        self.queue_offset = record.queue_offset
        self.record = record
        """All its fields; the body as stored."""

    @property
    def end(self) -> int:
        """The position after it."""
        return self.position + self.record.size


Replay = Callable[[ReplayedRecord], None]


class Scanner:
    """Indexes records into a table of queues."""

    def __init__(
        self,
        queues: QueueTable,
        touched: dict[LogQueue, None],
        marks: list[int],
        *,
        replay: Replay | None = None,
        replay_topics: Container[str] = (),
        replay_from: int = 0,
    ) -> None:
        self.record_count = 0
        self.timestamps = TimeRange()
        """Of the records that were looked at, the last one of a chunk for all of it."""
        self.jumps: list[str] = []
        """Sentences about queues whose offsets were not the expected ones."""
        self.on_restart: Callable[[LogQueue, int], None] | None = None
        """A queue began anew with the record at a position: earlier runs of it no longer count."""
        self._queues = queues
        self._touched = touched
        self._marks = marks
        self._last_mark = marks[-1] if marks else -MARK_BYTES
        self._replay = replay
        self._replay_topics = replay_topics
        self._replay_from = replay_from
        self._known: dict[tuple[bytes, int], tuple[LogQueue, bool]] = {}
        self._tag_codes: dict[bytes, int] = {}

    def scan(self, segment: Segment, position: int, limit: int) -> ScanEnd:
        """Index the records from `position` on until one ends at or behind `limit`, a chunk of them at most.

        `Stop.LIMIT` says that the limit, or the end of the chunk, was reached and there may be more.
        """
        assert segment.file is not None
        offset = position - segment.start
        # Read, not mapped: the pages of a whole log would count as memory of the process.
        chunk = segment.file.read_at(offset, CHUNK_BYTES)
        if position - self._last_mark >= MARK_BYTES // 2 or offset == 0:
            self._marks.append(position)
            self._last_mark = position
        used, unusual = self._scan_chunk(chunk, position, limit - position)
        if used and not unusual:
            return ScanEnd(position + used, Stop.LIMIT)
        return self._scan_one(segment, position + used)

    def begin_block(self) -> None:
        """What is scanned next does not follow what was scanned last: a block of keys begins with it."""
        self._last_mark = -MARK_BYTES

    def _scan_chunk(self, chunk: bytes, position: int, limit: int) -> tuple[int, bool]:
        """Index records of the usual shape.

        Returns how many bytes were used, and whether the next record needs a closer look (it is unusual, damaged, none
        at all, or not whole in this chunk).
        """
        known = self._known
        tag_codes = self._tag_codes
        length = len(chunk)
        last = length - RECORD_BYTES_MIN
        offset = start = 0
        count = 0
        has_checksums = _CRC_KEY in chunk
        unusual = False
        while offset < limit:
            if offset > last:
                unusual = True
                break
            size, magic, crc, queue_id, _, queue_offset, own_position, sys_flag, body_bytes = _unpack_front(
                chunk, offset
            )
            end = offset + size
            body_end = offset + HEAD_BYTES + body_bytes
            if (
                magic != MAGIC_V1
                or sys_flag & _UNUSUAL
                or own_position != position + offset
                or end > length
                or not offset + HEAD_BYTES <= body_end < end - 2
                or crc32(chunk[offset + HEAD_BYTES : body_end]) & 0x7FFFFFFF != crc
            ):
                unusual = True
                break
            topic_end = body_end + 1 + chunk[body_end]
            properties_at = topic_end + 2
            entry = known.get((chunk[body_end + 1 : topic_end], queue_id))
            if (
                entry is None
                or properties_at + (chunk[topic_end] << 8 | chunk[topic_end + 1]) != end
                # A sector that was never written reads as zeros: it takes the last byte with it, or is inside.
                or (not chunk[end - 1] and properties_at < end)
                or (end - properties_at > SECTOR_BYTES and b"\0" in chunk[properties_at:end])
                or (has_checksums and not _matches_checksum(chunk, offset, end))
            ):
                unusual = True
                break
            queue, replayed = entry
            if queue_offset != queue.next_offset or replayed:
                unusual = True
                break
            tags_at = chunk.rfind(b"TAGS\x01", properties_at, end)
            if tags_at < 0:
                unit = _pack_unit(own_position, size, 0)
            else:
                tags_end = chunk.find(b"\x02", tags_at, end)
                code = tag_codes.get(chunk[tags_at + 5 : tags_end])
                if code is None or tags_end < 0 or (tags_at > properties_at and chunk[tags_at - 1] != 2):
                    code = self._tag_code(find_property(chunk[properties_at:end], b"TAGS") or b"")
                unit = _pack_unit(own_position, size, code)
            queue.next_offset = queue_offset + 1
            if queue.units:
                queue.units += unit
            else:
                queue.units = bytearray(unit)
                self._touched[queue] = None
            count += 1
            start = offset
            offset = end
        if count:
            self.record_count += count
            timestamp = int.from_bytes(chunk[start + STORE_TIMESTAMP_AT : start + STORE_TIMESTAMP_AT + 8], "big")
            self.timestamps.add(timestamp)
        return offset, unusual

    def _scan_one(self, segment: Segment, position: int) -> ScanEnd:
        """Index one record of any shape."""
        found = check_record(segment, position)
        if isinstance(found, ScanEnd):
            return found
        try:
            queue, replayed = self._queue_of(found)
        except UsageError as error:
            return ScanEnd(position, Stop.DAMAGE, str(error))
        if found.sys_flag & SysFlag.TRANSACTION_MASK not in (
            SysFlag.TRANSACTION_PREPARED,
            SysFlag.TRANSACTION_ROLLBACK,
        ):
            self._index(queue, found, position)
        self.record_count += 1
        self.timestamps.add(found.store_timestamp)
        if replayed and position >= self._replay_from and self._replay is not None:
            self._replay(ReplayedRecord(queue.topic, position, found))
        return ScanEnd(position + found.size, Stop.LIMIT)

    def _queue_of(self, record: Record) -> tuple[LogQueue, bool]:
        name = record.topic.encode(), record.queue_id
        entry = self._known.get(name)
        if entry is None:
            queue = self._queues.ensure(record.topic, record.queue_id)
            entry = self._known[name] = queue, record.topic in self._replay_topics
        return entry

    def _index(self, queue: LogQueue, record: Record, position: int) -> None:
        offset = record.queue_offset
        if offset != queue.next_offset:
            self._jump(queue, offset, position)
        unit = _pack_unit(position, record.size, self._tag_code(find_property(record.properties, b"TAGS") or b""))
        queue.next_offset = offset + 1
        if queue.units:
            queue.units += unit
        else:
            queue.units = bytearray(unit)
            self._touched[queue] = None

    def _jump(self, queue: LogQueue, offset: int, position: int) -> None:
        """The record at `position` has not the offset that follows the last one of its queue."""
        expected = queue.next_offset
        is_new = not queue.units and queue.last_run < 0 and expected == queue.min_offset
        if not is_new and expected < offset <= expected + GAP_UNITS_MAX:
            filler = _pack_unit(position, 0, 0)
            if not queue.units:
                self._touched[queue] = None
            queue.units = queue.units + filler * (offset - expected)
            queue.next_offset = offset
            self._note(f"{queue.topic}/{queue.queue_id} has no records at the offsets {expected} to {offset - 1}")
            return
        if not is_new:
            self._note(
                f"{queue.topic}/{queue.queue_id} goes on at offset {offset} after {expected - 1}, at position "
                f"{position}: its earlier records can be read by position only"
            )
            if self.on_restart is not None:
                self.on_restart(queue, position)
        queue.next_offset = queue.min_offset = offset
        if queue.units:
            queue.units = bytearray()
        queue.last_run = -1
        queue.hint = None

    def _note(self, sentence: str) -> None:
        if len(self.jumps) < 100:
            self.jumps.append(sentence)

    def _tag_code(self, tags: bytes) -> int:
        code = tag_code(tags.decode("utf-8", "replace"))
        if tags and len(self._tag_codes) < TAGS_KEPT_MAX:  # an empty value is none: an earlier one counts then
            self._tag_codes[tags] = code
        return code


def _matches_checksum(chunk: bytes, start: int, end: int) -> bool:
    """Whether a record with a checksum property matches it; True for one without."""
    checksum_at = end - RECORD_CRC_BYTES
    if not chunk.startswith(_CRC_KEY, checksum_at):
        return True
    return chunk[checksum_at:end] == record_crc_property(crc32(chunk[start:checksum_at]))


def check_record(segment: Segment, position: int) -> Record | ScanEnd:
    """The record at `position`, every part of it checked, or why there is none."""
    offset = position - segment.start
    bytes_left = segment.size - offset
    if bytes_left < BLANK_BYTES:
        return ScanEnd(position, Stop.SEGMENT_END)
    size, magic = _SIZE_AND_MAGIC.unpack(segment.read(offset, _SIZE_AND_MAGIC.size))
    if magic == MAGIC_BLANK and size == bytes_left:
        return ScanEnd(position, Stop.SEGMENT_END)
    if magic == 0 and size == 0:
        return ScanEnd(position, Stop.ZEROS)
    if magic not in (MAGIC_V1, MAGIC_V2):
        return ScanEnd(position, Stop.DAMAGE, f"the magic is {magic:#010x}")
    if not RECORD_BYTES_MIN <= size <= bytes_left - BLANK_BYTES:
        return ScanEnd(position, Stop.DAMAGE, f"the size of {size} bytes does not fit")
    if size > CHUNK_BYTES:
        # The size may be nonsense: do not read a gigabyte to find that out.
        own_position = RECORD_FRONT.unpack(segment.read(offset, RECORD_FRONT.size))[6]
        if own_position != position:
            return ScanEnd(position, Stop.DAMAGE, _elsewhere(own_position))
    view = memoryview(segment.read(offset, size))
    try:
        record = decode_record(view, check_crc=True)
    except RecordError as error:
        return ScanEnd(position, Stop.DAMAGE, str(error))
    reason = _what_is_wrong(record, view, position)
    return ScanEnd(position, Stop.DAMAGE, reason) if reason else record


def _elsewhere(position: int) -> str:
    return f"the record says that it is at {position}"


def _what_is_wrong(record: Record, view: memoryview, position: int) -> str:
    properties = record.properties
    if record.physical_offset != position:
        return _elsewhere(record.physical_offset)
    if not _TOPIC.match(record.topic.encode()):
        return "the topic has characters that no topic may have"
    if record.queue_offset < 0 or record.queue_id < 0:
        return f"the record says that it is at offset {record.queue_offset} of queue {record.queue_id}"
    if properties.endswith(b"\0") or _TORN in properties:
        # A sector that was never written reads as zeros.
        return "the properties are cut off"
    if len(properties) >= RECORD_CRC_BYTES and properties[-RECORD_CRC_BYTES:].startswith(_CRC_KEY):
        expected = record_crc_property(crc32(view[:-RECORD_CRC_BYTES]))
        if properties[-RECORD_CRC_BYTES:] != expected:
            return "the record does not match its checksum"
    return ""
