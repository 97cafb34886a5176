"""From a stored record to the message that a consumer gets."""

from pocketmq.model.errors import RecordError
from pocketmq.model.message import ReceivedMessage
from pocketmq.wire.compression import decompress
from pocketmq.wire.hosts import format_host
from pocketmq.wire.ids import encode_offset_id
from pocketmq.wire.properties import PropertyKey, decode_properties
from pocketmq.wire.record import Record


def to_received(record: Record, broker_name: str) -> ReceivedMessage:
    """The message in `record`, its body decompressed, its properties taken apart.

    Raises CompressionError when the body cannot be unpacked, RecordError when the properties are not UTF-8.
    """
    try:
        properties = decode_properties(record.properties.decode())
    except UnicodeDecodeError as error:
        raise RecordError(
            f"the properties of the record at {record.physical_offset} are not UTF-8", cause=error
        ) from None
    offset_id = encode_offset_id(record.store_host, record.physical_offset)
    return ReceivedMessage(
        topic=record.topic,
        body=decompress(record.body, record.sys_flag) if record.sys_flag & 1 else record.body,
        properties=properties,
        broker_name=broker_name,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        message_id=properties.get(PropertyKey.UNIQUE_KEY, offset_id),
        offset_message_id=offset_id,
        flag=record.flag,
        sys_flag=record.sys_flag,
        born_timestamp=record.born_timestamp,
        born_host=format_host(record.born_host),
        store_timestamp=record.store_timestamp,
        store_host=format_host(record.store_host),
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
        store_size=record.size,
    )
