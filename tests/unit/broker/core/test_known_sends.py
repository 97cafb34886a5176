"""Sends of a shape that was seen before are stored and answered as those that are read field by field."""

import msgspec
import pytest

from pocketmq.model.config import TopicConfig
from pocketmq.wire.command import JSON, ROCKETMQ

KEY = "UNIQ_KEY\x01AC11000200002A9F00000000{:08X}\x02"
PROPERTIES = [
    KEY + "WAIT\x01true",
    KEY + "WAIT\x01true\x02",
    KEY + "WAIT\x01false\x02TAGS\x01new\x02",
    "TAGS\x01new\x02" + KEY + "KEYS\x01a b\x02",
    "KEYS\x01TAGS\x02" + KEY,
    KEY + "TAGS\x01",
    "TAGS\x01日本\x02" + KEY,
    KEY + "DELAY\x013\x02",
    KEY + "TIMER_DELAY_SEC\x015\x02",
    KEY + "TRAN_MSG\x01true\x02PGROUP\x01p\x02",
    KEY + "MSG_REGION\x01elsewhere\x02",
    KEY + "note\x01DELAYED\x02",
    "xUNIQ_KEY\x01{:08X}\x02",
    "number\x01{:08X}\x02",
    "UNIQ_KEY\x01{:08X}",
]


async def stored(world, kind: int, text: str, **options) -> tuple[list[object], list[object]]:
    """Answers to some sends through one connection, and the records that they left behind."""
    await world.start()
    peer = await world.connect()
    peer.connection.serialize_type = kind
    answers = [
        await peer.send(body=b"body %d" % number, properties=text.format(number), **options) for number in range(4)
    ]
    broker = world.broker
    records = [
        record
        for topic in sorted(broker.log.topics())
        if not topic.startswith("POCKETMQ")
        for queue in broker.log.queues_of(topic)
        for record in await peer.records(topic, queue_id=queue.queue_id)
    ]
    told = [(answer.code, answer.remark, answer.ext()) for answer in answers]
    places = [
        [msgspec.structs.asdict(record) if isinstance(record, msgspec.Struct) else vars_of(record), unit_codes(broker)]
        for record in records
    ]
    for _, _, ext in told:
        if len(ext.get("transactionId", "")) != 32:
            continue
        if "UNIQ_KEY" not in text:
            ext["transactionId"] = "made by the broker"
    return told, places


def vars_of(record: object) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}  # type: ignore[attr-defined]


def unit_codes(broker) -> list[int]:
    queue = broker.log.queue("orders", 0)
    return [] if queue is None else [code for _, _, code in broker.log.units(queue, 0, 10)]


@pytest.mark.parametrize("text", PROPERTIES)
async def test_the_way_a_send_is_read_makes_no_difference(make_world, text: str) -> None:
    seen = []
    for kind in (JSON, ROCKETMQ):
        world = make_world()
        try:
            told, places = await stored(world, kind, text)
        finally:
            await world.stop()
        if "UNIQ_KEY\x01" not in text or text.startswith("x"):
            places = [
                {key: value for key, value in place.items() if key in ("body", "flag", "size")} for place, _ in places
            ]
            told = [(code, remark) for code, remark, _ in told]
        seen.append((told, places))
    assert seen[0] == seen[1]


async def binary_peer(world):
    peer = await world.connect()
    peer.connection.serialize_type = ROCKETMQ
    return peer


async def test_refusals_are_the_same_for_a_shape_that_was_seen_before(world) -> None:
    await world.start()
    peer = await binary_peer(world)
    assert [(await peer.send()).code for _ in range(3)] == [0, 0, 0]
    assert (await peer.send(queue_id=9)).code == 29
    assert (await peer.send(body=b"")).code == 13
    assert (await peer.send(body=b"x" * (world.broker.settings.store.message_bytes_max + 1))).code == 13
    assert (await peer.send()).ext()["queueOffset"] == "3"


async def test_a_topic_that_was_changed_takes_a_known_send_as_it_is_now(world) -> None:
    await world.start()
    peer = await binary_peer(world)
    for _ in range(3):
        await peer.send(queue_id=3)
    await world.broker.topic_service.put(TopicConfig(topic_name="orders", read_queue_nums=2, write_queue_nums=2))
    assert (await peer.send(queue_id=3)).code == 29
    await world.broker.topic_service.put(
        TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=4, topic_filter_type="MULTI_TAG")
    )
    assert (await peer.send(queue_id=3)).code == 0
    assert (await peer.records(queue_id=3))[-1].sys_flag & 2


async def test_a_known_oneway_send_is_stored_and_not_answered(world) -> None:
    await world.start()
    peer = await binary_peer(world)
    await peer.send()
    header, body = peer.send_frame(body=b"quiet")
    for _ in range(3):
        peer.connection.request_oneway(310, header, body)
    assert (await peer.send(body=b"loud")).ext()["queueOffset"] == "4"


async def test_known_sends_wait_for_the_disk_when_they_must(world) -> None:
    await world.start(store__flush="sync")
    peer = await binary_peer(world)
    for number in range(3):
        assert (await peer.send()).code == 0
        assert world.broker.log.durable_position == world.broker.log.max_position, number
