"""From the body of a pull to messages for a consumer. The hot path of consuming."""

import logging
from collections.abc import Collection

from pocketmq.client._async.delivery import Delivery
from pocketmq.model.errors import CompressionError, RecordError
from pocketmq.wire.compression import decompress
from pocketmq.wire.hosts import format_host
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import Record, decode_record

logger = logging.getLogger("pocketmq.client")

_host_texts: dict[bytes, str] = {}
_HOST_TEXTS_MAX = 4096


def decode_deliveries(body: bytes, broker_name: str, tags: Collection[str]) -> list[Delivery]:
    """The messages in the body of a pull, less those whose tag is none of `tags` (none: all are wanted).

    Brokers compare tags by hash only. Raises RecordError.
    """
    messages = []
    offset = 0
    end = len(body)
    while offset < end:
        record = decode_record(body, offset)
        offset += record.size
        try:
            properties = decode_properties(record.properties.decode())
        except UnicodeDecodeError as error:
            raise RecordError(f"the properties of the record at {record.physical_offset} are not UTF-8") from error
        if tags and properties.get("TAGS") not in tags:
            continue
        messages.append(to_delivery(record, properties, broker_name))
    return messages


def to_delivery(record: Record, properties: dict[str, str], broker_name: str) -> Delivery:
    """One record as a message."""
    offset_id = f"{record.store_host.hex()}{record.physical_offset & 0xFFFFFFFFFFFFFFFF:016x}".upper()
    return Delivery(
        topic=record.topic,
        body=_unpacked(record) if record.sys_flag & 1 else record.body,
        properties=properties,
        broker_name=broker_name,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        message_id=properties.get("UNIQ_KEY") or offset_id,
        offset_message_id=offset_id,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=_host_texts.get(record.born_host) or _host_text(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=_host_texts.get(record.store_host) or _host_text(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        store_size=record.size,
    )


def _unpacked(record: Record) -> bytes:
    try:
        return decompress(record.body, record.sys_flag)
    except CompressionError as error:
        if isinstance(error.cause, ImportError):
            # The message is fine: it waits until the package is there.
            raise
        logger.error("message at %d of %s is handed out as it is: %s", record.physical_offset, record.topic, error)
        return record.body


def _host_text(host: bytes) -> str:
    if len(_host_texts) >= _HOST_TEXTS_MAX:
        _host_texts.clear()
    text = _host_texts[host] = format_host(host)
    return text
