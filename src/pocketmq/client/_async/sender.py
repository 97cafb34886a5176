"""Where sends go through the client's middleware on their way to the producer. Clients without any skip it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from pocketmq.client.middleware import (
    EndedTransaction,
    Middleware,
    Outgoing,
    SendForward,
    SendKind,
    overrides,
)
from pocketmq.model.errors import UsageError
from pocketmq.model.message import Message, MessageQueue, SendReceipt

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core


class SendChain:
    """Sends as the producer does, with middleware around."""

    def __init__(self, core: "Core", middleware: Sequence[Middleware]) -> None:
        self._core = core
        self._layers = [each.send for each in reversed(middleware) if overrides(each, "send")]
        self._call = self._around(self._send)

    def _around(self, innermost: SendForward) -> SendForward:
        for layer in self._layers:
            innermost = partial(layer, forward=innermost)
        return innermost

    async def _send(self, outgoing: Outgoing) -> list[SendReceipt]:
        """The innermost: the producer."""
        producer, messages = self._core.producer, outgoing.messages
        if outgoing.kind == "batch":
            return await producer.send_batch(messages, outgoing.timeout_s, outgoing.retries)
        if outgoing.kind == "oneway":
            await producer.send_oneway(messages[0], outgoing.queue)
            return []
        return [await producer.send(messages[0], outgoing.timeout_s, outgoing.retries, outgoing.queue)]

    def _outgoing(
        self,
        kind: SendKind,
        messages: list[Message],
        timeout_s: float | None = None,
        retries: int | None = None,
        queue: MessageQueue | None = None,
    ) -> Outgoing:
        core = self._core
        return Outgoing(
            kind=kind,
            messages=[core.producer.complete(message) for message in messages],
            client_id=core.client_id,
            producer_group=core.options.producer_group,
            namespace=core.options.namespace,
            timeout_s=timeout_s,
            retries=retries,
            queue=queue,
        )

    async def send(
        self,
        message: Message,
        timeout_s: float | None,
        retries: int | None,
        only: MessageQueue | None,
        kind: SendKind = "send",
    ) -> SendReceipt:
        """As `Producer.send`."""
        receipts = await self._call(self._outgoing(kind, [message], timeout_s, retries, only))
        return _counted(receipts, 1)[0]

    async def send_batch(
        self, messages: Sequence[Message], timeout_s: float | None, retries: int | None
    ) -> list[SendReceipt]:
        """As `Producer.send_batch`."""
        if not messages:
            return []
        receipts = await self._call(self._outgoing("batch", list(messages), timeout_s, retries))
        return _counted(receipts, len(messages))

    async def send_oneway(self, message: Message, only: MessageQueue | None) -> None:
        """As `Producer.send_oneway`."""
        await self._call(self._outgoing("oneway", [message], queue=only))

    async def send_through(
        self, message: Message, last: Callable[[Message], Awaitable[SendReceipt]], kind: SendKind
    ) -> SendReceipt:
        """A message that `last` sends, and not the producer."""

        async def innermost(outgoing: Outgoing) -> list[SendReceipt]:
            return [await last(outgoing.messages[0])]

        return _counted(await self._around(innermost)(self._outgoing(kind, [message])), 1)[0]


def _counted(receipts: list[SendReceipt], count: int) -> list[SendReceipt]:
    if len(receipts) != count:
        raise UsageError(f"a middleware returned {len(receipts)} receipts for {count} messages")
    return receipts


def transaction_listeners(middleware: Sequence[Middleware]) -> list[Callable[[EndedTransaction], None]]:
    """Whom to tell that a transaction was decided."""
    return [each.transaction_ended for each in middleware if overrides(each, "transaction_ended")]


async def close_all(middleware: Sequence[Middleware]) -> list[BaseException]:
    """Close all of it, the innermost first; returns what went wrong."""
    failures: list[BaseException] = []
    for each in reversed(middleware):
        try:
            await each.close()
        except Exception as error:
            failures.append(error)
    return failures
