"""Queues as the log sees them: where each one ends, and its newest index units.

A queue is one small object and nothing else; a million idle ones are a few hundred megabytes, most of it their names.
Its units that are not yet in a run (`pocketmq.log.runs`) are a bytearray; an idle queue shares one empty object.
"""

import struct
from collections.abc import Iterator, Sequence

from pocketmq.model.errors import UsageError
from pocketmq.model.limits import QUEUES_PER_TOPIC_MAX
from pocketmq.wire.record import HEAD_BYTES, MAGIC_V1, MAGIC_V2, TOPIC_BYTES_MAX_V1

UNIT = struct.Struct(">qiq")
"""One index unit: position, size, tag code. The same 20 bytes as in RocketMQ's consume queue."""

UNIT_BYTES = 20

NO_UNITS = bytearray()
"""What `LogQueue.units` is while the queue has none in memory. Never written to."""

Layout = tuple[int, bytes, int]
"""(magic, topic with its length in front, size of a record of this topic without body and properties)."""


class LogQueue:
    """One queue of one topic.

    Invariant: `units` holds the units of the offsets `[memory_offset, next_offset)`, without gaps.
    """

    __slots__ = ("hint", "last_run", "layout", "min_offset", "next_offset", "queue_id", "topic", "units", "waiters")

    topic: str
    queue_id: int
    next_offset: int
    """The offset that the next record gets."""
    min_offset: int
    """The first offset whose record is still in the log (`next_offset` when there is none)."""
    waiters: object | None
    """Set by the broker: who waits for a record. The log only looks whether it is true."""
    layout: Layout
    units: bytearray
    last_run: int
    """Start position of the newest run that holds units of this queue; -1 when none does."""
    hint: object | None
    """The place in a run where the last read was, owned by the queue index."""

    def __init__(self, topic: str, queue_id: int, layout: Layout, next_offset: int = 0) -> None:
        self.topic = topic
        self.queue_id = queue_id
        self.layout = layout
        self.next_offset = next_offset
        self.min_offset = next_offset
        self.waiters = None
        self.units = NO_UNITS
        self.last_run = -1
        self.hint = None

    @property
    def memory_offset(self) -> int:
        """The first offset whose unit is in memory; `next_offset` when none is."""
        return self.next_offset - len(self.units) // UNIT_BYTES

    def __repr__(self) -> str:
        return f"<LogQueue {self.topic}/{self.queue_id} [{self.min_offset}, {self.next_offset})>"


def layout_of(topic: str) -> Layout:
    """What all records of a topic share. Raises UsageError when the name does not fit into a record."""
    name = topic.encode()
    if not name or len(name) > 0x7FFF:
        raise UsageError(f"a topic name of {len(name)} bytes does not fit into a record")
    if len(name) <= TOPIC_BYTES_MAX_V1:
        return MAGIC_V1, bytes((len(name),)) + name, HEAD_BYTES + 1 + len(name) + 2
    return MAGIC_V2, len(name).to_bytes(2, "big") + name, HEAD_BYTES + 2 + len(name) + 2


class QueueTable:
    """All queues, by topic and id."""

    def __init__(self) -> None:
        self._topics: dict[str, list[LogQueue | None]] = {}
        self._dropped: dict[tuple[str, int], LogQueue] = {}

    def get(self, topic: str, queue_id: int) -> LogQueue | None:
        """The queue, or None when nothing was ever written to it."""
        queues = self._topics.get(topic)
        if queues is None or not 0 <= queue_id < len(queues):
            return None
        return queues[queue_id]

    def ensure(self, topic: str, queue_id: int) -> LogQueue:
        """The queue, made when it does not exist. Raises UsageError for an id that no queue may have."""
        queue = self.get(topic, queue_id)
        if queue is not None:
            return queue
        if not 0 <= queue_id < QUEUES_PER_TOPIC_MAX:
            raise UsageError(f"queue id {queue_id} is not in [0, {QUEUES_PER_TOPIC_MAX})")
        queues = self._topics.get(topic)
        sibling = next((known for known in queues if known is not None), None) if queues else None
        queue = self._dropped.pop((topic, queue_id), None)
        if queue is None:
            layout = sibling.layout if sibling else layout_of(topic)
            queue = LogQueue(sibling.topic if sibling else topic, queue_id, layout)
        if queues is None:
            queues = self._topics[topic] = []
        if queue_id >= len(queues):
            queues.extend([None] * (queue_id + 1 - len(queues)))
        queues[queue_id] = queue
        return queue

    def add_topic(self, topic: str, queue_ids: Sequence[int]) -> list[LogQueue]:
        """Many queues of a topic that has none yet, by rising id."""
        layout = layout_of(topic)
        added = [LogQueue(topic, queue_id, layout) for queue_id in queue_ids]
        if queue_ids[-1] == len(added) - 1:
            self._topics[topic] = list(added)
        else:
            slots: list[LogQueue | None] = [None] * (queue_ids[-1] + 1)
            for queue in added:
                slots[queue.queue_id] = queue
            self._topics[topic] = slots
        return added

    def of_topic(self, topic: str) -> list[LogQueue]:
        """The queues of a topic by rising id; empty when it has none."""
        return [queue for queue in self._topics.get(topic, ()) if queue is not None]

    def topics(self) -> list[str]:
        """Every topic that has a queue."""
        return list(self._topics)

    def drop(self, topic: str) -> list[LogQueue]:
        """Forget the queues of a topic and their records, and return them.

        Where each one ended is remembered, so that a topic of the same name goes on behind it: an offset never
        stands for two messages.
        """
        dropped = self.of_topic(topic)
        for queue in dropped:
            self.drop_queue(queue)
        return dropped

    def drop_queue(self, queue: LogQueue, min_offset: int | None = None) -> None:
        """The same for one queue; nothing before `min_offset` (by default its end) can be read any more."""
        queue.min_offset = queue.next_offset if min_offset is None else min_offset
        queue.waiters = queue.hint = None
        self._dropped[queue.topic, queue.queue_id] = queue
        queues = self._topics[queue.topic]
        queues[queue.queue_id] = None
        if not any(queues):
            del self._topics[queue.topic]

    def dropped(self) -> list[LogQueue]:
        """The queues that were dropped and did not come back."""
        return list(self._dropped.values())

    def __iter__(self) -> Iterator[LogQueue]:
        for queues in self._topics.values():
            for queue in queues:
                if queue is not None:
                    yield queue

    def __len__(self) -> int:
        return sum(1 for _ in self)
