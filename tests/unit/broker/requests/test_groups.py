"""Consumer groups, as operators create, change, list and delete them, and how far they have come."""

import asyncio
from typing import Any

import msgspec
import pytest

from pocketmq.model.config import GroupConfig
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.groups import GroupForbidden, SubscriptionGroupList, SubscriptionGroupWrapper
from pocketmq.wire.bodies.statistics import ConsumeStats, ConsumeStatsList
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.groups import (
    DeleteSubscriptionGroupRequestHeader,
    GetAllSubscriptionGroupRequestHeader,
    GetConsumeStatsInBrokerRequestHeader,
    GetConsumeStatsRequestHeader,
    GetSubscriptionGroupConfigRequestHeader,
    UpdateGroupForbiddenRequestHeader,
)
from pocketmq.wire.headers.offsets import UpdateConsumerOffsetRequestHeader

World = Any
Client = Any


async def get(client: Client, group: str) -> GroupConfig:
    found: GroupConfig = await client.ask_body(
        GroupConfig, RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, GetSubscriptionGroupConfigRequestHeader(group)
    )
    return found


async def set_cursor(client: Client, group: str, topic: str, offset: int) -> None:
    header = UpdateConsumerOffsetRequestHeader(group, topic, 0, offset)
    await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header)


async def progress(client: Client, group: str, **fields: Any) -> dict[str, tuple[int, int, int]]:
    """Of queue 0 of each topic: (end, cursor, pulled)."""
    body = await client.ask_body(
        ConsumeStats, RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader(group, **fields)
    )
    return {
        queue.topic: (found.broker_offset, found.consumer_offset, found.pull_offset)
        for queue, found in body.offset_table.items()
        if queue.queue_id == 0
    }


# -- settings


async def test_a_group_is_created_and_read_back(client: Client) -> None:
    await client.create_group("g", retry_max_times=3, consume_message_orderly=True, retry_queue_nums=2)
    config = await get(client, "g")
    assert (config.retry_max_times, config.consume_message_orderly, config.retry_queue_nums) == (3, True, 2)


async def test_a_group_as_an_old_tool_writes_it(world: World, client: Client) -> None:
    body = b'{"groupName":"g","consumeEnable":false,"groupRetryPolicy":null,"brokerId":0,"attributes":{}}'
    await client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)
    assert world.broker.groups.get("g").consume_enable is False


async def test_a_created_group_outlives_the_broker(world: World, client: Client) -> None:
    await client.create_group("g", retry_max_times=3)
    await world.restart()
    assert (await get(await world.connect(), "g")).retry_max_times == 3


@pytest.mark.parametrize(
    ("group", "fields", "code"),
    [
        ("no blanks", {}, 29),
        ("x" * 121, {}, 29),
        ("g", {"retry_queue_nums": -1}, 29),
        ("g", {"attributes": {"no.such": "1"}}, 1),
        ("g", {"attributes": {"+priority.factor": "101"}}, 1),
    ],
)
async def test_a_group_that_cannot_be(client: Client, group: str, fields: dict[str, Any], code: int) -> None:
    await client.create_group(group, expect=code, **fields)


async def test_group_attributes_are_edited(client: Client) -> None:
    await client.create_group("g", attributes={"+priority.factor": "50"})
    assert (await get(client, "g")).attributes == {"priority.factor": "50"}
    await client.create_group("g", attributes={"-priority.factor": ""})
    assert (await get(client, "g")).attributes == {}


async def test_several_groups_at_once(world: World, client: Client) -> None:
    body = SubscriptionGroupList([GroupConfig(group_name="g"), GroupConfig(group_name="h")])
    await client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, body)
    assert {"g", "h"} <= set(world.broker.groups.names())
    body = SubscriptionGroupList([GroupConfig(group_name="i"), GroupConfig(group_name="not good")])
    await client.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST, None, body, expect=29)
    assert "i" not in world.broker.groups


async def test_asking_for_a_group_creates_it_when_that_is_allowed(world: World, client: Client) -> None:
    assert (await get(client, "g")).group_name == "g"
    world.settings.broker.auto_create_group = False
    header = GetSubscriptionGroupConfigRequestHeader("h")
    await client.ask(RequestCode.GET_SUBSCRIPTIONGROUP_CONFIG, header, expect=26)


async def test_all_groups(world: World, client: Client) -> None:
    await client.create_group("g")
    answer = await client.ask(RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    body = msgspec.json.decode(answer.body)
    assert "g" in body["subscriptionGroupTable"]
    assert body["forbiddenTable"] == {}
    assert answer.ext()["totalGroupNum"] == str(len(world.broker.groups))


async def test_all_groups_page_by_page(world: World, client: Client) -> None:
    for number in range(5):
        await client.create_group(f"g{number}")
    names: list[str] = []
    while len(names) < len(world.broker.groups):
        header = GetAllSubscriptionGroupRequestHeader(len(names), None, 2)
        body = await client.ask_body(SubscriptionGroupWrapper, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, header)
        assert 0 < len(body.subscription_group_table) <= 2
        names.extend(body.subscription_group_table)
    assert names == world.broker.groups.names()


@pytest.mark.parametrize(("clean", "kept"), [(False, 2), (True, None)])
async def test_a_deleted_group_keeps_its_cursors_unless_asked_not_to(
    world: World, client: Client, clean: bool, kept: int | None
) -> None:
    await client.create_topic("orders")
    await client.create_group("g")
    await set_cursor(client, "g", "orders", 2)
    await client.ask(RequestCode.DELETE_SUBSCRIPTIONGROUP, DeleteSubscriptionGroupRequestHeader("g", clean))
    assert "g" not in world.broker.groups
    assert world.broker.cursors.get("g", "orders", 0) == kept


# -- what a group may not read


async def test_a_topic_is_forbidden_to_a_group_and_given_back(world: World, client: Client) -> None:
    await client.create_topic("orders")
    await client.heartbeat(groups=("g",))

    async def forbid(readable: bool | None) -> bool:
        body = await client.ask_body(
            GroupForbidden,
            RequestCode.UPDATE_AND_GET_GROUP_FORBIDDEN,
            UpdateGroupForbiddenRequestHeader("g", "orders", readable),
        )
        assert (body.group, body.topic) == ("g", "orders")
        return bool(body.readable)

    assert await forbid(None) is True
    assert await forbid(False) is False
    assert (await client.pull("orders", "g", 0)).code == 16
    body = await client.ask_body(SubscriptionGroupWrapper, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
    assert body.forbidden_table == {"g": {"orders": 4}}
    await world.restart()
    assert world.broker.groups.is_forbidden("g", "orders")
    client = await world.connect()
    assert await forbid(True) is True
    await client.heartbeat(groups=("g",))
    assert (await client.pull("orders", "g", 0)).code == 19


# -- progress


async def test_how_far_a_group_has_come(world: World, client: Client) -> None:
    await client.create_topic("orders", queues=2)
    await client.create_group("g")
    for _ in range(3):
        await client.send()
    sent_ms = world.clock.time_ms()
    await asyncio.sleep(60)
    await client.heartbeat(groups=("g",))
    assert (await client.pull("orders", "g", 0)).code == 0
    await set_cursor(client, "g", "orders", 2)
    body = await client.ask_body(ConsumeStats, RequestCode.GET_CONSUME_STATS, GetConsumeStatsRequestHeader("g"))
    found = body.offset_table[MessageQueue("orders", "broker-a", 0)]
    assert (found.broker_offset, found.consumer_offset, found.pull_offset) == (3, 2, 3)
    assert 0 <= sent_ms - found.last_timestamp < 1000
    assert body.consume_tps > 0
    empty = body.offset_table[MessageQueue("orders", "broker-a", 1)]
    assert (empty.broker_offset, empty.consumer_offset, empty.last_timestamp) == (0, 0, 0)


async def test_progress_in_some_topics(client: Client) -> None:
    for topic in ("a", "b", "c"):
        await client.create_topic(topic)
        await client.create_group("g")
        await set_cursor(client, "g", topic, 0)
    assert set(await progress(client, "g")) == {"a", "b", "c"}
    assert set(await progress(client, "g", topic="a")) == {"a"}
    assert set(await progress(client, "g", topic_list="a;c;")) == {"a", "c"}
    assert await progress(client, "g", topic="unknown") == {}
    assert await progress(client, "nobody") == {}


async def test_topics_that_the_consumers_left_do_not_count(client: Client) -> None:
    for topic in ("orders", "left"):
        await client.create_topic(topic)
        await client.create_group("g")
        await set_cursor(client, "g", topic, 0)
    await client.heartbeat(groups=("g",), topics={"orders": "*"})
    assert set(await progress(client, "g")) == {"orders"}


async def test_how_far_all_groups_have_come(client: Client) -> None:
    await client.create_topic("orders", queues=1)
    await client.create_topic("sorted", queues=1, order=True)
    for _ in range(3):
        await client.send("orders")
        await client.send("sorted")
    for group in ("g", "h"):
        await client.create_group(group)
        await set_cursor(client, group, "orders", 1)
    await set_cursor(client, "h", "sorted", 3)

    async def everyone(ordered: bool) -> ConsumeStatsList:
        found: ConsumeStatsList = await client.ask_body(
            ConsumeStatsList, RequestCode.GET_BROKER_CONSUME_STATS, GetConsumeStatsInBrokerRequestHeader(ordered)
        )
        return found

    found = await everyone(False)
    assert found.broker_addr.endswith(":10911")
    assert found.total_diff == 4
    assert {group: len(each) for entry in found.consume_stats_list for group, each in entry.items()} == {
        "g": 1,
        "h": 2,
    }
    found = await everyone(True)
    assert {group: len(each) for entry in found.consume_stats_list for group, each in entry.items()} == {"g": 0, "h": 1}
