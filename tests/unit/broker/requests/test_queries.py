"""Looking up messages, and who consumes what."""

import asyncio
from typing import Any

import pytest

from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.groups import GroupList, QuerySubscriptionResponseBody
from pocketmq.wire.bodies.routes import TopicList
from pocketmq.wire.bodies.statistics import QueryConsumeQueueResponseBody, QueryConsumeTimeSpanBody
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.groups import QueryConsumeTimeSpanRequestHeader, QuerySubscriptionByConsumerRequestHeader
from pocketmq.wire.headers.messages import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    ViewMessageRequestHeader,
)
from pocketmq.wire.headers.offsets import UpdateConsumerOffsetRequestHeader
from pocketmq.wire.headers.topics import QueryTopicConsumeByWhoRequestHeader, QueryTopicsByConsumerRequestHeader
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.record import Record, decode_records

World = Any
Client = Any
FOREVER = 2**63 - 1


@pytest.fixture
async def ready(client: Client) -> Client:
    await client.create_topic("orders", queues=2)
    await client.create_group("g")
    return client


async def find(
    client: Client,
    key: str,
    *,
    count: int = 32,
    begin: int = 0,
    end: int = FOREVER,
    unique: bool = False,
    topic: str = "orders",
    expect: int = 0,
) -> list[Record]:
    header = QueryMessageRequestHeader(topic, key, count, begin, end).to_ext()
    if unique:
        header["_UNIQUE_KEY_QUERY"] = "true"
    answer = await client.ask(RequestCode.QUERY_MESSAGE, header, expect=expect)
    if expect:
        return []
    assert int(answer.ext()["indexLastUpdateTimestamp"]) > 0
    assert int(answer.ext()["indexLastUpdatePhyoffset"]) > 0
    return decode_records(answer.body)


# -- messages


async def test_by_key(ready: Client) -> None:
    await ready.send(body=b"one", KEYS="o-1 o-2")
    await ready.send(body=b"two", KEYS="o-2")
    assert [record.body for record in await find(ready, "o-1")] == [b"one"]
    assert sorted(record.body for record in await find(ready, "o-2")) == [b"one", b"two"]


async def test_by_key_within_a_time(world: World, ready: Client) -> None:
    await ready.send(body=b"early", KEYS="o")
    await asyncio.sleep(60)
    between = world.clock.time_ms() - 30_000
    await ready.send(body=b"late", KEYS="o")
    assert [record.body for record in await find(ready, "o", begin=between)] == [b"late"]
    assert [record.body for record in await find(ready, "o", end=between)] == [b"early"]


async def test_no_more_than_asked_for_and_no_more_than_64(ready: Client) -> None:
    for _ in range(70):
        await ready.send(KEYS="o")
    assert len(await find(ready, "o", count=3)) == 3
    assert len(await find(ready, "o", count=1000)) == 64


async def test_by_unique_key(ready: Client) -> None:
    await ready.send(body=b"one", UNIQ_KEY="AC11000200002A9F000000000000BEEF")
    assert [r.body for r in await find(ready, "AC11000200002A9F000000000000BEEF", unique=True)] == [b"one"]


@pytest.mark.parametrize(("topic", "key"), [("orders", "unknown"), ("bills", "o-1")])
async def test_a_key_that_no_message_has(ready: Client, topic: str, key: str) -> None:
    await ready.send(KEYS="o-1")
    await find(ready, key, topic=topic, expect=22)


async def test_by_position(ready: Client) -> None:
    message_id = (await ready.send(body=b"here"))["msgId"]
    _, port, position = decode_offset_id(message_id)
    assert port == 10911
    answer = await ready.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(position))
    (record,) = decode_records(answer.body)
    assert (record.body, record.physical_offset) == (b"here", position)


@pytest.mark.parametrize("position", [-1, 7, 10**12])
async def test_a_position_where_no_message_begins(ready: Client, position: int) -> None:
    await ready.send()
    answer = await ready.ask(RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(position), expect=1)
    assert answer.remark.startswith(f"can not find message by the offset, {position}")


async def test_index_units(ready: Client) -> None:
    ids = [(await ready.send(TAGS=tag))["msgId"] for tag in ("a", "b", "a")]
    await ready.heartbeat(groups=("g",))
    header = QueryConsumeQueueRequestHeader("orders", 0, 1, 10, "g")
    body = await ready.ask_body(QueryConsumeQueueResponseBody, RequestCode.QUERY_CONSUME_QUEUE, header)
    assert (body.min_queue_index, body.max_queue_index) == (0, 3)
    assert [unit.physic_offset for unit in body.queue_data] == [decode_offset_id(each)[2] for each in ids[1:]]
    assert [unit.tags_code for unit in body.queue_data] == [98, 97]
    assert all(unit.eval for unit in body.queue_data)
    assert body.subscription_data is not None


async def test_index_units_of_a_queue_that_does_not_exist(ready: Client) -> None:
    header = QueryConsumeQueueRequestHeader("orders", 1, 0, 10, None)
    answer = await ready.ask(RequestCode.QUERY_CONSUME_QUEUE, header, expect=1)
    assert answer.remark == "1@orders is not exist!"


# -- groups


async def test_groups_of_a_topic_are_those_online_and_those_with_a_cursor(ready: Client) -> None:
    await ready.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("g", "orders", 0, 0))
    await ready.heartbeat(groups=("online",))
    body = await ready.ask_body(
        GroupList, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, QueryTopicConsumeByWhoRequestHeader("orders")
    )
    assert body.group_list == ["g", "online"]


async def test_topics_of_a_group(ready: Client) -> None:
    await ready.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("g", "orders", 0, 0))
    body = await ready.ask_body(
        TopicList, RequestCode.QUERY_TOPICS_BY_CONSUMER, QueryTopicsByConsumerRequestHeader("g")
    )
    assert body.topic_list == ["orders"]
    assert body.broker_addr is not None


async def test_the_subscription_of_a_group(ready: Client) -> None:
    await ready.heartbeat(groups=("g",), topics={"orders": "a"})

    async def subscription(topic: str) -> QuerySubscriptionResponseBody:
        found: QuerySubscriptionResponseBody = await ready.ask_body(
            QuerySubscriptionResponseBody,
            RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER,
            QuerySubscriptionByConsumerRequestHeader("g", topic),
        )
        return found

    found = (await subscription("orders")).subscription_data
    assert found is not None
    assert found.sub_string == "a"
    assert (await subscription("bills")).subscription_data is None


async def test_how_far_a_group_has_come_in_times(world: World, ready: Client) -> None:
    started = world.clock.time_ms()
    for _ in range(3):
        await ready.send()
        await asyncio.sleep(60)
    await ready.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("g", "orders", 0, 1))
    body = await ready.ask_body(
        QueryConsumeTimeSpanBody,
        RequestCode.QUERY_CONSUME_TIME_SPAN,
        QueryConsumeTimeSpanRequestHeader("orders", "g"),
    )
    spans = {span.message_queue: span for span in body.consume_time_span_set}
    used = spans[MessageQueue("orders", "broker-a", 0)]
    minutes = [
        round((ms - started) / 60_000) for ms in (used.min_time_stamp, used.max_time_stamp, used.consume_time_stamp)
    ]
    assert minutes == [0, 2, 0]
    assert round(used.delay_time / 60_000) == 2
    assert used.min_time_stamp_str is not None
    assert len(used.min_time_stamp_str) == len("2023-11-14#22:13:20:000")
    empty = spans[MessageQueue("orders", "broker-a", 1)]
    assert (empty.min_time_stamp, empty.max_time_stamp, empty.delay_time) == (-1, -1, 0)


async def test_times_in_an_unknown_topic(ready: Client) -> None:
    header = QueryConsumeTimeSpanRequestHeader("nothing", "g")
    await ready.ask(RequestCode.QUERY_CONSUME_TIME_SPAN, header, expect=17)
