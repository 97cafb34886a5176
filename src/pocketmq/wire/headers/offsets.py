"""Queue offsets and consumer groups' positions."""

from pocketmq.wire.headers.base import Header, Int32, Int64, RpcHeader, TopicHeader


class QueryConsumerOffsetRequestHeader(TopicHeader):
    """QUERY_CONSUMER_OFFSET 14."""

    consumer_group: str
    topic: str
    queue_id: Int32
    set_zero_if_not_found: bool | None = None


class QueryConsumerOffsetResponseHeader(Header):
    """QUERY_CONSUMER_OFFSET 14: the answer."""

    offset: Int64


class UpdateConsumerOffsetRequestHeader(TopicHeader):
    """UPDATE_CONSUMER_OFFSET 15."""

    consumer_group: str
    topic: str
    queue_id: Int32
    commit_offset: Int64


class SearchOffsetRequestHeader(TopicHeader):
    """SEARCH_OFFSET_BY_TIMESTAMP 29."""

    topic: str
    queue_id: Int32
    timestamp: Int64
    boundary_type: str | None = None


class SearchOffsetResponseHeader(Header):
    """SEARCH_OFFSET_BY_TIMESTAMP 29: the answer."""

    offset: Int64


class GetMaxOffsetRequestHeader(TopicHeader):
    """GET_MAX_OFFSET 30."""

    topic: str
    queue_id: Int32
    committed: bool = True


class GetMaxOffsetResponseHeader(Header):
    """GET_MAX_OFFSET 30: the answer."""

    offset: Int64


class GetMinOffsetRequestHeader(TopicHeader):
    """GET_MIN_OFFSET 31."""

    topic: str
    queue_id: Int32


class GetMinOffsetResponseHeader(Header):
    """GET_MIN_OFFSET 31: the answer."""

    offset: Int64


class GetEarliestMsgStoretimeRequestHeader(TopicHeader):
    """GET_EARLIEST_MSG_STORETIME 32."""

    topic: str
    queue_id: Int32


class GetEarliestMsgStoretimeResponseHeader(Header):
    """GET_EARLIEST_MSG_STORETIME 32: the answer."""

    timestamp: Int64


class ResetOffsetRequestHeader(TopicHeader):
    """INVOKE_BROKER_TO_RESET_OFFSET 222, RESET_CONSUMER_CLIENT_OFFSET 220."""

    group: str
    topic: str
    timestamp: Int64
    is_force: bool
    queue_id: Int32 = -1
    offset: Int64 | None = None


class CloneGroupOffsetRequestHeader(RpcHeader):
    """CLONE_GROUP_OFFSET 314."""

    src_group: str
    dest_group: str
    topic: str | None = None
    offline: bool | None = None


class QueryCorrectionOffsetRequestHeader(TopicHeader):
    """QUERY_CORRECTION_OFFSET 308."""

    compare_group: str
    topic: str
    filter_groups: str | None = None
