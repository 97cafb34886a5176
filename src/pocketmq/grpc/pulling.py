"""PullMessage, UpdateOffset, GetOffset and QueryOffset: consumers that read queues by offset and keep cursors.

RocketMQ's own proxy does not have these procedures; what they mean is taken from their messages and from the remoting
protocol's requests for the same.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from pocketmq.broker.holds import Held
from pocketmq.broker.pulling import NOT_FOUND, OFFSET_MOVED, RETRY_IMMEDIATELY, Pulled
from pocketmq.grpc.calls import Call, read_ms, set_ok
from pocketmq.grpc.filters import filter_of
from pocketmq.grpc.names import group_of, topic_of
from pocketmq.grpc.outgoing import fill_message
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto, Schema
from pocketmq.wire.record import decode_records

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.log.queues import LogQueue
    from pocketmq.views.filters import Accept

BEGINNING, END, TIMESTAMP = 0, 1, 2
WAIT_MS_MAX = 60_000
_LAST_MOMENT_S = 0.2
"""So long before its deadline a call that waits is answered."""


class _HeldPull(Held):
    """A pull that waits for its queue."""

    __slots__ = ("accept", "broker", "done", "offset")

    def __init__(self, broker: "Broker", queue: "LogQueue", offset: int, accept: "Accept | None") -> None:
        super().__init__(self, queue)
        self.broker = broker
        self.offset = offset
        self.accept = accept
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def try_answer(self) -> bool:
        """Something came: is it for this one?"""
        found = self.broker.pulling.read(self.queue.topic, self.queue.queue_id, self.offset, 1, self.accept)
        if found.code == RETRY_IMMEDIATELY:
            self.offset = found.next_offset
        if found.code in (RETRY_IMMEDIATELY, NOT_FOUND):
            return False
        self.answer_empty()
        return True

    def answer_empty(self) -> None:
        """Look again now."""
        if not self.done.done():
            self.done.set_result(None)


class PullProcedures:
    """Translates for `Pulling` and `Offsets`."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self._broker = broker
        self._schema = schema

    async def pull(self, call: Call, request: Proto) -> AsyncIterator[Proto]:
        """Messages of one queue from an offset on: the status, the messages, the offset to go on from."""
        group, topic = group_of(request.group), topic_of(request.message_queue.topic)
        queue_id = request.message_queue.id
        pulling = self._broker.pulling
        pulling.check(group, topic, queue_id)
        if request.offset < 0:
            raise CodedError(Code.ILLEGAL_OFFSET, f"the offset {request.offset} is below 0")
        accept = filter_of(self._broker, topic, request.filter_expression)
        pulled = pulling.take_reset(group, topic, queue_id)
        if pulled is None:
            pulled = pulling.read(topic, queue_id, request.offset, request.batch_size, accept)
            if pulled.code == NOT_FOUND and (wait_s := self._wait_s(call, request)) > 0:
                pulled = await self._wait(pulled, request, topic, accept, wait_s)
        self._broker.statistics.count_out(topic, group, pulled.message_count, pulled.size_bytes)
        response = self._schema.PullMessageResponse
        status = response()
        if pulled.records:
            set_ok(status.status)
        elif pulled.code == OFFSET_MOVED:
            status.status.code = Code.ILLEGAL_OFFSET
            status.status.message = f"{pulled.status}: go on from {pulled.next_offset}"
        else:
            status.status.code = Code.MESSAGE_NOT_FOUND
            status.status.message = "no new message"
        yield status
        for view in pulled.records:
            for record in decode_records(view):
                message = response()
                fill_message(message.message, request.message_queue.topic, record)
                yield message
        yield response(next_offset=pulled.next_offset if pulled.max_offset else request.offset)

    def _wait_s(self, call: Call, request: Proto) -> float:
        wait_s = min(read_ms(request.long_polling_timeout), WAIT_MS_MAX) / 1000
        remaining = call.remaining_s(self._broker.clock)
        return wait_s if remaining is None else min(wait_s, remaining - _LAST_MOMENT_S)

    async def _wait(self, pulled: Pulled, request: Proto, topic: str, accept: "Accept | None", wait_s: float) -> Pulled:
        queue = self._broker.log.ensure_queue(topic, request.message_queue.id)
        held = _HeldPull(self._broker, queue, request.offset, accept)
        if not self._broker.holds.hold(held, wait_s):
            raise CodedError(Code.TOO_MANY_REQUESTS, "too many requests wait for messages already")
        try:
            await held.done
        finally:
            self._broker.holds.release(held)
        return self._broker.pulling.read(topic, queue.queue_id, held.offset, request.batch_size, accept)

    def update(self, call: Call, request: Proto) -> Proto:
        """Commit a group's cursor."""
        queue = request.message_queue
        self._broker.offsets.commit(group_of(request.group), topic_of(queue.topic), queue.id, request.offset)
        response = self._schema.UpdateOffsetResponse()
        set_ok(response.status)
        return response

    def get(self, call: Call, request: Proto) -> Proto:
        """A group's cursor."""
        queue = request.message_queue
        offset = self._broker.offsets.query(
            group_of(request.group), topic_of(queue.topic), queue.id, zero_if_not_found=False
        )
        response = self._schema.GetOffsetResponse(offset=offset)
        set_ok(response.status)
        return response

    def query(self, call: Call, request: Proto) -> Proto:
        """An offset of a queue: its first message, its end, or the first message stored at or after a time."""
        queue, offsets = request.message_queue, self._broker.offsets
        topic = topic_of(queue.topic)
        config = self._broker.topics.get(topic)
        if config is None:
            raise PocketMQError(f"the topic {topic} does not exist", code=ResponseCode.TOPIC_NOT_EXIST)
        if not 0 <= queue.id < config.read_queue_nums:
            raise CodedError(
                Code.BAD_REQUEST,
                f"the topic {topic} has {config.read_queue_nums} readable queues, and none is {queue.id}",
            )
        if request.query_offset_policy == END:
            offset = offsets.max_offset(topic, queue.id)
        elif request.query_offset_policy == TIMESTAMP:
            offset = offsets.offset_by_time(topic, queue.id, read_ms(request.timestamp))
        else:
            offset = offsets.min_offset(topic, queue.id)
        response = self._schema.QueryOffsetResponse(offset=offset)
        set_ok(response.status)
        return response
