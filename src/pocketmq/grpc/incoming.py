"""From the messages of a send request to what the broker stores: checks, properties.

The checks and their codes are those of RocketMQ's proxy; all limits are named at the top.
"""

from typing import TYPE_CHECKING, NamedTuple

from pocketmq.grpc.calls import read_ms
from pocketmq.grpc.outgoing import DELAY, FIFO, GZIP, NORMAL, NOT_FOR_USERS, PRIORITY, PRIORITY_TYPE, TRANSACTION
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto
from pocketmq.wire.properties import PropertyKey
from pocketmq.wire.record import SysFlag

if TYPE_CHECKING:
    from pocketmq.model.config import TopicConfig
    from pocketmq.model.settings import Settings

USER_PROPERTIES_MAX = 128
PROPERTIES_BYTES_MAX = 16 * 1024
"""Most bytes of user properties, tag and keys together."""
MESSAGE_GROUP_BYTES_MAX = 64
RECOVERY_MS_MAX = 60 * 60 * 1000

TYPE_NAMES = {
    NORMAL: "NORMAL",
    FIFO: "FIFO",
    DELAY: "DELAY",
    TRANSACTION: "TRANSACTION",
    PRIORITY_TYPE: "PRIORITY",
}
MIXED = "MIXED"


class Incoming(NamedTuple):
    """One message, ready to be stored."""

    body: bytes
    properties: str
    sys_flag: int
    born_timestamp: int
    message_group: str
    """Empty for none."""
    transaction: bool
    deliver_ms: int
    """0 for at once."""
    message_id: str
    priority: int
    """-1 for none."""


def read_message(message: Proto, topic: str, *, settings: "Settings", now_ms: int) -> Incoming:
    """Check one message and take it apart. Raises CodedError."""
    system = message.system_properties
    body = message.body
    body_bytes_max = settings.store.message_bytes_max
    if not body:
        raise CodedError(Code.MESSAGE_BODY_EMPTY, "the message has no body")
    if len(body) > body_bytes_max:
        raise CodedError(
            Code.MESSAGE_BODY_TOO_LARGE, f"the body has {len(body)} bytes; at most {body_bytes_max} are allowed"
        )
    if not system.message_id.strip():
        raise CodedError(Code.ILLEGAL_MESSAGE_ID, "the message has no id")
    if not _is_clean(system.message_id):
        raise CodedError(Code.ILLEGAL_MESSAGE_ID, "the message id holds a control character")
    if system.HasField("lite_topic"):
        raise CodedError(Code.UNSUPPORTED, "lite topics are not supported")
    deliver_ms = _deliver_ms(system, settings, now_ms)
    group = _message_group(system)
    transaction = system.message_type == TRANSACTION
    priority = -1
    parts = _user_properties(message)
    add = parts.append
    add(f"{PropertyKey.UNIQUE_KEY}\x01{system.message_id}\x02")
    if system.keys:
        add(f"{PropertyKey.KEYS}\x01{_keys(system)}\x02")
    if transaction:
        add(f"{PropertyKey.TRANSACTION_PREPARED}\x01true\x02{PropertyKey.PRODUCER_GROUP}\x01{topic}\x02")
        if system.HasField("orphaned_transaction_recovery_duration"):
            add(f"{PropertyKey.CHECK_IMMUNITY_TIME}\x01{_recovery_s(system)}\x02")
    if deliver_ms:
        add(f"{PropertyKey.TIMER_DELIVER_MS}\x01{deliver_ms}\x02")
    if group:
        add(f"{PropertyKey.SHARDING_KEY}\x01{group}\x02")
    if system.HasField("priority"):
        priority = _priority(system)
        add(f"{PRIORITY}\x01{priority}\x02")
    if system.HasField("trace_context") and _is_clean(system.trace_context) and system.trace_context:
        add(f"{PropertyKey.TRACE_CONTEXT}\x01{system.trace_context}\x02")
    if system.born_host and _is_clean(system.born_host):
        add(f"{PropertyKey.BORN_HOST}\x01{system.born_host}\x02")
    if system.HasField("tag"):
        add(f"{PropertyKey.TAGS}\x01{_tag(system)}\x02")
    return Incoming(
        body,
        "".join(parts),
        (SysFlag.COMPRESSED if system.body_encoding == GZIP else 0)
        | (SysFlag.TRANSACTION_PREPARED if transaction else 0),
        read_ms(system.born_timestamp) or now_ms,
        group,
        transaction,
        deliver_ms,
        system.message_id,
        priority,
    )


def check_type(message: Incoming, config: "TopicConfig") -> None:
    """A topic takes messages of its own type only. Raises CodedError MESSAGE_PROPERTY_CONFLICT_WITH_TYPE."""
    wanted = config.attributes.get("message.type", "NORMAL")
    if message.transaction:
        found = "TRANSACTION"
    elif message.deliver_ms:
        found = "DELAY"
    elif message.message_group:
        found = "FIFO"
    else:
        found = "PRIORITY" if message.priority >= 0 else "NORMAL"
    if wanted not in (found, MIXED):
        raise CodedError(
            Code.MESSAGE_PROPERTY_CONFLICT_WITH_TYPE,
            f"this is a {found} message, and the topic {config.topic_name} takes {wanted} ones; send it to another "
            f"topic, or set the topic's attribute message.type to {found} or {MIXED}",
        )


def _user_properties(message: Proto) -> list[str]:
    users = message.user_properties
    system = message.system_properties
    size = len(system.tag.encode()) + sum([len(key.encode()) for key in system.keys])
    parts = []
    if users:
        if len(users) > USER_PROPERTIES_MAX:
            raise CodedError(
                Code.MESSAGE_PROPERTIES_TOO_LARGE,
                f"the message has {len(users)} properties; at most {USER_PROPERTIES_MAX} are allowed",
            )
        for name, value in users.items():
            if name in NOT_FOR_USERS:
                raise CodedError(
                    Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
                    f"the property {name} is not for users to set; choose another name",
                )
            if not name or not _is_clean(name) or "\x01" in value or "\x02" in value or "\0" in value:
                raise CodedError(
                    Code.ILLEGAL_MESSAGE_PROPERTY_KEY,
                    f"the property {name!r} has no name, or a control character in its name or value",
                )
            part = f"{name}\x01{value}\x02"
            size += len(part.encode()) - 2
            parts.append(part)
    if size > PROPERTIES_BYTES_MAX:
        raise CodedError(
            Code.MESSAGE_PROPERTIES_TOO_LARGE,
            f"properties, tag and keys have {size} bytes; at most {PROPERTIES_BYTES_MAX} are allowed",
        )
    return parts


def _tag(system: Proto) -> str:
    tag: str = system.tag
    if not tag.strip() or "|" in tag or not _is_clean(tag):
        raise CodedError(
            Code.ILLEGAL_MESSAGE_TAG, f"the tag {tag!r} is blank, or holds a vertical bar or a control character"
        )
    return tag


def _keys(system: Proto) -> str:
    keys = list(system.keys)
    for key in keys:
        if not key.strip() or not _is_clean(key):
            raise CodedError(Code.ILLEGAL_MESSAGE_KEY, f"the key {key!r} is blank, or holds a control character")
    return " ".join(keys)


def _message_group(system: Proto) -> str:
    if not system.HasField("message_group"):
        return ""
    group: str = system.message_group
    if not group.strip() or len(group.encode()) >= MESSAGE_GROUP_BYTES_MAX or not _is_clean(group):
        raise CodedError(
            Code.ILLEGAL_MESSAGE_GROUP,
            f"the message group {group[:80]!r} is blank, has {MESSAGE_GROUP_BYTES_MAX} bytes or more, or holds a "
            "control character",
        )
    return group


def _deliver_ms(system: Proto, settings: "Settings", now_ms: int) -> int:
    if not system.HasField("delivery_timestamp"):
        return 0
    deliver_ms = read_ms(system.delivery_timestamp)
    limit_ms = int(settings.broker.delay_max_s * 1000)
    if deliver_ms - now_ms > limit_ms:
        raise CodedError(
            Code.ILLEGAL_DELIVERY_TIME,
            f"the delivery time is {(deliver_ms - now_ms) // 1000} s away; at most {limit_ms // 1000} s are allowed "
            "(setting broker.delay_max_s)",
        )
    return max(1, deliver_ms)


def _recovery_s(system: Proto) -> int:
    recovery_ms = read_ms(system.orphaned_transaction_recovery_duration)
    if not 0 <= recovery_ms <= RECOVERY_MS_MAX:
        raise CodedError(
            Code.BAD_REQUEST,
            f"orphaned_transaction_recovery_duration is {recovery_ms // 1000} s; from 0 to {RECOVERY_MS_MAX // 1000} s "
            "are allowed",
        )
    return recovery_ms // 1000


def _priority(system: Proto) -> int:
    if system.priority < 0:
        raise CodedError(Code.BAD_REQUEST, f"the priority {system.priority} is below 0")
    return int(system.priority)


def _is_clean(text: str) -> bool:
    """Without control characters."""
    return text.isprintable() or not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in text)
