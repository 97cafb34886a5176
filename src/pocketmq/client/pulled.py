"""What a pull consumer hands to its program: messages, and the news that queues have come or go."""

from typing import Any

import msgspec

from pocketmq.client.namespaces import queue_without_namespace
from pocketmq.model.message import MessageQueue, ReceivedMessage


class PulledMessage(ReceivedMessage, kw_only=True, eq=False):
    """A message that was polled. There is nothing to settle: positions are committed, not messages."""

    @property
    def value(self) -> Any:
        """What the client's serializer makes of the body; the body itself by default."""
        return self.body if self.context is None else self.context.value_of(self)


class Rebalance(msgspec.Struct, frozen=True, kw_only=True):
    """The queues of a pull consumer have changed."""

    assigned: tuple[MessageQueue, ...] = ()
    """Will be read from now on."""
    revoked: tuple[MessageQueue, ...] = ()
    """Will be let go; positions in them can still be committed."""

    def without_namespace(self, namespace: str) -> "Rebalance":
        """The queues as the program calls them."""
        return Rebalance(
            assigned=tuple(queue_without_namespace(queue, namespace) for queue in self.assigned),
            revoked=tuple(queue_without_namespace(queue, namespace) for queue in self.revoked),
        )
