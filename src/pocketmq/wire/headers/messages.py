"""Looking messages up, replying, recalling."""

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader


class QueryMessageRequestHeader(TopicHeader):
    """QUERY_MESSAGE 12."""

    topic: str
    key: str
    max_num: Int32
    begin_timestamp: Int64
    end_timestamp: Int64


class QueryMessageResponseHeader(Header):
    """QUERY_MESSAGE 12: the answer."""

    index_last_update_timestamp: Int64
    index_last_update_phyoffset: Int64


class ViewMessageRequestHeader(Header):
    """VIEW_MESSAGE_BY_ID 33."""

    offset: Int64
    topic: str | None = None


class QueryConsumeQueueRequestHeader(TopicHeader):
    """QUERY_CONSUME_QUEUE 321."""

    topic: str | None = None
    queue_id: Int32 | None = None
    index: Int64 | None = None
    count: Int32 | None = None
    consumer_group: str | None = None


class ResumeCheckHalfMessageRequestHeader(Header):
    """RESUME_CHECK_HALF_MESSAGE 323."""

    topic: str | None = None
    msg_id: str | None = None


class ReplyMessageRequestHeader(TopicHeader):
    """PUSH_REPLY_MESSAGE_TO_CLIENT 326."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    born_host: str
    store_host: str
    store_timestamp: Int64
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool = False


class RecallMessageRequestHeader(TopicHeader):
    """RECALL_MESSAGE 370."""

    topic: str
    recall_handle: str
    producer_group: str | None = None


class RecallMessageResponseHeader(Header):
    """RECALL_MESSAGE 370: the answer."""

    msg_id: str
