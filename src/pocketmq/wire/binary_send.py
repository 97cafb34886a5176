"""Binary headers of sends, read and written in a few steps: the official benchmark and other busy producers use them.

Theory of operation: one producer's requests differ in three fields, queue id, time and properties, and the properties
mostly in the unique key alone; all the rest of the header, the lengths of its fields included, is the same bytes again
and again. So a header that was read field by field leaves a *layout* behind: the bytes around those fields, and the
values of all others, its *shape*. A later header of the same size whose bytes around the fields are the same has the
same shape, and only they need to be read. One that matches no layout is read field by field; nothing is ever guessed.

What the broker finds out about a shape (where such messages go, whether they need more than appending) it keeps in
`SendShape.plan`, and so looks at it once, not with each message.
"""

import struct
from collections.abc import Mapping
from typing import Any

import msgspec

from pocketmq.model.errors import HeaderError
from pocketmq.wire.codes import CURRENT_VERSION, language_number
from pocketmq.wire.headers.base import decode_header
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2
from pocketmq.wire.properties import PropertyKey

EXT_AT = 21
"""Where the fields begin when there is no remark: the last four bytes before them are their total length."""
_OPAQUE_AT = 5

_FLAG_AT = 9
_CODE = struct.Struct(">hbh")
_unpack_int32 = struct.Struct(">i").unpack_from
_Places = dict[str, tuple[int, int]]
"""Of each field: where its value begins and ends in the header."""
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
_RESHAPES_MAX = 16
"""How often a layout takes other properties for its usual ones."""

_HEADER_FIELDS = 14
"""Fields of the header itself; those that it shares with other requests are not taken into layouts."""

_UNIQUE_KEY_MARK = PropertyKey.UNIQUE_KEY.encode() + b"\x01"

_ANSWER_HEAD = struct.Struct(">IIhbh")
_ANSWER_TAIL = struct.Struct(">iii")
_OPAQUE = struct.Struct(">i").pack
_ANSWER_HEAD_BYTES = _ANSWER_HEAD.size + 4 + _ANSWER_TAIL.size - 8
_BINARY_KIND = 1 << 24
_RESPONSE_FLAG = 1
UNIQUE_KEY_BYTES_MAX = 255
"""Longer ones are not answered by template."""
_TEMPLATES_MAX = 1024


class SendShape:
    """What the sends of one layout and with the same properties but for the unique key have in common."""

    __slots__ = (
        "behind_key", "code", "constant", "flag", "key_bytes", "key_mark", "language", "plan", "template", "unpack",
        "version",
    )  # fmt: skip

    def __init__(self, layout: "_Layout", template: SendMessageRequestHeaderV2, properties: bytes) -> None:
        self.code, self.language, self.version = _CODE.unpack(layout.head)
        (self.flag,) = _unpack_int32(layout.before)
        self.template = template
        """The typed header, with the queue id, the time and the properties of one of them."""
        self.key_mark, self.key_bytes, self.behind_key = _around_unique_key(properties)
        """The properties up to the value of the unique key, its size (0: there is none), and what is behind it."""
        after, rest = layout.after + self.key_mark, self.behind_key + layout.rest
        self.constant = (layout.head, layout.before, layout.between, after, rest)
        self.unpack = struct.Struct(
            f">{len(layout.head)}si{len(layout.before)}s{layout.queue_end - layout.queue_at}s{len(layout.between)}s"
            f"{layout.born_end - layout.born_at}s{len(after)}s{self.key_bytes}s{len(rest)}s"
        ).unpack
        self.plan: Any = None
        """For the broker: what it found out about messages of this shape."""

    def header(
        self, queue_id: int, born_timestamp: int, unique_key: bytes, properties: bytes
    ) -> SendMessageRequestHeaderV2:
        """The typed header of one send."""
        if unique_key:
            properties = self.key_mark + unique_key + self.behind_key
        return msgspec.structs.replace(
            self.template, queue_id=queue_id, born_timestamp=born_timestamp, properties=properties.decode()
        )


KnownSend = tuple[SendShape, int, int, bytes, bytes]
"""Shape, queue id, born timestamp, unique key, b""; or, when the properties are not the usual ones of the shape,
the last two are b"" and the properties."""


class _Layout:
    """Header bytes around what differs, and the shape that the sends of this layout had last."""

    __slots__ = (
        "after", "before", "between", "born_at", "born_end", "head", "properties_at", "properties_end", "queue_at",
        "queue_end", "reshapes", "rest", "shape",
    )  # fmt: skip

    def __init__(self, header: bytes, template: SendMessageRequestHeaderV2, places: "_Places") -> None:
        self.queue_at, self.queue_end = places[_QUEUE_ID]
        self.born_at, self.born_end = places[_BORN_TIMESTAMP]
        self.properties_at, self.properties_end = places[_PROPERTIES]
        self.head = header[:_OPAQUE_AT]
        self.before = header[_FLAG_AT : self.queue_at]
        self.between = header[self.queue_end : self.born_at]
        self.after = header[self.born_end : self.properties_at]
        self.rest = header[self.properties_end :]
        self.reshapes = 0
        self.shape = SendShape(self, template, header[self.properties_at : self.properties_end])

    def read(self, header: bytes) -> tuple[int, KnownSend] | None:
        """What a header of this layout with unusual properties holds: its opaque, and the rest."""
        queue_id = header[self.queue_at : self.queue_end]
        born_timestamp = header[self.born_at : self.born_end]
        if not (
            header.startswith(self.head)
            and header.startswith(self.before, _FLAG_AT)
            and header.startswith(self.between, self.queue_end)
            and header.startswith(self.after, self.born_end)
            and header.endswith(self.rest)
            and queue_id.isdigit()
            and born_timestamp.isdigit()
        ):
            return None
        properties = header[self.properties_at : self.properties_end]
        properties.decode()
        if self.reshapes < _RESHAPES_MAX:
            # From now on these are the usual ones; what was read before keeps its own shape.
            self.reshapes += 1
            self.shape = SendShape(self, self.shape.template, properties)
        (opaque,) = _unpack_int32(header, _OPAQUE_AT)
        return opaque, (self.shape, int(queue_id), int(born_timestamp), b"", properties)


class SendHeaders:
    """The layouts of one connection."""

    __slots__ = ("_born", "_born_timestamp", "_count", "_layouts", "_pause")

    def __init__(self) -> None:
        self._layouts: dict[int, list[_Layout]] = {}
        self._count = 0
        self._pause = 0
        self._born, self._born_timestamp = b"", 0

    def read(self, header: bytes) -> tuple[int, KnownSend] | None:
        """What a whole binary header holds: its opaque, and the rest; None when no layout matches it.

        Raises UnicodeDecodeError.
        """
        layouts = self._layouts.get(len(header))
        if layouts is None:
            return None
        for layout in layouts:
            shape = layout.shape
            head, opaque, before, queue, between, born, after, unique_key, rest = shape.unpack(header)
            if (head, before, between, after, rest) == shape.constant and unique_key.isalnum() and queue.isdigit():
                if born != self._born:
                    # Many are born in the same millisecond.
                    if not born.isdigit():
                        return None
                    self._born, self._born_timestamp = born, int(born)
                return opaque, (shape, int(queue), self._born_timestamp, unique_key, b"")
        for layout in layouts:
            known = layout.read(header)
            if known is not None:
                return known
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
        if not queue_end < born_at < born_end < places[_PROPERTIES][0]:
            return
        if queue_end - queue_at > _INT32_DIGITS or born_end - born_at > _INT64_DIGITS:
            return
        self._room_for(len(header)).append(_Layout(header, typed, places))

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


def _around_unique_key(properties: bytes) -> tuple[bytes, int, bytes]:
    before, mark, rest = properties.partition(_UNIQUE_KEY_MARK)
    if not mark or (before and not before.endswith(b"\x02")):
        return b"", 0, properties
    key, separator, behind = rest.partition(b"\x02")
    return before + mark, len(key), separator + behind


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


def _places(header: bytes) -> "_Places":
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
        self._fields = b"".join(
            _field(name.encode(), value.encode()) for name, value in (("MSG_REGION", region), ("TRACE_ON", trace_on))
        )
        self._language = language_number(language)
        self._templates: dict[tuple[int, int, int, int], bytes] = {}

    def encode(
        self, opaque: int, message_id_prefix: bytes, position: int, queue_id: int, queue_offset: int, unique_key: bytes
    ) -> bytes | None:
        """The frame; None when `unique_key` is too long for it. The message id is `prefix` and `position` in hex."""
        queue, offset = b"%d" % queue_id, b"%d" % queue_offset
        sizes = (len(message_id_prefix), len(queue), len(offset), len(unique_key))
        template = self._templates.get(sizes) or self._template(*sizes)
        if not template:
            return None
        return template % (_OPAQUE(opaque), message_id_prefix, position, queue, offset, unique_key)

    def _template(self, prefix_bytes: int, queue_bytes: int, offset_bytes: int, key_bytes: int) -> bytes:
        """The frame with holes for values of these sizes."""
        if key_bytes > UNIQUE_KEY_BYTES_MAX:
            return b""
        holes = (
            (b"msgId", b"%b%016X", prefix_bytes + 16),
            (b"queueId", b"%b", queue_bytes),
            (b"queueOffset", b"%b", offset_bytes),
            (b"transactionId", b"%b", key_bytes),
        )
        ext = self._fields.replace(b"%", b"%%")
        ext_bytes = len(self._fields)
        for name, hole, size in holes:
            start = len(name).to_bytes(2, "big") + name + size.to_bytes(4, "big")
            ext += start.replace(b"%", b"%%") + hole
            ext_bytes += len(start) + size
        length = _ANSWER_HEAD_BYTES + ext_bytes
        head = _ANSWER_HEAD.pack(4 + length, _BINARY_KIND | length, 0, self._language, CURRENT_VERSION)
        tail = _ANSWER_TAIL.pack(_RESPONSE_FLAG, 0, ext_bytes)
        template = head.replace(b"%", b"%%") + b"%b" + tail.replace(b"%", b"%%") + ext
        if len(self._templates) >= _TEMPLATES_MAX:
            self._templates.clear()
        self._templates[prefix_bytes, queue_bytes, offset_bytes, key_bytes] = template
        return template


def _field(name: bytes, value: bytes) -> bytes:
    return len(name).to_bytes(2, "big") + name + len(value).to_bytes(4, "big") + value
