"""Sending: what is stored, what is answered, and what is refused with which code."""

import pytest

from pocketmq.model.config import TopicConfig
from pocketmq.model.hashing import tag_code
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.hosts import unpack_host
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import Record


def properties_of(record: Record) -> dict[str, str]:
    return decode_properties(record.properties.decode())


async def test_a_sent_message_can_be_pulled_with_all_that_it_came_with(peer) -> None:
    answer = await peer.send(body=b"hello", properties={"UNIQ_KEY": "KEY1", "TAGS": "new", "KEYS": "k1 k2"})
    assert answer.code == 0
    assert answer.remark is None
    (record,) = await peer.records()
    assert record.body == b"hello"
    assert record.flag == 7
    assert record.born_timestamp == 1_600_000_000_000
    assert (record.topic, record.queue_id, record.queue_offset) == ("orders", 0, 0)
    assert properties_of(record) == {
        "UNIQ_KEY": "KEY1",
        "TAGS": "new",
        "KEYS": "k1 k2",
        "MSG_REGION": "DefaultRegion",
        "TRACE_ON": "true",
        "CLUSTER": "DefaultCluster",
    }


async def test_the_answer_names_the_message(world, peer) -> None:
    await peer.send()
    ext = (await peer.send()).ext()
    assert ext["queueId"] == "0"
    assert ext["queueOffset"] == "1"
    assert ext["transactionId"] == "AC11000200002A9F0000000000000123"
    assert ext["MSG_REGION"] == "DefaultRegion"
    assert ext["TRACE_ON"] == "true"
    host, port, position = decode_offset_id(ext["msgId"])
    assert port == world.broker.port
    record = (await peer.records(offset=1))[0]
    assert unpack_host(record.store_host) == (host, port)
    assert record.physical_offset == position


async def test_the_three_send_codes_store_the_same(peer) -> None:
    await peer.send(properties={"UNIQ_KEY": "K", "TAGS": "t"})
    await peer.send_v1(properties={"UNIQ_KEY": "K", "TAGS": "t"})
    first, second = await peer.records()
    assert (first.body, first.properties, first.flag) == (second.body, second.properties, second.flag)


@pytest.mark.parametrize(
    "text",
    [
        "UNIQ_KEY\x01K\x02TAGS\x01t",
        "TAGS\x01t\x02UNIQ_KEY\x01K",
        "TAGS\x01t\x02UNIQ_KEY\x01K\x02",
        "NO_TAGS\x01x\x02TAGS\x01t\x02UNIQ_KEY\x01K\x02",
        "MY_UNIQ_KEY\x01x\x02UNIQ_KEY\x01K\x02TAGS\x01t\x02",
    ],
)
async def test_properties_may_come_in_any_order_and_without_their_last_separator(world, peer, text: str) -> None:
    answer = await peer.send(properties=text)
    assert answer.ext()["transactionId"] == "K"
    (record,) = await peer.records()
    properties = properties_of(record)
    assert (properties["UNIQ_KEY"], properties["TAGS"], properties["CLUSTER"]) == ("K", "t", "DefaultCluster")
    (found,) = await peer.records(subscription="t")
    assert found.queue_offset == 0


async def test_a_message_without_a_unique_key_gets_one(peer) -> None:
    answer = await peer.send(properties={})
    (record,) = await peer.records()
    key = properties_of(record)["UNIQ_KEY"]
    assert len(key) == 32
    assert answer.ext()["transactionId"] == key


async def test_a_unique_key_that_needs_quoting_survives_the_answer(peer) -> None:
    answer = await peer.send(properties={"UNIQ_KEY": 'a"b\\c-é'})
    assert answer.ext()["transactionId"] == 'a"b\\c-é'


async def test_a_message_that_was_received_before_does_not_collect_stamps(peer) -> None:
    await peer.send(properties={"UNIQ_KEY": "K", "MSG_REGION": "elsewhere", "POP_CK": "x", "CLUSTER": "other"})
    (record,) = await peer.records()
    assert record.properties.count(b"MSG_REGION") == 1
    assert properties_of(record)["MSG_REGION"] == "DefaultRegion"
    assert properties_of(record)["CLUSTER"] == "DefaultCluster"
    assert "POP_CK" not in properties_of(record)


async def test_a_binary_header_is_answered_with_a_binary_header(world) -> None:
    await world.start()
    peer = await world.connect()
    peer.connection.serialize_type = 1
    answer = await peer.send()
    assert answer.serialize_type == 1
    assert answer.ext()["queueOffset"] == "0"
    assert answer.ext()["TRACE_ON"] == "true"


async def test_a_oneway_message_is_stored_and_not_answered(peer) -> None:
    header, body = peer.send_frame(body=b"quiet")
    peer.connection.request_oneway(RequestCode.SEND_MESSAGE_V2, header, body)
    answer = await peer.send(body=b"loud")
    assert answer.ext()["queueOffset"] == "1"
    assert [record.body for record in await peer.records()] == [b"quiet", b"loud"]


async def test_any_queue_is_one_of_the_topics_write_queues(world, peer) -> None:
    await world.broker.topic_service.put(TopicConfig(topic_name="wide", read_queue_nums=8, write_queue_nums=2))
    seen = {(await peer.send("wide", queue_id=-1)).ext()["queueId"] for _ in range(50)}
    assert seen == {"0", "1"}


async def test_an_unknown_topic_is_made_from_the_template(world, peer) -> None:
    await peer.send("first", default_queues=3)
    await peer.send("second", default_queues=100)
    first, second = world.broker.topics.get("first"), world.broker.topics.get("second")
    assert (first.read_queue_nums, first.write_queue_nums, first.perm) == (3, 3, 6)
    assert second.write_queue_nums == 8


async def test_an_unknown_topic_is_refused_when_its_template_lets_nobody_inherit(peer) -> None:
    answer = await peer.send("orders", default_topic="SELF_TEST_TOPIC")
    assert answer.code == 17
    assert "orders" in answer.remark


async def test_an_unknown_topic_is_refused_when_automatic_creation_is_off(world) -> None:
    await world.start(broker__auto_create_topic=False)
    peer = await world.connect()
    answer = await peer.send("orders")
    assert answer.code == 17
    assert "pocketmq topic create orders" in answer.remark
    assert "orders" not in world.broker.topics


@pytest.mark.parametrize("topic", ["a b", "naïve", "a/b", "x" * 128])
async def test_a_topic_name_that_cannot_be_is_refused(world, peer, topic: str) -> None:
    answer = await peer.send(topic)
    assert answer.code == 29
    assert topic not in world.broker.topics


@pytest.mark.parametrize("topic", ["SCHEDULE_TOPIC_XXXX", "RMQ_SYS_TRANS_HALF_TOPIC", "rmq_sys_wheel_timer"])
async def test_the_brokers_own_topics_take_no_messages(peer, topic: str) -> None:
    assert (await peer.send(topic)).code == 16


async def test_a_queue_that_the_topic_does_not_have_is_refused(peer) -> None:
    await peer.send("orders", queue_id=3)
    answer = await peer.send("orders", queue_id=4)
    assert answer.code == 29
    assert "4 queues" in answer.remark


async def test_a_body_must_not_be_empty_or_too_large(world) -> None:
    await world.start(store__message_bytes_max=1000)
    peer = await world.connect()
    assert (await peer.send(body=b"")).code == 13
    assert (await peer.send(body=b"x" * 1000)).code == 0
    answer = await peer.send(body=b"x" * 1001)
    assert answer.code == 13
    assert "1001" in answer.remark


async def test_properties_must_fit_into_a_record(peer) -> None:
    assert (await peer.send(properties={"UNIQ_KEY": "K", "x": "y" * 32_600})).code == 0
    answer = await peer.send(properties={"UNIQ_KEY": "K", "x": "y" * 32_760})
    assert answer.code == 13


async def test_properties_with_a_nul_are_refused(peer) -> None:
    assert (await peer.send(properties={"UNIQ_KEY": "K", "x": "a\0b"})).code == 13


async def test_a_missing_header_field_is_named(peer) -> None:
    answer = await peer.ask(RequestCode.SEND_MESSAGE_V2, {"a": "producers", "b": "orders"}, b"x")
    assert answer.code == 1
    assert "<c>" in answer.remark


async def test_an_ordered_topic_is_closed_when_the_broker_is_read_only_and_others_are_not(world, peer) -> None:
    ordered = TopicConfig(topic_name="ordered", read_queue_nums=4, write_queue_nums=4, order=True)
    await world.broker.topic_service.put(ordered)
    assert (await peer.send("ordered")).code == 0
    world.broker.settings.broker.permission = 4
    assert (await peer.send("ordered")).code == 16
    assert (await peer.send("orders")).code == 0


async def test_messages_of_a_multi_tag_topic_are_marked(world, peer) -> None:
    topic = TopicConfig(topic_name="many", read_queue_nums=1, write_queue_nums=1, topic_filter_type="MULTI_TAG")
    await world.broker.topic_service.put(topic)
    await peer.send("many")
    (record,) = await peer.records("many")
    assert record.sys_flag & 2


async def test_a_topic_that_was_changed_is_sent_to_as_it_is_now(world, peer) -> None:
    await peer.send("orders", queue_id=3)
    await world.broker.topic_service.put(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    assert (await peer.send("orders", queue_id=3)).code == 29


async def test_a_batch_is_stored_as_single_messages(world, peer) -> None:
    await peer.send()
    answer = await peer.send_batch(bodies=[b"a", b"b", b"c"], tag="t")
    ext = answer.ext()
    assert ext["queueOffset"] == "1"
    ids = ext["msgId"].split(",")
    records = await peer.records(offset=1)
    assert [record.body for record in records] == [b"a", b"b", b"c"]
    assert [record.queue_offset for record in records] == [1, 2, 3]
    assert [record.flag for record in records] == [3, 3, 3]
    assert [decode_offset_id(each)[2] for each in ids] == [record.physical_offset for record in records]
    assert [properties_of(record) for record in records] == [
        {"UNIQ_KEY": f"KEY{number}", "TAGS": "t"} for number in range(3)
    ]
    assert len(await peer.records(subscription="t")) == 3
    assert tag_code("t") != 0


async def test_a_batch_may_come_under_the_code_of_single_messages(peer) -> None:
    header, body = peer.send_frame(batch=True)
    assert (await peer.ask(RequestCode.SEND_MESSAGE_V2, header, body)).code != 0
    await peer.send_batch()
    assert len(await peer.records()) == 3


async def test_a_broken_batch_is_refused_as_a_whole(peer) -> None:
    await peer.send()
    header, _ = peer.send_frame(batch=True)
    assert (await peer.ask(RequestCode.SEND_BATCH_MESSAGE, header, b"\0\0\0\x20not a batch")).code == 13
    assert len(await peer.records()) == 1


async def test_batches_cannot_be_sent_to_retry_topics(peer) -> None:
    await peer.send("%RETRY%consumers")
    assert (await peer.send_batch("%RETRY%consumers")).code == 13


async def test_many_requests_in_one_read_are_answered_in_order(peer) -> None:
    futures = [
        peer.connection.start_request(RequestCode.SEND_MESSAGE_V2, *peer.send_frame(body=b"%d" % number), timeout_s=60)
        for number in range(100)
    ]
    answers = [await future for future in futures]
    assert [int(answer.ext()["queueOffset"]) for answer in answers] == list(range(100))
