"""Positions: of queues (first, last, by time) and of groups (stored, to store)."""

from pocketmq.client._async.remoting import Remoting, read_header
from pocketmq.client._async.routes import RouteCache
from pocketmq.client.broker_errors import error_of
from pocketmq.model.errors import ConnectError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.offsets import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)


class Offsets:
    """Asks the masters of queues about positions. Everything raises PocketMQError."""

    def __init__(self, remoting: Remoting, routes: RouteCache) -> None:
        self._remoting = remoting
        self._routes = routes

    async def master(self, queue: MessageQueue) -> str:
        """The master's address of a queue's broker. Raises ConnectError when it has none now."""
        route = await self._routes.get(queue.topic)
        address = route.master(queue.broker_name) or self._routes.address_of(queue.broker_name)
        if address is None:
            raise ConnectError(f"the broker {queue.broker_name} has no master at the moment")
        return address

    async def first(self, queue: MessageQueue) -> int:
        """The offset of the first message that is still stored."""
        what = f"first offset of {queue.topic}"
        address = await self.master(queue)
        header = GetMinOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, target_broker=queue.broker_name)
        answer = await self._remoting.call(address, RequestCode.GET_MIN_OFFSET, header, what=what)
        return read_header(answer, GetMinOffsetResponseHeader, what, address).offset

    async def end(self, queue: MessageQueue) -> int:
        """The offset that the next message will get."""
        what = f"end offset of {queue.topic}"
        address = await self.master(queue)
        header = GetMaxOffsetRequestHeader(topic=queue.topic, queue_id=queue.queue_id, target_broker=queue.broker_name)
        answer = await self._remoting.call(address, RequestCode.GET_MAX_OFFSET, header, what=what)
        return read_header(answer, GetMaxOffsetResponseHeader, what, address).offset

    async def at(self, queue: MessageQueue, time_ms: int) -> int:
        """The offset of the first message that was stored at `time_ms` or later; the end when there is none."""
        what = f"offset by time of {queue.topic}"
        address = await self.master(queue)
        header = SearchOffsetRequestHeader(
            topic=queue.topic,
            queue_id=queue.queue_id,
            timestamp=time_ms,
            boundary_type="lower",
            target_broker=queue.broker_name,
        )
        answer = await self._remoting.call(address, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header, what=what)
        return read_header(answer, SearchOffsetResponseHeader, what, address).offset

    async def stored(self, group: str, queue: MessageQueue) -> int | None:
        """A group's stored position, or None. A broker may answer 0 for a new group on a young topic."""
        what = f"position of {group} in {queue.topic}"
        address = await self.master(queue)
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=group, topic=queue.topic, queue_id=queue.queue_id, target_broker=queue.broker_name
        )
        answer = await self._remoting.ask(address, RequestCode.QUERY_CONSUMER_OFFSET, header)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return read_header(answer, QueryConsumerOffsetResponseHeader, what, address).offset

    async def store(self, group: str, queue: MessageQueue, offset: int, *, certain: bool) -> None:
        """Store a group's position. Without `certain` nobody waits for the answer."""
        address = await self.master(queue)
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
            target_broker=queue.broker_name,
        )
        if certain:
            await self._remoting.call(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        else:
            await self._remoting.oneway(address, RequestCode.UPDATE_CONSUMER_OFFSET, header)
