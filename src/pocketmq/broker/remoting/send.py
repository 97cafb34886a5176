"""SEND_MESSAGE 10, SEND_MESSAGE_V2 310, SEND_BATCH_MESSAGE 320.

The hottest adapter: the answer of an ordinary send is one formatting operation.
"""

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.wire.binary_send import UNIQUE_KEY_BYTES_MAX, BinarySendAnswer, KnownSend
from pocketmq.wire.codes import CURRENT_VERSION, RequestCode, ResponseCode
from pocketmq.wire.command import OUR_LANGUAGE, ROCKETMQ, Command, encode_response
from pocketmq.wire.headers.base import to_json
from pocketmq.wire.headers.send import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection

Header = SendMessageRequestHeader | SendMessageRequestHeaderV2

SEND_V1 = int(RequestCode.SEND_MESSAGE)

_FRAME_HEAD = struct.Struct(">II")
_WAIT_FALSE = "WAIT\x01false"


class SendRequests:
    """Translates send requests for `Sending`, and what it stored into answers."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._sending = broker.sending
        self._send = broker.sending.send
        self._admit = broker.gate.admit
        self._gate = broker.gate
        settings = broker.settings.broker
        self._region = settings.region
        self._trace_on = "true" if settings.trace_on else "false"
        self._origins = broker.origins.known
        # Every field but the six that differ; region names and the like are quoted once here.
        self._answer = (
            f'{{"code":0,"extFields":{{"MSG_REGION":{to_json(self._region).replace("%", "%%")},'
            f'"TRACE_ON":"{self._trace_on}","msgId":"%b%016X","queueId":"%d","queueOffset":"%d",'
            f'"transactionId":"%b"}},"flag":1,"language":"{OUR_LANGUAGE}","opaque":%d,"version":{CURRENT_VERSION}}}'
        ).encode()
        self._answer_binary = BinarySendAnswer(self._region, self._trace_on, OUR_LANGUAGE).encode
        self._batch_template = lru_cache(maxsize=1024)(self._make_batch_template)

    def send(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Codes 310 and 10, which differ in the names of the header fields."""
        if command.known_send is not None and (answer := self._send_known(connection, command)) is not None:
            if self._gate.sync:
                return self._admit(command, answer, wait=command.known_send[0].plan.waits)
            self._gate.admitted.append(command)
            return None if command.flag & 2 else answer
        header: Header
        if command.code == SEND_V1:
            header = command.header(SendMessageRequestHeader)
        else:
            header = command.header(SendMessageRequestHeaderV2)
        if header.batch:
            return self._stage_batch(connection, command, header)
        origin = self._origins.get(connection) or self._broker.origins.of(connection)
        properties = header.properties or ""
        queue_id, queue_offset, position, unique_key = self._send(
            header.topic,
            header.queue_id,
            command.body,
            properties,
            origin,
            header.flag,
            header.sys_flag,
            header.born_timestamp,
            header.reconsume_times or 0,
            header.default_topic,
            header.default_topic_queue_nums,
            header.max_reconsume_times,
        )
        if command.serialize_type == 0 and unique_key.isalnum():
            data = self._answer % (
                origin.message_id_prefix,
                position,
                queue_id,
                queue_offset,
                unique_key,
                command.opaque,
            )
            length = len(data)
            answer = _FRAME_HEAD.pack(4 + length, length) + data
        else:
            answer = self._answer_otherwise(
                command, origin.message_id_prefix, position, queue_id, queue_offset, unique_key
            )
        if self._gate.sync:
            return self._admit(command, answer, wait=_WAIT_FALSE not in properties)
        self._gate.admitted.append(command)
        return None if command.flag & 2 else answer

    def _send_known(self, connection: "RemotingConnection", command: Command) -> bytes | None:
        """Store a message of a shape that was seen before; None when it must be looked at as any other."""
        known: KnownSend = command.known_send
        shape, queue_id, born_timestamp, unique_key, _ = known
        plan = shape.plan
        if plan is None:
            # False stands for no plan, so that it is not looked for again.
            plan = shape.plan = self._sending.plan(shape) or False
        if not plan or not unique_key or len(unique_key) > UNIQUE_KEY_BYTES_MAX:
            return None
        origin = self._origins.get(connection) or self._broker.origins.of(connection)
        stored = self._sending.send_planned(plan, queue_id, command.body, unique_key, origin, born_timestamp)
        if stored is None:
            return None
        queue_offset, position = stored
        return self._answer_binary(
            command.opaque, origin.message_id_prefix, position, queue_id, queue_offset, unique_key
        )

    def _answer_otherwise(
        self, command: Command, prefix: bytes, position: int, queue_id: int, queue_offset: int, unique_key: bytes
    ) -> bytes:
        """In a binary header, or with a unique key that JSON must quote."""
        if command.serialize_type == ROCKETMQ:
            answer = self._answer_binary(command.opaque, prefix, position, queue_id, queue_offset, unique_key)
            if answer is not None:
                return answer
        message_id = (b"%b%016X" % (prefix, position)).decode()
        return self._encode(command, message_id, queue_id, queue_offset, unique_key.decode(errors="replace"))

    def send_batch(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 320."""
        return self._stage_batch(connection, command, command.header(SendMessageRequestHeaderV2))

    def _stage_batch(self, connection: "RemotingConnection", command: Command, header: Header) -> bytes | None:
        origin = self._origins.get(connection) or self._broker.origins.of(connection)
        queue_id, queue_offset, positions = self._broker.sending.send_batch(
            header.topic,
            header.queue_id,
            command.body,
            origin,
            header.sys_flag,
            header.born_timestamp,
            header.default_topic,
            header.default_topic_queue_nums,
        )
        if command.serialize_type == 0:
            data = self._batch_template(origin.message_id_prefix, len(positions)) % (
                *positions,
                queue_id,
                queue_offset,
                command.opaque,
            )
            answer = _FRAME_HEAD.pack(4 + len(data), len(data)) + data
        else:
            message_ids = ",".join([f"{origin.message_id_prefix.decode()}{position:016X}" for position in positions])
            answer = self._encode(command, message_ids, queue_id, queue_offset, None)
        return self._admit(command, answer, wait=_WAIT_FALSE not in (header.properties or ""))

    def _make_batch_template(self, prefix: bytes, count: int) -> bytes:
        """The answer to a batch of so many messages, with room for their positions and three more numbers."""
        one = self._answer.replace(b',"transactionId":"%b"', b"")
        return one.replace(b"%b%016X", b",".join([prefix + b"%016X"] * count))

    def _encode(
        self, command: Command, message_id: str, queue_id: int, queue_offset: int, unique_key: str | None
    ) -> bytes:
        return encode_response(
            command.opaque,
            ResponseCode.SUCCESS,
            None,
            SendMessageResponseHeader(
                message_id,
                queue_id,
                queue_offset,
                unique_key,
                message_region=self._region,
                trace_on=self._trace_on,
            ),
            serialize_type=command.serialize_type,
        )


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the send codes."""
    requests = SendRequests(broker)
    dispatcher.on(RequestCode.SEND_MESSAGE, requests.send)
    dispatcher.on(RequestCode.SEND_MESSAGE_V2, requests.send)
    dispatcher.on(RequestCode.SEND_BATCH_MESSAGE, requests.send_batch)
