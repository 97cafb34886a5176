"""Sharing out queues for clients: QUERY_ASSIGNMENT 400, SET_MESSAGE_REQUEST_MODE 401, GET_ALL_MESSAGE_REQUEST_MODE
402.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.assignment import Assignments
from pocketmq.broker.cluster_routes import ClusterRoutes
from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.groups import MessageRequestModeSerializeWrapper, SetMessageRequestModeRequestBody
from pocketmq.wire.bodies.offsets import (
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
)
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


class AssignmentRequests:
    """Translates requests for `Assignments`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        routes = ClusterRoutes(broker.settings.broker, broker.clock, broker.registration, broker.topics)
        self._assignments = Assignments(
            broker.journal, topics=broker.topics, groups=broker.groups, clients=broker.clients, routes=routes
        )

    async def query(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 400."""
        body = decode_body(command.body, QueryAssignmentRequestBody)
        found = await self._assignments.query(
            body.topic,
            body.consumer_group,
            body.client_id,
            strategy=body.strategy_name,
            message_model=body.message_model,
        )
        if found is None:
            return success_body(command, QueryAssignmentResponseBody())
        assigned = [MessageQueueAssignment(queue, found.mode) for queue in found.queues]
        return success_body(command, QueryAssignmentResponseBody(assigned))

    async def set_mode(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 401."""
        body = decode_body(command.body, SetMessageRequestModeRequestBody)
        await self._assignments.set_mode(body.topic, body.consumer_group, body.mode, body.pop_share_queue_num)
        return success(command)

    def all_modes(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Code 402."""
        modes = {
            topic: {
                group: SetMessageRequestModeRequestBody(topic, group, mode.mode, mode.pop_share_queues)
                for group, mode in groups.items()
            }
            for topic, groups in self._broker.groups.request_modes().items()
        }
        return success_body(command, MessageRequestModeSerializeWrapper(modes))


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about assignments."""
    requests = AssignmentRequests(broker)
    dispatcher.on_async(RequestCode.QUERY_ASSIGNMENT, requests.query)
    dispatcher.on_async(RequestCode.SET_MESSAGE_REQUEST_MODE, requests.set_mode)
    dispatcher.on(RequestCode.GET_ALL_MESSAGE_REQUEST_MODE, requests.all_modes)
