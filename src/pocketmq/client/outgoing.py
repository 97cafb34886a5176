"""From what a user says to a message that is complete, and from that to what goes into a request. Pure."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Final

import msgspec

from pocketmq.client.options import Duration, seconds, timestamp_ms
from pocketmq.model.errors import MessageTooLargeError, UsageError
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.model.message import Message
from pocketmq.model.names import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS, check_topic
from pocketmq.wire.compression import compress
from pocketmq.wire.properties import SYSTEM_PROPERTIES, PropertyKey, encode_properties

BROKER_PROPERTIES_BYTES: Final = 256
"""Room left for the properties that the broker adds."""

DELAY_LEVELS_S: Final = (1, 5, 10, 30, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600, 1200, 1800, 3600, 7200)
"""The delays of levels 1 to 18 as all brokers have them by default."""

MESSAGE_OVERHEAD_BYTES: Final = 256
"""What a message costs in memory and on the wire beyond its body and properties, for limits."""

_DELAYS: Final = frozenset(
    {
        PropertyKey.DELAY,
        PropertyKey.TIMER_DELAY_SECONDS,
        PropertyKey.TIMER_DELAY_MS,
        PropertyKey.TIMER_DELIVER_MS,
    }
)

_ALONE: Final = frozenset(
    {
        PropertyKey.WAIT,
        PropertyKey.DELAY,
        PropertyKey.TIMER_DELAY_SECONDS,
        PropertyKey.TIMER_DELAY_MS,
        PropertyKey.TIMER_DELIVER_MS,
        PropertyKey.TRANSACTION_PREPARED,
        PropertyKey.CORRELATION_ID,
        PropertyKey.REPLY_TO_CLIENT,
        PropertyKey.MESSAGE_TYPE,
        PropertyKey.INNER_NUMBER,
        PropertyKey.INNER_MULTI_DISPATCH,
        PropertyKey.RECONSUME_TIME,
        PropertyKey.MAX_RECONSUME_TIMES,
        "_SYS_MSG_PRIORITY_",
    }
)
"""Properties that the broker acts upon, which it does for single messages only."""


def user_properties(properties: Mapping[str, str] | None) -> dict[str, str]:
    """A copy of the properties a user gave. Raises UsageError for names that mean something to the broker."""
    if not properties:
        return {}
    for key, value in properties.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise UsageError(f"properties are text, and {key!r} is not")
        if key in SYSTEM_PROPERTIES:
            raise UsageError(f"the property {key} belongs to the protocol; use the argument of send() that sets it")
    return dict(properties)


def key_tuple(keys: str | Iterable[str]) -> tuple[str, ...]:
    """One key or several, as a tuple. Raises UsageError for a key with a blank in it: it would be read as two."""
    found = (keys,) if isinstance(keys, str) else tuple(keys)
    for key in found:
        if not key or key.split() != [key]:
            raise UsageError(f"the key {key!r} is empty or holds a blank")
    return found


def level_of_delay(delay_s: float) -> int:
    """The delay level that is exactly this long, or 0."""
    return DELAY_LEVELS_S.index(int(delay_s)) + 1 if delay_s in DELAY_LEVELS_S else 0


def own_copy(message: Message) -> Message:
    """The client adds properties to a message: not to the caller's."""
    return msgspec.structs.replace(message, properties=dict(message.properties))


def set_delay(
    properties: dict[str, str], delay: Duration | None, deliver_at: datetime | float | None, delay_level: int
) -> int:
    """Put a delay into the properties, or return it as a level. Raises UsageError."""
    if (delay is not None) + (deliver_at is not None) + bool(delay_level) > 1:
        raise UsageError("give one of delay, deliver_at and delay_level")
    if deliver_at is not None:
        properties[PropertyKey.TIMER_DELIVER_MS] = str(timestamp_ms(deliver_at, "deliver_at"))
        return 0
    if delay is not None:
        delay_s = seconds(delay, "delay")
        level = level_of_delay(delay_s)
        if level == 0 and delay_s > 0:
            properties[PropertyKey.TIMER_DELAY_MS] = str(round(delay_s * 1000))
        return level
    if not 0 < delay_level <= 18:
        raise UsageError("delay_level is a number from 1 to 18")
    return delay_level


def has_delay(message: Message) -> bool:
    """Whether the message is to be delivered later than it is stored."""
    return message.delay_level > 0 or not _DELAYS.isdisjoint(message.properties)


def check_sendable(topic: str) -> None:
    """Raises UsageError for a name that is none, or that of a topic that only the broker writes."""
    check_topic(topic)
    if topic in SEND_FORBIDDEN_TOPICS:
        raise UsageError(f"{topic} is a topic of the broker itself and cannot be sent to")


def properties_text(message: Message) -> str:
    """All properties of a message as they go on the wire. Raises UsageError, MessageTooLargeError."""
    properties = message.properties
    if len(properties) == 1 and PropertyKey.UNIQUE_KEY in properties:
        # What most messages have, and made here: nothing to check.
        text = f"UNIQ_KEY\x01{properties[PropertyKey.UNIQUE_KEY]}\x02"
    else:
        text = encode_properties(properties)
    tag, keys = message.tag, message.keys
    if tag:
        if "\x02" in tag:
            raise UsageError("the tag holds the character 0x02")
        text = f"{text}TAGS\x01{tag}\x02"
    if keys:
        joined = " ".join(keys)
        if "\x02" in joined:
            raise UsageError("a key holds the character 0x02")
        text = f"{text}KEYS\x01{joined}\x02"
    if message.delay_level > 0:
        text = f"{text}DELAY\x01{message.delay_level}\x02"
    if len(text) > (PROPERTIES_BYTES_MAX - BROKER_PROPERTIES_BYTES) // 4:
        size, size_max = len(text.encode()), PROPERTIES_BYTES_MAX - BROKER_PROPERTIES_BYTES
        if size > size_max:
            raise MessageTooLargeError(f"the properties have {size} bytes; at most {size_max} are allowed")
    return text


def can_be_merged(message: Message) -> bool:
    """Whether a batch can carry the message: nothing about it that the broker does for single messages only."""
    return (
        message.delay_level <= 0
        and _ALONE.isdisjoint(message.properties)
        and not message.topic.startswith(RETRY_PREFIX)
    )


class Compressor(msgspec.Struct, frozen=True):
    """When and how bodies are compressed."""

    above_bytes: int
    algorithm: str
    level: int

    def __call__(self, body: bytes) -> tuple[bytes, int]:
        """The body to send and its sys-flag bits; the body itself when compressing does not make it smaller."""
        if len(body) <= self.above_bytes:
            return body, 0
        packed, flag = compress(body, self.algorithm, self.level)
        return (packed, flag) if len(packed) < len(body) else (body, 0)
