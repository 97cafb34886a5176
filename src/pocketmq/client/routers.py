"""Which queue a message goes to: in turn, or by the hash of a key."""

from collections.abc import Callable, Collection, Sequence

from pocketmq.client.parts import WritableQueue
from pocketmq.model.hashing import java_string_hash
from pocketmq.model.message import Message

SHARDING_KEY = "__SHARDINGKEY"
"""The property that holds a message group."""


class RoundRobinRouter:
    """In turn over all queues, brokers that just failed left out; messages of one group stay in one queue.

    `stride` messages in a row go to the same queue: with 1 they are spread most evenly, with more of them the messages
    that are sent at the same time share requests.
    """

    __slots__ = ("_count", "_stride")

    def __init__(self, *, start: int = 0, stride: int = 1) -> None:
        self._stride = max(1, stride)
        self._count = start * self._stride - 1

    def choose(self, message: Message, queues: Sequence[WritableQueue], avoid: Collection[str]) -> WritableQueue:
        """The next queue in turn, or the one of the message's group."""
        properties = message.properties
        if SHARDING_KEY in properties:
            return queues[bucket(properties[SHARDING_KEY], len(queues))]
        self._count = count = self._count + 1
        queue = queues[count // self._stride % len(queues)]
        if not avoid or queue.queue.broker_name not in avoid:
            return queue
        for step in range(1, len(queues)):
            other = queues[(count // self._stride + step) % len(queues)]
            if other.queue.broker_name not in avoid:
                self._count = count + step * self._stride
                return other
        return queue


class HashRouter:
    """By the hash of a key, so that what belongs together keeps its order; never moves to another broker by itself.

    `key` gives the key of a message; by default its message group, else its first key.
    """

    __slots__ = ("_key",)

    def __init__(self, key: Callable[[Message], str] | None = None) -> None:
        self._key = key or _default_key

    def choose(self, message: Message, queues: Sequence[WritableQueue], avoid: Collection[str]) -> WritableQueue:
        """The queue that the key of the message belongs to."""
        return queues[bucket(self._key(message), len(queues))]


def bucket(key: str, count: int) -> int:
    """The place of a key among `count` queues, as Java clients compute it: `abs(hashCode) % count`."""
    return abs(java_string_hash(key)) % count


def _default_key(message: Message) -> str:
    group = message.properties.get(SHARDING_KEY)
    if group:
        return group
    return message.keys[0] if message.keys else ""
