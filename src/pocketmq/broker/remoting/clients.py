"""Clients: HEART_BEAT 34, UNREGISTER_CLIENT 35, GET_CONSUMER_LIST_BY_GROUP 38, CHECK_CLIENT_CONFIG 46, and who is
connected: GET_CONSUMER_CONNECTION_LIST 203, GET_PRODUCER_CONNECTION_LIST 204, GET_ALL_PRODUCER_INFO 328.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.filtering import check_served
from pocketmq.broker.heartbeats import Beat, ConsumerBeat, Heartbeats
from pocketmq.broker.membership import ConsumerMember, ProducerMember
from pocketmq.broker.remoting.answers import success, success_body, success_table
from pocketmq.model.errors import PocketMQError
from pocketmq.net.addresses import format_address
from pocketmq.net.remoting import RemotingConnection
from pocketmq.views.filters import SQL92, compile_filter
from pocketmq.wire.bodies.clients import (
    CheckClientRequestBody,
    Connection,
    ConsumerConnection,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    ProducerConnection,
    ProducerInfo,
    ProducerTableInfo,
)
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.clients import (
    HANDOVER,
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetProducerConnectionListRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
    UnregisterClientRequestHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

SUPPORTS_V2 = "IS_SUPPORT_HEART_BEAT_V2"
SUBSCRIPTION_CHANGED = "IS_SUB_CHANGE"


class ClientRequests:
    """Translates what clients say about themselves."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._clients = broker.clients
        self._heartbeats = Heartbeats(broker.clients, broker.topic_service, broker.topics)

    def heartbeat(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 34. V1 (no fingerprint) is always told that something changed, which only V2 looks at."""
        data = decode_body(command.body, HeartbeatData)
        resend = self._heartbeats.take(
            connection,
            Beat(
                data.client_id,
                command.language,
                command.version,
                [producer.group_name for producer in data.producer_data_set],
                [
                    ConsumerBeat(
                        consumer.group_name,
                        consumer.consume_type,
                        consumer.message_model,
                        consumer.consume_from_where,
                        consumer.subscription_data_set,
                        consumer.unit_mode,
                    )
                    for consumer in data.consumer_data_set
                ],
                data.heartbeat_fingerprint,
                data.without_sub,
            ),
        )
        changed = resend or data.heartbeat_fingerprint == 0
        return success(
            command, {SUPPORTS_V2: "true", SUBSCRIPTION_CHANGED: "true" if changed else "false", HANDOVER: "true"}
        )

    def unregister(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 35."""
        header = command.header(UnregisterClientRequestHeader)
        self._clients.unregister(
            connection,
            header.client_id,
            producer_group=header.producer_group,
            consumer_group=header.consumer_group,
        )
        return success(command)

    def consumer_list(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 38."""
        group = command.header(GetConsumerListByGroupRequestHeader).consumer_group
        client_ids = self._clients.client_ids(group)
        if not client_ids:
            raise PocketMQError(f"no consumer for this group, {group}", code=ResponseCode.SYSTEM_ERROR)
        return success_table(command, GetConsumerListByGroupResponseBody(client_ids))

    def check_client(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 46: whether this broker can filter as the client wants."""
        if not command.body:
            return success(command)
        subscription = decode_body(command.body, CheckClientRequestBody).subscription_data
        if subscription.expression_type == SQL92:
            check_served(self._broker.settings.broker)
        compile_filter(subscription.expression_type, subscription.sub_string)
        return success(command)

    def consumer_connections(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 203."""
        group_name = command.header(GetConsumerConnectionListRequestHeader).consumer_group
        group = self._clients.group(group_name)
        if group is None:
            raise PocketMQError(f"the consumer group[{group_name}] not online", code=ResponseCode.CONSUMER_NOT_ONLINE)
        return success_body(
            command,
            ConsumerConnection(
                connection_set=[_connection(member) for member in group.members.values()],
                subscription_table=group.subscriptions,
                consume_type=group.consume_type,
                message_model=group.message_model,
                consume_from_where=group.consume_from_where,
            ),
        )

    def producer_connections(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 204."""
        group = command.header(GetProducerConnectionListRequestHeader).producer_group
        members = self._clients.producers(group)
        if not members:
            raise PocketMQError(f"the producer group[{group}] not exist", code=ResponseCode.SYSTEM_ERROR)
        return success_body(command, ProducerConnection([_connection(member) for member in members]))

    def all_producers(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 328."""
        return success_body(
            command,
            ProducerTableInfo(
                {
                    group: [
                        ProducerInfo(
                            member.client_id,
                            format_address(*member.connection.peer_address),
                            member.language,
                            member.version,
                            member.last_heartbeat_ms,
                        )
                        for member in members
                    ]
                    for group, members in self._clients.producer_groups()
                }
            ),
        )


def send_notice(member: ConsumerMember, group: str) -> None:
    """Tell one member, if it speaks this protocol, that its group changed (code 40)."""
    connection = member.connection
    if isinstance(connection, RemotingConnection) and not connection.closed:
        connection.request_oneway(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED, NotifyConsumerIdsChangedRequestHeader(consumer_group=group)
        )


def send_free_notice(member: ConsumerMember, group: str) -> None:
    """Tell one member, if it speaks this protocol, that a queue is free that it asked for.

    A client of other make takes it for a change of the group, and asks again as well.
    """
    connection = member.connection
    if isinstance(connection, RemotingConnection) and not connection.closed:
        connection.request_oneway(
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED,
            NotifyConsumerIdsChangedRequestHeader(consumer_group=group, handover=True),
        )


def _connection(member: ProducerMember) -> Connection:
    return Connection(
        member.client_id, format_address(*member.connection.peer_address), member.language, member.version
    )


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about clients."""
    requests = ClientRequests(broker)
    dispatcher.on(RequestCode.HEART_BEAT, requests.heartbeat)
    dispatcher.on(RequestCode.UNREGISTER_CLIENT, requests.unregister)
    dispatcher.on(RequestCode.GET_CONSUMER_LIST_BY_GROUP, requests.consumer_list)
    dispatcher.on(RequestCode.CHECK_CLIENT_CONFIG, requests.check_client)
    dispatcher.on(RequestCode.GET_CONSUMER_CONNECTION_LIST, requests.consumer_connections)
    dispatcher.on(RequestCode.GET_PRODUCER_CONNECTION_LIST, requests.producer_connections)
    dispatcher.on(RequestCode.GET_ALL_PRODUCER_INFO, requests.all_producers)
