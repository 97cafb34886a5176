"""Looking things up: messages by key, id and offset, index units, who consumes what, and how far behind.

Records are given as stored; what is asked for once by a person is decoded by whoever asked.
"""

from typing import TYPE_CHECKING, NamedTuple

from pocketmq.broker.offsets import store_timestamp_of
from pocketmq.model.config import Subscription
from pocketmq.model.errors import PocketMQError
from pocketmq.model.limits import QUERY_MESSAGES_MAX
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.ids import decode_offset_id

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.offsets import Offsets
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock
    from pocketmq.views.cursors import Cursors
    from pocketmq.views.topics import TopicTable

UNIQUE_KEY_RESULTS_MAX = 32
RESULT_BYTES_MAX = 12 * 1024 * 1024
"""An answer must fit into one frame of 16 MiB."""
UNITS_MAX = 10_000


class FoundMessages(NamedTuple):
    """Stored records, newest first, and the newest thing that the key index knows."""

    records: list[memoryview]
    newest_timestamp: int
    newest_position: int


class TimeSpan(NamedTuple):
    """How far a group has come in one queue, in times (ms; -1: there is no such message)."""

    queue_id: int
    oldest: int
    newest: int
    consumed: int
    """When the last consumed message was stored."""
    delay_ms: int
    """How long the next message has been waiting."""


class IndexUnit(NamedTuple):
    """One unit of a queue index. `wanted`: what the group's subscription says to the tag code; None without a group."""

    position: int
    size: int
    tag_code: int
    wanted: bool | None


class IndexUnits(NamedTuple):
    """A stretch of a queue index."""

    min_offset: int
    max_offset: int
    units: list[IndexUnit]
    subscription: Subscription | None


class Queries:
    """Read-only questions to the log and the views."""

    def __init__(
        self,
        log: "Log",
        clock: "Clock",
        *,
        topics: "TopicTable",
        cursors: "Cursors",
        clients: "ClientRegistry",
        offsets: "Offsets",
    ) -> None:
        self._log = log
        self._clock = clock
        self._topics = topics
        self._cursors = cursors
        self._clients = clients
        self._offsets = offsets

    # -- messages ----------------------------------------------------------------------------------------------------

    def by_key(
        self, topic: str, key: str, *, count_max: int, begin_ms: int, end_ms: int, unique: bool = False
    ) -> FoundMessages:
        """Messages of `topic` with this key, or with this unique key, stored in [begin_ms, end_ms].

        Raises:
            PocketMQError: code 22, there is none.
        """
        count_max = UNIQUE_KEY_RESULTS_MAX if unique else max(1, min(count_max, QUERY_MESSAGES_MAX))
        records: list[memoryview] = []
        size_bytes = 0
        newest = 0
        for position in self._log.find_by_key(topic, key, count_max, begin_ms, end_ms):
            record = self._log.record_at(position)
            if record is None:
                continue
            size_bytes += len(record)
            if records and size_bytes > RESULT_BYTES_MAX:
                break
            records.append(record)
            newest = max(newest, position)
        if not records:
            raise PocketMQError(
                f"can not find message, maybe time range not correct: {topic} has no message with key {key} there",
                code=ResponseCode.QUERY_NOT_FOUND,
            )
        return FoundMessages(records, store_timestamp_of(records[0]), newest)

    def by_position(self, position: int) -> memoryview:
        """The record that begins at a position of the log.

        Raises:
            PocketMQError: code 1, none begins there, or it is gone.
        """
        record = self._log.record_at(position) if position >= 0 else None
        if record is None:
            raise PocketMQError(
                f"can not find message by the offset, {position}: it was deleted, or the id is another broker's",
                code=ResponseCode.SYSTEM_ERROR,
            )
        return record

    def by_offset_id(self, message_id: str) -> memoryview:
        """The record with this offset message id. Raises PocketMQError 29 (not an id), 1 (no such record)."""
        return self.by_position(decode_offset_id(message_id)[2])

    # -- index units -------------------------------------------------------------------------------------------------

    def index_units(self, topic: str, queue_id: int, index: int, count: int, group: str | None) -> IndexUnits:
        """Up to `count` units of a queue index from offset `index` on.

        Raises:
            PocketMQError: code 1, there is no such queue.
        """
        queue = self._log.queue(topic, queue_id)
        if queue is None:
            raise PocketMQError(f"{queue_id}@{topic} is not exist!", code=ResponseCode.SYSTEM_ERROR)
        least, greatest = self._log.min_offset(queue), self._log.max_offset(queue)
        subscription = self._clients.subscription(None, group, topic) if group else None
        units = []
        if least <= index < greatest:
            wanted = min(count, UNITS_MAX, greatest - index)
            for position, size, tag_code in self._log.units(queue, index, wanted):
                match = None
                if subscription is not None:
                    match = not subscription.code_set or tag_code in subscription.code_set
                units.append(IndexUnit(position, size, tag_code, match))
        return IndexUnits(least, greatest, units, subscription)

    # -- groups ------------------------------------------------------------------------------------------------------

    def groups_of(self, topic: str) -> list[str]:
        """Groups that consume a topic: those with a consumer of it now, and those that have a cursor in it."""
        return sorted({*self._clients.groups_subscribed_to(topic), *self._cursors.groups_of(topic)})

    def topics_of(self, group: str) -> list[str]:
        """Topics in which a group has a cursor."""
        return self._cursors.topics_of(group)

    def time_spans(self, group: str, topic: str) -> list[TimeSpan]:
        """How far a group has come in each queue of a topic, in times.

        Raises:
            PocketMQError: code 17, no such topic.
        """
        config = self._topics.get(topic)
        if config is None:
            raise PocketMQError(
                f"topic[{topic}] not exist: create it with `pocketmq topic create {topic}`",
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        offsets = self._offsets
        now_ms = self._clock.time_ms()
        spans = []
        for queue_id in range(config.read_queue_nums):
            end = offsets.max_offset(topic, queue_id)
            oldest = offsets.earliest_timestamp(topic, queue_id)
            cursor = self._cursors.get(group, topic, queue_id) or 0
            waiting_since = offsets.store_timestamp(topic, queue_id, cursor) if cursor < end else -1
            spans.append(
                TimeSpan(
                    queue_id,
                    oldest,
                    offsets.store_timestamp(topic, queue_id, end - 1) if end else -1,
                    offsets.store_timestamp(topic, queue_id, cursor - 1) if cursor else oldest,
                    now_ms - waiting_since if waiting_since >= 0 else 0,
                )
            )
        return spans
