"""An answer leaves when what it claims is true: the log is written, and with synchronous flush it is on the disk."""

import asyncio
import errno

import pytest

from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.transactions import EndTransactionRequestHeader

SYNC = {"store__flush": "sync"}


async def send_many(peer, count: int, topic: str = "orders", size: int = 1000) -> list:
    futures = [
        peer.connection.start_request(RequestCode.SEND_MESSAGE_V2, *peer.send_frame(topic, b"x" * size), timeout_s=3600)
        for _ in range(count)
    ]
    return [await future for future in futures]


async def test_a_full_disk_refuses_a_whole_batch_with_code_14(world) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.fail("write", path="commitlog", error=errno.ENOSPC)
    answers = await send_many(peer, 10)
    assert {answer.code for answer in answers} == {14}
    assert all("disk" in answer.remark for answer in answers)
    assert len(await peer.records()) == 1


async def test_a_full_disk_serves_reads_and_recovers_by_itself(world) -> None:
    await world.start()
    peer = await world.connect()
    await send_many(peer, 3)
    world.disk.capacity_bytes = world.disk.used_bytes
    assert {answer.code for answer in await send_many(peer, 50)} == {14}
    assert len(await peer.records()) == 3
    world.disk.capacity_bytes = None
    await world.clock.sleep(60)
    assert {answer.code for answer in await send_many(peer, 3)} == {0}
    assert [record.queue_offset for record in await peer.records()] == list(range(6))


async def test_a_batch_that_also_reads_answers_each_request_rightly(world) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    await peer.pull()
    world.disk.fail("write", path="commitlog", error=errno.ENOSPC)
    first = asyncio.create_task(peer.send())
    pull = asyncio.create_task(peer.pull())
    second = asyncio.create_task(peer.send())
    assert (await first).code == 14
    assert (await pull).code == 0
    assert (await second).code == 14
    assert len(await peer.records()) == 1


async def test_a_topic_that_cannot_be_created_takes_the_sends_before_it_with_it(world) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.fail("write", path="commitlog", error=errno.ENOSPC)
    known = asyncio.create_task(peer.send("orders"))
    unknown = asyncio.create_task(peer.send("new-topic"))
    assert (await known).code == 14
    assert (await unknown).code == 14
    assert "new-topic" not in world.broker.topics
    assert len(await peer.records()) == 1
    assert (await peer.send("new-topic")).code == 0


async def test_delayed_messages_that_could_not_be_written_are_no_timers(world) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.fail("write", path="commitlog", error=errno.ENOSPC)
    assert (await peer.send(properties={"UNIQ_KEY": "k", "DELAY": "1"})).code == 14
    assert len(world.broker.timers) == 0
    await peer.send()
    await world.clock.sleep(2)
    assert len(await peer.records()) == 2


async def test_delivery_waits_while_the_disk_is_full(world) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send(properties={"UNIQ_KEY": "k", "DELAY": "1"})
    world.disk.fail("write", path="commitlog", times=3, error=errno.ENOSPC)
    await world.clock.sleep(10)
    assert len(await peer.records()) == 1
    assert len(world.broker.timers) == 0


async def test_a_delayed_message_that_is_due_before_it_is_on_the_disk_is_not_lost(world) -> None:
    await world.start(**SYNC, store__flush_timeout_s=1000.0)
    world.disk.sync_seconds_max = 10.0
    peer = await world.connect()
    for number in range(20):
        answer = await peer.send(body=b"%d" % number, properties={"UNIQ_KEY": "k", "TIMER_DELAY_MS": "10"})
        assert answer.code == 0
    await world.clock.sleep(60)
    assert sorted(int(record.body) for record in await peer.records()) == list(range(20))


async def test_a_half_message_that_is_ended_before_it_is_on_the_disk_is_not_lost(world) -> None:
    await world.start(**SYNC, store__flush_timeout_s=1000.0)
    peer = await world.connect()
    await peer.send()
    half = {"UNIQ_KEY": "k", "TRAN_MSG": "true", "PGROUP": "producers", "WAIT": "false"}
    world.disk.sync_seconds_max = 10.0
    answer = await peer.send(properties=half, sys_flag=4)
    position = int(answer.ext()["msgId"][-16:], 16)
    assert position >= world.broker.log.readable_position, "it is not durable yet"
    header = EndTransactionRequestHeader("producers", int(answer.ext()["queueOffset"]), position, 8, "k", "orders")
    assert (await peer.ask(RequestCode.END_TRANSACTION, header)).code == 0
    await world.clock.sleep(60)
    assert len(await peer.records()) == 2


async def test_with_asynchronous_flush_the_answer_does_not_wait_for_the_disk(world) -> None:
    await world.start()
    world.disk.sync_seconds_max = 2.0
    peer = await world.connect()
    await peer.send()
    before = world.clock.monotonic()
    await peer.send()
    assert world.clock.monotonic() - before < 0.01


async def test_with_synchronous_flush_an_answered_message_is_on_the_disk(world) -> None:
    await world.start(**SYNC)
    world.disk.sync_seconds_max = 0.1
    peer = await world.connect()
    answers = await send_many(peer, 20)
    assert {answer.code for answer in answers} == {0}
    last = int(answers[-1].ext()["msgId"][-16:], 16)
    assert world.broker.log.flusher.durable_position > last


async def test_one_flush_covers_all_that_waited(world) -> None:
    await world.start(**SYNC)
    world.disk.sync_seconds_max = 0.1
    peers = [await world.connect() for _ in range(10)]
    await peers[0].send()
    before = world.broker.log.flusher.flush_count
    await asyncio.gather(*(send_many(each, 10) for each in peers))
    assert world.broker.log.flusher.flush_count - before <= 4


async def test_a_sender_that_does_not_want_to_wait_does_not(world) -> None:
    await world.start(**SYNC)
    peer = await world.connect()
    await peer.send()
    world.disk.sync_seconds_max = 100.0
    before = world.clock.monotonic()
    answer = await peer.send(properties={"UNIQ_KEY": "k", "WAIT": "false"})
    assert answer.code == 0
    assert world.clock.monotonic() - before < 0.01


@pytest.mark.parametrize("serialize_type", [0, 1])
async def test_a_flush_that_takes_too_long_is_said_with_code_10(world, serialize_type: int) -> None:
    await world.start(**SYNC, store__flush_timeout_s=5.0)
    peer = await world.connect()
    peer.connection.serialize_type = serialize_type
    await peer.send()
    world.disk.sync_seconds_max = 1000.0
    before = world.clock.monotonic()
    answer = await peer.send()
    assert answer.code == 10
    assert answer.ext()["queueOffset"] == "1"
    assert answer.serialize_type == serialize_type
    assert 5 <= world.clock.monotonic() - before < 6
    world.disk.sync_seconds_max = 0.0


async def test_a_flush_that_fails_acknowledges_nothing(world) -> None:
    await world.start(**SYNC)
    peer = await world.connect()
    await peer.send()
    world.disk.fail("sync", path="commitlog")
    assert (await peer.send()).code == 14
    assert (await peer.send()).code != 0
    assert len(await peer.records()) >= 1


async def test_a_send_back_waits_for_the_disk_too(world) -> None:
    await world.start(**SYNC)
    peer = await world.connect()
    await peer.send()
    (record,) = await peer.records()
    await peer.send_back(record.physical_offset)
    assert world.broker.log.flusher.durable_position == world.broker.log.written_position


async def test_readers_never_see_what_is_only_staged(world) -> None:
    await world.start()
    peer = await world.connect()
    send = asyncio.create_task(peer.send())
    pull = asyncio.create_task(peer.pull())
    await send
    answer = await pull
    # Both arrived in one read: the pull either comes after the write, or sees nothing.
    assert answer.code == 0
    assert len(answer.body) > 0
