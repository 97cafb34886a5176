"""Topic settings and statistics."""

from pocketmq.wire.headers.base import Header, Int32, RpcHeader, TopicHeader


class CreateTopicRequestHeader(TopicHeader):
    """UPDATE_AND_CREATE_TOPIC 17, UPDATE_AND_CREATE_STATIC_TOPIC 513."""

    topic: str
    default_topic: str
    read_queue_nums: Int32
    write_queue_nums: Int32
    perm: Int32
    topic_filter_type: str
    topic_sys_flag: Int32 | None = None
    order: bool = False
    attributes: str | None = None
    force: bool = False


class GetAllTopicConfigRequestHeader(Header):
    """GET_ALL_TOPIC_CONFIG 21."""

    topic_seq: Int32 | None = None
    data_version: str | None = None
    max_topic_num: Int32 | None = None


class GetAllTopicConfigResponseHeader(Header):
    """GET_ALL_TOPIC_CONFIG 21: the answer."""

    total_topic_num: Int32


class GetTopicStatsInfoRequestHeader(TopicHeader):
    """GET_TOPIC_STATS_INFO 202."""

    topic: str


class DeleteTopicRequestHeader(TopicHeader):
    """DELETE_TOPIC_IN_BROKER 215."""

    topic: str


class QueryTopicConsumeByWhoRequestHeader(TopicHeader):
    """QUERY_TOPIC_CONSUME_BY_WHO 300."""

    topic: str


class QueryTopicsByConsumerRequestHeader(RpcHeader):
    """QUERY_TOPICS_BY_CONSUMER 343."""

    group: str


class GetTopicConfigRequestHeader(TopicHeader):
    """GET_TOPIC_CONFIG 351."""

    topic: str
