"""Cursors and queue offsets: what consumers ask and commit, and what operators set.

A cursor moves forwards by commits. It moves backwards only when somebody means it: a commit that waits for its answer
(that is how operators' tools set one), a reset, or a commit below a cursor that lies beyond the end of the queue,
where no message can ever have been (a log that lost its tail).
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.views.journal import Cursor, CursorReset, CursorsCommitted
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.hosts import HOST_V4_BYTES, HOST_V6_BYTES
from pocketmq.wire.record import STORE_TIMESTAMP_AT, SysFlag

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.journal import Journal
    from pocketmq.log.log import Log
    from pocketmq.log.queues import LogQueue
    from pocketmq.model.config import TopicConfig
    from pocketmq.views.cursors import Cursors
    from pocketmq.views.groups import GroupTable
    from pocketmq.views.topics import TopicTable

logger = logging.getLogger(__name__)

YOUNG_LOG_BYTES = 4 * 1024**3
"""A queue whose first message lies within this much log of the end is young: a new group starts at its beginning."""
NONE = -1
OFFSET_MAX = 2**63 - 1
_SYS_FLAG_LAST_BYTE = 39


class Offsets:
    """Cursors of groups, and offsets of queues."""

    def __init__(
        self,
        log: "Log",
        *,
        topics: "TopicTable",
        groups: "GroupTable",
        cursors: "Cursors",
        journal: "Journal",
        clients: "ClientRegistry",
    ) -> None:
        self._log = log
        self._topics = topics
        self._groups = groups
        self._cursors = cursors
        self._journal = journal
        self._clients = clients

    # -- queues ------------------------------------------------------------------------------------------------------

    def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset that the next message gets; 0 for a queue that does not exist."""
        queue = self._log.queue(topic, queue_id)
        return self._log.max_offset(queue) if queue is not None else 0

    def min_offset(self, topic: str, queue_id: int) -> int:
        """The offset of the oldest message that is still there; 0 for a queue that does not exist."""
        queue = self._log.queue(topic, queue_id)
        return self._log.min_offset(queue) if queue is not None else 0

    def offset_by_time(self, topic: str, queue_id: int, timestamp_ms: int, *, upper: bool = False) -> int:
        """The first offset stored at or after `timestamp_ms`; upper: the last at or before. 0 without a queue."""
        queue = self._log.queue(topic, queue_id)
        if queue is None:
            return 0
        return self._log.offset_by_time(queue, timestamp_ms, "upper" if upper else "lower")

    def store_timestamp(self, topic: str, queue_id: int, offset: int) -> int:
        """When the message at `offset` was stored, in ms; -1 when there is none."""
        queue = self._log.queue(topic, queue_id)
        return NONE if queue is None else self._store_timestamp(queue, offset)

    def earliest_timestamp(self, topic: str, queue_id: int) -> int:
        """When the oldest message of the queue was stored, in ms; -1 when there is none."""
        queue = self._log.queue(topic, queue_id)
        return NONE if queue is None else self._store_timestamp(queue, self._log.min_offset(queue))

    # -- cursors -----------------------------------------------------------------------------------------------------

    def query(self, group: str, topic: str, queue_id: int, *, zero_if_not_found: bool = True) -> int:
        """The committed offset; 0 for a group that has none yet on a young queue.

        Raises:
            PocketMQError: code 22, the consumer decides for itself where to start.
        """
        offset = self._cursors.get(group, topic, queue_id)
        if offset is not None:
            return offset
        if zero_if_not_found and self._is_young(topic, queue_id):
            return 0
        raise PocketMQError(
            f"Not found, V3_0_6_SNAPSHOT maybe this group consumer boot first: {group} has no offset in queue "
            f"{queue_id} of {topic} yet",
            code=ResponseCode.QUERY_NOT_FOUND,
        )

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """A consumer commits and does not wait. False when the cursor stays where it is.

        Raises:
            PocketMQError: 26 no such group, 17 no such topic, 29 no such queue or offset.
        """
        self._check(group, topic, queue_id, offset)
        if self._journal.commit_later(group, topic, queue_id, offset):
            return True
        stored = self._cursors.get(group, topic, queue_id)
        beyond = stored is not None and stored > offset and stored > self.max_offset(topic, queue_id)
        if beyond and self._cursors.pending_reset(group, topic, queue_id) is None:
            logger.warning(
                "group %s had offset %d in queue %d of %s, which is beyond its end; it is now %d as its consumer asked",
                group,
                stored,
                queue_id,
                topic,
                offset,
            )
            self._journal.write([CursorReset(Cursor(group, topic, queue_id, offset))])
            return True
        return False

    def set(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Set a cursor, forwards or backwards; in the log when this returns. False: a reset is pending, which wins.

        Raises:
            PocketMQError: as `commit`; StoreFullError.
        """
        self._check(group, topic, queue_id, offset)
        if self._cursors.pending_reset(group, topic, queue_id) is not None:
            return False
        stored = self._cursors.get(group, topic, queue_id)
        cursor = Cursor(group, topic, queue_id, offset)
        if stored is not None and offset < stored:
            logger.info(
                "group %s goes back from %d to %d in queue %d of %s, as asked", group, stored, offset, queue_id, topic
            )
            self._journal.write([CursorReset(cursor)])
        elif stored != offset:
            self._journal.write([CursorsCommitted([cursor])])
        return True

    async def reset(
        self, group: str, topic: str, *, queue_id: int = -1, offset: int | None = None, timestamp_ms: int = -1
    ) -> dict[int, int]:
        """Set a group's cursors in a topic, and have the next pull of each queue told; durable when this returns.

        Args:
            queue_id: below 0 means every queue.
            offset: the target, for one queue; without it the target is found by time.
            timestamp_ms: the first message stored at or after it; below 0 means the end.

        Returns the new offset of each queue.

        Raises:
            PocketMQError: 17 no such topic, 26 no such group, 29 no such queue, 1 no such offset; StoreFullError.
        """
        config = self._topic(topic)
        self._group(group)
        targets: dict[int, int] = {}
        if queue_id >= 0:
            self._check_queue(config, queue_id)
            if offset is not None and offset >= 0:
                self._check_range(topic, queue_id, offset)
                targets[queue_id] = offset
            else:
                targets[queue_id] = self._by_time(topic, queue_id, timestamp_ms)
        else:
            targets = {number: self._by_time(topic, number, timestamp_ms) for number in range(config.read_queue_nums)}
        await self._journal.write_durable(
            [CursorReset(Cursor(group, topic, number, target), announce=True) for number, target in targets.items()]
        )
        return targets

    async def clone(self, source: str, target: str, topic: str | None, *, offline: bool) -> int:
        """Give group `target` the cursors of `source`, in one topic or in all. Returns how many were copied.

        Unless `offline`, topics are left out that the consumers of `source`, being online, do not subscribe to.
        """
        online = self._clients.group(source)
        entries: list[CursorReset] = []
        for each in [topic] if topic else self._cursors.topics_of(source):
            if each not in self._topics or (not offline and online is not None and each not in online.subscriptions):
                continue
            entries.extend(
                CursorReset(Cursor(target, each, queue_id, offset))
                for queue_id, offset in sorted(self._cursors.queues_of(source, each).items())
            )
        if entries:
            await self._journal.write_durable(entries)
        return len(entries)

    def corrections(self, compare_group: str, topic: str, filter_groups: Iterable[str]) -> dict[int, int]:
        """The smallest cursor of all groups in each queue (those in `filter_groups` do not count).

        Where `compare_group` lies behind it, the greatest number there is stands instead.
        """
        ignored = set(filter_groups)
        smallest: dict[int, int] = {}
        for group in self._cursors.groups_of(topic):
            if group in ignored:
                continue
            for queue_id, offset in self._cursors.queues_of(group, topic).items():
                smallest[queue_id] = min(offset, smallest.get(queue_id, OFFSET_MAX))
        for queue_id, offset in self._cursors.queues_of(compare_group, topic).items():
            if smallest.get(queue_id, OFFSET_MAX) > offset:
                smallest[queue_id] = OFFSET_MAX
        return smallest

    # -- inside ------------------------------------------------------------------------------------------------------

    def _store_timestamp(self, queue: "LogQueue", offset: int) -> int:
        for position, _, _ in self._log.units(queue, offset, 1):
            record = self._log.record_at(position)
            if record is not None:
                return store_timestamp_of(record)
        return NONE

    def _is_young(self, topic: str, queue_id: int) -> bool:
        queue = self._log.queue(topic, queue_id)
        if queue is None or self._log.min_offset(queue) > 0 or self._log.max_offset(queue) == 0:
            return False
        for position, _, _ in self._log.units(queue, 0, 1):
            return self._log.max_position - position <= YOUNG_LOG_BYTES
        return False

    def _by_time(self, topic: str, queue_id: int, timestamp_ms: int) -> int:
        if timestamp_ms < 0:
            return self.max_offset(topic, queue_id)
        return self.offset_by_time(topic, queue_id, timestamp_ms)

    def _check(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        self._group(group)
        self._topic(topic)
        if queue_id < 0 or offset < 0:
            raise PocketMQError(
                f"queue {queue_id} and offset {offset} cannot be: neither may be below 0",
                code=ResponseCode.INVALID_PARAMETER,
            )

    def _check_range(self, topic: str, queue_id: int, offset: int) -> None:
        least, greatest = self.min_offset(topic, queue_id), self.max_offset(topic, queue_id)
        if not least <= offset <= greatest + 1:
            raise PocketMQError(
                f"Target offset {offset} not in consume queue range [{least}-{greatest}]",
                code=ResponseCode.SYSTEM_ERROR,
            )

    def _check_queue(self, config: "TopicConfig", queue_id: int) -> None:
        if queue_id >= config.read_queue_nums:
            raise PocketMQError(
                f"topic {config.topic_name} has {config.read_queue_nums} readable queues, not one numbered {queue_id}",
                code=ResponseCode.INVALID_PARAMETER,
            )

    def _topic(self, topic: str) -> "TopicConfig":
        config = self._topics.get(topic)
        if config is None:
            raise PocketMQError(
                f"Topic {topic} does not exist: create it with `pocketmq topic create {topic}`",
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        return config

    def _group(self, group: str) -> None:
        if group not in self._groups:
            raise PocketMQError(
                f"Group {group} does not exist: create it with `pocketmq group create {group}`",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )


def store_timestamp_of(record: memoryview) -> int:
    """The store timestamp (ms) of a stored record, without decoding it."""
    at = STORE_TIMESTAMP_AT
    if record[_SYS_FLAG_LAST_BYTE] & SysFlag.BORN_HOST_V6:
        at += HOST_V6_BYTES - HOST_V4_BYTES
    return int.from_bytes(record[at : at + 8], "big")
