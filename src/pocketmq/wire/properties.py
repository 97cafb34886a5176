"""Message properties: `key 0x01 value 0x02`, repeated.

On the way through a broker they stay the bytes they came as; `find_property` looks one up without taking the rest
apart. Reading follows RocketMQ's `MessageDecoder`: the last of several equal keys wins, an entry with an empty key
or an empty value does not exist, the closing 0x02 may be missing.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from pocketmq.model.errors import UsageError

NAME_VALUE_SEPARATOR: Final = "\x01"
PROPERTY_SEPARATOR: Final = "\x02"


class PropertyKey:
    """Keys that the protocol gives a meaning (RocketMQ's `MessageConst`)."""

    KEYS: Final = "KEYS"
    TAGS: Final = "TAGS"
    WAIT: Final = "WAIT"
    DELAY: Final = "DELAY"
    RETRY_TOPIC: Final = "RETRY_TOPIC"
    REAL_TOPIC: Final = "REAL_TOPIC"
    REAL_QUEUE_ID: Final = "REAL_QID"
    TRANSACTION_PREPARED: Final = "TRAN_MSG"
    PRODUCER_GROUP: Final = "PGROUP"
    MIN_OFFSET: Final = "MIN_OFFSET"
    MAX_OFFSET: Final = "MAX_OFFSET"
    ORIGIN_MESSAGE_ID: Final = "ORIGIN_MESSAGE_ID"
    TRANSFER_FLAG: Final = "TRANSFER_FLAG"
    CORRECTION_FLAG: Final = "CORRECTION_FLAG"
    MQ2_FLAG: Final = "MQ2_FLAG"
    BUYER_ID: Final = "BUYER_ID"
    RECONSUME_TIME: Final = "RECONSUME_TIME"
    MAX_RECONSUME_TIMES: Final = "MAX_RECONSUME_TIMES"
    MESSAGE_REGION: Final = "MSG_REGION"
    TRACE_ON: Final = "TRACE_ON"
    UNIQUE_KEY: Final = "UNIQ_KEY"
    EXTEND_UNIQUE_INFO: Final = "EXTEND_UNIQ_INFO"
    CONSUME_START_TIME: Final = "CONSUME_START_TIME"
    INNER_NUMBER: Final = "INNER_NUM"
    INNER_BASE: Final = "INNER_BASE"
    DUPLICATE_INFO: Final = "DUP_INFO"
    CHECK_IMMUNITY_TIME: Final = "CHECK_IMMUNITY_TIME_IN_SECONDS"
    TRANSACTION_PREPARED_QUEUE_OFFSET: Final = "TRAN_PREPARED_QUEUE_OFFSET"
    TRANSACTION_ID: Final = "__transactionId__"
    TRANSACTION_CHECK_TIMES: Final = "TRANSACTION_CHECK_TIMES"
    INSTANCE_ID: Final = "INSTANCE_ID"
    CORRELATION_ID: Final = "CORRELATION_ID"
    REPLY_TO_CLIENT: Final = "REPLY_TO_CLIENT"
    TIME_TO_LIVE: Final = "TTL"
    ARRIVE_TIME: Final = "ARRIVE_TIME"
    PUSH_REPLY_TIME: Final = "PUSH_REPLY_TIME"
    CLUSTER: Final = "CLUSTER"
    MESSAGE_TYPE: Final = "MSG_TYPE"
    POP_CHECK_POINT: Final = "POP_CK"
    POP_CHECK_POINT_OFFSET: Final = "POP_CK_OFFSET"
    FIRST_POP_TIME: Final = "1ST_POP_TIME"
    SHARDING_KEY: Final = "__SHARDINGKEY"
    FORWARD_QUEUE_ID: Final = "PROPERTY_FORWARD_QUEUE_ID"
    REDIRECT: Final = "REDIRECT"
    INNER_MULTI_DISPATCH: Final = "INNER_MULTI_DISPATCH"
    INNER_MULTI_QUEUE_OFFSET: Final = "INNER_MULTI_QUEUE_OFFSET"
    TRACE_CONTEXT: Final = "TRACE_CONTEXT"
    TIMER_DELAY_SECONDS: Final = "TIMER_DELAY_SEC"
    TIMER_DELAY_MS: Final = "TIMER_DELAY_MS"
    TIMER_DELIVER_MS: Final = "TIMER_DELIVER_MS"
    TIMER_ENQUEUE_MS: Final = "TIMER_ENQUEUE_MS"
    TIMER_DEQUEUE_MS: Final = "TIMER_DEQUEUE_MS"
    TIMER_ROLL_TIMES: Final = "TIMER_ROLL_TIMES"
    TIMER_OUT_MS: Final = "TIMER_OUT_MS"
    TIMER_DELETE_UNIQUE_KEY: Final = "TIMER_DEL_UNIQKEY"
    TIMER_DELAY_LEVEL: Final = "TIMER_DELAY_LEVEL"
    BORN_HOST: Final = "__BORNHOST"
    BORN_TIMESTAMP: Final = "BORN_TIMESTAMP"
    CRC32: Final = "__CRC32#"
    DLQ_ORIGIN_TOPIC: Final = "DLQ_ORIGIN_TOPIC"
    DLQ_ORIGIN_MESSAGE_ID: Final = "DLQ_ORIGIN_MESSAGE_ID"
    TRANSIENT_TOPIC_SYS_FLAG: Final = "__RMQ.TRANSIENT.TOPIC_SYS_FLAG"
    TRANSIENT_GROUP_SYS_FLAG: Final = "__RMQ.TRANSIENT.GROUP_SYS_FLAG"


_USER_MAY_SET = frozenset(
    {
        PropertyKey.CHECK_IMMUNITY_TIME,
        PropertyKey.TRANSACTION_ID,
        PropertyKey.TRANSACTION_CHECK_TIMES,
        PropertyKey.SHARDING_KEY,
        PropertyKey.FORWARD_QUEUE_ID,
        PropertyKey.REDIRECT,
        PropertyKey.INNER_NUMBER,
        PropertyKey.INNER_BASE,
        PropertyKey.INNER_MULTI_DISPATCH,
        PropertyKey.TRACE_CONTEXT,
        PropertyKey.TRANSIENT_TOPIC_SYS_FLAG,
        PropertyKey.TRANSIENT_GROUP_SYS_FLAG,
    }
)

SYSTEM_PROPERTIES: Final = (
    frozenset(value for name, value in vars(PropertyKey).items() if not name.startswith("_") and isinstance(value, str))
    - _USER_MAY_SET
)
"""Keys that a user may not set himself."""


def encode_properties(properties: Mapping[str, str | None]) -> str:
    """The properties as they stand in a record; None values are left out.

    Raises UsageError when a key or value holds one of the separators and would be read back as something else.
    """
    parts = []
    for key, value in properties.items():
        if value is not None:
            if "\x01" in key or "\x02" in key or "\x02" in value:
                raise UsageError(f"the property {key!r} holds a character that separates properties (0x01 or 0x02)")
            parts.append(f"{key}\x01{value}\x02")
    return "".join(parts)


def decode_properties(text: str) -> dict[str, str]:
    """All properties as a dict; never fails."""
    properties = {}
    for entry in text.split("\x02"):
        key, _, value = entry.partition("\x01")
        if key and value:
            properties[key] = value
    return properties


def find_property(properties: bytes, key: bytes) -> bytes | None:
    """The value of one property, or None. Does not take the other properties apart."""
    return property_finder(key)(properties)


@lru_cache(maxsize=256)
def property_finder(key: bytes) -> Callable[[bytes], bytes | None]:
    """A function that finds `key` in encoded properties; keep it where one key is looked up again and again."""
    entry = key + b"\x01"
    inner_entry = b"\x02" + entry
    entry_length = len(entry)
    inner_length = len(inner_entry)

    def find(properties: bytes) -> bytes | None:
        at = properties.rfind(inner_entry)
        while at >= 0:
            value = properties[at + inner_length :].partition(b"\x02")[0]
            if value:
                return value
            # An empty value does not exist: an earlier one counts.
            at = properties.rfind(inner_entry, 0, at)
        if not properties.startswith(entry):
            return None
        return properties[entry_length:].partition(b"\x02")[0] or None

    return find


def without_property(properties: bytes, key: bytes) -> bytes:
    """The same properties less every entry with `key`; entries that are no properties are kept as they are."""
    if key + b"\x01" not in properties:
        return properties
    entry = key + b"\x01"
    return b"".join(part + b"\x02" for part in properties.split(b"\x02") if part and not part.startswith(entry))


def with_property(properties: bytes, key: bytes, value: bytes) -> bytes:
    """The same properties with `key` set to `value`, at the end, earlier entries of it removed."""
    properties = without_property(properties, key)
    if properties and not properties.endswith(b"\x02"):
        properties += b"\x02"
    return properties + key + b"\x01" + value + b"\x02"
