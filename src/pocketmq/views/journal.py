"""State changes that are not messages, as they stand in the log.

One journal record (topic `JOURNAL_TOPIC`, queue 0) holds a list of entries, encoded as one MessagePack array. Each
entry is an array that begins with its tag, so that it may grow by fields at its end and old records stay readable.
The views are folds over these entries: the same `apply` runs when an entry is written and when it is replayed.
"""

from collections.abc import Sequence

import msgspec

from pocketmq.model.config import GroupConfig, TopicConfig


class TopicPut(msgspec.Struct, frozen=True, array_like=True, tag="topic"):
    """A topic was created or changed. `timestamp` (ms) becomes that of the table's data version."""

    config: TopicConfig
    timestamp: int


class TopicDelete(msgspec.Struct, frozen=True, array_like=True, tag="topic-gone"):
    """A topic was deleted, and with it every cursor in it."""

    topic: str
    timestamp: int


class GroupPut(msgspec.Struct, frozen=True, array_like=True, tag="group"):
    """A consumer group was created or changed."""

    config: GroupConfig
    timestamp: int


class GroupDelete(msgspec.Struct, frozen=True, array_like=True, tag="group-gone"):
    """A consumer group was deleted; its cursors stay unless `GroupOffsetsDropped` says otherwise."""

    group: str
    timestamp: int


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """How far a group has come in one queue: `offset` is the next one that it wants."""

    group: str
    topic: str
    queue_id: int
    offset: int


class CursorsCommitted(msgspec.Struct, frozen=True, array_like=True, tag="cursors"):
    """Commits of consumers. A cursor moves only forwards by these."""

    cursors: list[Cursor]


class CursorReset(msgspec.Struct, frozen=True, array_like=True, tag="reset"):
    """Somebody set a cursor on purpose, forwards or backwards.

    With `announce` the next pull of that queue is told to go on from `offset` (a server-side reset).
    """

    cursor: Cursor
    announce: bool = False


class ResetTaken(msgspec.Struct, frozen=True, array_like=True, tag="reset-taken"):
    """A consumer was told of an announced reset; it is not told again."""

    group: str
    topic: str
    queue_id: int


class GroupOffsetsDropped(msgspec.Struct, frozen=True, array_like=True, tag="cursors-gone"):
    """All cursors of a group were removed."""

    group: str


class GroupForbidden(msgspec.Struct, frozen=True, array_like=True, tag="forbidden"):
    """A group may (`readable`) or may not read a topic."""

    group: str
    topic: str
    readable: bool
    timestamp: int


class RequestModePut(msgspec.Struct, frozen=True, array_like=True, tag="request-mode"):
    """How the consumers of a group are to ask for a topic: `mode` is PULL or POP.

    `pop_share_queues`: how many other consumers' queues each consumer pops from too; 0 or less: from all queues.
    """

    topic: str
    group: str
    mode: str
    pop_share_queues: int


class TimersFired(msgspec.Struct, frozen=True, array_like=True, tag="fired"):
    """The timers whose records stand at these log positions were delivered (or moved) and are no longer pending."""

    positions: list[int]


class HalvesChecked(msgspec.Struct, frozen=True, array_like=True, tag="half-checked"):
    """A producer is asked about the open transactions whose half messages stand at these log positions."""

    positions: list[int]


class HalvesEnded(msgspec.Struct, frozen=True, array_like=True, tag="half-ended"):
    """The transactions whose half messages stand at these log positions had ended before the log was taken over."""

    positions: list[int]


class HalfRenewed(msgspec.Struct, frozen=True, array_like=True, tag="half-renewed"):
    """An operator wants producers to be asked again about the open transaction at this log position."""

    position: int


Entry = (
    TopicPut
    | TopicDelete
    | GroupPut
    | GroupDelete
    | CursorsCommitted
    | CursorReset
    | ResetTaken
    | GroupOffsetsDropped
    | GroupForbidden
    | RequestModePut
    | TimersFired
    | HalvesChecked
    | HalvesEnded
    | HalfRenewed
)

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Entry])


def encode_entries(entries: Sequence[Entry]) -> bytes:
    """The body of one journal record."""
    return _encoder.encode(entries)


def decode_entries(body: bytes | memoryview) -> list[Entry]:
    """Entries of one journal record. Raises `msgspec.MsgspecError` when the body is none."""
    return _decoder.decode(body)
