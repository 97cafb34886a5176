"""What operators ask about consumer groups and their clients, and how they change them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from pocketmq.broker.attributes import GROUP_ATTRIBUTES, as_edits, edit_attributes
from pocketmq.broker.topic_admin import page
from pocketmq.model.config import DataVersion, GroupConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.model.names import check_group
from pocketmq.views.journal import GroupForbidden
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.journal import Journal
    from pocketmq.broker.locks import QueueLocks
    from pocketmq.broker.offsets import Offsets
    from pocketmq.broker.statistics import Statistics
    from pocketmq.broker.topics import TopicService
    from pocketmq.model.seams import Clock
    from pocketmq.views.cursors import Cursors
    from pocketmq.views.groups import GroupTable
    from pocketmq.views.topics import TopicTable


class QueueProgress(NamedTuple):
    """How far a group has come in one queue.

    `consumed_ms`: when the last consumed message was stored, 0 without one.
    """

    topic: str
    queue_id: int
    end_offset: int
    cursor: int
    pulled_offset: int
    consumed_ms: int

    @property
    def lag(self) -> int:
        """Messages that the group has not consumed yet."""
        return max(self.end_offset - self.cursor, 0)

    @property
    def inflight(self) -> int:
        """Messages that it has pulled and not yet consumed."""
        return max(self.pulled_offset - self.cursor, 0)


class Progress(NamedTuple):
    """How far a group has come, and how fast it goes."""

    queues: list[QueueProgress]
    per_second: float


class GroupAdmin:
    """Consumer groups and clients, as operators see them."""

    def __init__(
        self,
        topic_service: "TopicService",
        journal: "Journal",
        clock: "Clock",
        *,
        topics: "TopicTable",
        groups: "GroupTable",
        cursors: "Cursors",
        clients: "ClientRegistry",
        locks: "QueueLocks",
        offsets: "Offsets",
        statistics: "Statistics",
        pulled: Mapping[tuple[str, str, int], int],
    ) -> None:
        """`pulled`: (group, topic, queue id) -> the offset that the group will pull next."""
        self._topic_service = topic_service
        self._journal = journal
        self._clock = clock
        self._topics = topics
        self._groups = groups
        self._cursors = cursors
        self._clients = clients
        self._locks = locks
        self._offsets = offsets
        self._statistics = statistics
        self._pulled = pulled

    # -- settings ----------------------------------------------------------------------------------------------------

    def get(self, group: str) -> GroupConfig:
        """Settings of a group, which is made when that is allowed.

        Raises:
            PocketMQError: 26 there is no such group, 29 a name that cannot be.
        """
        config = self._topic_service.group_for(group)
        if config is None:
            raise PocketMQError(
                f"No group in this broker. group: {group} (create it with `pocketmq group create {group}`)",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        return config

    async def put(self, configs: Sequence[GroupConfig]) -> None:
        """Create or change groups: all are checked before the first one changes; durable when this returns.

        Raises:
            PocketMQError: 29 a name or number that cannot be; 1 attributes; StoreFullError.
        """
        edited = [self._edited(config) for config in configs]
        for config in edited:
            await self._topic_service.put_group(config)

    async def delete(self, group: str, *, drop_cursors: bool) -> None:
        """Delete a group, and with `drop_cursors` all that it has committed; fine when there is none."""
        await self._topic_service.delete_group(group, drop_cursors=drop_cursors)
        self._locks.forget_group(group)
        self._statistics.forget_group(group)

    async def set_readable(self, group: str, topic: str, readable: bool) -> None:
        """Let a group read a topic, or forbid it; durable when this returns."""
        if readable == self._groups.is_forbidden(group, topic):
            entry = GroupForbidden(group, topic, readable, self._clock.time_ms())
            await self._journal.write_durable([entry])

    def page(self, start: int, count_max: int, known: DataVersion | None) -> tuple[list[GroupConfig], int]:
        """Groups by name from number `start` on, and how many there are in all; see `TopicAdmin.page`."""
        names = page(self._groups.names(), start if known in (None, self._groups.data_version) else 0, count_max)
        return [config for config in map(self._groups.get, names) if config is not None], len(self._groups)

    # -- progress ----------------------------------------------------------------------------------------------------

    def progress(self, group: str, topics: Iterable[str] = ()) -> Progress:
        """How far a group has come, in the given topics or in all that it has a cursor in.

        Topics that its consumers, being online, do not subscribe to any more are left out.
        """
        wanted = list(topics) or self._cursors.topics_of(group)
        online = self._clients.group(group)
        queues: list[QueueProgress] = []
        per_second = 0.0
        for topic in wanted:
            config = self._topics.get(topic)
            if config is None or (online is not None and topic not in online.subscriptions):
                continue
            per_second += self._statistics.group_rate(topic, group)
            queues.extend(self._queue(group, topic, queue_id) for queue_id in range(config.read_queue_nums))
        return Progress(queues, per_second)

    def all_progress(self, *, ordered_only: bool) -> list[tuple[str, list[Progress]]]:
        """Every group with its progress in each of its topics. `ordered_only`: topics that are consumed in order."""
        found = []
        for group in self._groups.names():
            topics = [
                topic
                for topic in self._cursors.topics_of(group)
                if (config := self._topics.get(topic)) is not None and (config.order or not ordered_only)
            ]
            each = [self.progress(group, [topic]) for topic in topics]
            found.append((group, [progress for progress in each if progress.queues]))
        return found

    # -- inside ------------------------------------------------------------------------------------------------------

    def _queue(self, group: str, topic: str, queue_id: int) -> QueueProgress:
        cursor = max(self._cursors.get(group, topic, queue_id) or 0, 0)
        consumed_ms = self._offsets.store_timestamp(topic, queue_id, cursor - 1) if cursor else 0
        return QueueProgress(
            topic,
            queue_id,
            self._offsets.max_offset(topic, queue_id),
            cursor,
            max(cursor, self._pulled.get((group, topic, queue_id), 0)),
            max(consumed_ms, 0),
        )

    def _edited(self, config: GroupConfig) -> GroupConfig:
        check_group(config.group_name)
        existing = self._groups.get(config.group_name)
        current = existing.attributes if existing is not None else {}
        attributes = edit_attributes(current, as_edits(config.attributes), GROUP_ATTRIBUTES, create=existing is None)
        for name, number in (
            ("retryQueueNums", config.retry_queue_nums),
            ("retryMaxTimes", config.retry_max_times),
            ("consumeTimeoutMinute", config.consume_timeout_minute),
        ):
            if number < (-1 if name == "retryMaxTimes" else 0):
                raise PocketMQError(
                    f"{name} of group {config.group_name} cannot be {number}", code=ResponseCode.INVALID_PARAMETER
                )
        return msgspec.structs.replace(config, attributes=attributes)
