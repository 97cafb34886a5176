"""Giving messages out of a queue: who may read what, from which offset on, and which of them.

`check` says whether a group may read a queue at all and `read` takes a slice of it; both take plain values, so that
every protocol asks the same. The records are given as stored: on the wire a message looks as it does in the log.
"""

from typing import TYPE_CHECKING, NamedTuple

from pocketmq.broker.filtering import Filters
from pocketmq.log.reading import ReadStatus
from pocketmq.model.config import GroupConfig, Permission, TopicConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.model.limits import PULL_BYTES_MAX, PULL_MESSAGES_MAX
from pocketmq.views.filters import Accept
from pocketmq.views.journal import ResetTaken
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.journal import Journal
    from pocketmq.broker.offsets import Offsets
    from pocketmq.broker.topics import TopicService
    from pocketmq.log.log import Log
    from pocketmq.model.settings import Settings
    from pocketmq.views.cursors import Cursors
    from pocketmq.views.groups import GroupTable
    from pocketmq.views.topics import TopicTable

POSITIONS_MAX = 1_000_000

FOUND = int(ResponseCode.SUCCESS)
NOT_FOUND = int(ResponseCode.PULL_NOT_FOUND)
RETRY_IMMEDIATELY = int(ResponseCode.PULL_RETRY_IMMEDIATELY)
OFFSET_MOVED = int(ResponseCode.PULL_OFFSET_MOVED)

_CODES = {
    ReadStatus.FOUND: (FOUND, "FOUND"),
    ReadStatus.NO_MATCH: (RETRY_IMMEDIATELY, "NO_MATCHED_MESSAGE"),
    ReadStatus.AT_END: (NOT_FOUND, "OFFSET_OVERFLOW_ONE"),
    ReadStatus.BEYOND_END: (OFFSET_MOVED, "OFFSET_OVERFLOW_BADLY"),
    ReadStatus.TOO_SMALL: (OFFSET_MOVED, "OFFSET_TOO_SMALL"),
    ReadStatus.REMOVED: (RETRY_IMMEDIATELY, "MESSAGE_WAS_REMOVING"),
}
"""How the outcomes of a read are called on the wire."""


class Pulled(NamedTuple):
    """What a pull found. `code` is FOUND, NOT_FOUND, RETRY_IMMEDIATELY or OFFSET_MOVED; `status` its reason."""

    code: int
    status: str
    next_offset: int
    min_offset: int
    max_offset: int
    records: list[memoryview]
    message_count: int
    size_bytes: int


class Pulling:
    """The pull path of a broker."""

    def __init__(
        self,
        settings: "Settings",
        log: "Log",
        *,
        topics: "TopicTable",
        groups: "GroupTable",
        topic_service: "TopicService",
        cursors: "Cursors",
        journal: "Journal",
        offsets: "Offsets",
    ) -> None:
        self._settings = settings
        self._log = log
        self._topics = topics
        self._groups = groups
        self._topic_service = topic_service
        self._cursors = cursors
        self._journal = journal
        self._offsets = offsets
        self.filters = Filters(settings.broker, log)
        self.positions: dict[tuple[str, str, int], int] = {}
        """(group, topic, queue id) -> the offset that the group will pull next, as far as this broker knows."""

    def check(self, group: str, topic: str, queue_id: int) -> tuple[GroupConfig, TopicConfig]:
        """Settings of the group and the topic, if the group may read that queue.

        Raises PocketMQError 16, 26, 17 or 29 with the reason.
        """
        settings = self._settings.broker
        if not settings.permission & Permission.READ:
            raise PocketMQError(
                "this broker gives out no messages now (setting broker.permission)", code=ResponseCode.NO_PERMISSION
            )
        group_config = self._topic_service.group_for(group)
        if group_config is None:
            raise PocketMQError(
                f"subscription group [{group}] does not exist; create it with `pocketmq group create {group}`",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        if not group_config.consume_enable:
            raise PocketMQError(
                f"subscription group no permission, {group}: consumption is switched off for the group",
                code=ResponseCode.NO_PERMISSION,
            )
        if self._groups.is_forbidden(group, topic):
            raise PocketMQError(
                f"the consumer group[{group}] is forbidden for topic[{topic}]", code=ResponseCode.NO_PERMISSION
            )
        topic_config = self._topics.get(topic)
        if topic_config is None:
            raise PocketMQError(
                f"topic[{topic}] not exist, apply first please! (create it with `pocketmq topic create {topic}`)",
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        if not topic_config.perm & Permission.READ:
            raise PocketMQError(
                f"the topic[{topic}] pulling message is forbidden: it is not readable", code=ResponseCode.NO_PERMISSION
            )
        if not 0 <= queue_id < topic_config.read_queue_nums:
            raise PocketMQError(
                f"queueId[{queue_id}] is illegal, topic:[{topic}] topicConfig.readQueueNums:"
                f"[{topic_config.read_queue_nums}]",
                code=ResponseCode.INVALID_PARAMETER,
            )
        return group_config, topic_config

    def read(self, topic: str, queue_id: int, offset: int, count_max: int, accept: Accept | None) -> Pulled:
        """Messages of a queue from `offset` on that `accept` lets through; at least one, if there is any."""
        queue = self._log.queue(topic, queue_id)
        if queue is None:
            return Pulled(NOT_FOUND if offset == 0 else OFFSET_MOVED, "NO_MATCHED_LOGIC_QUEUE", 0, 0, 0, [], 0, 0)
        found = self._log.read(queue, offset, max(1, min(count_max, PULL_MESSAGES_MAX)), PULL_BYTES_MAX, accept)
        if found.status is ReadStatus.EMPTY:
            return Pulled(NOT_FOUND if offset == 0 else OFFSET_MOVED, "NO_MESSAGE_IN_QUEUE", 0, 0, 0, [], 0, 0)
        code, status = _CODES[found.status]
        return Pulled(
            code,
            status,
            found.next_offset,
            found.min_offset,
            found.max_offset,
            found.records,
            found.count,
            found.size_bytes,
        )

    def take_reset(self, group: str, topic: str, queue_id: int) -> Pulled | None:
        """When somebody set the group's cursor of this queue: the answer that says so, once."""
        target = self._cursors.pending_reset(group, topic, queue_id)
        if target is None:
            return None
        self._journal.write([ResetTaken(group, topic, queue_id)])
        queue = self._log.queue(topic, queue_id)
        min_offset, max_offset = (self._log.min_offset(queue), self._log.max_offset(queue)) if queue else (0, 0)
        return Pulled(OFFSET_MOVED, "OFFSET_RESET", target, min_offset, max_offset, [], 0, 0)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Take a cursor that a pull carried along."""
        if offset >= 0:
            self._offsets.commit(group, topic, queue_id, offset)

    def note_position(self, group: str, topic: str, queue_id: int, next_offset: int) -> None:
        """Remember, for people, how far the group has pulled."""
        if len(self.positions) >= POSITIONS_MAX:
            self.positions.clear()
        self.positions[(group, topic, queue_id)] = next_offset
