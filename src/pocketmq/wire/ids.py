"""Message ids and client ids.

Two ids name a message. The *offset id* says where it is stored: store host (4 or 16 address bytes, int32 port) and
int64 position in the commit log, as upper-case hex. The *unique key* is given by the producing client:

    ip (4 | 16) | int16 pid | int32 a constant of the process | uint32 ms since the local month began | int16 counter

also as upper-case hex, 32 or 56 characters. Operators' tools read the time back from it, so the layout is kept.
Source: RocketMQ's `MessageDecoder.createMessageId`, `MessageClientIDSetter`, `RecallMessageHandle`.
"""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta, timezone

from pocketmq.model.errors import UsageError
from pocketmq.wire.hosts import HOST_V4_BYTES, HOST_V6_BYTES, unpack_host

_POSITION = struct.Struct(">q")
_KEY_TAIL = struct.Struct(">IH")
_OFFSET_ID_BYTES = (HOST_V4_BYTES + 8, HOST_V6_BYTES + 8)


def encode_offset_id(store_host: bytes, position: int) -> str:
    """The offset id of the record at `position` of the broker at `store_host` (as `pack_host` gives it)."""
    return (store_host + _POSITION.pack(position)).hex().upper()


def decode_offset_id(message_id: str) -> tuple[str, int, int]:
    """(address, port, position) of an offset id. Raises UsageError when it is none."""
    try:
        data = bytes.fromhex(message_id)
    except ValueError:
        data = b""
    if len(data) not in _OFFSET_ID_BYTES or len(message_id) != 2 * len(data):
        raise UsageError(f"{message_id!r} is not an offset message id (32 or 56 hexadecimal digits)")
    (position,) = _POSITION.unpack_from(data, len(data) - 8)
    return (*unpack_host(data[:-8]), position)


class UniqueKeys:
    """Makes the unique keys of one process. Pure: the caller says what time it is.

    `address` is the packed IP address (4 or 16 bytes), `seed` any constant of the process, `utc_offset_s` the local
    time zone's, since the month is the local one.
    """

    __slots__ = ("_counter", "_month_end_ms", "_month_start_ms", "_prefix", "_utc_offset_s")

    def __init__(self, address: bytes, pid: int, seed: int, *, utc_offset_s: int = 0) -> None:
        self._prefix = (
            (address + (pid & 0xFFFF).to_bytes(2, "big") + (seed & 0xFFFFFFFF).to_bytes(4, "big")).hex().upper()
        )
        self._utc_offset_s = utc_offset_s
        self._counter = 0
        self._month_start_ms = 0
        self._month_end_ms = 0

    def next(self, time_ms: int) -> str:
        """A key that no other call in this process returns within 65,536 calls of the same millisecond."""
        if not self._month_start_ms <= time_ms < self._month_end_ms:
            self._month_start_ms, self._month_end_ms = month_bounds_ms(time_ms, self._utc_offset_s)
        counter = self._counter
        self._counter = (counter + 1) & 0xFFFF
        return self._prefix + _KEY_TAIL.pack((time_ms - self._month_start_ms) & 0xFFFFFFFF, counter).hex().upper()


def month_bounds_ms(time_ms: int, utc_offset_s: int = 0) -> tuple[int, int]:
    """(first millisecond of the month, first of the next month) in a zone `utc_offset_s` east of Greenwich."""
    zone = timezone(timedelta(seconds=utc_offset_s))
    start = datetime.fromtimestamp(time_ms / 1000, zone).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = (start + timedelta(days=32)).replace(day=1)
    return round(start.timestamp() * 1000), round(end.timestamp() * 1000)


def unique_key_time_ms(key: str, now_ms: int, utc_offset_s: int = 0) -> int | None:
    """About when a unique key was made, in ms: this month or, if that lies ahead, the month before. None if unknown."""
    try:
        data = bytes.fromhex(key)
    except ValueError:
        return None
    if len(data) not in (16, 28):
        return None
    since_month_ms = int.from_bytes(data[-6:-2], "big")
    start, _ = month_bounds_ms(now_ms, utc_offset_s)
    if start + since_month_ms > now_ms:
        start, _ = month_bounds_ms(start - 1, utc_offset_s)
    return start + since_month_ms


def client_id(address: str, instance_name: str, unit_name: str | None = None) -> str:
    """`address@instance[@unit]`: what a client calls itself towards brokers; must be unique in its groups."""
    return f"{address}@{instance_name}" + (f"@{unit_name}" if unit_name else "")


def encode_recall_handle(topic: str, broker_name: str, deliver_time_ms: int, unique_key: str) -> str:
    """What a send of a timed message returns, and what takes the message back (370): base64url of its four parts."""
    return urlsafe_b64encode(f"v1 {topic} {broker_name} {deliver_time_ms} {unique_key}".encode()).decode()


def decode_recall_handle(handle: str) -> tuple[str, str, int, str]:
    """(topic, broker name, delivery time in ms, unique key). Raises UsageError when `handle` is none."""
    try:
        version, topic, broker_name, deliver_time, unique_key = urlsafe_b64decode(handle).decode().split(" ")
        if version == "v1":
            return topic, broker_name, int(deliver_time), unique_key
    except ValueError:
        pass
    raise UsageError(f"{handle[:100]!r} is not a recall handle")
