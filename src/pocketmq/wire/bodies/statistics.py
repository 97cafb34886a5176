"""What a broker counts."""

import msgspec

from pocketmq.model.config import Subscription
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import Body


class TopicOffset(Body):
    """Where one queue begins and ends; the timestamp, in ms, is that of its last message."""

    min_offset: int
    max_offset: int
    last_update_timestamp: int = 0


class TopicStatsTable(Body):
    """The answer to 202."""

    offset_table: dict[MessageQueue, TopicOffset] = {}
    topic_put_tps: float = 0.0


class OffsetWrapper(Body):
    """Where a group stands in one queue; the timestamp, in ms, is that of the last message it consumed."""

    broker_offset: int
    consumer_offset: int
    last_timestamp: int = 0
    pull_offset: int = 0


class ConsumeStats(Body):
    """The answer to 208."""

    offset_table: dict[MessageQueue, OffsetWrapper] = {}
    consume_tps: float = 0.0


class ConsumeStatsList(Body):
    """The answer to 317: a list of maps from group to its statistics, one per topic."""

    broker_addr: str
    consume_stats_list: list[dict[str, list[ConsumeStats]]] = []
    total_diff: int = 0
    total_inflight_diff: int = 0


class BrokerStatsItem(Body):
    """One period; `average_per_time` is the average of what was counted per call."""

    sum: int = 0
    tps: float = 0.0
    average_per_time: float = msgspec.field(name="avgpt", default=0.0)


class BrokerStatsData(Body):
    """The answer to 315."""

    stats_minute: BrokerStatsItem
    stats_hour: BrokerStatsItem
    stats_day: BrokerStatsItem


class QueueTimeSpan(Body):
    """Times of one queue's first and last message and of what a group consumed last, in ms and as text."""

    message_queue: MessageQueue
    min_time_stamp: int = 0
    max_time_stamp: int = 0
    consume_time_stamp: int = 0
    delay_time: int = 0
    min_time_stamp_str: str | None = None
    max_time_stamp_str: str | None = None
    consume_time_stamp_str: str | None = None


class QueryConsumeTimeSpanBody(Body):
    """The answer to 303."""

    consume_time_span_set: list[QueueTimeSpan] = []


class ConsumeQueueData(Body):
    """One unit of a queue index; `eval` tells whether a filter takes it."""

    physic_offset: int
    physic_size: int
    tags_code: int
    extend_data_json: str | None = None
    bit_map: str | None = None
    eval: bool = False
    msg: str | None = None


class QueryConsumeQueueResponseBody(Body):
    """The answer to 321."""

    queue_data: list[ConsumeQueueData] = []
    min_queue_index: int = 0
    max_queue_index: int = 0
    filter_data: str | None = None
    subscription_data: Subscription | None = None


class HAClientRuntimeInfo(Body):
    """A replica's side of its connection to the master."""

    master_addr: str | None = None
    transferred_byte_in_second: int = 0
    max_offset: int = 0
    last_read_timestamp: int = 0
    last_write_timestamp: int = 0
    master_flush_offset: int = 0


class HAConnectionRuntimeInfo(Body):
    """A master's side of one replica's connection."""

    addr: str | None = None
    slave_ack_offset: int = 0
    diff: int = 0
    in_sync: bool = False
    transferred_byte_in_second: int = 0
    transfer_from_where: int = 0


class HARuntimeInfo(Body):
    """The answer to 907."""

    master: bool = False
    master_commit_log_max_offset: int = 0
    in_sync_slave_nums: int = 0
    ha_connection_info: list[HAConnectionRuntimeInfo] = []
    ha_client_runtime_info: HAClientRuntimeInfo = msgspec.field(default_factory=HAClientRuntimeInfo)


class ColdDataFlowCtrInfo(Body):
    """The answer to 2003; RocketMQ's names."""

    runtime_table: dict[str, int] = {}
    config_table: dict[str, int] = {}
    cg_cold_read_threshold: int = 0
    global_cold_read_threshold: int = 0
    global_acc: int = 0
