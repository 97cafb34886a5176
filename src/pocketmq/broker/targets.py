"""A topic as the send path needs it, and the refusals that have to do with it."""

from typing import TYPE_CHECKING

from pocketmq.model.config import TopicConfig
from pocketmq.model.errors import MessageTooLargeError, PocketMQError
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.series import Series
    from pocketmq.log.queues import LogQueue


class Target:
    """What a topic needs to take messages, looked up once."""

    __slots__ = ("config", "queues", "series", "special", "topic", "write_queues")

    def __init__(self, config: TopicConfig, series: "Series") -> None:
        self.topic = config.topic_name
        self.config = config
        self.write_queues = config.write_queue_nums
        self.queues: list[LogQueue | None] = [None] * max(config.write_queue_nums, config.read_queue_nums)
        self.series = series
        self.special = self.topic.startswith(RETRY_PREFIX) or config.order or config.topic_filter_type == "MULTI_TAG"


def no_such_queue(target: Target, queue_id: int) -> PocketMQError:
    """Code 29."""
    return PocketMQError(
        f"request queueId[{queue_id}] is illegal; the topic {target.topic} has {len(target.queues)} queues",
        code=ResponseCode.INVALID_PARAMETER,
    )


def bad_body(size_bytes: int, size_bytes_max: int) -> PocketMQError:
    """Code 13: empty, or too large."""
    if not size_bytes:
        return PocketMQError("the message has no body", code=ResponseCode.MESSAGE_ILLEGAL)
    return MessageTooLargeError(
        f"the body has {size_bytes} bytes; at most {size_bytes_max} are allowed (setting store.message_bytes_max)"
    )


def properties_too_long(size_bytes: int) -> PocketMQError:
    """Code 13."""
    return MessageTooLargeError(
        f"the properties have {size_bytes} bytes with what the broker adds; at most {PROPERTIES_BYTES_MAX} are allowed"
    )
