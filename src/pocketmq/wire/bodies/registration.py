"""What a broker tells name servers about its topics (103), in both forms, and the tables of topic settings.

The compressed form is a zlib stream of: int32 length + DataVersion as JSON | int32 count | that many (int32 length +
topic as text) | int32 length + list of filter servers as JSON | and from brokers of version 5 on int32 count | that
many (int32 length + mapping as JSON). A topic as text is `name read write perm filterType {attributes}`; order and
sys flag get lost in it. Source: RocketMQ's `RegisterBrokerBody`, `TopicConfig.encode`.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.model.errors import BodyError, CompressionError
from pocketmq.wire.bodies.codec import Body, decode_body, encode_body
from pocketmq.wire.compression import unpack_zlib

VERSION_WITH_MAPPINGS = 413
"""Brokers from V5_0_0 on append their static-topic mappings."""

_INT32 = struct.Struct(">i")


class TopicConfigAndMappingSerializeWrapper(Body):
    """All topics of a broker (103, the answer to 21). Mappings, of static topics, are kept as plain maps."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_config_table: dict[str, TopicConfig] = {}
    mapping_data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topic_queue_mapping_detail_map: dict[str, Any] = {}
    topic_queue_mapping_info_map: dict[str, Any] = {}


class RegisterBrokerBody(Body):
    """The body of 103."""

    topic_config_serialize_wrapper: TopicConfigAndMappingSerializeWrapper
    filter_server_list: list[str] = []


class CreateTopicListRequestBody(Body):
    """The body of 18."""

    topic_config_list: list[TopicConfig] = []


class TopicConfigAndQueueMapping(TopicConfig, kw_only=True):
    """The answer to 351."""

    mapping_detail: dict[str, Any] | None = None


def encode_register_body(body: RegisterBrokerBody, *, compressed: bool = False) -> bytes:
    """The body of 103, as JSON or compressed."""
    if not compressed:
        return encode_body(body)
    wrapper = body.topic_config_serialize_wrapper
    mappings = wrapper.topic_queue_mapping_info_map
    parts = [
        _sized(encode_body(wrapper.data_version)),
        _INT32.pack(len(wrapper.topic_config_table)),
        *(_sized(encode_topic_text(topic).encode()) for topic in wrapper.topic_config_table.values()),
        _sized(encode_body(body.filter_server_list)),
        _INT32.pack(len(mappings)),
        *(_sized(encode_body(mapping)) for mapping in mappings.values()),
    ]
    return zlib.compress(b"".join(parts), 9)


def decode_register_body(data: bytes, *, compressed: bool = False, version: int = 479) -> RegisterBrokerBody:
    """Read the body of 103; `version` is the broker's.

    A body that begins like JSON is JSON whatever the header says: some brokers get that wrong. Raises BodyError.
    """
    if not compressed or data.startswith(b"{"):
        return decode_body(data, RegisterBrokerBody)
    try:
        unpacked = unpack_zlib(data)
    except CompressionError as error:
        raise BodyError(f"a compressed registration cannot be unpacked: {error}", cause=error) from None
    reader = _Reader(unpacked)
    data_version = decode_body(reader.sized(), DataVersion)
    topics = {topic.topic_name: topic for topic in map(decode_topic_text, reader.sized_list())}
    filters = decode_body(reader.sized(), list[str])
    mappings = {}
    if version >= VERSION_WITH_MAPPINGS:
        for item in reader.sized_list():
            mapping = decode_body(item, dict[str, Any])
            mappings[str(mapping.get("topic"))] = mapping
    wrapper = TopicConfigAndMappingSerializeWrapper(
        data_version=data_version, topic_config_table=topics, topic_queue_mapping_info_map=mappings
    )
    return RegisterBrokerBody(topic_config_serialize_wrapper=wrapper, filter_server_list=filters)


def encode_topic_text(topic: TopicConfig) -> str:
    """One topic as it stands in a compressed registration."""
    attributes = encode_body(topic.attributes).decode()
    queues = f"{topic.read_queue_nums} {topic.write_queue_nums}"
    return f"{topic.topic_name} {queues} {topic.perm} {topic.topic_filter_type} {attributes}"


def decode_topic_text(data: bytes) -> TopicConfig:
    """Read one topic of a compressed registration: five fields, or six with the attributes. Raises BodyError."""
    try:
        name, read, write, perm, filter_type, *attributes = data.decode().split(" ", 5)
        return TopicConfig(
            topic_name=name,
            read_queue_nums=int(read),
            write_queue_nums=int(write),
            perm=int(perm),
            topic_filter_type=filter_type,
            attributes=decode_body(attributes[0].encode(), dict[str, str]) if attributes and attributes[0] else {},
        )
    except ValueError as error:
        raise BodyError(f"a topic of a registration cannot be read: {data[:80]!r}", cause=error) from None


def _sized(data: bytes) -> bytes:
    return _INT32.pack(len(data)) + data


class _Reader:
    """Reads what `_sized` wrote."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def _int(self) -> int:
        if self._at + 4 > len(self._data):
            raise BodyError("a compressed registration is cut off")
        value: int = _INT32.unpack_from(self._data, self._at)[0]
        self._at += 4
        return value

    def sized(self) -> bytes:
        length = self._int()
        start = self._at
        if length < 0 or start + length > len(self._data):
            raise BodyError(f"a compressed registration announces {length} bytes that it does not have")
        self._at = start + length
        return self._data[start : self._at]

    def sized_list(self) -> Iterator[bytes]:
        for _ in range(self._int()):
            yield self.sized()
