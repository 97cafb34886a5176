"""Queue locks of orderly consumers: LOCK_BATCH_MQ 41, UNLOCK_BATCH_MQ 42."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.wire.bodies.clients import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the lock codes."""

    def lock(connection: "RemotingConnection", command: Command) -> Answer:
        body = decode_body(command.body, LockBatchRequestBody)
        held = broker.locks.lock(body.consumer_group, body.client_id, body.mq_set, broker.clock.monotonic())
        return success_body(command, LockBatchResponseBody(held))

    def unlock(connection: "RemotingConnection", command: Command) -> Answer:
        body = decode_body(command.body, UnlockBatchRequestBody)
        broker.locks.unlock(body.consumer_group, body.client_id, body.mq_set)
        return success(command)

    dispatcher.on(RequestCode.LOCK_BATCH_MQ, lock)
    dispatcher.on(RequestCode.UNLOCK_BATCH_MQ, unlock)
