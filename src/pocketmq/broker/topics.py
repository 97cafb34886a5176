"""Topics and groups as a service: creating, changing and deleting them, by hand or on first use."""

import logging
from typing import TYPE_CHECKING

from pocketmq.broker.complaints import Complaints
from pocketmq.model.config import GroupConfig, Permission, TopicConfig
from pocketmq.model.errors import InvalidNameError, PocketMQError, StoreError
from pocketmq.model.limits import QUEUES_PER_TOPIC_MAX
from pocketmq.model.names import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    check_group,
    check_topic,
    dead_letter_topic,
    is_system_group,
    is_system_topic,
    retry_topic,
)
from pocketmq.views.groups import GroupTable
from pocketmq.views.journal import Entry, GroupDelete, GroupOffsetsDropped, GroupPut, TopicDelete, TopicPut
from pocketmq.views.topics import TopicTable
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.journal import Journal
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import BrokerSettings

logger = logging.getLogger(__name__)


class TopicService:
    """Changes of topics and groups. The tables themselves are the views `topics` and `groups`."""

    def __init__(
        self,
        settings: "BrokerSettings",
        clock: "Clock",
        journal: "Journal",
        log: "Log",
        *,
        topics: TopicTable,
        groups: GroupTable,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._complaints = Complaints(clock, logger)
        self._journal = journal
        self._topics = topics
        self._groups = groups
        self._log = log

    # -- topics ------------------------------------------------------------------------------------------------------

    def create_for_send(self, topic: str, template_name: str, queues: int) -> TopicConfig:
        """The topic of a send that does not exist yet: made from the template topic, if that is allowed.

        Raises InvalidNameError (29), PocketMQError 17 when it may not be created, StoreFullError.
        """
        check_topic(topic)
        if topic.startswith(RETRY_PREFIX):
            return self.ensure(TopicConfig(topic_name=topic, read_queue_nums=1, write_queue_nums=1))
        template = self._topics.get(template_name)
        if template is None or not template.perm & Permission.INHERIT or not self._settings.auto_create_topic:
            raise PocketMQError(
                f"topic[{topic}] not exist, apply first please! "
                + (
                    f"(create it with `pocketmq topic create {topic}`; automatic creation is switched off)"
                    if not self._settings.auto_create_topic
                    else f"(create it with `pocketmq topic create {topic}`)"
                ),
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        count = max(1, min(queues, template.write_queue_nums))
        return self.ensure(
            TopicConfig(
                topic_name=topic,
                read_queue_nums=count,
                write_queue_nums=count,
                perm=template.perm & ~Permission.INHERIT,
                topic_filter_type=template.topic_filter_type,
                topic_sys_flag=template.topic_sys_flag,
            )
        )

    def ensure(self, config: TopicConfig) -> TopicConfig:
        """The topic as it is, or made with these settings when it is missing. In the log, not yet durable."""
        existing = self._topics.get(config.topic_name)
        if existing is not None:
            return existing
        self._journal.write([TopicPut(config, self._clock.time_ms())])
        return config

    def ensure_retry_topic(self, group: GroupConfig) -> TopicConfig:
        """`%RETRY%<group>`, with as many queues as the group asks for."""
        queues = max(1, group.retry_queue_nums)
        return self.ensure(
            TopicConfig(topic_name=retry_topic(group.group_name), read_queue_nums=queues, write_queue_nums=queues)
        )

    def ensure_dead_letter_topic(self, group: str) -> TopicConfig:
        """`%DLQ%<group>`, one queue."""
        return self.ensure(TopicConfig(topic_name=dead_letter_topic(group), read_queue_nums=1, write_queue_nums=1))

    async def put(self, config: TopicConfig) -> None:
        """Create or change a topic; durable when this returns.

        Raises InvalidNameError (29) for a name that is not allowed or a system topic, PocketMQError 29 for numbers
        that cannot be, StoreFullError.
        """
        check_topic_config(config)
        if self._topics.get(config.topic_name) != config:
            await self._journal.write_durable([TopicPut(config, self._clock.time_ms())])

    async def delete(self, topic: str) -> None:
        """Delete a topic, its queues and all cursors in it; fine when there is none. Raises InvalidNameError (29)."""
        if not topic or topic.isspace():
            raise InvalidNameError("the topic name is empty")
        if is_system_topic(topic):
            raise InvalidNameError(f"the topic {topic} belongs to the broker and cannot be deleted")
        if topic not in self._topics:
            return
        position = self._journal.write([TopicDelete(topic, self._clock.time_ms())])
        self._log.drop_topic(topic)
        await self._journal.wait_durable(position)

    # -- groups ------------------------------------------------------------------------------------------------------

    def group_for(self, name: str) -> GroupConfig | None:
        """Settings of a group; made with the defaults when it is new and that is allowed, else None.

        Raises InvalidNameError (29).
        """
        group = self._groups.get(name)
        if group is not None:
            return group
        if not (self._settings.auto_create_group or is_system_group(name)):
            return None
        check_group(name)
        group = GroupConfig(group_name=name)
        try:
            self._journal.write([GroupPut(group, self._clock.time_ms())])
        except StoreError as error:
            # Who only wants to read must not be turned away because the disk is full; the group is made next time.
            self._complaints.warn("group", f"the group {name} is not stored yet: {error}")
        return group

    async def put_group(self, config: GroupConfig) -> None:
        """Create or change a group; durable when this returns. Raises InvalidNameError (29), StoreFullError."""
        check_group(config.group_name)
        if self._groups.get(config.group_name) != config:
            await self._journal.write_durable([GroupPut(config, self._clock.time_ms())])

    async def delete_group(self, name: str, *, drop_cursors: bool) -> None:
        """Delete a group, and with `drop_cursors` all that it has committed; fine when there is none."""
        entries: list[Entry] = [GroupDelete(name, self._clock.time_ms())]
        if drop_cursors:
            entries.append(GroupOffsetsDropped(name))
        await self._journal.write_durable(entries)


def check_topic_config(config: TopicConfig) -> None:
    """Refuse settings that a topic made by people cannot have. Raises InvalidNameError, PocketMQError 29."""
    name = check_topic(config.topic_name)
    if is_system_topic(name):
        raise InvalidNameError(f"the topic {name} belongs to the broker and cannot be changed")
    for kind, count in (("read", config.read_queue_nums), ("write", config.write_queue_nums)):
        least = 0 if kind == "write" and name.startswith(DLQ_PREFIX) else 1
        if not least <= count <= QUEUES_PER_TOPIC_MAX:
            raise PocketMQError(
                f"a topic has {least} to {QUEUES_PER_TOPIC_MAX} {kind} queues; {count} were asked for",
                code=ResponseCode.INVALID_PARAMETER,
            )
    if not 0 <= config.perm <= 15:
        raise PocketMQError(
            f"the permission of a topic is made of 4 (read), 2 (write) and 1 (inherit); {config.perm} is none",
            code=ResponseCode.INVALID_PARAMETER,
        )
