"""Heartbeats, lists of clients and their connections, queue locks, and what clients answer to a broker."""

import msgspec

from pocketmq.model.config import Subscription
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import Body


class ProducerData(Body):
    """A producer group of a client."""

    group_name: str


class ConsumerData(Body):
    """A consumer group of a client.

    `consume_type` CONSUME_ACTIVELY (pull), CONSUME_PASSIVELY (push) or CONSUME_POP; `message_model` CLUSTERING or
    BROADCASTING; `consume_from_where` CONSUME_FROM_LAST_OFFSET, CONSUME_FROM_FIRST_OFFSET or CONSUME_FROM_TIMESTAMP.
    """

    group_name: str
    consume_type: str = "CONSUME_PASSIVELY"
    message_model: str = "CLUSTERING"
    consume_from_where: str = "CONSUME_FROM_LAST_OFFSET"
    subscription_data_set: list[Subscription] = []
    unit_mode: bool = False


class HeartbeatData(Body):
    """The body of 34. `without_sub`: the subscriptions are unchanged since `heartbeat_fingerprint` and left out."""

    client_id: str = msgspec.field(name="clientID")
    producer_data_set: list[ProducerData] = []
    consumer_data_set: list[ConsumerData] = []
    heartbeat_fingerprint: int = 0
    without_sub: bool = False


class CheckClientRequestBody(Body):
    """The body of 46."""

    client_id: str
    group: str
    subscription_data: Subscription
    namespace: str | None = None


class GetConsumerListByGroupResponseBody(Body):
    """The answer to 38."""

    consumer_id_list: list[str] = []


class LockBatchRequestBody(Body):
    """The body of 41."""

    consumer_group: str
    client_id: str
    mq_set: list[MessageQueue] = []
    only_this_broker: bool = False


class UnlockBatchRequestBody(LockBatchRequestBody):
    """The body of 42."""


class LockBatchResponseBody(Body):
    """The answer to 41: the queues that the client holds now."""

    lock_ok_mq_set: list[MessageQueue] = msgspec.field(name="lockOKMQSet", default_factory=list)


class Connection(Body):
    """One connected client."""

    client_id: str
    client_addr: str
    language: str = "OTHER"
    version: int = 0


class ConsumerConnection(Body):
    """The answer to 203."""

    connection_set: list[Connection] = []
    subscription_table: dict[str, Subscription] = {}
    consume_type: str | None = None
    message_model: str | None = None
    consume_from_where: str | None = None


class ProducerConnection(Body):
    """The answer to 204."""

    connection_set: list[Connection] = []


class ProducerInfo(Body):
    """One client of a producer group."""

    client_id: str
    remote_ip: str = msgspec.field(name="remoteIP")
    language: str = "OTHER"
    version: int = 0
    last_update_timestamp: int = 0


class ProducerTableInfo(Body):
    """The answer to 328."""

    data: dict[str, list[ProducerInfo]] = {}


class ProcessQueueInfo(Body):
    """How a consumer stands with one queue."""

    commit_offset: int = 0
    cached_msg_min_offset: int = 0
    cached_msg_max_offset: int = 0
    cached_msg_count: int = 0
    cached_msg_size_in_mib: int = msgspec.field(name="cachedMsgSizeInMiB", default=0)
    transaction_msg_min_offset: int = 0
    transaction_msg_max_offset: int = 0
    transaction_msg_count: int = 0
    locked: bool = False
    try_unlock_times: int = 0
    last_lock_timestamp: int = 0
    droped: bool = False
    last_pull_timestamp: int = 0
    last_consume_timestamp: int = 0


class PopProcessQueueInfo(Body):
    """How a popping consumer stands with one queue."""

    wait_ack_count: int = 0
    droped: bool = False
    last_pop_timestamp: int = 0


class ConsumeStatus(Body):
    """Rates of one topic in a consumer; times in ms."""

    pull_rt: float = msgspec.field(name="pullRT", default=0.0)
    pull_tps: float = msgspec.field(name="pullTPS", default=0.0)
    consume_rt: float = msgspec.field(name="consumeRT", default=0.0)
    consume_ok_tps: float = msgspec.field(name="consumeOKTPS", default=0.0)
    consume_failed_tps: float = msgspec.field(name="consumeFailedTPS", default=0.0)
    consume_failed_msgs: int = 0


class ConsumerRunningInfo(Body):
    """What a consumer says about itself (307)."""

    properties: dict[str, str] = {}
    subscription_set: list[Subscription] = []
    mq_table: dict[MessageQueue, ProcessQueueInfo] = {}
    mq_pop_table: dict[MessageQueue, PopProcessQueueInfo] = {}
    status_table: dict[str, ConsumeStatus] = {}
    user_consumer_info: dict[str, str] = {}
    jstack: str | None = None


class ConsumeMessageDirectlyResult(Body):
    """What came of a message that a client was told to consume (309).

    `consume_result` is CR_SUCCESS, CR_LATER, CR_ROLLBACK, CR_COMMIT, CR_THROW_EXCEPTION or CR_RETURN_NULL;
    RocketMQ spells the last field so.
    """

    consume_result: str | None = None
    order: bool = False
    auto_commit: bool = True
    remark: str | None = None
    spent_time_mills: int = 0
