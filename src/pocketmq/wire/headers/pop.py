"""Message-based consumption: pop, ack, change of the invisible time."""

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader


class PopMessageRequestHeader(TopicHeader):
    """POP_MESSAGE 200050."""

    consumer_group: str
    topic: str
    queue_id: Int32
    max_msg_nums: Int32
    invisible_time: Int64
    poll_time: Int64
    born_time: Int64
    init_mode: Int32
    exp_type: str | None = None
    exp: str | None = None
    order: bool = False
    attempt_id: str | None = None


class PopMessageResponseHeader(Header):
    """POP_MESSAGE 200050: the answer."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32
    rest_num: Int64
    start_offset_info: str | None = None
    msg_offset_info: str | None = None
    order_count_info: str | None = None


class AckMessageRequestHeader(TopicHeader):
    """ACK_MESSAGE 200051."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64


class ChangeInvisibleTimeRequestHeader(TopicHeader):
    """CHANGE_MESSAGE_INVISIBLETIME 200053."""

    consumer_group: str
    topic: str
    queue_id: Int32
    extra_info: str
    offset: Int64
    invisible_time: Int64


class ChangeInvisibleTimeResponseHeader(Header):
    """CHANGE_MESSAGE_INVISIBLETIME 200053: the answer."""

    pop_time: Int64
    invisible_time: Int64
    revive_qid: Int32


class NotificationRequestHeader(TopicHeader):
    """NOTIFICATION 200054."""

    consumer_group: str
    topic: str
    queue_id: Int32
    poll_time: Int64
    born_time: Int64
    order: bool = False
    attempt_id: str | None = None


class NotificationResponseHeader(Header):
    """NOTIFICATION 200054: the answer."""

    has_msg: bool = False
    polling_full: bool = False


class PollingInfoRequestHeader(TopicHeader):
    """POLLING_INFO 200055."""

    consumer_group: str
    topic: str
    queue_id: Int32


class PollingInfoResponseHeader(Header):
    """POLLING_INFO 200055: the answer."""

    polling_num: Int32
