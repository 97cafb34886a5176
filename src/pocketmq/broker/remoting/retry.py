"""CONSUMER_SEND_MSG_BACK 36."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.clients import ConsumerSendMsgBackRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the send-back code."""

    def send_back(connection: "RemotingConnection", command: Command) -> Answer:
        header = command.header(ConsumerSendMsgBackRequestHeader)
        broker.retry.send_back(
            header.group,
            header.offset,
            header.delay_level,
            broker.origins.of(connection),
            max_reconsume_times=header.max_reconsume_times,
        )
        return broker.gate.admit(command, encode_response(command.opaque, serialize_type=command.serialize_type))

    dispatcher.on(RequestCode.CONSUMER_SEND_MSG_BACK, send_back)
