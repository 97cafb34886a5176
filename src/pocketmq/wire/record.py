"""The message record: the unit of the commit log, of a pull's body, and of a query's.

    int32 total | uint32 magic | int32 CRC of the body | int32 queue id | int32 flag | int64 queue offset |
    int64 physical offset | int32 sys flag | int64 born timestamp | born host | int64 store timestamp | store host |
    int32 reconsume times | int64 prepared transaction offset | int32 length + body |
    topic length (1 byte in V1, int16 in V2) + topic | int16 length + properties

A host takes 8 bytes, or 20 for IPv6, which a bit of the sys flag tells. The CRC is CRC32 & 0x7FFFFFFF of the body as
stored, that is compressed. V2 is used when the topic has more than 127 bytes. Where a record does not fit into what is
left of a file, the eight bytes (bytes left, MAGIC_BLANK) end the file instead. Source: RocketMQ's `MessageExtEncoder`,
`MessageDecoder`, `CommitLog`, `MessageVersion`, `MessageSysFlag`.
"""

import re
import struct
from functools import lru_cache
from zlib import crc32

import msgspec

from pocketmq.model.errors import RecordError
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.wire.hosts import HOST_V4_BYTES, HOST_V6_BYTES

MAGIC_V1 = 0xDAA320A7
MAGIC_V2 = 0xDAA320AB
MAGIC_BLANK = 0xCBD43194

TOPIC_BYTES_MAX_V1 = 127
RECORD_BYTES_MIN = 91
"""Size of a V1 record with IPv4 hosts, an empty body, topic and properties."""

BLANK_BYTES = 8


class SysFlag:
    """Bits of a record's `sys_flag`."""

    COMPRESSED = 0x1
    MULTI_TAGS = 0x2
    TRANSACTION_PREPARED = 0x4
    TRANSACTION_COMMIT = 0x8
    TRANSACTION_ROLLBACK = 0xC
    TRANSACTION_MASK = 0xC
    BORN_HOST_V6 = 0x10
    STORE_HOST_V6 = 0x20
    NEED_UNWRAP = 0x40
    INNER_BATCH = 0x80
    COMPRESSION_LZ4 = 0x100
    COMPRESSION_ZSTD = 0x200
    COMPRESSION_ZLIB = 0x300
    COMPRESSION_MASK = 0x700


RECORD_HEAD = struct.Struct(">iIiiiqqiq8sq8siqi")
"""Everything before the body of a record with IPv4 hosts: 88 bytes, the last field is the body's length."""

RECORD_FRONT = struct.Struct(">iIiiiqqiq")
"""The first 48 bytes, up to the born host."""

RECORD_MIDDLE = struct.Struct(">iqi")
"""From the reconsume times to the body's length: 16 bytes."""

INT64 = struct.Struct(">q")
PROPERTIES_LENGTH = struct.Struct(">h")

HEAD_BYTES = RECORD_HEAD.size
STORE_TIMESTAMP_AT = 56
"""Where the store timestamp of a record with an IPv4 born host is."""

_INT32 = struct.Struct(">i")
_SIZE_AND_MAGIC = struct.Struct(">iI")
_CHECKED_FIELDS = struct.Struct(">8xI16xqi")
"""Of a record's front: the CRC, the physical offset and the sys flag."""

_HOSTS_V6 = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6
_TOPIC = re.compile(rb"[%|a-zA-Z0-9_+-]+\Z")


class Record(msgspec.Struct, gc=False):
    """One record, its fields as stored: the body may be compressed, hosts and properties are bytes."""

    topic: str
    body: bytes
    properties: bytes
    queue_id: int
    queue_offset: int
    physical_offset: int
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: bytes
    store_timestamp: int
    store_host: bytes
    reconsume_times: int
    prepared_transaction_offset: int
    body_crc: int
    size: int


def encode_record(
    topic: str,
    body: bytes,
    properties: bytes,
    *,
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born_timestamp: int,
    born_host: bytes,
    store_timestamp: int,
    store_host: bytes,
    flag: int = 0,
    sys_flag: int = 0,
    reconsume_times: int = 0,
    prepared_transaction_offset: int = 0,
) -> bytes:
    """A whole record. Hosts are as `pack_host` gives them; their sys-flag bits are set here to match.

    Raises RecordError when a topic or properties are too long for their length field.
    """
    magic, topic_field = topic_field_of(topic)
    if len(properties) > PROPERTIES_BYTES_MAX:
        raise RecordError(f"properties of {len(properties)} bytes do not fit into a record")
    crc = crc32(body) & 0x7FFFFFFF
    if len(born_host) == HOST_V4_BYTES and len(store_host) == HOST_V4_BYTES:
        size = HEAD_BYTES + 2 + len(body) + len(topic_field) + len(properties)
        head = RECORD_HEAD.pack(
            size,
            magic,
            crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag & ~_HOSTS_V6,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_transaction_offset,
            len(body),
        )
    else:
        sys_flag = _with_host_bits(sys_flag, born_host, store_host)
        size = 74 + len(born_host) + len(store_host) + len(body) + len(topic_field) + len(properties)
        head = b"".join(
            (
                RECORD_FRONT.pack(
                    size, magic, crc, queue_id, flag, queue_offset, physical_offset, sys_flag, born_timestamp
                ),
                born_host,
                INT64.pack(store_timestamp),
                store_host,
                RECORD_MIDDLE.pack(reconsume_times, prepared_transaction_offset, len(body)),
            )
        )
    return b"".join((head, body, topic_field, PROPERTIES_LENGTH.pack(len(properties)), properties))


@lru_cache(maxsize=4096)
def topic_field_of(topic: str) -> tuple[int, bytes]:
    """(magic, the topic with its length before it) of a record of `topic`: short names in V1, long ones in V2."""
    data = topic.encode()
    if len(data) <= TOPIC_BYTES_MAX_V1:
        return MAGIC_V1, bytes((len(data),)) + data
    if len(data) > 0x7FFF:
        raise RecordError(f"a topic of {len(data)} bytes does not fit into a record")
    return MAGIC_V2, len(data).to_bytes(2, "big") + data


def _with_host_bits(sys_flag: int, born_host: bytes, store_host: bytes) -> int:
    sys_flag &= ~_HOSTS_V6
    if len(born_host) == HOST_V6_BYTES:
        sys_flag |= SysFlag.BORN_HOST_V6
    if len(store_host) == HOST_V6_BYTES:
        sys_flag |= SysFlag.STORE_HOST_V6
    return sys_flag


def blank(bytes_left: int) -> bytes:
    """The eight bytes that end a file with `bytes_left` bytes to go."""
    return struct.pack(">iI", bytes_left, MAGIC_BLANK)


def decode_record(buffer: bytes | bytearray | memoryview, offset: int = 0, *, check_crc: bool = False) -> Record:
    """The record that begins at `offset`; its `size` leads to the next one.

    Raises RecordError when the bytes are not a whole record, or with `check_crc` when the body was changed.
    """
    end = len(buffer)
    try:
        (
            size,
            magic,
            crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            sys_flag,
            born_timestamp,
            born_host,
            store_timestamp,
            store_host,
            reconsume_times,
            prepared_offset,
            body_length,
        ) = RECORD_HEAD.unpack_from(buffer, offset)
        body_at = offset + HEAD_BYTES
        if sys_flag & _HOSTS_V6:
            store_at = offset + 48 + (HOST_V6_BYTES if sys_flag & SysFlag.BORN_HOST_V6 else HOST_V4_BYTES)
            middle_at = store_at + 8 + (HOST_V6_BYTES if sys_flag & SysFlag.STORE_HOST_V6 else HOST_V4_BYTES)
            born_host = bytes(buffer[offset + 48 : store_at])
            (store_timestamp,) = INT64.unpack_from(buffer, store_at)
            store_host = bytes(buffer[store_at + 8 : middle_at])
            reconsume_times, prepared_offset, body_length = RECORD_MIDDLE.unpack_from(buffer, middle_at)
            body_at = middle_at + RECORD_MIDDLE.size
        topic_at = body_at + body_length
        if body_length < 0 or topic_at > end:
            raise RecordError(f"the record at {offset} announces a body of {body_length} bytes")
        if magic == MAGIC_V1:
            topic_length = buffer[topic_at]
            topic_at += 1
        elif magic == MAGIC_V2:
            (topic_length,) = PROPERTIES_LENGTH.unpack_from(buffer, topic_at)
            topic_at += 2
        else:
            raise RecordError(f"the bytes at {offset} do not begin a record: magic {magic:#010x}")
        properties_at = topic_at + topic_length + 2
        (properties_length,) = PROPERTIES_LENGTH.unpack_from(buffer, properties_at - 2)
    except (struct.error, IndexError):
        raise RecordError(f"the record at {offset} is cut off") from None
    record_end = properties_at + properties_length
    if topic_length < 0 or properties_length < 0 or record_end > end or record_end - offset != size:
        raise RecordError(f"the record at {offset} has lengths that do not add up to its size of {size} bytes")
    body = bytes(buffer[body_at : body_at + body_length])
    if check_crc and crc32(body) & 0x7FFFFFFF != crc:
        raise RecordError(f"the body of the record at {offset} does not match its checksum")
    try:
        topic = str(buffer[topic_at : topic_at + topic_length], "utf-8")
    except UnicodeDecodeError:
        raise RecordError(f"the topic of the record at {offset} is not UTF-8") from None
    return Record(
        topic,
        body,
        bytes(buffer[properties_at:record_end]),
        queue_id,
        queue_offset,
        physical_offset,
        flag,
        sys_flag,
        born_timestamp,
        born_host,
        store_timestamp,
        store_host,
        reconsume_times,
        prepared_offset,
        crc,
        size,
    )


def decode_records(buffer: bytes | bytearray | memoryview, *, check_crc: bool = False) -> list[Record]:
    """All records of a pull's or query's body, which stand back to back. Raises RecordError as `decode_record`."""
    records = []
    offset = 0
    end = len(buffer)
    while offset < end:
        record = decode_record(buffer, offset, check_crc=check_crc)
        records.append(record)
        offset += record.size
    return records


def check_record(
    buffer: bytes | bytearray | memoryview, offset: int, end: int, *, expected_position: int | None = None
) -> int:
    """Check the record at `offset` of a log whose valid bytes end at `end`, and return its size in bytes.

    Returns 0 where the log or its file ends: at a blank, or at zeros. Raises RecordError with the reason for anything
    else that is not a whole record: a wrong magic, lengths that do not add up, a body that does not match its
    checksum, a topic with characters that no topic has, properties that hold a NUL, a position that is not
    `expected_position`.
    """
    end = min(end, len(buffer))
    if end - offset < BLANK_BYTES:
        if any(buffer[offset:end]):
            raise RecordError(f"{end - offset} bytes at the end are too few for a record")
        return 0
    size: int
    size, magic = _SIZE_AND_MAGIC.unpack_from(buffer, offset)
    if magic == MAGIC_BLANK or (size == 0 and magic == 0):
        return 0
    if magic not in (MAGIC_V1, MAGIC_V2):
        raise RecordError(f"the magic is {magic:#010x}")
    if not RECORD_BYTES_MIN <= size <= end - offset:
        raise RecordError(f"the size of {size} bytes does not fit")
    crc, physical_offset, sys_flag = _CHECKED_FIELDS.unpack_from(buffer, offset)
    body_at = offset + HEAD_BYTES
    if sys_flag & SysFlag.BORN_HOST_V6:
        body_at += HOST_V6_BYTES - HOST_V4_BYTES
    if sys_flag & SysFlag.STORE_HOST_V6:
        body_at += HOST_V6_BYTES - HOST_V4_BYTES
    record_end = offset + size
    if body_at > record_end:
        raise RecordError(f"a record of {size} bytes is too short for its IPv6 hosts")
    (body_length,) = _INT32.unpack_from(buffer, body_at - 4)
    topic_at = body_at + body_length
    if body_length < 0 or topic_at + 4 > record_end:
        raise RecordError(f"a body of {body_length} bytes does not fit into a record of {size} bytes")
    if magic == MAGIC_V1:
        topic_length = buffer[topic_at]
        topic_at += 1
    else:
        (topic_length,) = PROPERTIES_LENGTH.unpack_from(buffer, topic_at)
        topic_at += 2
    properties_at = topic_at + topic_length + 2
    if topic_length < 0 or properties_at > record_end:
        raise RecordError(f"a topic of {topic_length} bytes does not fit into a record of {size} bytes")
    (properties_length,) = PROPERTIES_LENGTH.unpack_from(buffer, properties_at - 2)
    if properties_at + properties_length != record_end:
        raise RecordError(f"properties of {properties_length} bytes do not end a record of {size} bytes")
    view = memoryview(buffer)
    if crc32(view[body_at : body_at + body_length]) & 0x7FFFFFFF != crc:
        raise RecordError("the body does not match its checksum")
    if expected_position is not None and physical_offset != expected_position:
        raise RecordError(f"the record says that it is at {physical_offset}, not at {expected_position}")
    if not _TOPIC.match(bytes(view[topic_at : properties_at - 2])):
        raise RecordError("the topic has characters that no topic may have")
    if bytes(view[properties_at:record_end]).find(0) >= 0:
        raise RecordError("the properties hold a NUL")
    return size
