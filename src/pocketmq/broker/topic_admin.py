"""What operators ask about topics, and how they change them."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec

from pocketmq.broker.attributes import TOPIC_ATTRIBUTES, as_edits, edit_attributes
from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.model.names import SYSTEM_TOPICS, check_topic, is_system_topic
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pocketmq.broker.offsets import Offsets
    from pocketmq.broker.statistics import Statistics
    from pocketmq.broker.topics import TopicService
    from pocketmq.log.log import Log
    from pocketmq.views.topics import TopicTable

PAGE_MAX = 2000
FILTER_TYPES = ("SINGLE_TAG", "MULTI_TAG")

Item = TypeVar("Item")


class QueueNumbers(NamedTuple):
    """One queue as operators see it. `last_update_ms` is when its newest message was stored, 0 without one."""

    queue_id: int
    min_offset: int
    max_offset: int
    last_update_ms: int


class TopicNumbers(NamedTuple):
    """A topic as operators see it."""

    queues: list[QueueNumbers]
    puts_per_second: float


class TopicAdmin:
    """Topics, as operators see them."""

    def __init__(
        self,
        topic_service: "TopicService",
        topics: "TopicTable",
        log: "Log",
        *,
        offsets: "Offsets",
        statistics: "Statistics",
    ) -> None:
        self._topic_service = topic_service
        self._topics = topics
        self._log = log
        self._offsets = offsets
        self._statistics = statistics

    def get(self, topic: str) -> TopicConfig:
        """Settings of a topic.

        Raises:
            PocketMQError: code 17, there is no such topic.
        """
        config = self._topics.get(topic)
        if config is None:
            raise PocketMQError(
                f"No topic in this broker. topic: {topic} (create it with `pocketmq topic create {topic}`)",
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        return config

    async def put(self, config: TopicConfig, edits: "Mapping[str, str]") -> TopicConfig:
        """Create or change a topic; durable when this returns. `edits` are of its attributes, see `attributes`.

        Raises:
            PocketMQError: 29 a name, number or permission that cannot be; 1 attributes; StoreFullError.
        """
        await self._topic_service.put(self._edited(config, edits))
        return self.get(config.topic_name)

    async def put_all(self, configs: Sequence[TopicConfig]) -> None:
        """Create or change several topics: all of them are checked before the first one changes. Raises as `put`."""
        edited = [self._edited(config, as_edits(config.attributes)) for config in configs]
        for config in edited:
            await self._topic_service.put(config)

    async def delete(self, topic: str) -> None:
        """Delete a topic, its queues and the cursors in it; fine when there is none. Raises PocketMQError 29."""
        await self._topic_service.delete(topic)

    def page(self, start: int, count_max: int, known: DataVersion | None) -> tuple[list[TopicConfig], int]:
        """Topics by name from number `start` on, and how many there are in all.

        When the caller knows another state of the table than this one, it begins anew.
        """
        names = page(self._topics.names(), start if known in (None, self._topics.data_version) else 0, count_max)
        return [config for config in map(self._topics.get, names) if config is not None], len(self._topics)

    def system_topics(self) -> list[str]:
        """Topics that the broker itself owns."""
        return sorted({*SYSTEM_TOPICS, *(name for name in self._topics.names() if is_system_topic(name))})

    def numbers(self, topic: str) -> TopicNumbers:
        """What is in each queue of a topic, and how much comes in. Raises PocketMQError 17."""
        config = self.get(topic)
        queues = []
        for queue_id in range(max(config.read_queue_nums, config.write_queue_nums)):
            end = self._offsets.max_offset(topic, queue_id)
            newest = self._offsets.store_timestamp(topic, queue_id, end - 1) if end else 0
            queues.append(QueueNumbers(queue_id, self._offsets.min_offset(topic, queue_id), end, max(newest, 0)))
        return TopicNumbers(queues, self._statistics.topic_rate(topic))

    def drop_unused(self) -> list[str]:
        """Forget queues in the log whose topic does not exist any more; returns the topics."""
        unused = [topic for topic in self._log.topics() if topic not in self._topics and not is_system_topic(topic)]
        for topic in unused:
            self._log.drop_topic(topic)
        return unused

    def _edited(self, config: TopicConfig, edits: "Mapping[str, str]") -> TopicConfig:
        check_topic(config.topic_name)
        if config.topic_filter_type not in FILTER_TYPES:
            raise PocketMQError(
                f"the filter type of a topic is {' or '.join(FILTER_TYPES)}, not {config.topic_filter_type}",
                code=ResponseCode.INVALID_PARAMETER,
            )
        existing = self._topics.get(config.topic_name)
        current = existing.attributes if existing is not None else {}
        attributes = edit_attributes(current, edits, TOPIC_ATTRIBUTES, create=existing is None)
        return msgspec.structs.replace(config, attributes=attributes)


def page(items: Sequence[Item], start: int, count_max: int) -> Iterable[Item]:
    """Up to `count_max` (at most `PAGE_MAX`) items from number `start` on."""
    start = max(start, 0)
    return items[start : start + max(0, min(count_max, PAGE_MAX))]
