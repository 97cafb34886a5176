"""From pulled bytes to messages: the quick way and the thorough one give the same."""

import pytest

from pocketmq.client.decoding import decode_deliveries
from pocketmq.model.errors import RecordError
from pocketmq.wire.compression import compress
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.properties import encode_properties
from pocketmq.wire.received import to_received
from pocketmq.wire.record import decode_records, encode_record

V4, V6 = pack_host("10.0.0.1", 50000), pack_host("fe80::1", 50000)


def record(topic="orders", body=b"hello", *, offset=0, properties=None, host=V4, sys_flag=0):
    return encode_record(
        topic,
        body,
        encode_properties(properties if properties is not None else {"UNIQ_KEY": "K", "TAGS": "new"}).encode(),
        queue_id=3,
        queue_offset=offset,
        physical_offset=0x123 + offset,
        born_timestamp=1_700_000_000_000,
        born_host=host,
        store_timestamp=1_700_000_000_123,
        store_host=pack_host("172.17.0.2", 10911),
        flag=7,
        sys_flag=sys_flag,
        reconsume_times=2,
        prepared_transaction_offset=9,
    )


PACKED, PACKED_FLAG = compress(b"z" * 1000)
FORMS = {
    "plain": record(),
    "no properties": record(properties={}),
    "empty body": record(body=b""),
    "IPv6": record(host=V6),
    "long topic": record(topic="t" * 200),
    "compressed": record(body=PACKED, sys_flag=PACKED_FLAG),
    "damaged compression": record(body=b"no zlib", sys_flag=PACKED_FLAG),
}


@pytest.mark.parametrize("name", FORMS)
def test_a_message_has_what_is_in_its_record(name, caplog):
    data = FORMS[name]
    [message] = decode_deliveries(data, "broker-a", ())
    if name == "damaged compression":
        assert message.body == b"no zlib"
        assert "as it is" in caplog.text
        return
    [stored] = decode_records(data)
    expected = to_received(stored, "broker-a")
    for field in type(expected).__struct_fields__:
        assert getattr(message, field) == getattr(expected, field), field


def test_records_stand_back_to_back_in_any_mixture_of_forms():
    data = b"".join(record(topic=topic, offset=n, host=host) for n, (topic, host) in enumerate(MIXTURE))
    messages = decode_deliveries(data, "broker-a", ())
    assert [(message.topic, message.queue_offset) for message in messages] == [
        (topic, n) for n, (topic, _) in enumerate(MIXTURE)
    ]


MIXTURE = [("a", V4), ("a", V6), ("b" * 130, V4), ("a", V4), ("c", V4), ("c", V6)]


def test_only_wanted_tags_are_kept():
    tags = ["new", "old", None, "new"]
    data = b"".join(
        record(offset=n, properties={"TAGS": tag} if tag else {}, host=V6 if n == 3 else V4)
        for n, tag in enumerate(tags)
    )
    assert [m.queue_offset for m in decode_deliveries(data, "b", {"new"})] == [0, 3]
    assert len(decode_deliveries(data, "b", ())) == 4


@pytest.mark.parametrize("cut", [1, 50, 87, 88, 93, 100, -1])
def test_a_record_that_is_cut_off_is_refused(cut):
    with pytest.raises(RecordError):
        decode_deliveries(record()[:cut], "b", ())


PLACES = {"size": 3, "magic": 5, "body length": 87, "topic length": 88 + 5, "properties length": 88 + 5 + 1 + 6 + 1}


@pytest.mark.parametrize("name", PLACES)
def test_a_record_whose_lengths_lie_is_refused(name):
    data = bytearray(record() + record(offset=1))
    data[PLACES[name]] ^= 0x55
    with pytest.raises(RecordError):
        decode_deliveries(bytes(data), "b", ())
