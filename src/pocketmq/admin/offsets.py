"""Positions of consumer groups: show, reset, skip, clone.

A position is set by the broker (222), which also has consumers that are connected go on from there. Brokers before
version 5 do that only while the group is online; else the position is stored as a consumer would do it (15).
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

from pocketmq.admin.groups import no_such_group
from pocketmq.admin.progress import GroupProgress, progress_of
from pocketmq.admin.reach import Progress, Reach, each
from pocketmq.client._async.remoting import read_header
from pocketmq.client.broker_errors import error_of
from pocketmq.client.options import timestamp_ms
from pocketmq.client.routing import topic_route
from pocketmq.model.errors import UsageError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies import SubscriptionGroupWrapper, TopicList
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.offsets import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from pocketmq.wire.headers.topics import QueryTopicsByConsumerRequestHeader

Target = Literal["first", "last"] | int | datetime
"""Where to: the oldest message that is there, the end, an offset, or the first message stored at or after a time."""


class PositionChange(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a group's position in one queue. `before` is None where it had none."""

    topic: str
    broker: str
    queue: int
    before: int | None
    after: int


class Offsets:
    """Asks about positions and sets them."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    # -- asking ------------------------------------------------------------------------------------------------------

    async def show(self, group: str, *, topic: str | None = None) -> GroupProgress:
        """Positions and lag of a group, in one topic or in all that it has read. Raises BrokerError 26."""
        masters = await self._reach.masters() if topic is None else await self._reach.masters_of(topic)
        return await progress_of(self._reach, group, await self._having(group, masters), topic=topic)

    async def topics_of(self, group: str) -> list[str]:
        """Topics in which a group has a position."""
        header = QueryTopicsByConsumerRequestHeader(group=group)

        async def ask(broker: str, address: str) -> TopicList:
            what = f"topics of {group}"
            return await self._reach.fetch(address, RequestCode.QUERY_TOPICS_BY_CONSUMER, TopicList, header, what=what)

        found = await self._reach.of_all(await self._reach.masters(), ask)
        return sorted({topic for topics in found.values() for topic in topics.topic_list})

    async def positions(self, group: str, topic: str) -> dict[MessageQueue, int]:
        """The positions of a group that are stored, exactly; queues without one are left out."""
        queues = await self._queues(topic)

        async def ask(item: tuple[MessageQueue, str]) -> tuple[MessageQueue, int | None]:
            return item[0], await self._stored(group, *item)

        found = await each(queues.items(), ask)
        return {queue: position for queue, position in found if position is not None}

    # -- changing ----------------------------------------------------------------------------------------------------

    async def reset(
        self,
        group: str,
        topic: str,
        to: Target,
        *,
        queue: int | None = None,
        broker: str | None = None,
        progress: Progress | None = None,
    ) -> list[PositionChange]:
        """Set where a group goes on in a topic; consumers that are connected follow.

        Args:
            group: whose position. It must exist.
            topic: where.
            to: "first", "last", an offset, or a datetime.
            queue: only this queue. broker: only queues there.
            progress: called with (done, total) queues.

        Raises:
            UsageError: no such queue; an offset that a queue does not have (then nothing was changed).
            RouteNotFoundError: no such topic.
            BrokerError: 26, no such group.
        """
        queues = self._select(topic, await self._queues(topic), queue, broker)
        await self._having(group, {each.broker_name: address for each, address in queues.items()})

        async def target(item: tuple[MessageQueue, str]) -> tuple[MessageQueue, int]:
            return item[0], await self._target(*item, to)

        targets = await each(queues.items(), target)
        return await self._set_all(group, dict(targets), queues, progress)

    async def skip(
        self, group: str, *, topic: str | None = None, progress: Progress | None = None
    ) -> list[PositionChange]:
        """Let a group leave out all that waits for it: in one topic, or in all that it reads, retries too."""
        masters = await self._reach.masters()
        await self._having(group, masters)
        topics = [topic] if topic is not None else await self.topics_of(group)
        changes = []
        for number, name in enumerate(topics):
            changes += await self.reset(group, name, "last")
            if progress is not None:
                progress(number + 1, len(topics))
        return changes

    async def clone(
        self, source: str, target: str, *, topic: str | None = None, progress: Progress | None = None
    ) -> list[PositionChange]:
        """Give a group the positions of another one, in one topic or in all. Both must exist.

        Queues in which `source` has no position are left as they are.
        """
        if source == target:
            raise UsageError("source and target are the same group")
        masters = await self._reach.masters()
        await self._having(source, masters)
        await self._having(target, masters)
        changes = []
        # The retry topic belongs to the source alone.
        topics = [topic] if topic is not None else [t for t in await self.topics_of(source) if not t.startswith("%")]
        for number, name in enumerate(topics):
            queues = await self._queues(name)
            positions = await self.positions(source, name)
            changes += await self._set_all(target, positions, queues, None)
            if progress is not None:
                progress(number + 1, len(topics))
        return changes

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _having(self, group: str, masters: Mapping[str, str]) -> dict[str, str]:
        """Those of the brokers that have the group. Raises BrokerError 26 when none has."""

        async def ask(broker: str, address: str) -> bool:
            code = RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG
            table = await self._reach.fetch(address, code, SubscriptionGroupWrapper, what=f"groups of {broker}")
            return group in table.subscription_group_table

        found = await self._reach.of_all(masters, ask)
        having = {broker: masters[broker] for broker, has in found.items() if has}
        if not having:
            raise no_such_group(group)
        return having

    async def _queues(self, topic: str) -> dict[MessageQueue, str]:
        """The readable queues of a topic, each with its master's address."""
        route = topic_route(topic, await self._reach.route(topic))
        addresses = {name: route.master(name) for name in route.brokers}
        return {queue: address for queue in route.readable if (address := addresses.get(queue.broker_name)) is not None}

    def _select(
        self, topic: str, queues: Mapping[MessageQueue, str], number: int | None, broker: str | None
    ) -> dict[MessageQueue, str]:
        found = {
            queue: address
            for queue, address in queues.items()
            if number in (None, queue.queue_id) and broker in (None, queue.broker_name)
        }
        if not found:
            raise UsageError(f"the topic {topic} has no such queue; it has {_listed(queues)}")
        return found

    async def _target(self, queue: MessageQueue, address: str, to: Target) -> int:
        if isinstance(to, datetime):
            return await self._by_time(queue, address, timestamp_ms(to, "to"))
        first, end = await self._bounds(queue, address)
        if to == "first":
            return first
        if to == "last":
            return end
        if not first <= to <= end:
            raise UsageError(
                f"queue {queue.queue_id} of {queue.topic} on {queue.broker_name} has offsets {first} to {end}, "
                f"not {to}; name one queue, or give a time"
            )
        return to

    async def _set_all(
        self,
        group: str,
        targets: Mapping[MessageQueue, int],
        queues: Mapping[MessageQueue, str],
        progress: Progress | None,
    ) -> list[PositionChange]:
        async def change(item: tuple[MessageQueue, int]) -> PositionChange:
            queue, target = item
            address = queues[queue]
            before = await self._stored(group, queue, address)
            after = await self._set(group, queue, address, target)
            return PositionChange(
                topic=queue.topic, broker=queue.broker_name, queue=queue.queue_id, before=before, after=after
            )

        return await each(sorted(targets.items()), change, progress=progress)

    async def _set(self, group: str, queue: MessageQueue, address: str, target: int) -> int:
        """Set one position; returns where it is then: at the oldest message that is left, or later."""
        first, end = await self._bounds(queue, address)
        target = min(max(target, first), end)
        header = ResetOffsetRequestHeader(
            group=group, topic=queue.topic, queue_id=queue.queue_id, offset=target, timestamp=-1, is_force=True
        )
        what = f"position of {group} in {queue.topic}"
        answer = await self._reach.remoting.ask(address, RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header)
        if answer.code == ResponseCode.CONSUMER_NOT_ONLINE:
            stored = UpdateConsumerOffsetRequestHeader(
                consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, commit_offset=target
            )
            await self._reach.tell(address, RequestCode.UPDATE_CONSUMER_OFFSET, stored, what=what)
        elif answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return target

    async def _stored(self, group: str, queue: MessageQueue, address: str) -> int | None:
        what = f"position of {group} in {queue.topic}"
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, set_zero_if_not_found=False
        )
        answer = await self._reach.remoting.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return read_header(answer, QueryConsumerOffsetResponseHeader, what, address).offset

    async def _bounds(self, queue: MessageQueue, address: str) -> tuple[int, int]:
        what = f"offsets of {queue.topic}"
        least = await self._reach.tell(
            address, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(queue.topic, queue.queue_id), what=what
        )
        greatest = await self._reach.tell(
            address, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(queue.topic, queue.queue_id), what=what
        )
        first = read_header(least, GetMinOffsetResponseHeader, what, address).offset
        return max(first, 0), max(read_header(greatest, GetMaxOffsetResponseHeader, what, address).offset, 0)

    async def _by_time(self, queue: MessageQueue, address: str, time_ms: int) -> int:
        what = f"offset by time of {queue.topic}"
        header = SearchOffsetRequestHeader(
            topic=queue.topic, queue_id=queue.queue_id, timestamp=time_ms, boundary_type="lower"
        )
        answer = await self._reach.tell(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header, what=what)
        return read_header(answer, SearchOffsetResponseHeader, what, address).offset


def _listed(queues: Iterable[MessageQueue]) -> str:
    numbers: dict[str, list[int]] = {}
    for queue in queues:
        numbers.setdefault(queue.broker_name, []).append(queue.queue_id)
    return ", ".join(f"{broker}: {min(ids)} to {max(ids)}" for broker, ids in sorted(numbers.items())) or "none"
