"""QueryRoute and QueryAssignment: which queues there are, and the endpoint that serves them."""

from typing import TYPE_CHECKING

from pocketmq.grpc.calls import Call, set_ok
from pocketmq.grpc.names import group_of, topic_of
from pocketmq.model.config import Permission, TopicConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.net.addresses import parse_address
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto, Schema

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

IPV4, IPV6, DOMAIN_NAME = 1, 2, 3
NONE, READ, WRITE, READ_WRITE = 1, 2, 3, 4
ALL_QUEUES = -1
"""Queue id of an assignment that stands for every queue of a broker."""

MESSAGE_TYPES = {"NORMAL": 1, "FIFO": 2, "DELAY": 3, "TRANSACTION": 4, "PRIORITY": 6}
MIXED_TYPES = (1, 2, 3, 4)


class RouteProcedures:
    """Answers where queues are. `advertise` is the endpoint that clients are told, empty for the one each used."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self._broker = broker
        self._schema = schema

    def route(self, call: Call, request: Proto) -> Proto:
        """All queues of a topic, with what may be done with each."""
        config = self._topic(topic_of(request.topic))
        response = self._schema.QueryRouteResponse()
        endpoints = self._endpoints(call, request.endpoints)
        types = message_types(config)
        for queue_id, permission in enumerate(permissions(config, self._broker.settings.broker.permission)):
            queue = response.message_queues.add(id=queue_id, permission=permission, accept_message_types=types)
            queue.topic.CopyFrom(request.topic)
            self._fill_broker(queue.broker, endpoints)
        set_ok(response.status)
        return response

    def assignment(self, call: Call, request: Proto) -> Proto:
        """The queues that a consumer of a group shall receive from: all consumers share all queues."""
        config = self._topic(topic_of(request.topic))
        group = self._broker.topic_service.group_for(group_of(request.group))
        if group is None:
            raise PocketMQError(
                f"the consumer group {request.group.name} does not exist; create it with "
                f"`pocketmq group create {request.group.name}`",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        if not config.perm & self._broker.settings.broker.permission & Permission.READ:
            raise CodedError(Code.FORBIDDEN, f"no readable queue: {config.topic_name} may not be read")
        response = self._schema.QueryAssignmentResponse()
        endpoints = self._endpoints(call, request.endpoints)
        for queue_id in range(config.read_queue_nums) if group.consume_message_orderly else (ALL_QUEUES,):
            queue = response.assignments.add().message_queue
            queue.id = queue_id
            queue.permission = READ_WRITE if config.perm & Permission.WRITE else READ
            queue.topic.CopyFrom(request.topic)
            queue.accept_message_types.extend(message_types(config))
            self._fill_broker(queue.broker, endpoints)
        set_ok(response.status)
        return response

    def _topic(self, topic: str) -> TopicConfig:
        config = self._broker.topics.get(topic)
        if config is None:
            raise PocketMQError(
                f"the topic {topic} does not exist; create it with `pocketmq topic create {topic}`",
                code=ResponseCode.TOPIC_NOT_EXIST,
            )
        return config

    def _fill_broker(self, broker: Proto, endpoints: Proto) -> None:
        broker.name = self._broker.settings.broker.name
        broker.endpoints.CopyFrom(endpoints)

    def _endpoints(self, call: Call, used: Proto) -> Proto:
        """Where the client is to go: where operators say, else where it went, else where it arrived."""
        advertise = self._broker.settings.grpc.advertise
        if not advertise and used.addresses:
            return used
        if advertise:
            host, port = parse_address(advertise)
        elif call.authority:
            host, port = parse_address(call.authority)
        else:
            host, port = call.local_address
        endpoints = self._schema.Endpoints(scheme=_scheme(host))
        endpoints.addresses.add(host=host, port=port)
        return endpoints


def message_types(config: TopicConfig) -> tuple[int, ...]:
    """Numbers of the message types that a topic takes."""
    wanted = config.attributes.get("message.type", "NORMAL")
    if wanted == "MIXED":
        return MIXED_TYPES
    return (MESSAGE_TYPES.get(wanted, 0),)


def permissions(config: TopicConfig, broker_permission: int) -> list[int]:
    """The permission of each queue: first those that can only be read or only written, then those for both."""
    permission = config.perm & broker_permission
    reads, writes = config.read_queue_nums, config.write_queue_nums
    if permission & Permission.READ_WRITE == Permission.READ_WRITE:
        both = min(reads, writes)
        return [READ] * (reads - both) + [WRITE] * (writes - both) + [READ_WRITE] * both
    if permission & Permission.WRITE:
        return [WRITE] * writes
    if permission & Permission.READ:
        return [READ] * reads
    return [NONE] * max(1, reads, writes)


def _scheme(host: str) -> int:
    if ":" in host:
        return IPV6
    return IPV4 if host.replace(".", "").isdecimal() else DOMAIN_NAME
