"""Which queues a consumer reads: its share of each topic, worked out anew at every change and every few seconds.

All consumers of a group compute their shares from the same two lists, the queues of the topic and the client ids of the
group, so nobody has to decide. The list of ids is asked from the same broker by everybody (the first of the sorted
masters that answers), since two brokers may know different consumers for a while.
"""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pocketmq.client._async.pulling import Puller
from pocketmq.client._async.reader import QueueReader
from pocketmq.client.broker_errors import error_of
from pocketmq.client.parts import Allocator
from pocketmq.client.routing import TopicRoute
from pocketmq.model.errors import DecodeError, PocketMQError, RouteNotFoundError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.model.seams import Cancellable
from pocketmq.wire.bodies import GetConsumerListByGroupResponseBody, decode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.clients import GetConsumerListByGroupRequestHeader

if TYPE_CHECKING:
    from pocketmq.client._async.member import Member

logger = logging.getLogger("pocketmq.client")

NOTICE_DELAY_S = 0.05
"""Notices of one change come one by one; wait for the last of them."""
UNKNOWN_TOPIC_S = 1.0
"""How often a topic is looked for that does not exist yet."""


class Assignment:
    """The queue readers of one consumer."""

    def __init__(self, member: "Member", allocator: Allocator, drain_s: float) -> None:
        self._member = member
        self._core = member.core
        self._allocator = allocator
        self._drain_s = drain_s
        self._readers: dict[MessageQueue, QueueReader] = {}
        self._at_first: dict[str, TopicRoute | None] = {}
        self._leaving: dict[MessageQueue, asyncio.Task[None]] = {}
        self._lock = asyncio.Lock()
        self._timer: Cancellable | None = None
        self._due = 0.0
        self._task: asyncio.Task[None] | None = None
        self._again = False
        self._closed = False

    def readers(self) -> list[QueueReader]:
        """The readers of all queues that are read now."""
        return list(self._readers.values())

    def reader(self, queue: MessageQueue) -> QueueReader | None:
        """The reader of one queue."""
        return self._readers.get(queue)

    # -- when --------------------------------------------------------------------------------------------------------

    def soon(self, delay_s: float = NOTICE_DELAY_S) -> None:
        """Something may have changed: work it out again after a moment, or sooner if that was asked before."""
        if self._closed:
            return
        now = self._core.clock.monotonic()
        due = max(now + delay_s, self._core.calm_from)
        if self._timer is not None:
            if self._due <= due:
                return
            self._timer.cancel()
        self._due = due
        self._timer = self._core.clock.call_later(due - now, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if self._closed:
            return
        if self._task is not None and not self._task.done():
            self._again = True
            return
        self._task = asyncio.get_running_loop().create_task(self._rebalance_safely())

    async def _rebalance_safely(self) -> None:
        try:
            await self.rebalance()
        except PocketMQError as error:
            logger.warning("%s keeps its queues, since its share cannot be worked out: %s", self._member.group, error)
        except Exception:
            logger.exception("working out the share of %s failed", self._member.group)
        if self._again:
            self._again = False
            self.soon()

    # -- what --------------------------------------------------------------------------------------------------------

    async def find_routes(self) -> None:
        """Learn where the topics are. Raises PocketMQError when no name server answers."""
        for topic in self._member.subscriptions:
            self._at_first[topic] = await self._route(topic)

    def is_newer_than_us(self, queue: MessageQueue) -> bool:
        """Whether a queue was made after this consumer joined: then "from the last message on" means all of it."""
        if queue.topic not in self._at_first:
            return False
        route = self._at_first[queue.topic]
        if route is None:
            return True
        # A broker that was not in the route may have been down only, and its queues be old.
        return queue.broker_name in route.brokers and queue not in route.readable

    async def _route(self, topic: str) -> TopicRoute | None:
        try:
            return await self._core.routes.get(topic)
        except RouteNotFoundError:
            return None

    async def rebalance(self) -> None:
        """Work out this consumer's share and change over to it. Raises PocketMQError; then nothing was changed."""
        async with self._lock:
            unknown = False
            for topic in list(self._member.subscriptions):
                route = await self._route(topic)
                if route is None:
                    unknown = unknown or not topic.startswith(RETRY_PREFIX)
                    continue
                share = await self._share(route)
                if share is not None and not self._closed:
                    self._apply(topic, share)
            if unknown:
                self.soon(UNKNOWN_TOPIC_S)

    async def _share(self, route: TopicRoute) -> list[MessageQueue] | None:
        if self._member.broadcasting:
            return list(route.readable)
        me = self._core.client_id
        ids = await self.consumer_ids(route)
        if me not in ids:
            # The broker lost us, or does not know us yet.
            await self._core.heartbeats.send_for(self._member)
            ids = await self.consumer_ids(route)
            if me not in ids:
                return None
        return self._allocator.allocate(me, ids, route.readable)

    async def consumer_ids(self, route: TopicRoute) -> list[str]:
        """The client ids of the group, sorted, as the first broker that answers knows them. Raises PocketMQError."""
        header = GetConsumerListByGroupRequestHeader(consumer_group=self._member.group)
        failure: PocketMQError | None = None
        for broker_name in sorted(route.brokers):
            address = route.address(broker_name)
            if address is None:
                continue
            try:
                answer = await self._core.remoting.ask(address, RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
            except PocketMQError as error:
                failure = error
                continue
            if answer.code == ResponseCode.SYSTEM_ERROR:
                return []
            if answer.code != ResponseCode.SUCCESS:
                failure = error_of(answer, f"consumers of {self._member.group}", address)
                continue
            try:
                body = decode_body(answer.body, GetConsumerListByGroupResponseBody)
            except DecodeError as error:
                failure = error
                continue
            return sorted(set(body.consumer_id_list))
        if failure is not None:
            raise failure
        return []

    def _apply(self, topic: str, share: Iterable[MessageQueue]) -> None:
        wanted = set(share)
        for queue in [queue for queue in self._readers if queue.topic == topic and queue not in wanted]:
            self._let_go(queue)
        for queue in sorted(wanted):
            if queue in self._readers:
                continue
            if queue in self._leaving:
                self.soon(1.0)
                continue
            self._take_on(queue)

    def _take_on(self, queue: MessageQueue) -> None:
        member = self._member
        wanted = member.subscriptions[queue.topic]
        puller = Puller(self._core.remoting, queue, member.group, wanted, member.version_ms)
        reader = QueueReader(member, queue, puller)
        self._readers[queue] = reader
        reader.start()

    def _let_go(self, queue: MessageQueue) -> None:
        reader = self._readers.pop(queue)
        task = asyncio.get_running_loop().create_task(self._leave(reader))
        self._leaving[queue] = task
        task.add_done_callback(lambda _: self._leaving.pop(queue, None))

    async def _leave(self, reader: QueueReader) -> None:
        logger.debug("%s lets go of %s", self._member.group, reader.queue)
        try:
            await reader.leave(self._drain_s)
            await self._member.unlock(reader)
        except Exception:
            logger.exception("letting go of %s failed", reader.queue)

    async def close(self) -> None:
        """Let go of everything, in good order."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for queue in list(self._readers):
            self._let_go(queue)
        await asyncio.gather(*self._leaving.values(), return_exceptions=True)
