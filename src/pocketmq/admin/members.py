"""Who consumes for a group now, and what each of them wants."""

from collections.abc import Mapping

import msgspec

from pocketmq.admin.clusters import version_name
from pocketmq.admin.reach import Reach, each
from pocketmq.model.config import Subscription
from pocketmq.model.errors import PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies import Connection, ConsumerConnection, ConsumerRunningInfo, decode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.clients import GetConsumerConnectionListRequestHeader, GetConsumerRunningInfoRequestHeader


class TopicSubscription(msgspec.Struct, frozen=True, kw_only=True):
    """What is wanted of a topic: a tag expression or an SQL92 one."""

    topic: str
    expression: str
    kind: str


class GroupMember(msgspec.Struct, frozen=True, kw_only=True):
    """One consumer that is connected."""

    client_id: str
    address: str
    language: str
    version: str
    subscriptions: list[TopicSubscription] | None
    """What it says itself; None when it did not answer."""
    queues: list[MessageQueue] | None
    """Queues that it consumes; None when it did not answer."""


class Membership(msgspec.Struct, frozen=True, kw_only=True):
    """All members, and what brokers think the group is."""

    members: list[GroupMember] = []
    subscriptions: list[TopicSubscription] = []
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


async def connections_of(reach: Reach, group: str, masters: Mapping[str, str]) -> dict[str, ConsumerConnection]:
    """Broker name -> the group's connections there; brokers where nobody of it is connected are left out."""
    header = GetConsumerConnectionListRequestHeader(consumer_group=group)

    async def ask(broker: str, address: str) -> ConsumerConnection | None:
        try:
            return await reach.fetch(
                address,
                RequestCode.GET_CONSUMER_CONNECTION_LIST,
                ConsumerConnection,
                header,
                what=f"members of {group}",
            )
        except PocketMQError as error:
            if error.code == ResponseCode.CONSUMER_NOT_ONLINE:
                return None
            raise

    found = await reach.of_all(masters, ask)
    return {broker: connections for broker, connections in found.items() if connections is not None}


async def members_of(reach: Reach, group: str, masters: Mapping[str, str]) -> Membership:
    """Everything about the members of a group; each is asked itself, through a broker that it is connected to."""
    connections = await connections_of(reach, group, masters)
    if not connections:
        return Membership()
    clients = {
        client.client_id: (masters[broker], client)
        for broker, connection in connections.items()
        for client in connection.connection_set
    }

    async def member(item: tuple[str, Connection]) -> GroupMember:
        address, client = item
        info = await _running_info(reach, group, address, client.client_id)
        return GroupMember(
            client_id=client.client_id,
            address=client.client_addr,
            language=client.language,
            version=version_name(client.version),
            subscriptions=None if info is None else [_shown(each) for each in info.subscription_set],
            queues=None if info is None else sorted({*info.mq_table, *info.mq_pop_table}),
        )

    members = await each((clients[client_id] for client_id in sorted(clients)), member)
    wanted = {
        topic: subscription
        for connection in connections.values()
        for topic, subscription in connection.subscription_table.items()
    }
    first = next(iter(connections.values()))
    return Membership(
        members=members,
        subscriptions=[_shown(wanted[topic]) for topic in sorted(wanted)],
        consume_type=first.consume_type,
        message_model=first.message_model,
        consume_from_where=first.consume_from_where,
    )


async def _running_info(reach: Reach, group: str, address: str, client_id: str) -> ConsumerRunningInfo | None:
    header = GetConsumerRunningInfoRequestHeader(consumer_group=group, client_id=client_id, jstack_enable=False)
    try:
        answer = await reach.tell(
            address, RequestCode.GET_CONSUMER_RUNNING_INFO, header, what=f"state of consumer {client_id}"
        )
        return decode_body(answer.body, ConsumerRunningInfo)
    except PocketMQError:
        # Clients of other languages do not answer this, and one may leave in this moment.
        return None


def _shown(subscription: Subscription) -> TopicSubscription:
    return TopicSubscription(
        topic=subscription.topic, expression=subscription.sub_string, kind=subscription.expression_type or "TAG"
    )
