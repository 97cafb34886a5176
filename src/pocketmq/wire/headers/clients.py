"""Clients and their groups: heartbeats, lists, locks, send-back, and what a broker asks of a client."""

import msgspec

from pocketmq.wire.headers.base import Int32, Int64, RpcHeader, TopicHeader

HANDOVER = "handover"
"""Field by which a broker says, in its answer to a heartbeat, that it serves claims (`handover` in 41, 42 and 40)."""


class HeartbeatRequestHeader(RpcHeader):
    """HEART_BEAT 34."""


class UnregisterClientRequestHeader(RpcHeader):
    """UNREGISTER_CLIENT 35."""

    client_id: str = msgspec.field(name="clientID")
    producer_group: str | None = None
    consumer_group: str | None = None


class ConsumerSendMsgBackRequestHeader(RpcHeader):
    """CONSUMER_SEND_MSG_BACK 36."""

    offset: Int64
    group: str
    delay_level: Int32
    origin_msg_id: str | None = None
    origin_topic: str | None = None
    unit_mode: bool = False
    max_reconsume_times: Int32 | None = None


class GetConsumerListByGroupRequestHeader(RpcHeader):
    """GET_CONSUMER_LIST_BY_GROUP 38."""

    consumer_group: str


class NotifyConsumerIdsChangedRequestHeader(RpcHeader):
    """NOTIFY_CONSUMER_IDS_CHANGED 40."""

    consumer_group: str
    handover: bool | None = None
    """PocketMQ's own: the group is as it was, but a queue that the receiver waits for is free."""


class LockBatchMqRequestHeader(RpcHeader):
    """LOCK_BATCH_MQ 41."""

    handover: bool | None = None
    """PocketMQ's own: it is about claims, not about the locks of orderly consumers."""


class UnlockBatchMqRequestHeader(RpcHeader):
    """UNLOCK_BATCH_MQ 42."""

    handover: bool | None = None
    """As in 41."""


class GetConsumerConnectionListRequestHeader(RpcHeader):
    """GET_CONSUMER_CONNECTION_LIST 203."""

    consumer_group: str


class GetProducerConnectionListRequestHeader(RpcHeader):
    """GET_PRODUCER_CONNECTION_LIST 204."""

    producer_group: str


class GetConsumerStatusRequestHeader(TopicHeader):
    """INVOKE_BROKER_TO_GET_CONSUMER_STATUS 223, GET_CONSUMER_STATUS_FROM_CLIENT 221."""

    topic: str
    group: str
    client_addr: str | None = None


class GetConsumerRunningInfoRequestHeader(RpcHeader):
    """GET_CONSUMER_RUNNING_INFO 307."""

    consumer_group: str
    client_id: str
    jstack_enable: bool | None = None


class ConsumeMessageDirectlyResultRequestHeader(TopicHeader):
    """CONSUME_MESSAGE_DIRECTLY 309."""

    consumer_group: str
    client_id: str | None = None
    msg_id: str | None = None
    broker_name: str | None = None
    topic: str | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
