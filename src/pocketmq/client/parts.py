"""The parts of the SDK that can be replaced, each as a small protocol.

    Router          which queue a message goes to
    WritableQueue   takes a message for one queue; the place to cut off the network in a test
    Allocator       which queues of a topic a consumer of a group gets
    MessageBuffer   what was fetched of one queue and is not finished yet
    Cursors         where the positions of a group are kept
    Serializer      values to bodies and back
    Clock           time

All but the last two are pure or nearly so. `connect()` and `consume()` take them by the names in lower case; a fake for
each is in `pocketmq.testing`.
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.model.seams import Clock

__all__ = ["Allocator", "Clock", "Cursors", "MessageBuffer", "Router", "Serializer", "WritableQueue"]


@runtime_checkable
class WritableQueue(Protocol):
    """Takes messages for one queue."""

    @property
    def queue(self) -> MessageQueue:
        """The queue that is written."""

    def write(self, message: Message, timeout_s: float) -> Awaitable[SendReceipt]:
        """Store the message in the queue.

        The message is complete: its properties hold the unique key and whatever else the SDK adds. Waits at most
        `timeout_s` seconds. Raises PocketMQError; one that is `retryable` makes the SDK try again, elsewhere.
        """


@runtime_checkable
class Router(Protocol):
    """Decides which queue a message goes to. Called once for every attempt to send it."""

    def choose(self, message: Message, queues: Sequence[WritableQueue], avoid: Collection[str]) -> WritableQueue:
        """Pick one of `queues` (never empty; sorted by broker name, then queue id).

        `avoid` names brokers that failed just now: take another when the choice is free.
        """


@runtime_checkable
class Allocator(Protocol):
    """Divides the queues of a topic among the consumers of a group.

    Every consumer computes its own share, so all must use the same rule and a rule may depend on nothing but its
    arguments.
    """

    def allocate(self, me: str, consumers: Sequence[str], queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """The share of the consumer with client id `me`; `consumers` and `queues` are sorted and without doubles."""


@runtime_checkable
class MessageBuffer(Protocol):
    """What was fetched of one queue: first waiting, then taken, then settled. Belongs to one queue reader.

    Invariant: `position` is never above the offset of a message that is not settled.
    """

    @property
    def position(self) -> int:
        """The offset to commit: all messages below it are settled."""

    @property
    def waiting(self) -> int:
        """Messages that can be taken."""

    @property
    def unsettled(self) -> int:
        """Messages that wait or are taken."""

    @property
    def full(self) -> bool:
        """True from the moment that a high-water mark is passed until all counts are below the low ones."""

    def put(self, messages: Sequence[ReceivedMessage], next_offset: int) -> None:
        """Add what a fetch brought, in offset order; the next fetch will start at `next_offset`.

        The messages may have gaps between them (what a filter left out counts as settled).
        """

    def take(self, count_max: int) -> list[ReceivedMessage]:
        """Hand out up to `count_max` waiting messages, lowest offset first."""

    def settle(self, message: ReceivedMessage) -> bool:
        """The message is done with. False when it does not belong here (any more): settled twice, or cleared."""

    def put_back(self, message: ReceivedMessage) -> None:
        """A message that was taken waits again, before all others."""

    def drop_waiting(self) -> int:
        """Forget the messages that nobody took, as if they had never been fetched; returns how many."""

    def clear(self, position: int) -> None:
        """Forget everything and start again at `position`."""


@runtime_checkable
class Cursors(Protocol):
    """Keeps the positions of consumer groups."""

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        """The stored position, or None when there is none. Raises PocketMQError when it cannot be known now."""

    async def store(self, group: str, positions: Mapping[MessageQueue, int], *, final: bool) -> None:
        """Store positions. `final`: the queues are about to be given away, return only when it is certain.

        Raises PocketMQError. A position that goes backwards was asked for by a seek.
        """


@runtime_checkable
class Serializer(Protocol):
    """Turns values into bodies and back."""

    def encode(self, value: Any, properties: dict[str, str]) -> bytes:
        """The body for a value; may add properties (a content type, say). Raises UsageError."""

    def decode(self, body: bytes, properties: Mapping[str, str]) -> Any:
        """The value of a received body. Raises PocketMQError."""
