"""Who reads a queue: LOCK_BATCH_MQ 41, UNLOCK_BATCH_MQ 42.

Without more they are about the locks of orderly consumers. With `handover` in the header they are about claims, which
are PocketMQ's own; a broker that serves them says so in its answers to heartbeats.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.wire.bodies.clients import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.clients import LockBatchMqRequestHeader, UnlockBatchMqRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the lock codes."""
    handover = broker.handover

    def lock(connection: "RemotingConnection", command: Command) -> Answer:
        claim = command.header(LockBatchMqRequestHeader).handover is True
        body = decode_body(command.body, LockBatchRequestBody)
        held = handover.take(body.consumer_group, body.client_id, body.mq_set, claim=claim)
        return success_body(command, LockBatchResponseBody(held))

    def unlock(connection: "RemotingConnection", command: Command) -> Answer:
        claim = command.header(UnlockBatchMqRequestHeader).handover is True
        body = decode_body(command.body, UnlockBatchRequestBody)
        handover.give_back(body.consumer_group, body.client_id, body.mq_set, claim=claim)
        return success(command)

    dispatcher.on(RequestCode.LOCK_BATCH_MQ, lock)
    dispatcher.on(RequestCode.UNLOCK_BATCH_MQ, unlock)
