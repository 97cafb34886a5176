"""Batch acknowledgement of popped messages (200151): one-letter names, offsets as a bit set."""

from base64 import b64decode, b64encode
from collections.abc import Iterable

import msgspec

from pocketmq.model.errors import BodyError, UsageError
from pocketmq.wire.bodies.codec import Body

BIT_SET_OFFSETS_MAX = 1_048_576


class BatchAck(Body):
    """Acknowledges some of the messages popped from one queue at `pop_time`.

    `retry` is "0" for the topic itself, "1" or "2" for a retry topic; `bit_set` holds offsets less `start_offset`.
    """

    consumer_group: str = msgspec.field(name="c")
    topic: str = msgspec.field(name="t")
    start_offset: int = msgspec.field(name="so")
    queue_id: int = msgspec.field(name="q")
    revive_queue_id: int = msgspec.field(name="rq")
    pop_time: int = msgspec.field(name="pt")
    invisible_time: int = msgspec.field(name="it")
    bit_set: str = msgspec.field(name="b")
    retry: str = msgspec.field(name="r", default="0")

    def offsets(self) -> list[int]:
        """The acknowledged queue offsets, ascending. Raises BodyError."""
        return [self.start_offset + bit for bit in decode_bit_set(self.bit_set)]


class BatchAckMessageRequestBody(Body):
    """The body of 200151."""

    broker_name: str
    acks: list[BatchAck] = []


def encode_bit_set(bits: Iterable[int]) -> str:
    """Bits as base64 of Java's `BitSet.toByteArray`: little-endian, no trailing zero bytes. {0, 9} is `AQI=`."""
    value = 0
    for bit in bits:
        if not 0 <= bit < BIT_SET_OFFSETS_MAX:
            raise UsageError(f"bit {bit} of an acknowledgement is not in 0..{BIT_SET_OFFSETS_MAX - 1}")
        value |= 1 << bit
    return b64encode(value.to_bytes((value.bit_length() + 7) // 8, "little")).decode()


def decode_bit_set(text: str) -> list[int]:
    """The bits that are set, ascending. Raises BodyError for what is no base64 or is longer than any batch."""
    try:
        data = b64decode(text, validate=True)
    except ValueError as error:
        raise BodyError(f"a bit set is not base64: {text[:40]!r}", cause=error) from None
    if len(data) * 8 > BIT_SET_OFFSETS_MAX:
        raise BodyError(f"a bit set of {len(data)} bytes is too long")
    return [8 * index + bit for index, byte in enumerate(data) if byte for bit in range(8) if byte >> bit & 1]
