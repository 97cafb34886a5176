"""SEND_REPLY_MESSAGE 324 and SEND_REPLY_MESSAGE_V2 325: passed on to who asked (326), then stored."""

import logging
from typing import TYPE_CHECKING

from pocketmq.broker.complaints import Complaints
from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.replying import Replies, Reply
from pocketmq.broker.targets import bad_body
from pocketmq.model.errors import PocketMQError
from pocketmq.model.names import SEND_FORBIDDEN_TOPICS, check_topic
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.send import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection

logger = logging.getLogger(__name__)

NOT_STORED_ID = "0"
"""The message id in the answer to a reply that was passed on and not stored."""


class ReplyRequests:
    """Translates replies for `Replies` and `Sending`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._replies = Replies(broker.clock, broker.clients, broker.origins)
        self._complaints = Complaints(broker.clock, logger)

    async def reply(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Codes 324 and 325. The answer says how the push went; that it was not stored is told in the log only."""
        header: SendMessageRequestHeader | SendMessageRequestHeaderV2
        if command.code == RequestCode.SEND_REPLY_MESSAGE:
            header = command.header(SendMessageRequestHeader)
        else:
            header = command.header(SendMessageRequestHeaderV2)
        reply = Reply(
            header.producer_group,
            header.topic,
            header.queue_id,
            header.sys_flag,
            header.flag,
            header.born_timestamp,
            header.properties or "",
            header.reconsume_times or 0,
            header.default_topic,
            header.default_topic_queue_nums,
            command.body,
        )
        self._check(reply)
        failure = await self._replies.push(connection, reply)
        stored = await self._store(connection, reply) if self._broker.settings.broker.store_replies else None
        if failure is not None:
            return encode_response(
                command.opaque, ResponseCode.SYSTEM_ERROR, failure, serialize_type=command.serialize_type
            )
        message_id, queue_id, queue_offset = stored or (NOT_STORED_ID, max(0, reply.queue_id), 0)
        settings = self._broker.settings.broker
        return encode_response(
            command.opaque,
            ResponseCode.SUCCESS,
            None,
            SendMessageResponseHeader(
                message_id,
                queue_id,
                queue_offset,
                message_region=settings.region,
                trace_on="true" if settings.trace_on else "false",
            ),
            serialize_type=command.serialize_type,
        )

    def _check(self, reply: Reply) -> None:
        """What a send to the topic would be refused for is refused before anything is pushed."""
        broker = self._broker
        if reply.topic in SEND_FORBIDDEN_TOPICS:
            raise PocketMQError(
                f"the topic {reply.topic} belongs to the broker; messages cannot be sent to it",
                code=ResponseCode.NO_PERMISSION,
            )
        if reply.topic not in broker.topics:
            check_topic(reply.topic)
            broker.topic_service.create_for_send(reply.topic, reply.default_topic, reply.default_queues)
        size_max = broker.settings.store.message_bytes_max
        if not 0 < len(reply.body) <= size_max:
            raise bad_body(len(reply.body), size_max)

    async def _store(self, connection: "RemotingConnection", reply: Reply) -> tuple[str, int, int] | None:
        broker = self._broker
        origin = broker.origins.of(connection)
        try:
            queue_id, queue_offset, position, _ = broker.sending.send(
                reply.topic,
                reply.queue_id,
                reply.body,
                reply.properties,
                origin,
                reply.flag,
                reply.sys_flag,
                reply.born_timestamp,
                reply.reconsume_times,
                reply.default_topic,
                reply.default_queues,
                None,
            )
            broker.sending.flush()
            if broker.gate.sync:
                await broker.log.wait_durable(broker.log.written_position)
        except PocketMQError as error:
            self._complaints.warn("store", f"a reply was passed on and not stored: {error}")
            return None
        return f"{origin.message_id_prefix.decode()}{position:016X}", queue_id, queue_offset


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the reply codes."""
    requests = ReplyRequests(broker)
    dispatcher.on_async(RequestCode.SEND_REPLY_MESSAGE, requests.reply)
    dispatcher.on_async(RequestCode.SEND_REPLY_MESSAGE_V2, requests.reply)
