"""Middleware: code of yours around every send and every handling of a message.

    class Timing(pocketmq.Middleware):
        async def send(self, outgoing, forward):
            began = time.perf_counter()
            try:
                return await forward(outgoing)
            finally:
                print(outgoing.topic, time.perf_counter() - began)

    client = pocketmq.connect("127.0.0.1:9876", middleware=[Timing()])

The first of the list is the outermost: it sees a send first and its outcome last. What is not overridden costs nothing.
Awaiting `forward` twice sends twice, not awaiting it sends not at all; errors pass through unless they are caught.
"""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Literal, Protocol

import msgspec

from pocketmq.client.namespaces import without_namespace
from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.model.seams import Clock

SendKind = Literal["send", "batch", "oneway", "transaction", "request", "reply"]
"""What a send is for. `transaction`: the half of a transaction, which is delivered when that is committed."""


class Outgoing(msgspec.Struct, kw_only=True):
    """Messages about to be sent. They are complete, ids and all; properties may still be added.

    `queue`, `timeout_s` and `retries` are what the caller of `send` said; None is the client's default.
    """

    kind: SendKind
    messages: list[Message]
    client_id: str
    producer_group: str
    namespace: str = ""
    timeout_s: float | None = None
    retries: int | None = None
    queue: MessageQueue | None = None

    @property
    def topic(self) -> str:
        """The topic of all messages, without the client's namespace; on the messages themselves it has one."""
        return without_namespace(self.messages[0].topic, self.namespace)


class Incoming(msgspec.Struct, kw_only=True):
    """A message about to be handled."""

    message: ReceivedMessage
    client_id: str
    group: str
    broadcasting: bool = False
    orderly: bool = False
    given_back: bool = False
    """Set while it is handled: the application has called `nack` or `reject`."""


class Fetched(msgspec.Struct, kw_only=True):
    """Messages that a broker has given out: they wait to be handled."""

    messages: Sequence[ReceivedMessage]
    queue: MessageQueue
    address: str
    """The broker's."""
    client_id: str
    group: str
    took_s: float
    """How long the request was on its way, waiting for messages included."""


class EndedTransaction(msgspec.Struct, kw_only=True):
    """A decision about a transaction that was told to the broker, or that a broker has asked for."""

    message: Message | ReceivedMessage
    message_id: str
    transaction_id: str
    client_id: str
    producer_group: str
    namespace: str = ""
    committed: bool
    asked: bool = False
    address: str = ""
    """The broker's, as far as it is known."""


SendForward = Callable[[Outgoing], Awaitable[list[SendReceipt]]]
HandleForward = Callable[[Incoming], Awaitable[Any]]


class Host(Protocol):
    """What a middleware may use of the client that it was given to."""

    @property
    def clock(self) -> Clock:
        """The client's time."""

    @property
    def client_id(self) -> str:
        """What brokers know the client by."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside; it is ended with the client."""

    async def send_beside(self, message: Message) -> SendReceipt:
        """Send a message that no middleware sees. Raises PocketMQError."""

    def wants_traces(self, broker_name: str) -> bool:
        """Whether a broker wants traces of messages to be written."""

    def address_of(self, queue: MessageQueue) -> str | None:
        """The address of a queue's master, as far as it is known."""


class Middleware:
    """Override what you need; each method is as if it were not there until then."""

    def attach(self, host: Host) -> None:
        """The client exists. Nothing is connected yet, and there may be no event loop."""

    async def send(self, outgoing: Outgoing, forward: SendForward) -> list[SendReceipt]:
        """Around a send. Returns one receipt for each message, none for `oneway`."""
        return await forward(outgoing)

    async def handle(self, incoming: Incoming, forward: HandleForward) -> Any:
        """Around the handling of a message: the block of `async with message`, or the handler of `run`.

        Returning acknowledges the message (unless it was settled inside), raising gives it back. `forward` returns what
        the handler did. Await it directly and not in a task of its own; under `async with message` it can be awaited
        once only, and has to be.
        """
        return await forward(incoming)

    def received(self, fetched: Fetched) -> None:
        """Messages were fetched. Called in the midst of reading: be quick, raise nothing."""

    def transaction_ended(self, ended: EndedTransaction) -> None:
        """A transaction was decided. Called once the broker was told, or will be when it asks. Raise nothing."""

    async def close(self) -> None:
        """The client is closing; it can still send. Called once."""


def overrides(middleware: Middleware, method: str) -> bool:
    """Whether a middleware does something of its own in a method."""
    return getattr(type(middleware), method) is not getattr(Middleware, method)
