"""Consumer-group settings and statistics."""

from pocketmq.wire.headers.base import Header, Int32, RpcHeader, TopicHeader


class GetAllSubscriptionGroupRequestHeader(Header):
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG 201."""

    group_seq: Int32 | None = None
    data_version: str | None = None
    max_group_num: Int32 | None = None


class GetAllSubscriptionGroupResponseHeader(Header):
    """GET_ALL_SUBSCRIPTIONGROUP_CONFIG 201: the answer."""

    total_group_num: Int32


class DeleteSubscriptionGroupRequestHeader(RpcHeader):
    """DELETE_SUBSCRIPTIONGROUP 207."""

    group_name: str
    clean_offset: bool = False


class GetConsumeStatsRequestHeader(TopicHeader):
    """GET_CONSUME_STATS 208."""

    consumer_group: str
    topic: str | None = None
    topic_list: str | None = None


class QueryConsumeTimeSpanRequestHeader(TopicHeader):
    """QUERY_CONSUME_TIME_SPAN 303."""

    topic: str
    group: str


class GetConsumeStatsInBrokerRequestHeader(Header):
    """GET_BROKER_CONSUME_STATS 317."""

    is_order: bool


class QuerySubscriptionByConsumerRequestHeader(TopicHeader):
    """QUERY_SUBSCRIPTION_BY_CONSUMER 345."""

    group: str
    topic: str | None = None


class GetSubscriptionGroupConfigRequestHeader(RpcHeader):
    """GET_SUBSCRIPTIONGROUP_CONFIG 352."""

    group: str


class UpdateGroupForbiddenRequestHeader(TopicHeader):
    """UPDATE_AND_GET_GROUP_FORBIDDEN 353."""

    group: str
    topic: str
    readable: bool | None = None
