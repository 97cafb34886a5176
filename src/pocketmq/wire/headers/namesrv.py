"""What name servers answer: brokers, routes, key-value configuration."""

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader


class PutKVConfigRequestHeader(Header):
    """PUT_KV_CONFIG 100."""

    namespace: str
    key: str
    value: str


class GetKVConfigRequestHeader(Header):
    """GET_KV_CONFIG 101."""

    namespace: str
    key: str


class GetKVConfigResponseHeader(Header):
    """GET_KV_CONFIG 101: the answer."""

    value: str | None = None


class DeleteKVConfigRequestHeader(Header):
    """DELETE_KV_CONFIG 102."""

    namespace: str
    key: str


class RegisterBrokerRequestHeader(Header):
    """REGISTER_BROKER 103."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    ha_server_addr: str
    broker_id: Int64
    heartbeat_timeout_millis: Int64 | None = None
    enable_acting_master: bool | None = None
    compressed: bool | None = None
    body_crc32: Int32 = 0


class RegisterBrokerResponseHeader(Header):
    """REGISTER_BROKER 103: the answer."""

    ha_server_addr: str | None = None
    master_addr: str | None = None


class UnRegisterBrokerRequestHeader(Header):
    """UNREGISTER_BROKER 104."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class GetRouteInfoRequestHeader(TopicHeader):
    """GET_ROUTEINFO_BY_TOPIC 105."""

    topic: str
    accept_standard_json_only: bool | None = None


class WipeWritePermOfBrokerRequestHeader(Header):
    """WIPE_WRITE_PERM_OF_BROKER 205."""

    broker_name: str


class WipeWritePermOfBrokerResponseHeader(Header):
    """WIPE_WRITE_PERM_OF_BROKER 205: the answer."""

    wipe_topic_count: Int32


class DeleteTopicFromNamesrvRequestHeader(TopicHeader):
    """DELETE_TOPIC_IN_NAMESRV 216."""

    topic: str
    cluster_name: str | None = None


class RegisterTopicRequestHeader(TopicHeader):
    """REGISTER_TOPIC_IN_NAMESRV 217."""

    topic: str


class GetKVListByNamespaceRequestHeader(Header):
    """GET_KVLIST_BY_NAMESPACE 219."""

    namespace: str


class GetTopicsByClusterRequestHeader(Header):
    """GET_TOPICS_BY_CLUSTER 224."""

    cluster: str


class QueryDataVersionRequestHeader(Header):
    """QUERY_DATA_VERSION 322."""

    broker_name: str
    broker_addr: str
    cluster_name: str
    broker_id: Int64


class QueryDataVersionResponseHeader(Header):
    """QUERY_DATA_VERSION 322: the answer."""

    changed: bool


class AddWritePermOfBrokerRequestHeader(Header):
    """ADD_WRITE_PERM_OF_BROKER 327."""

    broker_name: str


class AddWritePermOfBrokerResponseHeader(Header):
    """ADD_WRITE_PERM_OF_BROKER 327: the answer."""

    add_topic_count: Int32


class GetBrokerMemberGroupRequestHeader(Header):
    """GET_BROKER_MEMBER_GROUP 901."""

    cluster_name: str
    broker_name: str


class BrokerHeartbeatRequestHeader(Header):
    """BROKER_HEARTBEAT 904."""

    cluster_name: str
    broker_addr: str
    broker_name: str
    broker_id: Int64 | None = None
    epoch: Int32 | None = None
    max_offset: Int64 | None = None
    confirm_offset: Int64 | None = None
    heartbeat_timeout_mills: Int64 | None = None
    election_priority: Int32 | None = None
