"""What is passed on to clients: GET_CONSUMER_RUNNING_INFO 307, CONSUME_MESSAGE_DIRECTLY 309, and the positions of
consumers, INVOKE_BROKER_TO_GET_CONSUMER_STATUS 223.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.relay import Relay
from pocketmq.broker.remoting.answers import success_body
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.bodies.offsets import GetConsumerStatusBody
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.clients import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection

SEARCH_FOR_ID_MAX = 32


class RelayRequests:
    """Translates operators' questions for `Relay`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._relay = Relay(broker.clients)

    async def running_info(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 307; the client's body is passed back as it is."""
        header = command.header(GetConsumerRunningInfoRequestHeader)
        answer = await self._relay.ask(
            RequestCode.GET_CONSUMER_RUNNING_INFO, header.consumer_group, header.client_id, header
        )
        return _passed_back(command, answer)

    async def consume_directly(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 309: the client gets the record of the message, and answers what came of it."""
        header = command.header(ConsumeMessageDirectlyResultRequestHeader)
        if not header.client_id or not header.msg_id:
            raise PocketMQError("clientId and msgId are needed", code=ResponseCode.SYSTEM_ERROR)
        record = bytes(self._record(header.topic, header.msg_id))
        header.broker_name = self._broker.settings.broker.name
        topic = self._broker.topics.get(header.topic) if header.topic else None
        if topic is not None:
            header.topic_sys_flag = topic.topic_sys_flag
        group = self._broker.groups.get(header.consumer_group)
        if group is not None:
            header.group_sys_flag = group.group_sys_flag
        answer = await self._relay.ask(
            RequestCode.CONSUME_MESSAGE_DIRECTLY, header.consumer_group, header.client_id, header, record
        )
        return _passed_back(command, answer)

    async def positions(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 223."""
        header = command.header(GetConsumerStatusRequestHeader)
        table = await self._relay.positions(header.group, header.topic, header.client_addr)
        return success_body(command, GetConsumerStatusBody(consumer_table=table))

    def _record(self, topic: str | None, message_id: str) -> memoryview:
        """By offset id; a unique key will do as well when the topic is given."""
        queries = self._broker.queries
        try:
            return queries.by_offset_id(message_id)
        except PocketMQError:
            if not topic:
                raise
        found = queries.by_key(
            topic, message_id, count_max=SEARCH_FOR_ID_MAX, begin_ms=0, end_ms=2**63 - 1, unique=True
        )
        return found.records[0]


def _passed_back(command: Command, answer: Command) -> bytes:
    return encode_response(
        command.opaque,
        answer.code,
        answer.remark,
        answer.ext() or None,
        answer.body,
        serialize_type=command.serialize_type,
    )


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes that clients have to answer."""
    requests = RelayRequests(broker)
    dispatcher.on_async(RequestCode.GET_CONSUMER_RUNNING_INFO, requests.running_info)
    dispatcher.on_async(RequestCode.CONSUME_MESSAGE_DIRECTLY, requests.consume_directly)
    dispatcher.on_async(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, requests.positions)
