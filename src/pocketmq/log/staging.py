"""Records on their way into the log: packed, given their place, and not written yet.

What is staged can still be taken back whole, which is what happens when the disk is full.

`append` is the hottest function of the broker. It does each thing once, in as few steps as Python allows, and leaves
everything that is rare (a full segment, IPv6 hosts, a refusal, a record checksum) to `_append_slowly`.
"""

import struct
from binascii import crc32
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from pocketmq.log.queues import NO_UNITS, UNIT, UNIT_BYTES, LogQueue, QueueTable
from pocketmq.log.segments import Segment, Segments
from pocketmq.model.errors import MessageTooLargeError, StoreError, UsageError
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.model.seams import Clock
from pocketmq.wire.properties import PropertyKey, without_property
from pocketmq.wire.record import (
    BLANK_BYTES,
    INT64,
    MAGIC_V1,
    PROPERTIES_LENGTH,
    RECORD_FRONT,
    RECORD_HEAD,
    RECORD_MIDDLE,
    SysFlag,
    blank,
)

Message = tuple[int, bytes | memoryview, bytes, int]
"""Of a batch: flag, body, properties, tag code."""

NOWHERE = 1 << 62
"""A position that no log reaches."""

MARK_BYTES = 64 * 1024
"""About how far apart the record starts are that the key index remembers."""

CLOCK_STEP_BACK_MS = 60_000
"""A wall clock that goes back by less than this is not followed: store timestamps of a log do not fall."""

_HOSTS_V6 = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6
PIECES = 5
"""Each staged record is five pieces: head, body, topic, properties' length, properties."""

_QUEUE_IN_HEAD = struct.Struct(">12xi4xq")
_CRC_KEY = b"__CRC32#\x01"
RECORD_CRC_BYTES = 20
_CRC_SIGN_AT = -13
_CRC_SIGN = ord("#")
"""Where the key of a checksum that ends the properties has its last character: one look tells that there is none."""


_pack_head = RECORD_HEAD.pack
_pack_unit = UNIT.pack
_MAGIC_V1 = MAGIC_V1.to_bytes(4, "big")
_LENGTHS = [PROPERTIES_LENGTH.pack(length) for length in range(1024)]


class TimeRange:
    """The first and the last of some timestamps (ms); `first` is behind `last` when there are none."""

    __slots__ = ("first", "last")

    def __init__(self, first: int = NOWHERE, last: int = 0) -> None:
        self.first = first
        self.last = last

    def add(self, timestamp: int) -> None:
        """Widen the range to hold a timestamp."""
        self.first = min(self.first, timestamp)
        self.last = max(self.last, timestamp)

    def add_range(self, other: "TimeRange") -> None:
        """Widen the range to hold another one, if there is something in that."""
        if other.first <= other.last:
            self.add(other.first)
            self.add(other.last)


class Staging:
    """The records that are staged, and the places they were given.

    Invariant: `written_position <= max_position`; with nothing staged they are equal.
    """

    def __init__(
        self,
        clock: Clock,
        segments: Segments,
        queues: QueueTable,
        *,
        segment_bytes: int,
        record_crc: bool = False,
    ) -> None:
        self.clock = clock
        self.segments = segments
        self.queues = queues
        self.segment_bytes = segment_bytes
        self.max_position = 0
        """Where the next record goes."""
        self.written_position = 0
        """Everything before it can be read."""
        self.on_written: Callable[[Iterable[LogQueue]], None] | None = None
        """Called after a write with the queues that got records and have waiters."""
        self.appended_records = 0
        self.touched: dict[LogQueue, None] = {}
        """Queues with units in memory."""
        self.last_timestamp = 0
        """The store timestamp (ms) of the last record; timestamps rise, but for large steps of the wall clock."""
        self.stretch_timestamps = TimeRange()
        """Store timestamps of the records that are in no run yet, or a wider range."""
        self.marks: list[int] = []
        """Record starts, one in about every 64 KiB, for the key index to take."""

        self.write_failures = 0
        """How often a write failed and all that was staged was taken back."""

        self._record_crc = record_crc
        self._refusals: dict[str, StoreError] = {}
        self._unreported: StoreError | None = None
        self._now = 0
        self._staged: list[bytes | memoryview] = []
        self._sealed: list[tuple[int, int, list[bytes | memoryview], bytes]] = []
        self._woken: dict[LogQueue, None] = {}
        self._limit = -1
        self._segment: Segment
        self._segment_end = 0
        self._staged_from = 0
        self._last_mark = -MARK_BYTES
        self._unclean_from = NOWHERE
        self._notice_at = 0

    def append(
        self,
        queue: LogQueue,
        body: bytes | memoryview,
        properties: bytes,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_host: bytes,
        reconsume_times: int = 0,
        prepared_transaction_offset: int = 0,
        tag_code: int = 0,
    ) -> int:
        """Stage one record and return its position; its queue offset is `queue.next_offset - 1` afterwards.

        Hosts are 8 or 20 bytes and the sys flag says which. Raises StoreFullError or StoreError when the log takes no
        records now, MessageTooLargeError, UsageError; nothing is staged then.
        """
        magic, topic, fixed_bytes = queue.layout
        body_bytes = len(body)
        properties_bytes = len(properties)
        size = fixed_bytes + body_bytes + properties_bytes
        position = self.max_position
        end = position + size
        if (
            end > self._limit
            or sys_flag & _HOSTS_V6
            or properties_bytes > 1023
            or 0 in properties
            or (properties_bytes >= RECORD_CRC_BYTES and properties[_CRC_SIGN_AT] == _CRC_SIGN)
        ):
            return self._append_slowly(
                queue,
                body,
                properties,
                flag,
                sys_flag,
                born_timestamp,
                born_host,
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                tag_code,
            )
        offset = queue.next_offset
        unit = _pack_unit(position, size, tag_code)
        self._staged += (
            _pack_head(
                size,
                magic,
                crc32(body) & 0x7FFFFFFF,
                queue.queue_id,
                flag,
                offset,
                position,
                sys_flag,
                born_timestamp,
                born_host,
                self._now or self._read_clock(),
                store_host,
                reconsume_times,
                prepared_transaction_offset,
                body_bytes,
            ),
            body,
            topic,
            _LENGTHS[properties_bytes],
            properties,
        )
        queue.next_offset = offset + 1
        self.max_position = end
        if queue.units:
            queue.units += unit
        else:
            self._first_unit(queue, unit)
        if queue.waiters:
            self._woken[queue] = None
        return position

    def append_batch(
        self,
        queue: LogQueue,
        messages: Iterable[Message],
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_host: bytes,
    ) -> list[int]:
        """Stage one record per `(flag, body, properties, tag_code)` and return their positions.

        The offsets are the `len(messages)` ones before `queue.next_offset`. Raises as `append`; the messages before
        the one that failed stay staged then.
        """
        positions: list[int] = []
        rest = iter(messages)
        if not sys_flag & _HOSTS_V6:
            slow = self._append_quickly(queue, rest, sys_flag, born_timestamp, born_host, store_host, positions)
            if slow is None:
                return positions
            rest = chain((slow,), rest)
        for flag, body, properties, tag_code in rest:
            positions.append(
                self.append(
                    queue, body, properties, flag, sys_flag, born_timestamp, born_host, store_host, 0, 0, tag_code
                )
            )
        return positions

    def _append_quickly(
        self,
        queue: LogQueue,
        messages: Iterator[Message],
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_host: bytes,
        positions: list[int],
    ) -> Message | None:
        """`append` in a loop, with all that the messages share looked up once.

        Stops at the first message that needs more than that, and returns it; None when there was none.
        """
        magic, topic, fixed_bytes = queue.layout
        queue_id, offset = queue.queue_id, queue.next_offset
        position, limit = self.max_position, self._limit
        now = self._now or self._read_clock()
        staged = self._staged
        units: list[bytes] = []
        slow = None
        try:
            for message in messages:
                flag, body, properties, tag_code = message
                body_bytes = len(body)
                properties_bytes = len(properties)
                size = fixed_bytes + body_bytes + properties_bytes
                if (
                    position + size > limit
                    or properties_bytes > 1023
                    or 0 in properties
                    or (properties_bytes >= RECORD_CRC_BYTES and properties[_CRC_SIGN_AT] == _CRC_SIGN)
                ):
                    slow = message
                    break
                unit = _pack_unit(position, size, tag_code)
                staged += (
                    _pack_head(
                        size,
                        magic,
                        crc32(body) & 0x7FFFFFFF,
                        queue_id,
                        flag,
                        offset,
                        position,
                        sys_flag,
                        born_timestamp,
                        born_host,
                        now,
                        store_host,
                        0,
                        0,
                        body_bytes,
                    ),
                    body,
                    topic,
                    _LENGTHS[properties_bytes],
                    properties,
                )
                units.append(unit)
                positions.append(position)
                offset += 1
                position += size
        finally:
            # Also when the messages turn out to be malformed half-way: what is staged has its place.
            if units:
                queue.next_offset = offset
                self.max_position = position
                if queue.units:
                    queue.units += b"".join(units)
                else:
                    self._first_unit(queue, b"".join(units))
                if queue.waiters:
                    self._woken[queue] = None
        return slow

    def _append_slowly(
        self,
        queue: LogQueue,
        body: bytes | memoryview,
        properties: bytes,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        born_host: bytes,
        store_host: bytes,
        reconsume_times: int,
        prepared_transaction_offset: int,
        tag_code: int,
    ) -> int:
        """`append` for every case: hosts of any kind, a full segment, a record checksum, a refusal."""
        refusal = self._unreported or self.refusal
        if refusal is not None:
            raise type(refusal)(refusal.message)
        magic, topic, fixed_bytes = queue.layout
        if 0 in properties:
            # What was torn off by a power failure reads as zeros; so that recovery can tell, no record holds any there.
            raise UsageError("the properties hold a NUL character", code=13)
        if len(properties) >= RECORD_CRC_BYTES and properties[-RECORD_CRC_BYTES:].startswith(_CRC_KEY):
            # Left from where the message was stored before: here it would be a checksum that does not match.
            properties = without_property(properties, PropertyKey.CRC32.encode())
        if self._record_crc and properties and not properties.endswith(b"\x02"):
            properties += b"\x02"
        properties_bytes = len(properties) + (RECORD_CRC_BYTES if self._record_crc else 0)
        if properties_bytes > PROPERTIES_BYTES_MAX:
            raise MessageTooLargeError(
                f"the properties have {properties_bytes} bytes; at most {PROPERTIES_BYTES_MAX} are allowed"
            )
        size = fixed_bytes - 16 + len(born_host) + len(store_host) + len(body) + properties_bytes
        if size + BLANK_BYTES > self.segment_bytes:
            raise MessageTooLargeError(
                f"the record has {size} bytes; a segment of {self.segment_bytes} bytes cannot hold it"
            )
        self._make_room(size)
        position = self.max_position
        offset = queue.next_offset
        sys_flag &= ~_HOSTS_V6
        if len(born_host) != 8:
            sys_flag |= SysFlag.BORN_HOST_V6
        if len(store_host) != 8:
            sys_flag |= SysFlag.STORE_HOST_V6
        crc = crc32(body) & 0x7FFFFFFF
        now = self._now or self._read_clock()
        head = b"".join(
            (
                RECORD_FRONT.pack(size, magic, crc, queue.queue_id, flag, offset, position, sys_flag, born_timestamp),
                born_host,
                INT64.pack(now),
                store_host,
                RECORD_MIDDLE.pack(reconsume_times, prepared_transaction_offset, len(body)),
            )
        )
        length = PROPERTIES_LENGTH.pack(properties_bytes)
        if self._record_crc:
            properties += _crc_property(head, body, topic, length, properties)
        unit = _pack_unit(position, size, tag_code)
        self._staged += (head, body, topic, length, properties)
        queue.next_offset = offset + 1
        self.max_position = position + size
        if queue.units:
            queue.units += unit
        else:
            self._first_unit(queue, unit)
        if queue.waiters:
            self._woken[queue] = None
        return position

    def _first_unit(self, queue: LogQueue, unit: bytes) -> None:
        queue.units = bytearray(unit)
        self.touched[queue] = None

    def _read_clock(self) -> int:
        now = self.clock.time_ms()
        last = self.last_timestamp
        if last - CLOCK_STEP_BACK_MS < now < last:
            now = last
        self._now = self.last_timestamp = now
        self.stretch_timestamps.add(now)
        return now

    def _make_room(self, size: int) -> None:
        """Seal the segment at the tail if a record of `size` bytes and a blank do not fit into it."""
        segment_end = self._segment_end
        if self.max_position + size + BLANK_BYTES <= segment_end:
            return
        bytes_left = segment_end - self.max_position
        end_record = blank(bytes_left) if bytes_left >= BLANK_BYTES else b""
        self._sealed.append((self._staged_from, segment_end, self._staged, end_record))
        self._staged = []
        self._staged_from = segment_end
        self.max_position = segment_end
        self._segment_end = segment_end + self.segment_bytes
        self._limit_appends()

    def _limit_appends(self) -> None:
        """Set `_limit`, the last position that `append` takes without looking further."""
        open_to_all = not self._refusals and self._unreported is None and not self._record_crc
        self._limit = self._segment_end - BLANK_BYTES if open_to_all else -1

    def refuse(self, reason: str, error: StoreError | None) -> None:
        """Take no more records, for `reason`, until it is called with None for the same reason."""
        if error is None:
            self._refusals.pop(reason, None)
        else:
            self._refusals[reason] = error
        self._limit_appends()

    @property
    def refusal(self) -> StoreError | None:
        """Why no records are taken now, or None."""
        return next(iter(self._refusals.values()), None)

    def _take_back(self) -> int:
        """Forget all staged records, newest first, and return how many there were."""
        pieces = [piece for _, _, sealed, _ in self._sealed for piece in sealed] + self._staged
        for index in range(len(pieces) - PIECES, -1, -PIECES):
            queue_id, offset = _QUEUE_IN_HEAD.unpack_from(pieces[index])
            length_bytes = 1 if pieces[index][4:8] == _MAGIC_V1 else 2
            queue = self.queues.get(str(pieces[index + 2][length_bytes:], "utf-8"), queue_id)
            assert queue is not None
            queue.next_offset = offset
            del queue.units[-UNIT_BYTES:]
            if not queue.units:
                queue.units = NO_UNITS
                self.touched.pop(queue, None)
        self._sealed.clear()
        self._staged.clear()
        self._woken.clear()
        self._now = 0
        self._staged_from = self.max_position = self.written_position
        return len(pieces) // PIECES


def _crc_property(head: bytes, body: bytes | memoryview, topic: bytes, length: bytes, properties: bytes) -> bytes:
    """The property that ends a record when `record_crc` is on: the checksum of all before it, lowest digit first."""
    crc = crc32(properties, crc32(length, crc32(topic, crc32(body, crc32(head)))))
    return record_crc_property(crc)


def record_crc_property(crc: int) -> bytes:
    """20 bytes: the key, ten digits from the lowest to the highest, the separator."""
    digits = str(crc & 0x7FFFFFFF)[::-1].ljust(10, "0")
    return _CRC_KEY + digits.encode() + b"\x02"
