"""From a stored record to the message that gRPC clients get."""

import hashlib

from pocketmq.grpc.calls import set_time
from pocketmq.model.errors import CompressionError
from pocketmq.wire.compression import decompress
from pocketmq.wire.grpc.schema import Proto
from pocketmq.wire.hosts import format_host
from pocketmq.wire.ids import encode_offset_id
from pocketmq.wire.properties import SYSTEM_PROPERTIES, PropertyKey, decode_properties
from pocketmq.wire.record import Record, SysFlag

PRIORITY = "_SYS_MSG_PRIORITY_"
"""Property of a priority message."""

NOT_FOR_USERS = SYSTEM_PROPERTIES | {
    PropertyKey.SHARDING_KEY,
    PropertyKey.TRACE_CONTEXT,
    PropertyKey.TRANSACTION_ID,
    PropertyKey.CHECK_IMMUNITY_TIME,
    PropertyKey.TRANSACTION_CHECK_TIMES,
    PRIORITY,
}
"""Properties that have a field of their own, or that only brokers look at."""

IDENTITY, GZIP = 1, 2
NORMAL, FIFO, DELAY, TRANSACTION, PRIORITY_TYPE = 1, 2, 3, 4, 6
MD5 = 2
_GZIP_MAGIC = b"\x1f\x8b"
_DELAYS = (
    PropertyKey.DELAY,
    PropertyKey.TIMER_DELIVER_MS,
    PropertyKey.TIMER_DELAY_SECONDS,
    PropertyKey.TIMER_DELAY_MS,
    PropertyKey.TIMER_OUT_MS,
)


def message_type_of(properties: dict[str, str]) -> int:
    """The number of the message's type, told from its properties."""
    if properties.get(PropertyKey.TRANSACTION_PREPARED) == "true":
        return TRANSACTION
    if any(name in properties for name in _DELAYS):
        return DELAY
    if PropertyKey.SHARDING_KEY in properties:
        return FIFO
    return PRIORITY_TYPE if PRIORITY in properties else NORMAL


def fill_message(message: Proto, topic: Proto, record: Record) -> None:
    """Fill `message` with what was stored; `topic` is the resource as the client calls it.

    The body is as it was sent, except that a compression other than gzip, which only clients of the remoting protocol
    use, is taken off.
    """
    message.topic.CopyFrom(topic)
    properties = decode_properties(record.properties.decode(errors="replace"))
    body, encoding = _body(record)
    message.body = body
    system = message.system_properties
    system.body_encoding = encoding
    system.body_digest.type = MD5
    system.body_digest.checksum = hashlib.md5(body, usedforsecurity=False).hexdigest().upper()
    system.message_id = properties.get(PropertyKey.UNIQUE_KEY) or encode_offset_id(
        record.store_host, record.physical_offset
    )
    system.message_type = message_type_of(properties)
    set_time(system.born_timestamp, record.born_timestamp)
    system.born_host = properties.get(PropertyKey.BORN_HOST) or format_host(record.born_host)
    set_time(system.store_timestamp, record.store_timestamp)
    system.store_host = format_host(record.store_host)
    system.queue_id = record.queue_id
    system.queue_offset = record.queue_offset
    system.delivery_attempt = record.reconsume_times + 1
    _fill_optional(system, properties)
    users = message.user_properties
    for name, value in properties.items():
        if name not in NOT_FOR_USERS:
            users[name] = value


def _fill_optional(system: Proto, properties: dict[str, str]) -> None:
    tag = properties.get(PropertyKey.TAGS)
    if tag is not None:
        system.tag = tag
    keys = properties.get(PropertyKey.KEYS)
    if keys:
        system.keys.extend(keys.split())
    group = properties.get(PropertyKey.SHARDING_KEY)
    if group is not None:
        system.message_group = group
    trace = properties.get(PropertyKey.TRACE_CONTEXT)
    if trace is not None:
        system.trace_context = trace
    due = properties.get(PropertyKey.TIMER_DELIVER_MS) or properties.get(PropertyKey.TIMER_OUT_MS)
    if due is not None and due.isdecimal():
        set_time(system.delivery_timestamp, int(due))
    priority = properties.get(PRIORITY)
    if priority is not None and priority.isdecimal():
        system.priority = int(priority)
    dead_topic = properties.get(PropertyKey.DLQ_ORIGIN_TOPIC)
    if dead_topic is not None:
        system.dead_letter_queue.topic = dead_topic
        system.dead_letter_queue.message_id = properties.get(PropertyKey.DLQ_ORIGIN_MESSAGE_ID, "")


def _body(record: Record) -> tuple[bytes, int]:
    if not record.sys_flag & SysFlag.COMPRESSED:
        return record.body, IDENTITY
    if record.body[:2] == _GZIP_MAGIC:
        return record.body, GZIP
    try:
        return decompress(record.body, record.sys_flag), IDENTITY
    except CompressionError:
        # The client gets what was sent, and finds out for itself.
        return record.body, GZIP
