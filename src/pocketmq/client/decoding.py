"""From the body of a pull to messages for a consumer. The hot path of consuming.

Nearly all records are of one form: version 1, IPv4 hosts. Those are read here in one step, straight into the message;
any other, and any that looks wrong, goes through `decode_record`, which knows all forms and says what is wrong.
"""

import logging
from collections.abc import Collection

from pocketmq.client._async.delivery import Delivery
from pocketmq.model.errors import CompressionError, RecordError
from pocketmq.wire.compression import decompress
from pocketmq.wire.hosts import format_host
from pocketmq.wire.properties import PropertyKey, decode_properties
from pocketmq.wire.record import MAGIC_V1, RECORD_HEAD, Record, SysFlag, decode_record

logger = logging.getLogger("pocketmq.client")

HOSTS_MAX = 4096

_HEAD_BYTES = RECORD_HEAD.size
_OTHER_FORM = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6
_unpack_head = RECORD_HEAD.unpack_from
_texts: dict[bytes, str] = {}
_digits: dict[bytes, str] = {}


def decode_deliveries(
    data: bytes, broker_name: str, tags: Collection[str], make: type[Delivery] = Delivery
) -> list[Delivery]:
    """The messages in the body of a pull, less those whose tag is none of `tags` (none: all are wanted).

    Brokers compare tags by hash only. Raises RecordError.
    """
    messages = []
    offset = 0
    end = len(data)
    topic_bytes, topic = b"", ""
    while offset < end:
        if end - offset < _HEAD_BYTES:
            decode_record(data, offset)
        (
            size,
            magic,
            _,
            queue_id,
            flag,
            queue_offset,
            position,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_offset,
            body_length,
        ) = _unpack_head(data, offset)
        body_at = offset + _HEAD_BYTES
        topic_at = body_at + body_length + 1
        record_end = offset + size
        if magic != MAGIC_V1 or sys_flag & _OTHER_FORM or body_length < 0 or topic_at + 2 > end or record_end > end:
            message = _decode_slowly(data, offset, broker_name, tags, make)
            if message is not None:
                messages.append(message)
            offset += decode_record(data, offset).size
            continue
        properties_at = topic_at + data[topic_at - 1] + 2
        if properties_at + int.from_bytes(data[properties_at - 2 : properties_at], "big") != record_end:
            decode_record(data, offset)
            raise RecordError(f"the record at {offset} has lengths that do not add up")
        properties = _properties(data[properties_at:record_end], position)
        offset = record_end
        if tags and properties.get("TAGS") not in tags:
            continue
        if data[topic_at : properties_at - 2] != topic_bytes:
            topic_bytes = data[topic_at : properties_at - 2]
            topic = topic_bytes.decode(errors="replace")
        body = data[body_at : topic_at - 1]
        offset_id = f"{_digits.get(store_host) or _digits_of(store_host)}{position:016X}"
        messages.append(
            make(
                topic=topic,
                body=body if not sys_flag & SysFlag.COMPRESSED else _unpacked(body, sys_flag, topic, position),
                properties=properties,
                broker_name=broker_name,
                queue_id=queue_id,
                queue_offset=queue_offset,
                physical_offset=position,
                message_id=properties.get(PropertyKey.UNIQUE_KEY) or offset_id,
                offset_message_id=offset_id,
                flag=flag,
                sys_flag=sys_flag,
                born_timestamp=born_timestamp,
                born_host=_texts.get(born_host) or _text_of(born_host),
                store_timestamp=store_timestamp,
                store_host=_texts.get(store_host) or _text_of(store_host),
                reconsume_times=reconsume_times,
                prepared_transaction_offset=prepared_offset,
                store_size=size,
            )
        )
    return messages


def _decode_slowly(
    data: bytes, offset: int, broker_name: str, tags: Collection[str], make: type[Delivery]
) -> Delivery | None:
    record = decode_record(data, offset)
    properties = _properties(record.properties, record.physical_offset)
    if tags and properties.get("TAGS") not in tags:
        return None
    return to_delivery(record, properties, broker_name, make)


def to_delivery(
    record: Record, properties: dict[str, str], broker_name: str, make: type[Delivery] = Delivery
) -> Delivery:
    """One record as a message."""
    offset_id = f"{_digits_of(record.store_host)}{record.physical_offset & 0xFFFFFFFFFFFFFFFF:016X}"
    body, sys_flag = record.body, record.sys_flag
    return make(
        topic=record.topic,
        body=_unpacked(body, sys_flag, record.topic, record.physical_offset) if sys_flag & 1 else body,
        properties=properties,
        broker_name=broker_name,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        message_id=properties.get(PropertyKey.UNIQUE_KEY) or offset_id,
        offset_message_id=offset_id,
        flag=record.flag,
        sys_flag=sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=_text_of(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=_text_of(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        store_size=record.size,
    )


def _properties(data: bytes, position: int) -> dict[str, str]:
    try:
        return decode_properties(data.decode())
    except UnicodeDecodeError as error:
        raise RecordError(f"the properties of the record at {position} are not UTF-8", cause=error) from error


def _unpacked(body: bytes, sys_flag: int, topic: str, position: int) -> bytes:
    try:
        return decompress(body, sys_flag)
    except CompressionError as error:
        if isinstance(error.cause, ImportError):
            # The message is fine: it waits until the package is there.
            raise
        logger.error("message at %d of %s is handed out as it is: %s", position, topic, error)
        return body


def _text_of(host: bytes) -> str:
    text = _texts.get(host)
    if text is None:
        if len(_texts) >= HOSTS_MAX:
            _texts.clear()
        text = _texts[host] = format_host(host)
    return text


def _digits_of(host: bytes) -> str:
    digits = _digits.get(host)
    if digits is None:
        if len(_digits) >= HOSTS_MAX:
            _digits.clear()
        digits = _digits[host] = host.hex().upper()
    return digits
