"""From request codes to the route table and back. Every method answers one code."""

import logging
import zlib
from collections.abc import Callable

from pocketmq.model.config import DataVersion
from pocketmq.model.errors import PocketMQError, UsageError
from pocketmq.model.java_properties import parse_properties
from pocketmq.model.names import ORDER_TOPIC_NAMESPACE
from pocketmq.model.seams import Clock
from pocketmq.model.setting_table import change_dynamic, java_properties
from pocketmq.model.settings import Settings
from pocketmq.namesrv import answers
from pocketmq.namesrv.kv import KvTable
from pocketmq.namesrv.routes import UNIT_FLAG, UNIT_SUB_FLAG, RouteTable
from pocketmq.namesrv.values import QueueEntry, Registration
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.bodies import KVTable, RegisterBrokerBody, TopicList, TopicRouteData, decode_body, encode_body
from pocketmq.wire.bodies.registration import decode_register_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers import namesrv as headers
from pocketmq.wire.headers.base import Header

logger = logging.getLogger("pocketmq.namesrv")

ADVERTISE_FIELD = "pocketmqAdvertise"
"""Set to `auto` by a broker that leaves its host open; see `answers`."""
ZONE_FIELD = "__ZONE_NAME"
ZONE_MODE_FIELD = "__ZONE_MODE"
VERSION_WITH_TOPICS = 37
"""Brokers before V3_0_11 send no topics that could be read."""
FIXED_SETTINGS = frozenset(
    {"configBlackList", "configStorePath", "configStorePathName", "kvConfigPath", "rocketmqHome", "namesrv.kv_file"}
)
ROUTES_CACHED_MAX = 10_000

Handler = Callable[[RemotingConnection, Command], bytes]


class Requests:
    """Answers what clients, brokers and operators ask of a name server."""

    def __init__(self, settings: Settings, table: RouteTable, kv: KvTable, clock: Clock) -> None:
        self._settings = settings
        self._table = table
        self._kv = kv
        self._clock = clock
        self._routes: dict[tuple[str, str], bytes] = {}
        self._routes_version = -1
        self._handlers: dict[int, Handler] = {
            RequestCode.PUT_KV_CONFIG: self._put_kv,
            RequestCode.GET_KV_CONFIG: self._get_kv,
            RequestCode.DELETE_KV_CONFIG: self._delete_kv,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self._list_kv,
            RequestCode.REGISTER_BROKER: self._register,
            RequestCode.UNREGISTER_BROKER: self._unregister,
            RequestCode.BROKER_HEARTBEAT: self._heartbeat,
            RequestCode.QUERY_DATA_VERSION: self._query_data_version,
            RequestCode.GET_BROKER_MEMBER_GROUP: self._member_group,
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self._route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self._cluster_info,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self._wipe_write_permission,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self._add_write_permission,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self._all_topics,
            RequestCode.GET_TOPICS_BY_CLUSTER: self._topics_by_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self._system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self._unit_topics,
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._unit_sub_topics,
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._unit_sub_only_topics,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self._delete_topic,
            RequestCode.REGISTER_TOPIC_IN_NAMESRV: self._register_topic,
            RequestCode.UPDATE_NAMESRV_CONFIG: self._update_settings,
            RequestCode.GET_NAMESRV_CONFIG: self._get_settings,
        }

    def handle(self, connection: RemotingConnection, command: Command) -> bytes:
        """Answer one request. Raises what `RemotingConnection` turns into an answer."""
        handler = self._handlers.get(command.code)
        if handler is None:
            remark = f"request type {command.code} not supported by a name server"
            return _answer(command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark)
        return handler(connection, command)

    def now_ms(self) -> int:
        """The time that the route table lives by: only differences mean something."""
        return int(self._clock.monotonic() * 1000)

    # -- key-value table ---------------------------------------------------------------------------------------------

    def _put_kv(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.PutKVConfigRequestHeader)
        self._kv.put(header.namespace, header.key, header.value)
        self._forget_routes()
        return _answer(command)

    def _get_kv(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.GetKVConfigRequestHeader)
        value = self._kv.get(header.namespace, header.key)
        if value is None:
            remark = f"No config item, Namespace: {header.namespace} Key: {header.key}"
            return _answer(command, ResponseCode.QUERY_NOT_FOUND, remark)
        return _answer(command, header=headers.GetKVConfigResponseHeader(value))

    def _delete_kv(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.DeleteKVConfigRequestHeader)
        self._kv.delete(header.namespace, header.key)
        self._forget_routes()
        return _answer(command)

    def _list_kv(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.GetKVListByNamespaceRequestHeader)
        table = self._kv.namespace(header.namespace)
        if table is None:
            return _answer(command, ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {header.namespace}")
        return _answer(command, body=encode_body(KVTable(table)))

    # -- brokers -----------------------------------------------------------------------------------------------------

    def _register(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.RegisterBrokerRequestHeader)
        if header.body_crc32 and zlib.crc32(command.body) & 0x7FFF_FFFF != header.body_crc32:
            return _answer(command, ResponseCode.SYSTEM_ERROR, "crc32 not match")
        registration = Registration(
            cluster=header.cluster_name,
            name=header.broker_name,
            broker_id=header.broker_id,
            address=header.broker_addr,
            ha_address=header.ha_server_addr,
            timeout_ms=header.heartbeat_timeout_millis or int(self._settings.namesrv.broker_expire_s * 1000),
            acting_master=header.enable_acting_master,
            channel=connection,
        )
        fields = command.ext()
        registration.zone = fields.get(ZONE_FIELD)
        registration.auto_host = fields.get(ADVERTISE_FIELD) == "auto" and _is_local(connection)
        self._take_body(registration, header, command)
        known = registration.name in self._table.brokers
        registered = self._table.register(registration, self.now_ms())
        if registered is None:
            logger.warning("refused the first registration of %s: it came with one topic only", registration.name)
            return _answer(command, ResponseCode.SYSTEM_ERROR, "register broker failed")
        if not known:
            logger.info(
                "broker %s of %s registered from %s as %s",
                registration.name, registration.cluster, connection.peer, registration.address,
            )  # fmt: skip
        answer = headers.RegisterBrokerResponseHeader(registered.ha_address, registered.master_address)
        order = self._kv.namespace(ORDER_TOPIC_NAMESPACE)
        return _answer(command, header=answer, body=b"" if order is None else encode_body(KVTable(order)))

    def _take_body(
        self, registration: Registration, header: headers.RegisterBrokerRequestHeader, command: Command
    ) -> None:
        if command.version < VERSION_WITH_TOPICS or not command.body:
            return
        body: RegisterBrokerBody = decode_register_body(
            command.body, compressed=bool(header.compressed), version=command.version
        )
        wrapper = body.topic_config_serialize_wrapper
        registration.data_version = wrapper.data_version
        registration.topics = wrapper.topic_config_table
        registration.mappings = wrapper.topic_queue_mapping_info_map
        registration.filters = body.filter_server_list

    def _unregister(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.UnRegisterBrokerRequestHeader)
        self._table.unregister(header.cluster_name, header.broker_name, header.broker_addr)
        logger.info("broker %s at %s unregistered", header.broker_name, header.broker_addr)
        return _answer(command)

    def _heartbeat(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.BrokerHeartbeatRequestHeader)
        self._table.touch(header.cluster_name, header.broker_addr, self.now_ms())
        return _answer(command)

    def _query_data_version(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.QueryDataVersionRequestHeader)
        theirs = decode_body(command.body, DataVersion) if command.body else None
        ours = self._table.data_version(header.cluster_name, header.broker_addr)
        changed = ours is None or ours != theirs
        if not changed:
            self._table.touch(header.cluster_name, header.broker_addr, self.now_ms())
        answer = headers.QueryDataVersionResponseHeader(changed)
        return _answer(command, header=answer, body=b"" if ours is None else encode_body(ours))

    def _member_group(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.GetBrokerMemberGroupRequestHeader)
        reached_host = connection.local_address[0]
        return _answer(
            command, body=answers.member_body(self._table, header.cluster_name, header.broker_name, reached_host)
        )

    # -- routes ------------------------------------------------------------------------------------------------------

    def _route(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.GetRouteInfoRequestHeader)
        if ZONE_MODE_FIELD.encode() in bytes(command.raw_ext):
            fields = command.ext()
            zone = fields.get(ZONE_FIELD, "") if fields.get(ZONE_MODE_FIELD, "").lower() == "true" else ""
            body = self._make_route(header.topic, connection.local_address[0], zone)
        else:
            body = self._cached_route(header.topic, connection.local_address[0])
        if body is None:
            remark = (
                f"No topic route info in name server for the topic: {header.topic}; "
                "create the topic, or let a broker with auto_create_topic do it on the first send"
            )
            return _answer(command, ResponseCode.TOPIC_NOT_EXIST, remark)
        return _answer(command, body=body)

    def _cached_route(self, topic: str, reached_host: str) -> bytes | None:
        """Clients ask for the same routes twice a minute, brokers seldom change them."""
        if self._routes_version != self._table.version or len(self._routes) >= ROUTES_CACHED_MAX:
            self._forget_routes()
            self._routes_version = self._table.version
        body = self._routes.get((topic, reached_host))
        if body is None:
            body = self._make_route(topic, reached_host, "")
            if body is not None:
                self._routes[topic, reached_host] = body
        return body

    def _make_route(self, topic: str, reached_host: str, zone: str) -> bytes | None:
        route = self._table.route(topic)
        if route is None:
            return None
        if zone:
            answers.keep_zone(route, zone)
        order = self._kv.get(ORDER_TOPIC_NAMESPACE, topic) if self._settings.namesrv.order_message else None
        return answers.route_body(self._table, route, order, reached_host)

    def _forget_routes(self) -> None:
        self._routes.clear()

    def _cluster_info(self, connection: RemotingConnection, command: Command) -> bytes:
        return _answer(command, body=answers.cluster_body(self._table, connection.local_address[0]))

    # -- topics ------------------------------------------------------------------------------------------------------

    def _wipe_write_permission(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.WipeWritePermOfBrokerRequestHeader)
        count = self._table.set_write_permission(header.broker_name, allowed=False)
        logger.info("%s took the write permission of %d topics of %s", connection.peer, count, header.broker_name)
        return _answer(command, header=headers.WipeWritePermOfBrokerResponseHeader(count))

    def _add_write_permission(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.AddWritePermOfBrokerRequestHeader)
        count = self._table.set_write_permission(header.broker_name, allowed=True)
        logger.info("%s gave write permission to %d topics of %s", connection.peer, count, header.broker_name)
        return _answer(command, header=headers.AddWritePermOfBrokerResponseHeader(count))

    def _all_topics(self, connection: RemotingConnection, command: Command) -> bytes:
        if not self._settings.namesrv.all_topic_list:
            return _disabled(command, "all_topic_list")
        return _answer(command, body=encode_body(TopicList(list(self._table.topics))))

    def _topics_by_cluster(self, connection: RemotingConnection, command: Command) -> bytes:
        cluster = command.header(headers.GetTopicsByClusterRequestHeader).cluster
        return self._some_topics(command, self._table.topics_of_cluster(cluster))

    def _system_topics(self, connection: RemotingConnection, command: Command) -> bytes:
        return _answer(command, body=answers.system_topics_body(self._table, connection.local_address[0]))

    def _unit_topics(self, connection: RemotingConnection, command: Command) -> bytes:
        return self._some_topics(command, self._table.topics_by_flag(UNIT_FLAG))

    def _unit_sub_topics(self, connection: RemotingConnection, command: Command) -> bytes:
        return self._some_topics(command, self._table.topics_by_flag(UNIT_SUB_FLAG))

    def _unit_sub_only_topics(self, connection: RemotingConnection, command: Command) -> bytes:
        return self._some_topics(command, self._table.topics_by_flag(UNIT_SUB_FLAG, UNIT_FLAG))

    def _some_topics(self, command: Command, topics: list[str]) -> bytes:
        if not self._settings.namesrv.topic_list:
            return _disabled(command, "topic_list")
        return _answer(command, body=encode_body(TopicList(topics)))

    def _delete_topic(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.DeleteTopicFromNamesrvRequestHeader)
        self._table.delete_topic(header.topic, header.cluster_name or None)
        logger.info("%s deleted topic %s", connection.peer, header.topic)
        return _answer(command)

    def _register_topic(self, connection: RemotingConnection, command: Command) -> bytes:
        header = command.header(headers.RegisterTopicRequestHeader)
        route = decode_body(command.body, TopicRouteData) if command.body else TopicRouteData()
        entries = [
            (
                queue.broker_name,
                QueueEntry(queue.read_queue_nums, queue.write_queue_nums, queue.perm, queue.topic_sys_flag),
            )
            for queue in route.queue_datas
        ]
        if not self._table.add_topic(header.topic, entries):
            logger.warning("topic %s was registered for a broker that is not known here", header.topic)
        return _answer(command)

    # -- settings ----------------------------------------------------------------------------------------------------

    def _update_settings(self, connection: RemotingConnection, command: Command) -> bytes:
        try:
            changes = [(name, value) for name, value, _ in parse_properties(command.body.decode())]
        except UnicodeDecodeError as error:
            raise UsageError("the settings are not UTF-8 text", code=ResponseCode.SYSTEM_ERROR) from error
        if any(name in FIXED_SETTINGS for name, _ in changes):
            return _answer(command, ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            changed = change_dynamic(self._settings, changes, section="namesrv")
        except PocketMQError as error:
            return _answer(command, ResponseCode.SYSTEM_ERROR, error.message)
        self._forget_routes()
        for row in changed:
            logger.info("%s changed the setting %s", connection.peer, row.name)
            if row.name == "log.level":
                logging.getLogger("pocketmq").setLevel(self._settings.log.level.upper())
        return _answer(command)

    def _get_settings(self, connection: RemotingConnection, command: Command) -> bytes:
        return _answer(command, body=java_properties(self._settings, ["namesrv"]).encode())


def _answer(
    command: Command,
    code: int = ResponseCode.SUCCESS,
    remark: str | None = None,
    *,
    header: Header | None = None,
    body: bytes = b"",
) -> bytes:
    return encode_response(command.opaque, code, remark, header, body, serialize_type=command.serialize_type)


def _disabled(command: Command, setting: str) -> bytes:
    return _answer(command, ResponseCode.SYSTEM_ERROR, f"disable: namesrv.{setting} is false")


def _is_local(connection: RemotingConnection) -> bool:
    """True when the peer is on this machine, as far as its address tells."""
    host = connection.peer_address[0]
    return host == connection.local_address[0] or host.startswith("127.") or host == "::1"
