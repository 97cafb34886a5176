"""Pulling messages from a queue (11, 361)."""

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader


class PullMessageRequestHeader(TopicHeader):
    """PULL_MESSAGE 11, LITE_PULL_MESSAGE 361."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    sub_version: Int64
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_froward_client_id: str | None = None


class PullMessageResponseHeader(Header):
    """PULL_MESSAGE 11, LITE_PULL_MESSAGE 361: the answer."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None
