"""Message records: layout, damage, ids, hosts."""

import pytest

from golden.records import (
    BAD_RECORDS,
    CRC_OF_HELLO,
    RECORD_V1,
    RECORD_V1_BORN_HOST,
    RECORD_V1_FIELDS,
    RECORD_V1_OFFSET_ID,
    RECORD_V1_STORE_HOST,
    RECORD_V2,
    RECORD_V6,
    TAG_HASHES,
    BadBytes,
    patched,
)
from pocketmq.model.errors import CompressionError, RecordError, UsageError
from pocketmq.model.hashing import tag_code
from pocketmq.wire.compression import compress
from pocketmq.wire.hosts import format_host, pack_host, parse_address, unpack_host
from pocketmq.wire.ids import (
    UniqueKeys,
    client_id,
    decode_offset_id,
    encode_offset_id,
    month_bounds_ms,
    unique_key_time_ms,
)
from pocketmq.wire.received import to_received
from pocketmq.wire.record import (
    MAGIC_V1,
    MAGIC_V2,
    SysFlag,
    blank,
    check_record,
    decode_record,
    decode_records,
    encode_record,
)

V6_HOSTS = {
    "sys_flag": SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6,
    "born_host": pack_host("2001:db8::1", 50_000),
    "store_host": pack_host("fe80::2", 10_911),
}
VARIANTS = {
    "v1": (RECORD_V1, {}),
    "v2": (RECORD_V2, {"topic": "T" * 128}),
    "v6": (RECORD_V6, V6_HOSTS),
}


@pytest.mark.parametrize("name", VARIANTS)
def test_golden_record_is_written_and_read(name: str) -> None:
    data, changes = VARIANTS[name]
    fields = RECORD_V1_FIELDS | changes
    assert encode_record(**fields).hex() == data.hex()
    record = decode_record(data, check_crc=True)
    assert {key: getattr(record, key) for key in fields} == fields
    assert record.size == len(data)
    assert record.body_crc == CRC_OF_HELLO
    assert check_record(data, 0, len(data), expected_position=0x123) == len(data)


def test_magic_follows_the_length_of_the_topic() -> None:
    assert int.from_bytes(RECORD_V1[4:8], "big") == MAGIC_V1
    assert int.from_bytes(RECORD_V2[4:8], "big") == MAGIC_V2


def test_flags_of_hosts_are_set_from_the_hosts() -> None:
    wrong = RECORD_V1_FIELDS | {"sys_flag": SysFlag.COMPRESSED | SysFlag.BORN_HOST_V6}
    assert decode_record(encode_record(**wrong)).sys_flag == SysFlag.COMPRESSED


def test_records_stand_back_to_back() -> None:
    body = memoryview(RECORD_V1 + RECORD_V2 + RECORD_V6)
    assert [record.size for record in decode_records(body)] == [len(RECORD_V1), len(RECORD_V2), len(RECORD_V6)]
    assert check_record(body, len(RECORD_V1), len(body)) == len(RECORD_V2)
    with pytest.raises(RecordError, match="cut off"):
        decode_records(body[:-1][: len(RECORD_V1) + 50])


@pytest.mark.parametrize("bad", BAD_RECORDS, ids=lambda bad: bad.name)
def test_damaged_record_is_refused_with_the_reason(bad: BadBytes) -> None:
    with pytest.raises(RecordError, match=bad.error):
        check_record(bad.data, 0, len(bad.data))


@pytest.mark.parametrize("length", range(4, len(RECORD_V1)))
def test_record_cut_anywhere_is_refused(length: int) -> None:
    for check in (lambda data: check_record(data, 0, len(data)), decode_record):
        with pytest.raises(RecordError):
            check(RECORD_V1[:length])


def test_log_ends_at_a_blank_or_at_zeros() -> None:
    assert check_record(blank(1000), 0, 8) == 0
    assert check_record(bytes(100), 0, 100) == 0
    assert check_record(bytes(3), 0, 3) == 0
    assert check_record(b"", 0, 0) == 0
    with pytest.raises(RecordError, match="too few"):
        check_record(b"\0\1\0", 0, 3)


def test_record_at_another_position_is_refused() -> None:
    with pytest.raises(RecordError, match="says that it is at 291, not at 290"):
        check_record(RECORD_V1, 0, len(RECORD_V1), expected_position=290)


def test_body_is_checked_on_demand() -> None:
    changed = patched(RECORD_V1, 88, "00")
    assert decode_record(changed).body == b"\0ello"
    with pytest.raises(RecordError, match="checksum"):
        decode_record(changed, check_crc=True)


def test_topic_or_properties_too_long_for_their_length_are_refused() -> None:
    with pytest.raises(RecordError):
        encode_record(**(RECORD_V1_FIELDS | {"properties": bytes(32_768)}))
    with pytest.raises(RecordError):
        encode_record(**(RECORD_V1_FIELDS | {"topic": "T" * 32_768}))


def test_tag_codes_are_javas() -> None:
    assert {tag: tag_code(tag) for tag in TAG_HASHES} == TAG_HASHES


def test_hosts_are_packed_and_unpacked() -> None:
    assert unpack_host(pack_host(*RECORD_V1_BORN_HOST)) == RECORD_V1_BORN_HOST
    assert unpack_host(pack_host("[2001:db8::1]", 1)) == ("2001:db8::1", 1)
    assert pack_host("::ffff:10.0.0.1", 9) == pack_host("10.0.0.1", 9)
    assert pack_host("fe80::1%eth0", 9) == pack_host("fe80::1", 9)
    assert format_host(pack_host("fe80::1", 9)) == "[fe80::1]:9"
    assert format_host(pack_host("10.0.0.1", 9)) == "10.0.0.1:9"
    with pytest.raises(UsageError, match="not an IP address"):
        pack_host("localhost", 9)
    with pytest.raises(RecordError, match="7 bytes"):
        unpack_host(bytes(7))


def test_addresses_are_parsed() -> None:
    assert parse_address("broker-1.example:10911") == ("broker-1.example", 10_911)
    assert parse_address(" [::1]:9876 ") == ("::1", 9876)
    for wrong in ("", "host", ":9876", "host:", "host:port", "host:70000", "host:-1"):
        with pytest.raises(UsageError, match="host:port"):
            parse_address(wrong)


def test_offset_id_names_broker_and_position() -> None:
    assert encode_offset_id(pack_host(*RECORD_V1_STORE_HOST), 0x123) == RECORD_V1_OFFSET_ID
    assert decode_offset_id(RECORD_V1_OFFSET_ID) == (*RECORD_V1_STORE_HOST, 0x123)
    v6 = encode_offset_id(pack_host("2001:db8::1", 10_911), 2**40)
    assert len(v6) == 56
    assert decode_offset_id(v6) == ("2001:db8::1", 10_911, 2**40)
    for wrong in ("", "00", RECORD_V1_OFFSET_ID[:-2], RECORD_V1_OFFSET_ID + "00", "x" * 32, " " + RECORD_V1_OFFSET_ID):
        with pytest.raises(UsageError, match="not an offset message id"):
            decode_offset_id(wrong)


def test_unique_keys_differ_and_tell_their_time() -> None:
    now_ms = 1_700_000_000_000
    keys = UniqueKeys(b"\xac\x11\x00\x02", 0x1_2345, -1)
    made = [keys.next(now_ms + number // 100) for number in range(1000)]
    assert len(set(made)) == 1000
    assert all(len(key) == 32 and key.startswith("AC1100022345FFFFFFFF") and key == key.upper() for key in made)
    assert unique_key_time_ms(made[0], now_ms + 5_000) == now_ms
    assert len(UniqueKeys(bytes(16), 1, 1).next(now_ms)) == 56


def test_unique_key_of_last_month_tells_its_time() -> None:
    _, next_month_ms = month_bounds_ms(1_700_000_000_000)
    key = UniqueKeys(b"\x7f\0\0\1", 1, 1).next(next_month_ms - 1)
    assert unique_key_time_ms(key, next_month_ms + 10) == next_month_ms - 1
    assert unique_key_time_ms("no key", next_month_ms) is None
    assert unique_key_time_ms("00", next_month_ms) is None


def test_months_are_local() -> None:
    # 2023-11-30T20:00Z is December already eight hours further east.
    time_ms = 1_701_374_400_000
    start_utc, end_utc = month_bounds_ms(time_ms)
    start_east, _ = month_bounds_ms(time_ms, 8 * 3600)
    assert start_utc <= time_ms < end_utc
    assert start_east == end_utc - 8 * 3_600_000


def test_client_id_has_its_parts() -> None:
    assert client_id("10.0.0.1", "1#2") == "10.0.0.1@1#2"
    assert client_id("10.0.0.1", "1#2", "unit") == "10.0.0.1@1#2@unit"


def test_received_message_is_the_record_unpacked() -> None:
    packed, flag = compress(b"hello" * 100)
    fields = RECORD_V1_FIELDS | {"body": packed, "sys_flag": flag, "properties": b"UNIQ_KEY\x01U\x02KEYS\x01a b\x02"}
    message = to_received(decode_record(encode_record(**fields)), "broker-a")
    assert message.body == b"hello" * 100
    assert message.message_id == "U"
    assert message.offset_message_id == RECORD_V1_OFFSET_ID
    assert message.keys == ("a", "b")
    assert (message.born_host, message.store_host) == ("10.0.0.1:50000", "172.17.0.2:10911")
    assert message.delivery_attempt == 2
    assert to_received(decode_record(RECORD_V1), "broker-a").message_id == RECORD_V1_OFFSET_ID


def test_received_message_that_cannot_be_unpacked_is_an_error() -> None:
    with pytest.raises(CompressionError):
        to_received(decode_record(encode_record(**(RECORD_V1_FIELDS | {"sys_flag": 1}))), "broker-a")
    with pytest.raises(RecordError, match="UTF-8"):
        to_received(decode_record(encode_record(**(RECORD_V1_FIELDS | {"properties": b"K\x01\xff\x02"}))), "broker-a")
