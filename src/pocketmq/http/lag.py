"""How far each consumer group is behind, and how old what it has not finished is."""

import struct
from typing import TYPE_CHECKING, NamedTuple

from pocketmq.model.names import RETRY_PREFIX
from pocketmq.wire.record import STORE_TIMESTAMP_AT

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.log.queues import LogQueue

READS_MAX = 1_000
"""Most records looked at for their age in one go: the event loop waits meanwhile."""

_INT64 = struct.Struct(">q")


class GroupLag(NamedTuple):
    """One group in one topic. `latency_ms` is None when it was not looked up."""

    topic: str
    group: str
    messages: int
    latency_ms: int | None

    @property
    def is_retry(self) -> bool:
        """True for messages that come again."""
        return self.topic.startswith(RETRY_PREFIX)


def group_lags(broker: "Broker") -> list[GroupLag]:
    """Every group in every topic that it has a cursor in."""
    log = broker.log
    behind: dict[tuple[str, str], int] = {}
    oldest_ms: dict[tuple[str, str], int] = {}
    reads = 0
    for cursor in broker.cursors.listing():
        key = (cursor.topic, cursor.group)
        queue = log.queue(cursor.topic, cursor.queue_id)
        if queue is None:
            continue
        messages = max(0, log.max_offset(queue) - cursor.offset)
        behind[key] = behind.get(key, 0) + messages
        if messages and reads < READS_MAX:
            reads += 1
            stored_ms = _stored_ms(broker, queue, cursor.offset)
            if stored_ms:
                oldest_ms[key] = min(stored_ms, oldest_ms.get(key, stored_ms))
    now_ms = broker.clock.time_ms()
    lags: list[GroupLag] = []
    for (topic, group), messages in behind.items():
        oldest = oldest_ms.get((topic, group))
        latency_ms = 0 if not messages else None if oldest is None else max(0, now_ms - oldest)
        lags.append(GroupLag(topic, group, messages, latency_ms))
    return lags


def _stored_ms(broker: "Broker", queue: "LogQueue", offset: int) -> int:
    """When the record at a queue offset was stored; 0 when it is not there any more."""
    log = broker.log
    for position, _, _ in log.units(queue, max(offset, log.min_offset(queue)), 1):
        record = log.record_at(position)
        if record is not None:
            stored_ms: int = _INT64.unpack_from(record, STORE_TIMESTAMP_AT)[0]
            return stored_ms
    return 0
