"""Binary headers of sends, read and written in a few steps: the official benchmark and other busy producers use them.

Theory of operation: one producer's requests differ in three fields, queue id, time and properties; all the rest of the
header, the lengths of its fields included, is the same bytes again and again. So a header that was read field by field
leaves a *layout* behind: the bytes around those three fields, and the values of all others. A later header of the same
size whose bytes around the three fields are the same has the same values, and only the three need to be read. One that
matches no layout is read field by field; nothing is ever guessed.
"""

import struct
from collections.abc import Mapping
from typing import NamedTuple

from pocketmq.model.errors import HeaderError
from pocketmq.wire.codes import CURRENT_VERSION, language_number
from pocketmq.wire.headers.base import decode_header
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2

EXT_AT = 21
"""Where the fields begin when there is no remark: the last four bytes before them are their total length."""

_LENGTH_AT = 17
_QUEUE_ID, _BORN_TIMESTAMP, _PROPERTIES = "e", "g", "i"
_INT32_DIGITS = 9
_INT64_DIGITS = 18
"""Numbers of so many digits fit into their type, whatever they are."""

_LAYOUTS_MAX = 256
"""Of one connection. A producer of many topics would fill memory otherwise; it begins anew instead."""
_SAME_SIZE_MAX = 8
"""Layouts of one header size, since they are tried one after the other."""
_PAUSE = 1000
"""So many headers are not learned from after layouts had to be dropped: learning costs more than it gains then."""

_HEADER_FIELDS = 14
"""Fields of the header itself; those that it shares with other requests are not taken into layouts."""

_ANSWER_HEAD = struct.Struct(">IIhbhiiii")
_ANSWER_HEAD_BYTES = _ANSWER_HEAD.size - 8
_BINARY_KIND = 1 << 24
_RESPONSE_FLAG = 1
_UNIQUE_KEY_BYTES_MAX = 255


class _Layout(NamedTuple):
    before: bytes
    queue_at: int
    queue_end: int
    between: bytes
    born_at: int
    born_end: int
    after: bytes
    properties_at: int
    properties_end: int
    rest: bytes
    destination: tuple[str, str, str, int]
    sys_flag: int
    flag: int
    reconsume_times: int | None
    unit_mode: bool | None
    max_reconsume_times: int | None
    batch: bool | None
    broker_name: str | None


class SendHeaders:
    """The layouts of one connection."""

    __slots__ = ("_count", "_layouts", "_pause")

    def __init__(self) -> None:
        self._layouts: dict[int, list[_Layout]] = {}
        self._count = 0
        self._pause = 0

    def read(self, header: bytes) -> SendMessageRequestHeaderV2 | None:
        """The typed header in a whole binary header (without a remark); None when no layout matches it."""
        for layout in self._layouts.get(len(header), ()):
            (
                before, queue_at, queue_end, between, born_at, born_end, after, properties_at, properties_end, rest,
                destination, sys_flag, flag, reconsume_times, unit_mode, max_reconsume_times, batch, broker_name,
            ) = layout  # fmt: skip
            if (
                header.startswith(before, _LENGTH_AT)
                and header.startswith(between, queue_end)
                and header.startswith(after, born_end)
                and header.endswith(rest)
            ):
                queue_id, born_timestamp = header[queue_at:queue_end], header[born_at:born_end]
                if not (queue_id.isdigit() and born_timestamp.isdigit()):
                    return None
                return SendMessageRequestHeaderV2(
                    *destination,
                    int(queue_id),
                    sys_flag,
                    int(born_timestamp),
                    flag,
                    header[properties_at:properties_end].decode(),
                    reconsume_times,
                    unit_mode,
                    max_reconsume_times,
                    batch,
                    broker_name,
                )
        return None

    def learn(self, header: bytes, fields: Mapping[str, str]) -> None:
        """Keep the layout of a header that was read field by field into `fields`, if it has one."""
        if self._pause:
            self._pause -= 1
            return
        typed = _plain_header(fields)
        if typed is None:
            return
        places = _places(header)
        queue_at, queue_end = places[_QUEUE_ID]
        born_at, born_end = places[_BORN_TIMESTAMP]
        properties_at, properties_end = places[_PROPERTIES]
        if not queue_end < born_at < born_end < properties_at:
            return
        if queue_end - queue_at > _INT32_DIGITS or born_end - born_at > _INT64_DIGITS:
            return
        self._room_for(len(header)).append(
            _Layout(
                header[_LENGTH_AT:queue_at],
                queue_at,
                queue_end,
                header[queue_end:born_at],
                born_at,
                born_end,
                header[born_end:properties_at],
                properties_at,
                properties_end,
                header[properties_end:],
                (typed.producer_group, typed.topic, typed.default_topic, typed.default_topic_queue_nums),
                typed.sys_flag,
                typed.flag,
                typed.reconsume_times,
                typed.unit_mode,
                typed.max_reconsume_times,
                typed.batch,
                typed.broker_name,
            )
        )

    def _room_for(self, size: int) -> list[_Layout]:
        if self._count >= _LAYOUTS_MAX:
            self._layouts.clear()
            self._count = 0
            self._pause = _PAUSE
        same_size = self._layouts.setdefault(size, [])
        if len(same_size) >= _SAME_SIZE_MAX:
            self._count -= len(same_size)
            same_size.clear()
            self._pause = _PAUSE
        self._count += 1
        return same_size


def _plain_header(fields: Mapping[str, str]) -> SendMessageRequestHeaderV2 | None:
    """The typed header, if its fields are just these and written the usual way; so that no layout loses anything."""
    if _PROPERTIES not in fields or len(fields) > _HEADER_FIELDS:
        return None
    try:
        typed = decode_header(SendMessageRequestHeaderV2, fields)
    except HeaderError:
        return None
    shared = (typed.namespace_v2, typed.namespaced, typed.target_broker, typed.oneway, typed.logical_queue)
    if any(value is not None for value in shared) or typed.to_ext() != fields:
        return None
    return typed


def _places(header: bytes) -> dict[str, tuple[int, int]]:
    """Where the value of each field begins and ends, in a header that is known to be whole."""
    places = {}
    offset = EXT_AT
    while offset < len(header):
        value_at = offset + 6 + int.from_bytes(header[offset : offset + 2], "big")
        end = value_at + int.from_bytes(header[value_at - 4 : value_at], "big")
        places[header[offset + 2 : value_at - 4].decode()] = (value_at, end)
        offset = end
    return places


class BinarySendAnswer:
    """Writes the answer to a plain send that succeeded, in a binary header."""

    def __init__(self, region: str, trace_on: str, language: str) -> None:
        fields = b"".join(
            _field(name.encode(), value.encode()) for name, value in (("MSG_REGION", region), ("TRACE_ON", trace_on))
        )
        self._ext = (
            fields.replace(b"%", b"%%")
            + b"\0\5msgId\0\0\0%c%b%016X"
            + b"\0\7queueId\0\0\0%c%b"
            + b"\0\13queueOffset\0\0\0%c%b"
            + b"\0\15transactionId\0\0\0%c%b"
        )
        self._language = language_number(language)

    def encode(
        self, opaque: int, message_id_prefix: bytes, position: int, queue_id: int, queue_offset: int, unique_key: bytes
    ) -> bytes | None:
        """The frame; None when `unique_key` is too long for it. The message id is `prefix` and `position` in hex."""
        if len(unique_key) > _UNIQUE_KEY_BYTES_MAX:
            return None
        queue, offset = b"%d" % queue_id, b"%d" % queue_offset
        ext = self._ext % (
            len(message_id_prefix) + 16,
            message_id_prefix,
            position,
            len(queue),
            queue,
            len(offset),
            offset,
            len(unique_key),
            unique_key,
        )
        length = _ANSWER_HEAD_BYTES + len(ext)
        head = _ANSWER_HEAD.pack(
            4 + length,
            _BINARY_KIND | length,
            0,
            self._language,
            CURRENT_VERSION,
            opaque,
            _RESPONSE_FLAG,
            0,
            len(ext),
        )
        return head + ext


def _field(name: bytes, value: bytes) -> bytes:
    return len(name).to_bytes(2, "big") + name + len(value).to_bytes(4, "big") + value
