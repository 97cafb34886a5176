"""A name server as its peers see it, on a simulated network: requests in, answers out."""

import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.model.settings import Settings
from pocketmq.namesrv.server import NameServer
from pocketmq.net.dialer import Connections
from pocketmq.net.remoting import RemotingConnection
from pocketmq.testing import SimulatedDisk, SimulatedNetwork, VirtualClock, run
from pocketmq.wire.bodies import (
    ClusterInfo,
    GetBrokerMemberGroupResponseBody,
    KVTable,
    RegisterBrokerBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicList,
    TopicRouteData,
    decode_body,
    encode_register_body,
)
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command

HOST = "10.0.0.1"
ADDRESS = f"{HOST}:9876"


class Peer:
    """One connection to the name server."""

    def __init__(self, connection: RemotingConnection) -> None:
        self.connection = connection

    async def ask(self, code: int, body: bytes = b"", **fields: Any) -> Command:
        return await self.connection.request(code, {k: str(v) for k, v in fields.items()}, body, timeout_s=5)

    async def register(self, *topics: str, version: int = 1, compressed: bool = False, **changes: Any) -> Command:
        fields: dict[str, Any] = {
            "brokerName": "broker-a",
            "brokerAddr": "10.0.0.5:10911",
            "clusterName": "c",
            "haServerAddr": "10.0.0.5:10912",
            "brokerId": 0,
        }
        return await self.ask(
            RequestCode.REGISTER_BROKER,
            registration_body(*topics, version=version, compressed=compressed),
            **{**fields, "compressed": str(compressed).lower(), **changes},
        )

    async def route(self, topic: str, **fields: Any) -> TopicRouteData | None:
        answer = await self.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic=topic, **fields)
        assert answer.code in (0, 17)
        return None if answer.code else msgspec.json.decode(answer.body, type=TopicRouteData)


def registration_body(*topics: str, version: int = 1, compressed: bool = False) -> bytes:
    table = {name: TopicConfig(topic_name=name, read_queue_nums=4, write_queue_nums=4) for name in topics}
    wrapper = TopicConfigAndMappingSerializeWrapper(
        data_version=DataVersion(version, 0, 1), topic_config_table=table, mapping_data_version=DataVersion()
    )
    return encode_register_body(RegisterBrokerBody(wrapper), compressed=compressed)


class World:
    """A name server on 10.0.0.1, and peers wherever they are wanted."""

    def __init__(self, settings: Settings | None = None, disk: SimulatedDisk | None = None) -> None:
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock)
        self.settings = settings or Settings()
        self.settings.namesrv.host = "0.0.0.0"
        self.server = NameServer(
            self.settings, clock=self.clock, network=self.network.host(HOST), disk=disk or SimulatedDisk()
        )

    async def peer(self, host: str = "10.0.0.5", to: str = ADDRESS) -> Peer:
        return Peer(await Connections(self.network.host(host), self.clock).get(to))


def on(scenario: Callable[[World], Awaitable[None]], **options: Any) -> None:
    async def play() -> None:
        world = World(**options)
        await world.server.start()
        try:
            await scenario(world)
        finally:
            await world.server.stop()

    run(play())


def test_a_registered_brokers_route_is_told_in_strict_json() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        assert (await peer.register("T", "U")).code == 0
        answer = await peer.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, topic="T")
        assert answer.body == (
            b'{"brokerDatas":[{"brokerAddrs":{"0":"10.0.0.5:10911"},"brokerName":"broker-a","cluster":"c",'
            b'"enableActingMaster":false}],"filterServerTable":{},"queueDatas":[{"brokerName":"broker-a","perm":6,'
            b'"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}'
        )
        assert await peer.route("other") is None

    on(scenario)


def test_registrations_come_as_json_or_compressed_with_or_without_checksum() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        assert (await peer.register("T", "U", compressed=True)).code == 0
        assert await peer.route("U") is not None
        checksum = zlib.crc32(registration_body("T", "V", version=2)) & 0x7FFF_FFFF
        assert (await peer.register("T", "V", version=2, bodyCrc32=checksum)).code == 0
        refused = await peer.register("T", "W", version=3, bodyCrc32=checksum)
        assert (refused.code, refused.remark) == (1, "crc32 not match")
        assert await peer.route("V") is not None and await peer.route("W") is None

    on(scenario)


def test_bad_registrations_are_refused_by_name_and_change_nothing() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        assert (await peer.register("T")).remark == "register broker failed"
        missing = await peer.ask(RequestCode.REGISTER_BROKER, brokerName="broker-a")
        assert missing.code == 1 and "brokerAddr" in str(missing.remark)
        header = {"brokerName": "b", "brokerAddr": "a:1", "clusterName": "c", "haServerAddr": "", "brokerId": 0}
        for body, compressed in ((b"garbage", "false"), (b"garbage", "true")):
            answer = await peer.ask(RequestCode.REGISTER_BROKER, body, **header, compressed=compressed)
            assert answer.code == 1
        assert not world.server.table.brokers

    on(scenario)


def test_a_broker_is_forgotten_when_it_leaves_or_its_connection_ends() -> None:
    async def scenario(world: World) -> None:
        client, broker = await world.peer("10.0.0.9"), await world.peer()
        await broker.register("T", "U")
        await broker.ask(
            RequestCode.UNREGISTER_BROKER,
            brokerName="broker-a", brokerAddr="10.0.0.5:10911", clusterName="c", brokerId=0,
        )  # fmt: skip
        assert await client.route("T") is None
        await broker.register("T", "U")
        assert await client.route("T") is not None
        broker.connection.abort()
        await world.clock.sleep(1)
        assert await client.route("T") is None

    on(scenario)


def test_a_silent_broker_is_forgotten_and_heartbeats_keep_it() -> None:
    async def scenario(world: World) -> None:
        client, broker = await world.peer("10.0.0.9"), await world.peer()
        await broker.register("T", "U", heartbeatTimeoutMillis=20_000)
        same = {"brokerName": "broker-a", "brokerAddr": "10.0.0.5:10911", "clusterName": "c", "brokerId": 0}
        for _ in range(3):
            await world.clock.sleep(15)
            broker.connection.request_oneway(RequestCode.BROKER_HEARTBEAT, {k: str(v) for k, v in same.items()})
        for _ in range(3):
            await world.clock.sleep(15)
            answer = await broker.ask(
                RequestCode.QUERY_DATA_VERSION, b'{"counter":1,"stateVersion":0,"timestamp":1}', **same
            )
            assert answer.ext() == {"changed": "false"}
        assert await client.route("T") is not None
        await world.clock.sleep(15)
        answer = await broker.ask(
            RequestCode.QUERY_DATA_VERSION, b'{"counter":2,"stateVersion":0,"timestamp":1}', **same
        )
        assert answer.ext() == {"changed": "true"}
        await world.clock.sleep(15)
        assert await client.route("T") is None, "another data version is no sign that routes are still right"
        await world.clock.sleep(1)
        assert broker.connection.closed

    on(scenario)


def test_a_broker_on_the_same_machine_is_told_under_the_host_that_the_client_used() -> None:
    async def scenario(world: World) -> None:
        broker = await world.peer(HOST, "127.0.0.1:9876")
        await broker.register("T", "U", brokerAddr="127.0.0.1:10911", pocketmqAdvertise="auto")
        told = f"{HOST}:10911"
        for peer in (await world.peer("10.0.0.9"), await world.peer(HOST, ADDRESS)):
            route = await peer.route("T")
            assert route is not None and route.broker_datas[0].broker_addrs == {0: told}
            cluster = decode_body((await peer.ask(RequestCode.GET_BROKER_CLUSTER_INFO)).body, ClusterInfo)
            assert cluster.broker_addr_table["broker-a"].broker_addrs == {0: told}
            members = decode_body(
                (await peer.ask(RequestCode.GET_BROKER_MEMBER_GROUP, clusterName="c", brokerName="broker-a")).body,
                GetBrokerMemberGroupResponseBody,
            )
            assert members.broker_member_group.broker_addrs == {0: told}
            topics = decode_body((await peer.ask(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS)).body, TopicList)
            assert topics.broker_addr == told

    on(scenario)


def test_a_broker_on_another_machine_is_told_under_its_own_address() -> None:
    async def scenario(world: World) -> None:
        await (await world.peer()).register("T", "U", pocketmqAdvertise="auto")
        route = await (await world.peer("10.0.0.9")).route("T")
        assert route is not None and route.broker_datas[0].broker_addrs == {0: "10.0.0.5:10911"}

    on(scenario)


def test_clients_in_zone_mode_see_their_own_zone() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        await peer.register("T", "U", **{"__ZONE_NAME": "z1"})
        await peer.register("T", "U", brokerName="broker-b", brokerAddr="10.0.0.6:10911", **{"__ZONE_NAME": "z2"})
        plain = await peer.route("T")
        zoned = await peer.route("T", **{"__ZONE_MODE": "true", "__ZONE_NAME": "Z1"})
        assert plain is not None and zoned is not None
        assert [queues.broker_name for queues in plain.queue_datas] == ["broker-a", "broker-b"]
        assert [queues.broker_name for queues in zoned.queue_datas] == ["broker-a"]
        assert [broker.zone_name for broker in zoned.broker_datas] == ["z1"]

    on(scenario)


def test_order_settings_are_told_to_brokers_and_to_clients_when_switched_on() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        await peer.ask(RequestCode.PUT_KV_CONFIG, namespace="ORDER_TOPIC_CONFIG", key="T", value="broker-a:4")
        answer = await peer.register("T", "U")
        assert decode_body(answer.body, KVTable).table == {"T": "broker-a:4"}
        route = await peer.route("T")
        assert route is not None and route.order_topic_conf is None
        assert (await peer.ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"orderMessageEnable=true")).code == 0
        route = await peer.route("T")
        assert route is not None and route.order_topic_conf == "broker-a:4"
        await peer.ask(RequestCode.DELETE_KV_CONFIG, namespace="ORDER_TOPIC_CONFIG", key="T")
        route = await peer.route("T")
        assert route is not None and route.order_topic_conf is None

    on(scenario)


def test_the_key_value_table_outlives_a_restart() -> None:
    disk = SimulatedDisk()
    settings = Settings()
    settings.namesrv.kv_file = "kv/kvConfig.json"

    async def put(world: World) -> None:
        peer = await world.peer()
        assert (await peer.ask(RequestCode.GET_KV_CONFIG, namespace="ns", key="k")).code == 22
        assert (await peer.ask(RequestCode.GET_KVLIST_BY_NAMESPACE, namespace="ns")).code == 22
        assert (await peer.ask(RequestCode.PUT_KV_CONFIG, namespace="ns", key="k", value="v")).code == 0

    async def get(world: World) -> None:
        answer = await (await world.peer()).ask(RequestCode.GET_KV_CONFIG, namespace="ns", key="k")
        assert answer.ext() == {"value": "v"}

    on(put, settings=settings, disk=disk)
    on(get, settings=settings, disk=disk)


def test_settings_are_shown_under_javas_names_and_changed_where_that_is_safe() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        shown = (await peer.ask(RequestCode.GET_NAMESRV_CONFIG)).body.decode().splitlines()
        assert {"listenPort=9876", "scanNotActiveBrokerInterval=5000", "enableAllTopicList=true"} <= set(shown)
        for body, code, remark in (
            (b"kvConfigPath=/etc/passwd", 16, "black list"),
            (b"nosuch=1", 1, "there is no setting"),
            (b"listenPort=1", 1, "while the server runs"),
            (b"orderMessageEnable=maybe", 1, "true or false"),
            (b"\xff=\xff", 1, "UTF-8"),
        ):
            answer = await peer.ask(RequestCode.UPDATE_NAMESRV_CONFIG, body)
            assert answer.code == code and remark in str(answer.remark)

    on(scenario)


def test_topic_lists_can_be_switched_off() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        await peer.register("T", "U")
        lists = {
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: ["T", "U"],
            RequestCode.GET_TOPICS_BY_CLUSTER: ["T", "U"],
            RequestCode.GET_UNIT_TOPIC_LIST: [],
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: [],
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: [],
        }
        for code, topics in lists.items():
            assert decode_body((await peer.ask(code, cluster="c")).body, TopicList).topic_list == topics
        await peer.ask(RequestCode.UPDATE_NAMESRV_CONFIG, b"enableAllTopicList=false\nenableTopicList=false")
        for code in lists:
            assert (await peer.ask(code, cluster="c")).code == 1

    on(scenario)


def test_topics_are_deleted_and_write_permission_is_wiped_on_request() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        await peer.register("T", "U")
        wiped = await peer.ask(RequestCode.WIPE_WRITE_PERM_OF_BROKER, brokerName="broker-a")
        assert wiped.ext() == {"wipeTopicCount": "2"}
        route = await peer.route("T")
        assert route is not None and route.queue_datas[0].perm == 4
        given = await peer.ask(RequestCode.ADD_WRITE_PERM_OF_BROKER, brokerName="broker-a")
        assert given.ext() == {"addTopicCount": "2"}
        route = await peer.route("T")
        assert route is not None and route.queue_datas[0].perm == 6
        body = b'{"queueDatas":[{"brokerName":"broker-a","perm":6,"readQueueNums":1,"writeQueueNums":1}]}'
        await peer.ask(RequestCode.REGISTER_TOPIC_IN_NAMESRV, body, topic="N")
        assert await peer.route("N") is not None
        await peer.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="N")
        await peer.ask(RequestCode.DELETE_TOPIC_IN_NAMESRV, topic="T", clusterName="c")
        assert await peer.route("N") is None and await peer.route("T") is None

    on(scenario)


def test_what_a_name_server_does_not_know_is_refused_with_3() -> None:
    async def scenario(world: World) -> None:
        peer = await world.peer()
        assert (await peer.ask(RequestCode.SEND_MESSAGE)).code == 3
        assert (await peer.ask(9999)).code == 3

    on(scenario)


def test_members_are_told_who_is_the_smallest_when_switched_on() -> None:
    settings = Settings()
    settings.namesrv.notify_min_broker_id = True

    async def scenario(world: World) -> None:
        told: list[dict[str, str]] = []

        def take(connection: RemotingConnection, command: Command) -> None:
            told.append(command.ext())

        await world.network.host("10.0.0.5").listen(
            "10.0.0.5", 10911, lambda: RemotingConnection(world.clock, on_request=take)
        )
        peer = await world.peer()
        await peer.register("T", "U", brokerId=1)
        await peer.register("T", "U", brokerAddr="10.0.0.6:10911", version=2)
        await world.clock.sleep(5)
        assert told == [{"minBrokerId": "0", "brokerName": "broker-a", "minBrokerAddr": "10.0.0.6:10911"}]

    on(scenario, settings=settings)
