"""SQL92 filters at work: pulls of all kinds, long polls, heartbeats, and records of every layout."""

import asyncio

import pytest

from pocketmq.broker.filtering import properties_of
from pocketmq.model.config import Subscription
from pocketmq.model.names import retry_topic
from pocketmq.wire.bodies import ConsumerData, HeartbeatData, encode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import decode_records, encode_record

SUSPEND, SUBSCRIPTION = 2, 4
WANTED = "a > 5 AND region = 'x'"


async def send(peer, a: int, region: str = "x", topic: str = "orders") -> None:
    await peer.send(topic, properties={"UNIQ_KEY": "k", "a": str(a), "region": region})


async def offsets(peer, expression: str = WANTED, **options) -> list[int]:
    answer = await peer.pull(expression_type="SQL92", subscription=expression, **options)
    assert answer.code == 0, answer.remark
    return [record.queue_offset for record in decode_records(answer.body)]


def heartbeat(expression: str, *, group: str = "consumers", topics: tuple[str, ...] = ("orders",)) -> bytes:
    wanted = [
        Subscription(topic=topic, sub_string=expression, sub_version=1, expression_type="SQL92") for topic in topics
    ]
    return encode_body(HeartbeatData("c1", [], [ConsumerData(group, subscription_data_set=wanted)]))


@pytest.mark.parametrize("code", [RequestCode.PULL_MESSAGE, RequestCode.LITE_PULL_MESSAGE])
async def test_a_pull_gives_what_its_expression_wants(peer, code: int) -> None:
    for a, region in ((5, "x"), (6, "x"), (7, "y"), (8, "x")):
        await send(peer, a, region)
    assert await offsets(peer, code=code) == [1, 3]
    assert await offsets(peer, "a < 6 OR region <> 'x'", code=code) == [0, 2]


async def test_a_pull_by_heartbeat_gives_what_that_one_asked_for(peer) -> None:
    for a in (5, 6):
        await send(peer, a)
    assert (await peer.ask(RequestCode.HEART_BEAT, None, heartbeat(WANTED))).code == 0
    assert [record.queue_offset for record in await peer.records(flags=0, subscription=None)] == [1]


async def test_each_consumer_of_a_group_gets_what_it_asked_for_itself(world, peer) -> None:
    for a in (5, 6):
        await send(peer, a)
    other = await world.connect()
    await peer.ask(RequestCode.HEART_BEAT, None, heartbeat("a = 5"))
    await other.ask(RequestCode.HEART_BEAT, None, heartbeat("a = 6"))
    assert [record.queue_offset for record in await peer.records(flags=0)] == [0]
    assert [record.queue_offset for record in await other.records(flags=0)] == [1]


async def test_a_cursor_moves_past_what_nobody_wants(peer) -> None:
    for _ in range(3):
        await send(peer, 1)
    answer = await peer.pull(expression_type="SQL92", subscription=WANTED)
    assert (answer.code, answer.remark, answer.ext()["nextBeginOffset"]) == (20, "NO_MATCHED_MESSAGE", "3")


async def test_what_is_not_wanted_leaves_a_held_pull_waiting(world, peer) -> None:
    await send(peer, 1)
    other = await world.connect()
    pull = asyncio.create_task(
        other.pull(offset=1, flags=SUSPEND | SUBSCRIPTION, expression_type="SQL92", subscription=WANTED)
    )
    while not len(world.broker.holds):
        await world.clock.sleep(0.001)
    await send(peer, 5)
    await send(peer, 6, "y")
    assert len(world.broker.holds) == 1
    await send(peer, 6)
    answer = await pull
    assert [record.queue_offset for record in decode_records(answer.body)] == [3]


async def test_a_held_pull_ends_behind_what_was_not_wanted(world, peer) -> None:
    await send(peer, 1)
    other = await world.connect()
    pull = asyncio.create_task(
        other.pull(
            offset=1, flags=SUSPEND | SUBSCRIPTION, expression_type="SQL92", subscription=WANTED, suspend_ms=2000
        )
    )
    while not len(world.broker.holds):
        await world.clock.sleep(0.001)
    await send(peer, 5)
    answer = await pull
    assert (answer.code, answer.ext()["nextBeginOffset"]) == (19, "2")


async def test_retries_are_not_filtered(peer) -> None:
    topic = retry_topic("consumers")
    await peer.ask(RequestCode.HEART_BEAT, None, heartbeat(WANTED, topics=("orders", topic)))
    await send(peer, 1, topic=topic)
    assert len(await peer.records(topic, flags=0)) == 1
    assert await offsets(peer, topic=topic) == [0]


async def test_a_broken_expression_is_refused_with_its_place(peer) -> None:
    await send(peer, 1)
    answer = await peer.pull(expression_type="SQL92", subscription="a > 5 AND")
    assert answer.code == 23
    assert "line 1, column 10" in answer.remark


async def test_a_heartbeat_with_a_broken_expression_makes_nobody_a_member(world, peer) -> None:
    answer = await peer.ask(RequestCode.HEART_BEAT, None, heartbeat("a = 'x"))
    assert answer.code == 23
    assert "line 1, column 5" in answer.remark
    assert world.broker.clients.group("consumers") is None


async def test_a_consumer_keeps_its_filter_when_the_next_one_is_broken(peer) -> None:
    for a in (5, 6):
        await send(peer, a)
    await peer.ask(RequestCode.HEART_BEAT, None, heartbeat(WANTED))
    assert (await peer.ask(RequestCode.HEART_BEAT, None, heartbeat("a >"))).code == 23
    assert [record.queue_offset for record in await peer.records(flags=0)] == [1]


async def test_where_it_is_switched_off_sql_is_refused(world, peer) -> None:
    await send(peer, 6)
    await peer.ask(RequestCode.HEART_BEAT, None, heartbeat(WANTED))
    world.broker.settings.broker.sql_filter = False
    for answer in (
        await peer.pull(expression_type="SQL92", subscription=WANTED),
        await peer.pull(flags=0),
    ):
        assert answer.code == 1
        assert answer.remark.startswith("The broker does not support consumer to filter message by SQL92")
    world.broker.settings.broker.sql_filter = True
    assert await offsets(peer) == [0]


@pytest.mark.parametrize("topic", ["t", "t" * 127, "t" * 200])
@pytest.mark.parametrize("store_host", ["10.0.0.1", "::1"])
@pytest.mark.parametrize("born_host", ["10.0.0.1", "::1"])
def test_the_properties_of_any_record_are_found(topic: str, store_host: str, born_host: str) -> None:
    record = encode_record(
        topic,
        b"body" * 50,
        b"a\x016\x02",
        queue_id=0,
        queue_offset=0,
        physical_offset=7,
        born_timestamp=1,
        born_host=pack_host(born_host, 1),
        store_timestamp=1,
        store_host=pack_host(store_host, 2),
    )
    view = memoryview(b"before!" + record + b"behind")
    assert properties_of(view, 7, len(record)) == b"a\x016\x02"
