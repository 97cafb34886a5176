"""A received message, and how it is settled: acknowledged, or given back to be delivered again."""

import logging
from types import TracebackType
from typing import Any, Protocol, Self

from pocketmq.client.options import Duration, seconds
from pocketmq.model.errors import UsageError
from pocketmq.model.message import ReceivedMessage

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

    async def __aenter__(self) -> Self:
        """Begin to deal with the message."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Settle the message, unless that was done inside."""
        settler = self._settler()
        if error is None:
            settler.ack(self)
            return False
        if not isinstance(error, Exception):
            settler.put_back(self)
            return False
        logger.warning("message %s of %s failed: %r", self.message_id, self.topic, error, exc_info=error)
        await settler.nack(self, None, False, error)
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
        return await self._settler().nack(self, delay_s, False, None)

    async def reject(self) -> bool:
        """Put the message with the dead letters of the group at once. False when it was settled before."""
        return await self._settler().nack(self, None, True, None)

    @property
    def value(self) -> Any:
        """What the client's serializer makes of the body; the body itself by default."""
        return self._settler().value_of(self)

    def _settler(self) -> Settler:
        settler: Settler | None = self.context
        if settler is None:
            raise UsageError("this message was not delivered by a consumer: there is nothing to settle")
        return settler
