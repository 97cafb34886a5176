"""What name servers say about topics, brokers and clusters."""

from typing import Any

from pocketmq.wire.bodies.codec import Body


class QueueData(Body):
    """The queues of a topic on one broker name."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int
    topic_sys_flag: int = 0


class BrokerData(Body):
    """A broker name and the addresses of its members; id 0 is the master."""

    broker_name: str
    cluster: str = ""
    broker_addrs: dict[int, str] = {}
    enable_acting_master: bool = False
    zone_name: str | None = None


class TopicRouteData(Body):
    """Where a topic is (the answer to 105, the request of 217). `order_topic_conf` is `broker-a:4;broker-b:4`."""

    broker_datas: list[BrokerData] = []
    queue_datas: list[QueueData] = []
    filter_server_table: dict[str, list[str]] = {}
    order_topic_conf: str | None = None
    topic_queue_mapping_by_broker: dict[str, dict[str, Any]] | None = None


class ClusterInfo(Body):
    """All brokers and clusters (the answer to 106)."""

    broker_addr_table: dict[str, BrokerData] = {}
    cluster_addr_table: dict[str, list[str]] = {}


class TopicList(Body):
    """Names of topics (206, 224, 304, 305, 311 to 313, 343)."""

    topic_list: list[str] = []
    broker_addr: str | None = None


class BrokerMemberGroup(Body):
    """All members of one broker name."""

    cluster: str
    broker_name: str
    broker_addrs: dict[int, str] = {}


class GetBrokerMemberGroupResponseBody(Body):
    """The answer to 901."""

    broker_member_group: BrokerMemberGroup


class KVTable(Body):
    """Keys and values (28, 103, 219)."""

    table: dict[str, str] = {}
