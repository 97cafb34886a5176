"""The body of a batch send (320): messages one after another, each with its own flag and properties.

    int32 total | int32 0 | int32 0 | int32 flag | int32 length + body | int16 length + properties

The two zeros stand where a record has its magic and its checksum; receivers ignore them. Source: RocketMQ's
`MessageDecoder.encodeMessages` / `CommitLog`'s batch append.
"""

import struct
from collections.abc import Iterable, Iterator

from pocketmq.model.errors import BodyError, UsageError
from pocketmq.model.limits import PROPERTIES_BYTES_MAX

_HEAD = struct.Struct(">iiiii")
_HEAD_BYTES = _HEAD.size
_PROPERTIES_LENGTH = struct.Struct(">h")
_OVERHEAD_BYTES = 22

_unpack_head = _HEAD.unpack_from
_unpack_properties_length = _PROPERTIES_LENGTH.unpack_from


def encode_batch(messages: Iterable[tuple[int, bytes, bytes]]) -> bytes:
    """Join messages, each given as (flag, body, encoded properties)."""
    parts: list[bytes] = []
    for flag, body, properties in messages:
        if len(properties) > PROPERTIES_BYTES_MAX:
            raise UsageError(f"the properties have {len(properties)} bytes; at most {PROPERTIES_BYTES_MAX} are allowed")
        parts += (
            _HEAD.pack(_OVERHEAD_BYTES + len(body) + len(properties), 0, 0, flag, len(body)),
            body,
            _PROPERTIES_LENGTH.pack(len(properties)),
            properties,
        )
    return b"".join(parts)


def split_batch(body: bytes) -> list[tuple[int, bytes, bytes]]:
    """All messages of a batch as (flag, body, properties). Raises BodyError when the lengths do not add up.

    The whole batch is checked before anything is returned, so that a bad one is refused as a whole.
    """
    messages: list[tuple[int, bytes, bytes]] = []
    append = messages.append
    offset = 0
    end = len(body)
    try:
        while offset < end:
            total, _magic, _crc, flag, length = _unpack_head(body, offset)
            body_at = offset + _HEAD_BYTES
            properties_at = body_at + length + 2
            (properties_length,) = _unpack_properties_length(body, properties_at - 2)
            message_end = properties_at + properties_length
            if length < 0 or properties_length < 0 or message_end > end or message_end - offset != total:
                raise BodyError(f"message {len(messages) + 1} of a batch has lengths that do not add up")
            append((flag, body[body_at : properties_at - 2], body[properties_at:message_end]))
            offset = message_end
    except struct.error:
        raise BodyError(f"message {len(messages) + 1} of a batch is cut off") from None
    return messages


def iter_batch(body: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """As `split_batch`, as an iterator; errors come at the call, not in the middle."""
    return iter(split_batch(body))
