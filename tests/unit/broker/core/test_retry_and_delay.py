"""Messages that come later: delay levels, arbitrary times, retries with their back-off, dead letters."""

import pytest

from pocketmq.model.config import GroupConfig
from pocketmq.model.message import MessageQueue
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import Record

KEY = {"UNIQ_KEY": "K1"}
DAY_MS = 86_400_000


def properties_of(record: Record) -> dict[str, str]:
    return decode_properties(record.properties.decode())


async def arrives_after(world, peer, seconds: float, topic: str = "orders", offset: int = 0) -> Record:
    """Check that a message is there within 100 ms of `seconds` from now, and not before."""
    start = world.clock.monotonic()
    await world.clock.sleep(seconds - 0.05)
    assert await peer.records(topic, offset) == []
    await world.clock.sleep(start + seconds + 0.1 - world.clock.monotonic())
    (record,) = await peer.records(topic, offset)
    return record


@pytest.mark.parametrize(("level", "seconds"), [(1, 1), (3, 10), (5, 60), (18, 7200), (99, 7200)])
async def test_a_delay_level_delays(world, peer, level: int, seconds: int) -> None:
    await peer.send(queue_id=1)
    answer = await peer.send(body=b"late", properties={**KEY, "DELAY": str(level), "TAGS": "a"})
    assert answer.code == 0
    record = await arrives_after(world, peer, seconds)
    assert record.body == b"late"
    assert (record.topic, record.queue_id, record.queue_offset) == ("orders", 0, 0)
    assert properties_of(record)["REAL_TOPIC"] == "orders"
    assert properties_of(record)["REAL_QID"] == "0"
    assert len(await peer.records(subscription="a")) == 1


@pytest.mark.parametrize(
    ("name", "value", "seconds"),
    [("TIMER_DELAY_SEC", 90, 90), ("TIMER_DELAY_MS", 1500, 1.5), ("TIMER_DELIVER_MS", None, 10 * 86_400)],
)
async def test_an_arbitrary_time_delays(world, peer, name: str, value: int | None, seconds: float) -> None:
    await peer.send(queue_id=1)
    if value is None:
        value = world.clock.time_ms() + int(seconds * 1000)
    await peer.send(properties={**KEY, name: str(value)})
    record = await arrives_after(world, peer, seconds)
    assert properties_of(record)[name] == str(value)


async def test_a_level_wins_over_an_arbitrary_time(world, peer) -> None:
    await peer.send(queue_id=1)
    await peer.send(properties={**KEY, "DELAY": "1", "TIMER_DELAY_SEC": "100"})
    record = await arrives_after(world, peer, 1)
    assert "TIMER_DELAY_SEC" not in properties_of(record)


async def test_a_time_that_has_passed_is_no_delay(world, peer) -> None:
    await peer.send(properties={**KEY, "TIMER_DELIVER_MS": str(world.clock.time_ms() - 1)})
    await peer.send(properties={**KEY, "DELAY": "0"})
    assert len(await peer.records()) == 2


async def test_a_delay_above_the_limit_is_refused_with_the_limit(peer) -> None:
    answer = await peer.send(properties={**KEY, "TIMER_DELAY_SEC": str(41 * 86_400)})
    assert answer.code == 13
    assert str(40 * 86_400) in answer.remark
    assert "broker.delay_max_s" in answer.remark
    assert (await peer.send(properties={**KEY, "TIMER_DELAY_SEC": str(40 * 86_400)})).code == 0


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
async def test_a_time_that_is_no_number_is_refused(peer, name: str) -> None:
    answer = await peer.send(properties={**KEY, name: "soon"})
    assert answer.code == 13
    assert name in answer.remark


async def test_a_delivered_message_that_is_sent_again_is_not_delayed_again(world, peer) -> None:
    await peer.send(properties={**KEY, "TIMER_DELAY_MS": "1000"})
    await world.clock.sleep(2)
    (record,) = await peer.records()
    await peer.send(properties=record.properties.decode())
    assert len(await peer.records()) == 2


async def test_delayed_messages_survive_a_restart(world, peer) -> None:
    await peer.send(queue_id=1)
    await peer.send(body=b"soon", properties={**KEY, "DELAY": "5"})
    await peer.send(body=b"later", properties={**KEY, "TIMER_DELAY_SEC": "100"})
    await world.restart()
    peer = await world.connect()
    assert len(world.broker.timers) == 2
    record = await arrives_after(world, peer, 60)
    assert record.body == b"soon"
    record = await arrives_after(world, peer, 39.9, offset=1)
    assert record.body == b"later"


async def test_what_came_due_while_the_broker_was_down_is_delivered_at_once(world, peer) -> None:
    await peer.send(queue_id=1)
    await peer.send(properties={**KEY, "DELAY": "1"})
    await world.stop()
    await world.clock.sleep(1000)
    await world.start()
    peer = await world.connect()
    assert len(await peer.records()) == 1


async def test_delayed_messages_survive_a_crash_and_none_is_delivered_twice_that_was_before(world, peer) -> None:
    for number in range(10):
        await peer.send(body=b"%d" % number, properties={**KEY, "TIMER_DELAY_SEC": str(number + 1)})
    await world.clock.sleep(5.5)
    await world.crash()
    peer = await world.connect()
    assert len(world.broker.timers) == 5
    await world.clock.sleep(6)
    assert [record.body for record in await peer.records()] == [b"%d" % number for number in range(10)]
    assert len(world.broker.timers) == 0


async def test_many_that_come_due_together_are_all_delivered(world, peer) -> None:
    due = world.clock.time_ms() + 30_000
    for _ in range(1000):
        await peer.send(properties={**KEY, "TIMER_DELIVER_MS": str(due)})
    assert len(world.broker.timers) == 1000
    await world.clock.sleep(31)
    assert (await peer.pull(offset=1000)).remark == "OFFSET_OVERFLOW_ONE"
    assert world.broker.delivery.delivered == 1000


async def test_timers_are_carried_forward_from_a_stretch_of_the_log(world, peer) -> None:
    await peer.send(queue_id=1)
    await peer.send(body=b"level", properties={**KEY, "DELAY": "5"})
    await peer.send(body=b"time", properties={**KEY, "TIMER_DELAY_SEC": "60"})
    end = world.broker.log.written_position
    assert world.broker.delivery.carry_forward(0, end) == 2
    assert world.broker.timers.between(0, end) == []
    assert len(world.broker.timers) == 2
    await world.restart()
    peer = await world.connect()
    assert len(world.broker.timers) == 2
    await world.clock.sleep(60.1)
    assert sorted(record.body for record in await peer.records()) == [b"level", b"time"]


async def test_a_message_sent_back_returns_to_its_group_later(world, peer) -> None:
    await peer.send(body=b"work", properties={**KEY, "TAGS": "a"})
    (record,) = await peer.records()
    assert (await peer.send_back(record.physical_offset)).code == 0
    again = await arrives_after(world, peer, 10, "%RETRY%consumers")
    assert again.body == b"work"
    assert again.reconsume_times == 1
    assert again.flag == record.flag
    assert again.born_timestamp == record.born_timestamp
    assert again.born_host == record.born_host
    properties = properties_of(again)
    assert properties["RETRY_TOPIC"] == "orders"
    assert properties["UNIQ_KEY"] == "K1"
    assert properties["WAIT"] == "false"
    assert properties["ORIGIN_MESSAGE_ID"].endswith(f"{record.physical_offset:016X}")


async def test_each_retry_waits_a_level_longer_and_the_last_one_is_a_dead_letter(world, peer) -> None:
    await peer.send()
    await world.broker.topic_service.put_group(GroupConfig(group_name="consumers", retry_max_times=3))
    (record,) = await peer.records()
    for offset, seconds in enumerate((10, 30, 60)):
        await peer.send_back(record.physical_offset)
        record = await arrives_after(world, peer, seconds, "%RETRY%consumers", offset)
        assert record.reconsume_times == offset + 1
    await peer.send_back(record.physical_offset)
    (dead,) = await peer.records("%DLQ%consumers")
    assert dead.reconsume_times == 4
    assert properties_of(dead)["RETRY_TOPIC"] == "orders"
    assert properties_of(dead)["ORIGIN_MESSAGE_ID"].endswith(f"{(await peer.records())[0].physical_offset:016X}")


async def test_the_consumer_may_say_when_to_give_up_and_how_long_to_wait(world, peer) -> None:
    await peer.send()
    (record,) = await peer.records()
    await peer.send_back(record.physical_offset, delay_level=1)
    again = await arrives_after(world, peer, 1, "%RETRY%consumers")
    await peer.send_back(again.physical_offset, max_reconsume_times=1)
    assert len(await peer.records("%DLQ%consumers")) == 1
    await peer.send_back(record.physical_offset, delay_level=-1)
    assert len(await peer.records("%DLQ%consumers")) == 2


async def test_sending_back_what_is_not_there_is_refused(world, peer) -> None:
    await peer.send()
    answer = await peer.send_back(123_456)
    assert answer.code == 1
    assert "look message by offset failed, 123456" in answer.remark
    world.broker.settings.broker.auto_create_group = False
    assert (await peer.send_back(0, group="unknown")).code == 26
    world.broker.settings.broker.permission = 4
    assert (await peer.send_back(0)).code == 16


async def test_a_group_without_retry_queues_drops_what_is_sent_back(world, peer) -> None:
    await peer.send()
    await world.broker.topic_service.put_group(GroupConfig(group_name="consumers", retry_queue_nums=0))
    (record,) = await peer.records()
    assert (await peer.send_back(record.physical_offset)).code == 0
    assert len(world.broker.timers) == 0


async def test_a_message_sent_to_a_retry_topic_goes_there(peer) -> None:
    answer = await peer.send("%RETRY%consumers", properties=KEY, reconsume_times=16)
    assert answer.code == 0
    assert len(await peer.records("%RETRY%consumers")) == 1


async def test_a_message_sent_to_a_retry_topic_too_often_is_a_dead_letter(world, peer) -> None:
    await peer.send("%RETRY%consumers", properties={**KEY, "DELAY": "3"}, reconsume_times=17)
    await peer.send("%RETRY%consumers", properties=KEY, reconsume_times=5, max_reconsume_times=4)
    assert len(await peer.records("%DLQ%consumers")) == 2
    assert len(world.broker.timers) == 0


async def test_what_a_group_that_consumes_in_order_sends_to_its_retry_topic_is_a_dead_letter(world, peer) -> None:
    world.broker.locks.lock("consumers", "client", [MessageQueue("orders", "broker-a", 0)], world.clock.monotonic())
    await peer.send("%RETRY%consumers", properties=KEY, reconsume_times=1)
    assert len(await peer.records("%DLQ%consumers")) == 1


async def test_a_retry_topic_of_a_group_that_may_not_be_made_is_refused(world, peer) -> None:
    world.broker.settings.broker.auto_create_group = False
    assert (await peer.send("%RETRY%unknown", properties=KEY)).code == 26
