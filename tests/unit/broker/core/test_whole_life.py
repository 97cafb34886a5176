"""A message's whole life on one broker: sent, waited for, failed, retried, given up, and found again."""

import asyncio

from pocketmq.model.config import GroupConfig
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import decode_records

SUSPEND, SUBSCRIPTION = 2, 4


async def wait_for(peer, topic: str, offset: int):
    answer = await peer.pull(topic, offset, flags=SUSPEND | SUBSCRIPTION, suspend_ms=600_000)
    (record,) = decode_records(answer.body, check_crc=True)
    return record


async def test_a_message_is_sent_fails_three_times_and_ends_as_a_dead_letter(world) -> None:
    await world.start(store__flush="sync")
    producer, consumer = await world.connect(), await world.connect()
    await producer.send("orders", b"first")
    await world.broker.topic_service.put_group(GroupConfig(group_name="consumers", retry_max_times=2))
    (first,) = await consumer.records("orders")

    waiting = asyncio.create_task(wait_for(consumer, "orders", 1))
    await world.clock.sleep(3)
    await producer.send("orders", b"second", properties={"UNIQ_KEY": "K2", "TAGS": "a", "KEYS": "o-2"})
    message = await waiting
    assert (message.body, message.queue_offset) == (b"second", 1)

    started = world.clock.monotonic()
    await consumer.send_back(message.physical_offset)
    retried = await wait_for(consumer, "%RETRY%consumers", 0)
    assert 10 <= world.clock.monotonic() - started < 10.1
    await consumer.send_back(retried.physical_offset, delay_level=1)
    again = await wait_for(consumer, "%RETRY%consumers", 1)
    assert (again.body, again.reconsume_times) == (b"second", 2)

    await world.crash(store__flush="sync")
    consumer = await world.connect()
    await consumer.send_back(again.physical_offset)
    (dead,) = await consumer.records("%DLQ%consumers")
    properties = decode_properties(dead.properties.decode())
    assert (dead.body, dead.reconsume_times) == (b"second", 3)
    assert (properties["UNIQ_KEY"], properties["TAGS"], properties["KEYS"]) == ("K2", "a", "o-2")
    assert properties["RETRY_TOPIC"] == "orders"
    assert properties["ORIGIN_MESSAGE_ID"].endswith(f"{message.physical_offset:016X}")
    assert [record.body for record in await consumer.records("orders")] == [b"first", b"second"]
    assert first.body == b"first"
