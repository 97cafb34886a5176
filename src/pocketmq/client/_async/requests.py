"""Request and reply: a message that somebody answers, and the answer.

Theory of operation. A request is sent like any message, marked with this client's id and a number of its own. Whoever
consumes it sends the reply to a broker, and that pushes it to this client (326), on the connection on which it knows
its producer. So before a request leaves, every broker that a reply may come to has to know this client: the masters
of the request's topic and of the reply topics of their clusters. A connection that was lost meanwhile is made anew and
announced again by the heartbeats; whoever replies tries again for that long.

A reply that comes too late, or twice, is confirmed and forgotten.
"""

import asyncio
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pocketmq.client._async.remoting import read_header
from pocketmq.client.broker_errors import error_of
from pocketmq.client.outgoing import Compressor, properties_text
from pocketmq.client.replies import Reply, mark_request, reply_to, reply_topic
from pocketmq.model.errors import (
    BackPressureError,
    ClientClosedError,
    CompressionError,
    ConnectError,
    PocketMQError,
    RequestTimeoutError,
    RouteNotFoundError,
    UsageError,
)
from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.codes import STORED_CODES, RequestCode, response_name
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.compression import decompress
from pocketmq.wire.headers.messages import ReplyMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from pocketmq.wire.properties import PropertyKey, decode_properties

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

PAUSE_FIRST_S = 0.2
PAUSE_MAX_S = 2.0
AUTO_CREATE_QUEUES = 4


class Requests:
    """Requests of one client that wait for their replies, and replies that it gives."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._waiting: dict[str, asyncio.Future[Reply]] = {}
        self._known_at: set[str] = set()
        """Brokers that know this client's producer."""
        options = core.options
        self._compress = Compressor(options.compress_above_bytes, options.compression, options.compression_level)

    @property
    def waiting(self) -> int:
        """Requests without a reply yet."""
        return len(self._waiting)

    # -- asking ------------------------------------------------------------------------------------------------------

    async def request(
        self, message: Message, timeout_s: float, retries: int | None, queue: MessageQueue | None
    ) -> Reply:
        """Send a request and wait for its reply; `timeout_s` is for everything together."""
        core = self._core
        if core.options.writable_queues is not None:
            raise UsageError("a request needs brokers: it cannot go to queues given as writable_queues")
        if len(self._waiting) >= core.options.pending_requests_max:
            raise BackPressureError(
                f"{len(self._waiting)} requests wait for their replies (limit: pending_requests of connect)"
            )
        correlation_id = str(uuid.UUID(int=core.options.random_source.getrandbits(128), version=4))
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = reply
        deadline = core.clock.monotonic() + timeout_s
        timer = core.clock.call_later(timeout_s, self._expire, correlation_id, message.topic, timeout_s)
        try:
            await self._introduce(message.topic, timeout_s)
            mark_request(message, correlation_id, core.client_id, timeout_s)
            if not reply.done():
                try:
                    left_s = max(0.001, deadline - core.clock.monotonic())
                    await core.send_as("request", message, left_s, retries, queue)
                except PocketMQError:
                    # The reply may be here although the broker's answer to the request was lost.
                    if not reply.done():
                        raise
            return await reply
        finally:
            timer.cancel()
            del self._waiting[correlation_id]
            if reply.done() and not reply.cancelled():
                reply.exception()

    def _expire(self, correlation_id: str, topic: str, timeout_s: float) -> None:
        reply = self._waiting.get(correlation_id)
        if reply is not None and not reply.done():
            reply.set_exception(
                RequestTimeoutError(
                    f"no reply to the request to {topic} within {timeout_s:g} s; whether somebody dealt with it is not "
                    "known"
                )
            )

    async def _introduce(self, topic: str, timeout_s: float) -> None:
        """Make this client known to all brokers that a reply to a request of `topic` may come to."""
        core = self._core
        await core.producer.queues_of(topic)
        route = core.routes.known(topic)
        clusters = set(route.clusters.values()) if route is not None else set()
        addresses = (
            {address for name in route.brokers if (address := route.master(name))} if route is not None else set()
        )
        for cluster in sorted(clusters):
            try:
                replies = await core.routes.get(reply_topic(cluster))
            except RouteNotFoundError:
                continue
            addresses |= {address for name in replies.brokers if (address := replies.master(name))}
        unknown = addresses - self._known_at
        if unknown:
            self._known_at |= await core.heartbeats.introduce(unknown, min(timeout_s, core.options.request_timeout_s))

    def lost(self, address: str) -> None:
        """The connection to a broker ended: it does not know this client any more."""
        self._known_at.discard(address)

    def arrived(self, connection: RemotingConnection, command: Command) -> bytes | None:
        """A broker pushes a reply (326)."""
        header = command.header(ReplyMessageRequestHeader)
        properties = decode_properties(header.properties or "")
        correlation_id = properties.get(PropertyKey.CORRELATION_ID, "")
        waiting = self._waiting.get(correlation_id)
        if waiting is None or waiting.done():
            logger.debug("a reply came that nobody waits for (any more): %s", correlation_id)
        else:
            try:
                waiting.set_result(self._reply(header, properties, command.body))
            except CompressionError as error:
                waiting.set_exception(error)
        if command.is_oneway:
            return None
        return encode_response(command.opaque, serialize_type=command.serialize_type)

    def _reply(self, header: ReplyMessageRequestHeader, properties: dict[str, str], body: bytes) -> Reply:
        properties[PropertyKey.ARRIVE_TIME] = str(self._core.clock.time_ms())
        return Reply(
            topic=header.topic,
            body=decompress(body, header.sys_flag),
            properties=properties,
            broker_name="",
            queue_id=header.queue_id,
            queue_offset=-1,
            physical_offset=-1,
            message_id=properties.get(PropertyKey.UNIQUE_KEY, ""),
            offset_message_id="",
            flag=header.flag,
            sys_flag=header.sys_flag,
            born_timestamp=header.born_timestamp,
            born_host=header.born_host.removeprefix("/"),
            store_timestamp=header.store_timestamp,
            store_host=header.store_host.removeprefix("/"),
            reconsume_times=header.reconsume_times or 0,
            prepared_transaction_offset=0,
            store_size=len(body),
            context=self._core.options.serializer,
        )

    # -- answering ---------------------------------------------------------------------------------------------------

    async def reply(
        self, request: ReceivedMessage, value: Any, properties: Mapping[str, str], timeout_s: float | None
    ) -> SendReceipt:
        """Answer a request. Raises BrokerError 1 when whoever asked is not there (any more)."""
        core = self._core
        core.begin()
        own = dict(properties)
        body = value if type(value) is bytes else core.options.serializer.encode(value, own)
        message = core.producer.complete(reply_to(request, body, own))
        limit_s = core.options.send_timeout_s if timeout_s is None else timeout_s

        async def send(message: Message) -> SendReceipt:
            return await self._send_reply(message, request, limit_s)

        if core.chain is None:
            return await send(message)
        return await core.chain.send_through(message, send, "reply")

    async def _send_reply(self, message: Message, request: ReceivedMessage, timeout_s: float) -> SendReceipt:
        """Try the broker that the request came from, which knows who asked, then the others; after a while again.

        Who asked may be connecting anew just now. It waits no longer than the request says.
        """
        core, preferred = self._core, request.broker_name
        deadline = core.clock.monotonic() + timeout_s
        waits_until_ms = request.born_timestamp + int(message.properties[PropertyKey.TIME_TO_LIVE])
        route = await core.routes.get(message.topic)
        failure: PocketMQError = ConnectError(f"no broker of {message.topic} has a master at the moment")
        pause_s = PAUSE_FIRST_S
        while True:
            for broker in sorted(route.brokers, key=lambda name: (name != preferred, name)):
                address, left_s = route.master(broker), deadline - core.clock.monotonic()
                if address is None or left_s <= 0:
                    continue
                try:
                    return await self._send_reply_to(message, MessageQueue(message.topic, broker, 0), address, left_s)
                except PocketMQError as error:
                    if isinstance(error, UsageError):
                        raise
                    failure = error
                    logger.debug("a reply to %s was not passed on: %s", request.message_id, error)
            if core.clock.monotonic() + pause_s >= deadline or core.clock.time_ms() >= waits_until_ms:
                raise failure
            await core.clock.sleep(pause_s)
            pause_s = min(PAUSE_MAX_S, pause_s * 2)

    async def _send_reply_to(
        self, message: Message, queue: MessageQueue, address: str, timeout_s: float
    ) -> SendReceipt:
        core, what = self._core, f"reply to {message.properties[PropertyKey.REPLY_TO_CLIENT]}"
        body, sys_flag = self._compress(message.body)
        header = SendMessageRequestHeaderV2(
            producer_group=core.options.producer_group,
            topic=message.topic,
            default_topic=AUTO_CREATE_TOPIC,
            default_topic_queue_nums=AUTO_CREATE_QUEUES,
            queue_id=queue.queue_id,
            sys_flag=sys_flag,
            born_timestamp=core.clock.time_ms(),
            flag=message.flag,
            properties=properties_text(message),
            reconsume_times=0,
            unit_mode=False,
            batch=False,
            broker_name=queue.broker_name,
        )
        answer = await core.remoting.ask(address, RequestCode.SEND_REPLY_MESSAGE_V2, header, body, timeout_s=timeout_s)
        if answer.code not in STORED_CODES:
            raise error_of(answer, what, address)
        found = read_header(answer, SendMessageResponseHeader, what, address)
        return SendReceipt(
            message_id=message.properties[PropertyKey.UNIQUE_KEY],
            offset_message_id=found.msg_id,
            queue=MessageQueue(queue.topic, queue.broker_name, found.queue_id),
            queue_offset=found.queue_offset,
            status="SEND_OK" if answer.code == 0 else response_name(answer.code),
        )

    def close(self) -> None:
        """Nobody waits any longer."""
        for reply in self._waiting.values():
            if not reply.done():
                reply.set_exception(ClientClosedError("the client was closed before the reply came"))
