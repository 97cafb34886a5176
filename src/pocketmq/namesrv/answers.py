"""The route table in the words of the protocol: bodies for clients, brokers and operators.

A broker on this machine may leave its host open (`RouteTable.has_auto_host`); each peer is then told the host that the
peer itself used to reach this name server, since that one works for it. `reached_host` is that host.
"""

from pocketmq.namesrv.routes import RouteTable
from pocketmq.namesrv.values import BrokerSet, QueueEntry, Route
from pocketmq.net.addresses import format_address, parse_address
from pocketmq.wire.bodies import (
    BrokerData,
    BrokerMemberGroup,
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    QueueData,
    TopicList,
    TopicRouteData,
    encode_body,
)


def route_body(table: RouteTable, route: Route, order: str | None, reached_host: str) -> bytes:
    """TopicRouteData as JSON that strict parsers read too, whatever the client's version."""
    data = TopicRouteData(
        broker_datas=[_broker_data(table, brokers, reached_host) for brokers in route.brokers],
        queue_datas=[queue_data(name, entry) for name, entry in route.queues.items()],
        filter_server_table=route.filters,
        order_topic_conf=order,
        topic_queue_mapping_by_broker=route.mappings,
    )
    return encode_body(data, quote_keys=True)


def keep_zone(route: Route, zone: str) -> None:
    """Leave only the broker sets of one zone, and those without a master, for clients in zone mode."""
    route.brokers = [
        brokers
        for brokers in route.brokers
        if 0 not in brokers.addresses or (brokers.zone or "").lower() == zone.lower()
    ]
    names = {brokers.name for brokers in route.brokers}
    route.queues = {name: entry for name, entry in route.queues.items() if name in names}


def cluster_body(table: RouteTable, reached_host: str) -> bytes:
    """ClusterInfo."""
    info = ClusterInfo(
        broker_addr_table={name: _broker_data(table, known, reached_host) for name, known in table.brokers.items()},
        cluster_addr_table={cluster: list(names) for cluster, names in table.clusters.items()},
    )
    return encode_body(info)


def member_body(table: RouteTable, cluster: str, name: str, reached_host: str) -> bytes:
    """All members of a broker set; none when it is not known."""
    brokers = table.brokers.get(name)
    addresses = {} if brokers is None else _addresses(table, brokers, reached_host)
    return encode_body(GetBrokerMemberGroupResponseBody(BrokerMemberGroup(cluster, name, addresses)))


def system_topics_body(table: RouteTable, reached_host: str) -> bytes:
    """Names of clusters and brokers, which are topics too, and a broker that knows the other system topics."""
    address: str | None = None
    for brokers in table.brokers.values():
        if brokers.addresses:
            address = next(iter(_addresses(table, brokers, reached_host).values()))
            break
    names = dict.fromkeys([*table.clusters, *table.brokers])
    return encode_body(TopicList(list(names), address))


def queue_data(name: str, entry: QueueEntry) -> QueueData:
    """One topic's queues on one broker set."""
    return QueueData(name, entry.read_queues, entry.write_queues, entry.permission, entry.sys_flag)


def _broker_data(table: RouteTable, brokers: BrokerSet, reached_host: str) -> BrokerData:
    addresses = _addresses(table, brokers, reached_host)
    return BrokerData(brokers.name, brokers.cluster, addresses, brokers.acting_master, brokers.zone)


def _addresses(table: RouteTable, brokers: BrokerSet, reached_host: str) -> dict[int, str]:
    return {
        broker_id: _told(address, reached_host) if table.has_auto_host(address) else address
        for broker_id, address in sorted(brokers.addresses.items())
    }


def _told(address: str, reached_host: str) -> str:
    return format_address(reached_host, parse_address(address)[1]) if reached_host else address
