"""Consumer groups, as operators change them and ask about them: 200, 201, 207, 208, 225, 317, 352, 353."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.group_admin import GroupAdmin, Progress
from pocketmq.broker.remoting.answers import success, success_body, success_table
from pocketmq.broker.topic_admin import PAGE_MAX
from pocketmq.model.config import DataVersion, GroupConfig, Permission
from pocketmq.model.message import MessageQueue
from pocketmq.net.addresses import format_address
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.groups import GroupForbidden, SubscriptionGroupList, SubscriptionGroupWrapper
from pocketmq.wire.bodies.statistics import ConsumeStats, ConsumeStatsList, OffsetWrapper
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.groups import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupResponseHeader,
    GetConsumeStatsInBrokerRequestHeader,
    GetConsumeStatsRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    UpdateGroupForbiddenRequestHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


class GroupRequests:
    """Translates operators' requests for `GroupAdmin`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._groups = GroupAdmin(
            broker.topic_service,
            broker.journal,
            broker.clock,
            topics=broker.topics,
            groups=broker.groups,
            cursors=broker.cursors,
            clients=broker.clients,
            locks=broker.locks,
            offsets=broker.offsets,
            statistics=broker.statistics,
            pulled=broker.pulling.positions,
        )

    async def put(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP 200."""
        await self._groups.put([decode_body(command.body, GroupConfig)])
        return success(command)

    async def put_all(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST 225."""
        await self._groups.put(decode_body(command.body, SubscriptionGroupList).group_config_list)
        return success(command)

    async def delete(self, connection: "RemotingConnection", command: Command) -> Answer:
        """DELETE_SUBSCRIPTIONGROUP 207."""
        header = command.header(DeleteSubscriptionGroupRequestHeader)
        await self._groups.delete(header.group_name, drop_cursors=header.clean_offset)
        return success(command)

    def get(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_SUBSCRIPTIONGROUP_CONFIG 352."""
        return success_body(command, self._groups.get(command.header(GetSubscriptionGroupConfigRequestHeader).group))

    def get_all(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_ALL_SUBSCRIPTIONGROUP_CONFIG 201: all of them, or one page when the request has a header."""
        header = command.header(GetAllSubscriptionGroupRequestHeader)
        table = self._broker.groups
        if header.group_seq is None:
            configs, total = list(table), len(table)
        else:
            count_max = PAGE_MAX if header.max_group_num is None else header.max_group_num
            known = decode_body(header.data_version.encode(), DataVersion) if header.data_version else None
            configs, total = self._groups.page(header.group_seq, count_max, known)
        body = SubscriptionGroupWrapper(
            table.data_version,
            {config.group_name: config for config in configs},
            {group: {topic: int(Permission.READ) for topic in topics} for group, topics in table.forbidden().items()},
        )
        return success_table(command, body, GetAllSubscriptionGroupResponseHeader(total))

    async def forbid(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_AND_GET_GROUP_FORBIDDEN 353: with `readable`, change it; either way, say how it is."""
        header = command.header(UpdateGroupForbiddenRequestHeader)
        if header.readable is not None:
            await self._groups.set_readable(header.group, header.topic, header.readable)
        readable = not self._broker.groups.is_forbidden(header.group, header.topic)
        return success_body(command, GroupForbidden(header.topic, header.group, readable))

    def progress(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_CONSUME_STATS 208."""
        header = command.header(GetConsumeStatsRequestHeader)
        topics = [topic for topic in (header.topic_list or "").split(";") if topic]
        if header.topic:
            topics = [header.topic]
        return success_body(command, self._statistics(self._groups.progress(header.consumer_group, topics)))

    def all_progress(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_BROKER_CONSUME_STATS 317."""
        header = command.header(GetConsumeStatsInBrokerRequestHeader)
        found = self._groups.all_progress(ordered_only=header.is_order)
        queues = [queue for _, each in found for progress in each for queue in progress.queues]
        body = ConsumeStatsList(
            format_address(connection.local_address[0], self._broker.port),
            [{group: [self._statistics(progress) for progress in each]} for group, each in found],
            sum(queue.lag for queue in queues),
            sum(queue.inflight for queue in queues),
        )
        return success_body(command, body)

    def _statistics(self, progress: Progress) -> ConsumeStats:
        name = self._broker.settings.broker.name
        table = {
            MessageQueue(queue.topic, name, queue.queue_id): OffsetWrapper(
                queue.end_offset, queue.cursor, queue.consumed_ms, queue.pulled_offset
            )
            for queue in progress.queues
        }
        return ConsumeStats(table, progress.per_second)


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about groups."""
    requests = GroupRequests(broker)
    dispatcher.on_async(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, requests.put)
    dispatcher.on_async(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, requests.put_all)
    dispatcher.on_async(RequestCode.DELETE_SUBSCRIPTIONGROUP, requests.delete)
    dispatcher.on(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, requests.get)
    dispatcher.on(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, requests.get_all)
    dispatcher.on_async(RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN, requests.forbid)
    dispatcher.on(RequestCode.GET_CONSUME_STATS, requests.progress)
    dispatcher.on(RequestCode.GET_BROKER_CONSUME_STATS, requests.all_progress)
