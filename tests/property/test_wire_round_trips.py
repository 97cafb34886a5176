"""Whatever is written is read back as it was, and a byte stream may be split anywhere."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from golden.bodies import BODIES
from pocketmq.model.errors import BodyError
from pocketmq.model.message import MessageQueue
from pocketmq.wire import bodies
from pocketmq.wire.batch import encode_batch, split_batch
from pocketmq.wire.bodies import decode_body, encode_body
from pocketmq.wire.bodies.acks import decode_bit_set, encode_bit_set
from pocketmq.wire.command import JSON, ROCKETMQ, encode_request, encode_response
from pocketmq.wire.compression import FLAGS, compress, decompress
from pocketmq.wire.fastjson import dumps, loads
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader
from pocketmq.wire.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2, SendMessageResponseHeader
from pocketmq.wire.hosts import pack_host, unpack_host
from pocketmq.wire.ids import UniqueKeys, decode_offset_id, encode_offset_id, unique_key_time_ms
from pocketmq.wire.properties import (
    decode_properties,
    encode_properties,
    find_property,
    with_property,
    without_property,
)
from pocketmq.wire.record import check_record, decode_record, encode_record

settings.register_profile("wire", max_examples=50, deadline=None)
settings.load_profile("wire")

int16 = st.integers(-(2**15), 2**15 - 1)
int32 = st.integers(-(2**31), 2**31 - 1)
int64 = st.integers(-(2**63), 2**63 - 1)
text = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
kinds = st.sampled_from([JSON, ROCKETMQ])
fields = st.dictionaries(text, text, max_size=5)
hosts = st.builds(pack_host, st.ip_addresses().map(str), st.integers(0, 65_535))
topics = st.text("abcXYZ019%|_-", min_size=1, max_size=200)
property_text = st.text(
    st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=20
)
properties_maps = st.dictionaries(property_text, property_text, max_size=6)
HEADERS = (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
    PullMessageRequestHeader,
    PullMessageResponseHeader,
)


@given(code=int16, opaque=int32, ext=fields, body=st.binary(max_size=100), oneway=st.booleans(), kind=kinds)
def test_request_round_trip(code: int, opaque: int, ext: dict[str, str], body: bytes, oneway: bool, kind: int) -> None:
    data = encode_request(code, opaque, ext, body, oneway=oneway, serialize_type=kind)
    (command,) = CommandReader().feed(data)
    assert (command.code, command.opaque, command.body, command.is_oneway) == (code, opaque, body, oneway)
    assert command.ext() == ext
    assert command.serialize_type == kind


@given(opaque=int32, code=int16, remark=text, ext=st.none() | fields, body=st.binary(max_size=100), kind=kinds)
def test_response_round_trip(
    opaque: int, code: int, remark: str, ext: dict[str, str] | None, body: bytes, kind: int
) -> None:
    (command,) = CommandReader().feed(encode_response(opaque, code, remark, ext, body, serialize_type=kind))
    assert (command.code, command.opaque, command.body) == (code, opaque, body)
    assert (command.remark or "") == remark
    assert command.ext() == (ext or {})
    assert command.is_response


@given(st.data())
def test_typed_header_round_trip(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(HEADERS))
    values: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        name = str(field.type)
        strategy = (
            int64 if str(2**63 - 1) in name else int32 if "int" in name else st.booleans() if "bool" in name else text
        )
        values[field.name] = data.draw(strategy if field.required else st.none() | strategy, label=field.name)
        if values[field.name] is None and "None" not in name:
            del values[field.name]
    header = kind(**values)
    for serialize_type in (JSON, ROCKETMQ):
        (command,) = CommandReader().feed(encode_request(1, 1, header, serialize_type=serialize_type))
        assert command.header(kind) == header


@given(st.lists(st.tuples(int32, fields, st.binary(max_size=50), kinds), max_size=6), st.data())
def test_stream_may_be_split_anywhere(
    commands: list[tuple[int, dict[str, str], bytes, int]], data: st.DataObject
) -> None:
    stream = b"".join(
        encode_request(10, opaque, ext, body, serialize_type=kind) for opaque, ext, body, kind in commands
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=20), label="cuts"))
    reader = CommandReader()
    read = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        read += reader.feed(stream[start:end])
    assert [(command.opaque, command.ext(), command.body, command.serialize_type) for command in read] == commands
    assert reader.pending_bytes == 0


@given(
    topic=topics,
    body=st.binary(max_size=200),
    properties=properties_maps,
    ints=st.tuples(int32, int32, int32),
    longs=st.tuples(int64, int64, int64, int64, int64),
    born_host=hosts,
    store_host=hosts,
    sys_flag=st.sampled_from([0, 1, 4, 8, 0x30, 0x300]),
    lead=st.integers(0, 40),
)
def test_record_round_trip(
    topic: str,
    body: bytes,
    properties: dict[str, str],
    ints: tuple[int, int, int],
    longs: tuple[int, int, int, int, int],
    born_host: bytes,
    store_host: bytes,
    sys_flag: int,
    lead: int,
) -> None:
    values = {
        "topic": topic,
        "body": body,
        "properties": encode_properties(properties).encode(),
        "queue_id": ints[0],
        "flag": ints[1],
        "reconsume_times": ints[2],
        "queue_offset": longs[0],
        "physical_offset": longs[1],
        "born_timestamp": longs[2],
        "store_timestamp": longs[3],
        "prepared_transaction_offset": longs[4],
        "born_host": born_host,
        "store_host": store_host,
    }
    data = encode_record(**values, sys_flag=sys_flag)  # type: ignore[arg-type]
    buffer = bytes(lead) + data + bytes(8)
    record = decode_record(buffer, lead, check_crc=True)
    assert {name: getattr(record, name) for name in values} == values
    assert record.sys_flag & ~0x30 == sys_flag & ~0x30
    assert record.size == len(data)
    nul = b"\x00" in record.properties
    if not nul:
        assert check_record(buffer, lead, len(buffer), expected_position=longs[1]) == len(data)


@given(properties_maps, property_text)
def test_properties_round_trip(properties: dict[str, str], value: str) -> None:
    encoded = encode_properties(properties)
    assert decode_properties(encoded) == properties
    for key, before in properties.items():
        name = key.encode()
        found = find_property(encoded.encode(), name)
        assert found is not None
        assert found.decode() == before
        assert decode_properties(with_property(encoded.encode(), name, value.encode()).decode()) == properties | {
            key: value
        }
        assert find_property(without_property(encoded.encode(), name), name) is None


@given(st.lists(st.tuples(int32, st.binary(max_size=50), st.binary(max_size=50)), max_size=10))
def test_batch_round_trip(messages: list[tuple[int, bytes, bytes]]) -> None:
    assert split_batch(encode_batch(messages)) == messages


@given(st.binary(max_size=2000), st.sampled_from(sorted(FLAGS)), st.integers(1, 9))
def test_compression_round_trip(body: bytes, algorithm: str, level: int) -> None:
    packed, flag = compress(body, algorithm, level)
    assert decompress(packed, flag, bytes_max=max(1, len(body) + 1)) == body


@given(hosts, st.integers(0, 2**63 - 1))
def test_offset_id_round_trip(host: bytes, position: int) -> None:
    assert pack_host(*unpack_host(host)) == host
    assert decode_offset_id(encode_offset_id(host, position)) == (*unpack_host(host), position)


@given(st.integers(0, 4_000_000_000_000), st.integers(-12, 14))
def test_unique_key_tells_its_time(time_ms: int, utc_offset_h: int) -> None:
    offset_s = utc_offset_h * 3600
    key = UniqueKeys(bytes(4), 1, 1, utc_offset_s=offset_s).next(time_ms)
    assert unique_key_time_ms(key, time_ms + 1000, offset_s) == time_ms


@given(st.sets(st.integers(0, 5000), max_size=50))
def test_bit_set_round_trip(bits: set[int]) -> None:
    assert decode_bit_set(encode_bit_set(bits)) == sorted(bits)


json_values = st.recursive(
    st.booleans() | int64 | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(text, inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_json_round_trip(value: object) -> None:
    assert loads(dumps(value)) == value


@given(st.dictionaries(st.builds(MessageQueue, text, text, int32), int64, max_size=5))
def test_maps_keyed_by_queues_round_trip(table: dict[MessageQueue, int]) -> None:
    body = bodies.ResetOffsetBody(table)
    assert decode_body(encode_body(body), bodies.ResetOffsetBody) == body


@given(st.sampled_from(BODIES), st.data())
def test_body_cut_anywhere_is_refused(golden: Any, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, len(golden.data) - 1))
    try:
        decode_body(golden.data[:length], type(golden.value))
    except BodyError:
        return
    raise AssertionError("a body that was cut off has been read")
