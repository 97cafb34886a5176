"""JSON bodies, registrations and compressed bodies."""

import zlib
from typing import Any

import pytest

from golden.bodies import (
    BAD_BODIES,
    BODIES,
    COMPRESSED_REGISTRATION_INFLATED,
    OTHER_FORMS,
    TOPIC_TABLE,
    VERSION,
    GoldenBody,
)
from pocketmq.model.config import TopicConfig
from pocketmq.model.errors import BodyError, CompressionError, UsageError
from pocketmq.wire import bodies
from pocketmq.wire.bodies import decode_body, encode_body
from pocketmq.wire.bodies.acks import decode_bit_set, encode_bit_set
from pocketmq.wire.compression import FLAGS, compress, decompress
from pocketmq.wire.fastjson import dumps, loads


@pytest.mark.parametrize("golden", BODIES, ids=lambda golden: type(golden.value).__name__)
def test_golden_body_is_written_and_read(golden: GoldenBody) -> None:
    assert encode_body(golden.value).decode() == golden.text
    assert decode_body(golden.data, type(golden.value)) == golden.value


@pytest.mark.parametrize(("what", "text", "value"), OTHER_FORMS, ids=[form[0] for form in OTHER_FORMS])
def test_other_forms_are_read_too(what: str, text: str, value: Any) -> None:
    assert decode_body(text.encode(), type(value)) == value


@pytest.mark.parametrize(("what", "data", "error"), BAD_BODIES, ids=[bad[0] for bad in BAD_BODIES])
def test_bad_body_is_refused_with_the_reason(what: str, data: bytes, error: str) -> None:
    with pytest.raises(BodyError, match=error):
        decode_body(data, bodies.HeartbeatData)


def test_keys_are_quoted_on_demand() -> None:
    route = bodies.TopicRouteData([bodies.BrokerData("b", "c", {0: "a:1"})])
    assert b'"brokerAddrs":{"0":"a:1"}' in encode_body(route, quote_keys=True)


def test_values_of_all_kinds_are_written() -> None:
    value = {"a": (1, 2.5, True, None), "b": b"\x00\xff", "c": {3}, "d": None, "é": 'x"\n', 1: {}, "e": []}
    assert dumps(value).decode() == '{"a":[1,2.5,true,null],"b":"AP8=","c":[3],"é":"x\\"\\n",1:{},"e":[]}'


def test_object_keys_read_as_something_hashable_by_default() -> None:
    assert loads(b'{{"b":"x","a":1}:5}') == {(("a", "1"), ("b", "x")): 5}


def test_huge_body_is_read_strictly_or_not_at_all() -> None:
    huge = b'{"k":"' + b"x" * 5_000_000 + b'"'
    with pytest.raises(BodyError, match="not strict JSON"):
        loads(huge)
    assert len(loads(huge + b"}")["k"]) == 5_000_000


def test_registration_is_written_and_read_in_both_forms() -> None:
    body = bodies.RegisterBrokerBody(
        TOPIC_TABLE.__class__(
            data_version=VERSION,
            topic_config_table={
                "T1": TopicConfig(topic_name="T1", attributes={"message.type": "FIFO"}),
                "T2": TopicConfig(topic_name="T2", perm=7, topic_filter_type="MULTI_TAG"),
            },
            topic_queue_mapping_info_map={"T1": {"topic": "T1", "bname": "b"}},
        ),
        ["1.1.1.1:1"],
    )
    for compressed in (True, False):
        data = bodies.encode_register_body(body, compressed=compressed)
        assert bodies.decode_register_body(data, compressed=compressed) == body
    # Some brokers announce compression and send JSON.
    assert bodies.decode_register_body(bodies.encode_register_body(body), compressed=True) == body


def test_golden_compressed_registration() -> None:
    one = bodies.RegisterBrokerBody(
        bodies.TopicConfigAndMappingSerializeWrapper(
            data_version=VERSION,
            topic_config_table={"T1": TopicConfig(topic_name="T1", read_queue_nums=4, write_queue_nums=4)},
        )
    )
    data = bodies.encode_register_body(one, compressed=True)
    assert data.startswith(b"\x78\xda")
    assert zlib.decompress(data) == COMPRESSED_REGISTRATION_INFLATED
    assert bodies.decode_register_body(zlib.compress(COMPRESSED_REGISTRATION_INFLATED), compressed=True) == one
    # Before version 5 there is no part about static topics.
    old = zlib.compress(COMPRESSED_REGISTRATION_INFLATED[:-4])
    assert bodies.decode_register_body(old, compressed=True, version=399) == one
    with pytest.raises(BodyError, match="cut off"):
        bodies.decode_register_body(old, compressed=True, version=479)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"xx",
        zlib.compress(b""),
        zlib.compress(b"\xff\xff\xff\xff"),
        zlib.compress(b"\0\0\0\x0a{}"),
        zlib.compress(COMPRESSED_REGISTRATION_INFLATED.replace(b"T1 4 4", b"T1 x 4")),
        zlib.compress(COMPRESSED_REGISTRATION_INFLATED.replace(b"T1 4 4 6 SINGLE_TAG {}", b"T1_4_4_6_SINGLE_TAG_{}")),
    ],
)
def test_damaged_compressed_registration_is_refused(data: bytes) -> None:
    with pytest.raises(BodyError):
        bodies.decode_register_body(data, compressed=True)


def test_bit_sets_of_batch_acks() -> None:
    assert encode_bit_set([0, 9]) == "AQI="
    assert decode_bit_set("AQI=") == [0, 9]
    assert encode_bit_set([]) == ""
    assert bodies.BatchAck("g", "t", 5, 1, 2, 3, 60_000, "AQI=").offsets() == [5, 14]
    with pytest.raises(BodyError):
        decode_bit_set("?")
    with pytest.raises(BodyError):
        decode_bit_set("/w" * 200_000)
    with pytest.raises(UsageError):
        encode_bit_set([-1])


@pytest.mark.parametrize("algorithm", FLAGS)
def test_compressed_bodies(algorithm: str) -> None:
    body = b"hello" * 1000
    packed, flag = compress(body, algorithm.upper(), 5)
    assert len(packed) < len(body)
    assert decompress(packed, flag) == body
    assert decompress(packed, 0) == packed
    for damaged in (packed[:-3], packed[:10], b"", b"not compressed"):
        with pytest.raises(CompressionError):
            decompress(damaged, flag)
    with pytest.raises(CompressionError, match="more than 4999 bytes"):
        decompress(packed, flag, bytes_max=4_999)


def test_zstd_stream_that_does_not_tell_its_size() -> None:
    zstandard = pytest.importorskip("zstandard")
    packer = zstandard.ZstdCompressor().compressobj()
    packed = packer.compress(b"hello" * 1000) + packer.flush()
    assert decompress(packed, FLAGS["zstd"]) == b"hello" * 1000
    with pytest.raises(CompressionError, match="more than 100 bytes"):
        decompress(packed, FLAGS["zstd"], bytes_max=100)
    with pytest.raises(CompressionError, match="cut off"):
        decompress(packed[:-1], FLAGS["zstd"])


def test_type_zero_is_zlib_and_unknown_ones_are_refused() -> None:
    assert decompress(zlib.compress(b"x"), 0x1) == b"x"
    with pytest.raises(CompressionError, match="type 5"):
        decompress(b"x", 0x501)
    with pytest.raises(UsageError, match="choose one of"):
        compress(b"x", "snappy")
