"""A received message, and how it is settled: acknowledged, or given back to be delivered again."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self

from pocketmq.client._async.handling import BlockHandling, HandleChain, Handling
from pocketmq.client.options import Duration, seconds
from pocketmq.client.outgoing import user_properties
from pocketmq.client.replies import is_request
from pocketmq.model.errors import PocketMQError, UsageError
from pocketmq.model.message import ReceivedMessage, SendReceipt

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")


class Settler(Protocol):
    """Who delivered a message and wants to know how it went."""

    @property
    def reraise(self) -> bool:
        """Whether an exception in `async with message` goes on after the message was given back."""

    def ack(self, message: "Delivery") -> bool:
        """The message was dealt with. False when it had been settled, or belongs to somebody else by now."""

    async def nack(self, message: "Delivery", delay_s: float | None, dead: bool, reason: BaseException | None) -> bool:
        """The message was not dealt with: deliver it again (after `delay_s` seconds, None: as the group has it)."""

    def put_back(self, message: "Delivery") -> None:
        """Nobody deals with the message any more; does nothing when it was settled."""

    def value_of(self, message: "Delivery") -> Any:
        """What the serializer makes of the body."""


class Delivery(ReceivedMessage, kw_only=True, eq=False):
    """A message as a consumer hands it out.

    Use it as a context: leaving it well acknowledges the message, an exception inside gives it back, to be delivered
    again after the group's back-off and, after the last attempt, to be put with the dead letters.

        async with message:
            await work(message.body)

    The exception is logged and goes no further, so that the loop around lives on; `consume(reraise=True)` lets it go
    on. Cancelling is no failure of the message: it waits again, for the next who asks here or for another consumer.
    """

    _handling: Any = None
    """What middleware does around the handling of the message; not for users."""

    async def __aenter__(self) -> Self:
        """Begin to deal with the message. Raises what middleware raises; the message is given back then."""
        chain = self._chain()
        if chain is not None and chain.handles and self._handling is None:
            await self._enter(chain)
        return self

    async def _enter(self, chain: HandleChain) -> None:
        handling = self._handling = BlockHandling(chain, self)
        try:
            if await handling.enter():
                return
        except Exception as error:
            self._handling = None
            await self._settler().nack(self, None, False, error)
            raise
        except BaseException:
            self._handling = None
            self._settler().put_back(self)
            raise
        self._handling = None
        self._settler().ack(self)
        raise UsageError(
            f"a middleware has dealt with message {self.message_id} itself; with such middleware use `run(handler)`: a "
            "block cannot be left out"
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Settle the message, unless that was done inside."""
        settler, raised = self._settler(), error
        if self._handling is not None:
            handling, self._handling = self._handling, None
            error = await handling.leave(error)
        if error is None:
            settler.ack(self)
            return raised is not None
        if not isinstance(error, Exception):
            settler.put_back(self)
            if error is not raised:
                raise error
            return False
        logger.warning("message %s of %s failed: %r", self.message_id, self.topic, error, exc_info=error)
        await settler.nack(self, None, False, error)
        if settler.reraise and error is not raised:
            raise error
        return not settler.reraise

    async def ack(self) -> bool:
        """The message is dealt with and need not come again. False when it was settled before, or came to another
        consumer meanwhile."""
        return self._settler().ack(self)

    async def nack(self, delay: Duration | None = None) -> bool:
        """Deliver the message again, after the group's back-off, or the level nearest to `delay`.

        False when it was settled before. Raises nothing: when the broker cannot take it back, it is kept here and
        delivered again from here.
        """
        delay_s = None if delay is None else seconds(delay, "delay")
        self._note_given_back()
        return await self._settler().nack(self, delay_s, False, None)

    async def reject(self) -> bool:
        """Put the message with the dead letters of the group at once. False when it was settled before."""
        self._note_given_back()
        return await self._settler().nack(self, None, True, None)

    @property
    def is_request(self) -> bool:
        """Whether somebody waits for a reply to the message."""
        return is_request(self)

    async def reply(
        self,
        body: Any = b"",
        *,
        properties: Mapping[str, str] | None = None,
        timeout: Duration | None = None,
    ) -> SendReceipt:
        """Answer a request. Settles nothing: the message is acknowledged as any other.

        Args:
            body: bytes, or what the client's serializer takes.
            properties: names and values of your own.
            timeout: for all attempts together. Default: `send_timeout` of `connect`.

        Raises:
            UsageError: nobody waits for a reply to this message.
            BrokerError: 1, whoever asked is not there (any more).
            PocketMQError: the reply could not be sent.
        """
        core: Core | None = getattr(self.context, "core", None)
        if core is None:
            raise UsageError("this message was not delivered by a consumer: it cannot be replied to")
        timeout_s = None if timeout is None else seconds(timeout, "timeout")
        return await core.requests.reply(self, body, user_properties(properties), timeout_s)

    @property
    def value(self) -> Any:
        """What the client's serializer makes of the body; the body itself by default."""
        return self._settler().value_of(self)

    def _note_given_back(self) -> None:
        if self._handling is not None:
            self._handling.incoming.given_back = True

    def _chain(self) -> HandleChain | None:
        chain: HandleChain | None = getattr(self.context, "chain", None)
        return chain

    def _settler(self) -> Settler:
        settler: Settler | None = self.context
        if settler is None:
            raise UsageError("this message was not delivered by a consumer: there is nothing to settle")
        return settler


async def handle(message: Delivery, handler: Callable[[Delivery], Awaitable[object]]) -> None:
    """Deal with a message by a handler, middleware around it. What a handler returns for a request is the reply."""
    chain = message._chain()
    if chain is None or not chain.handles:
        async with message:
            await _answer(message, handler)
        return
    incoming = chain.incoming(message)
    message._handling = Handling(incoming)
    async with message:
        await chain.around(lambda _: _answer(message, handler))(incoming)


async def _answer(message: Delivery, handler: Callable[[Delivery], Awaitable[object]]) -> object:
    result = await handler(message)
    if result is not None and is_request(message):
        try:
            await message.reply(result)
        except UsageError:
            raise
        except PocketMQError as error:
            # The request was dealt with; that nobody takes the answer is no reason to do it again.
            logger.warning("the reply to %s was not passed on: %s", message.message_id, error)
    return result
