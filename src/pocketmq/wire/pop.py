"""The texts that travel with popped messages.

A pop answer tells per queue where the broker began and which offsets it took; from that the client makes, for each
message, the *receipt* (property POP_CK, header field `extraInfo`) that an ack brings back. Entries are joined by ";",
their parts by a blank. `retry` is "0" for the topic itself, "1" or "2" for the two kinds of retry topic. Source:
RocketMQ's `ExtraInfoUtil`.
"""

from collections.abc import Iterable

import msgspec

from pocketmq.model.errors import HeaderError

Queue = tuple[str, int]
"""(retry, queue id)"""


class Receipt(msgspec.Struct, frozen=True):
    """What an ack needs to know of a popped message; times in ms."""

    start_offset: int
    pop_time: int
    invisible_time: int
    revive_queue_id: int
    retry: str
    broker_name: str
    queue_id: int
    queue_offset: int

    def encode(self) -> str:
        """The eight parts, joined by blanks."""
        return " ".join(map(str, msgspec.structs.astuple(self)))


def decode_receipt(text: str) -> Receipt:
    """Read a receipt. Raises HeaderError when it is none."""
    parts = text.split(" ")
    if len(parts) != 8:
        raise HeaderError(f"a receipt of {len(parts)} parts cannot be read; it has 8: {text[:100]!r}")
    try:
        start, pop_time, invisible_time, revive_queue, queue, offset = (int(parts[at]) for at in (0, 1, 2, 3, 6, 7))
    except ValueError:
        raise HeaderError(f"a receipt holds something else than a number: {text[:100]!r}") from None
    return Receipt(start, pop_time, invisible_time, revive_queue, parts[4], parts[5], queue, offset)


def encode_start_offsets(starts: Iterable[tuple[str, int, int]]) -> str:
    """`startOffsetInfo` from (retry, queue id, first offset)."""
    return ";".join(f"{retry} {queue_id} {offset}" for retry, queue_id, offset in starts)


def decode_start_offsets(text: str | None) -> dict[Queue, int]:
    """Queue -> first offset. Raises HeaderError."""
    return {(retry, _number(queue)): _number(offset) for retry, queue, offset in _entries(text)}


def encode_message_offsets(taken: Iterable[tuple[str, int, Iterable[int]]]) -> str:
    """`msgOffsetInfo` from (retry, queue id, offsets)."""
    return ";".join(f"{retry} {queue_id} {','.join(map(str, offsets))}" for retry, queue_id, offsets in taken)


def decode_message_offsets(text: str | None) -> dict[Queue, list[int]]:
    """Queue -> offsets taken from it. Raises HeaderError."""
    return {
        (retry, _number(queue)): [_number(offset) for offset in offsets.split(",")]
        for retry, queue, offsets in _entries(text)
    }


def encode_order_counts(
    messages: Iterable[tuple[str, int, int, int]] = (), queues: Iterable[tuple[str, int, int]] = ()
) -> str:
    """`orderCountInfo`: consume counts by (retry, queue id, offset, count) and by (retry, queue id, count)."""
    return ";".join(
        [f"{retry} qo{queue_id}%{offset} {count}" for retry, queue_id, offset, count in messages]
        + [f"{retry} {queue_id} {count}" for retry, queue_id, count in queues]
    )


def decode_order_counts(text: str | None) -> dict[tuple[str, int, int | None], int]:
    """(retry, queue id, offset, or None for the queue as a whole) -> consume count. Raises HeaderError."""
    counts: dict[tuple[str, int, int | None], int] = {}
    for retry, where, count in _entries(text):
        if where.startswith("qo"):
            queue, _, offset = where[2:].partition("%")
            counts[retry, _number(queue), _number(offset)] = _number(count)
        else:
            counts[retry, _number(where), None] = _number(count)
    return counts


def _entries(text: str | None) -> Iterable[tuple[str, str, str]]:
    for entry in (text or "").split(";"):
        if entry:
            parts = entry.split(" ")
            if len(parts) != 3:
                raise HeaderError(f"an entry of a pop answer has {len(parts)} parts; it should have 3: {entry[:100]!r}")
            yield parts[0], parts[1], parts[2]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise HeaderError(f"{text[:40]!r} in a pop answer is no number") from None
