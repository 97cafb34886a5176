"""Topics, as operators create, change, list and delete them."""

import asyncio
from typing import Any

import msgspec
import pytest

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.registration import (
    CreateTopicListRequestBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
)
from pocketmq.wire.bodies.routes import TopicList
from pocketmq.wire.bodies.statistics import TopicStatsTable
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.offsets import QueryConsumerOffsetRequestHeader, UpdateConsumerOffsetRequestHeader
from pocketmq.wire.headers.topics import (
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)

World = Any
Client = Any


async def get(client: Client, topic: str) -> TopicConfigAndQueueMapping:
    header = GetTopicConfigRequestHeader(topic)
    found: TopicConfigAndQueueMapping = await client.ask_body(
        TopicConfigAndQueueMapping, RequestCode.GET_TOPIC_CONFIG, header
    )
    return found


async def test_a_topic_is_created_and_read_back(client: Client) -> None:
    await client.create_topic("orders", read=8, write=4, perm=4, order=True, topic_sys_flag=2)
    config = await get(client, "orders")
    assert (config.read_queue_nums, config.write_queue_nums, config.perm) == (8, 4, 4)
    assert (config.order, config.topic_sys_flag, config.topic_filter_type) == (True, 2, "SINGLE_TAG")


async def test_a_topic_is_changed(client: Client) -> None:
    await client.create_topic("orders", queues=4)
    await client.create_topic("orders", queues=6)
    assert (await get(client, "orders")).read_queue_nums == 6


async def test_a_created_topic_outlives_the_broker(world: World, client: Client) -> None:
    await client.create_topic("orders", queues=3, attributes="+message.type=FIFO")
    await world.restart()
    config = await get(await world.connect(), "orders")
    assert (config.write_queue_nums, config.attributes) == (3, {"message.type": "FIFO"})


@pytest.mark.parametrize(
    ("topic", "fields", "code"),
    [
        ("no blanks", {}, 29),
        ("x" * 128, {}, 29),
        ("", {}, 29),
        ("TBW102", {}, 29),
        ("SCHEDULE_TOPIC_XXXX", {}, 29),
        ("rmq_sys_pocketmq_journal", {}, 29),
        ("orders", {"write": -1}, 29),
        ("orders", {"read": 100_000}, 29),
        ("orders", {"perm": 77}, 29),
        ("orders", {"filter_type": "NO_TAG"}, 29),
        ("orders", {"attributes": "+no.such=1"}, 1),
        ("orders", {"attributes": "-message.type"}, 1),
        ("orders", {"attributes": "message.type=FIFO"}, 1),
        ("orders", {"attributes": "+cleanup.policy=COMPACTION"}, 1),
    ],
)
async def test_a_topic_that_cannot_be(client: Client, topic: str, fields: dict[str, Any], code: int) -> None:
    await client.create_topic(topic, expect=code, **fields)


async def test_attributes_are_edited(client: Client) -> None:
    await client.create_topic("orders", attributes="+message.type=NORMAL")
    await client.create_topic("orders", attributes="+message.type=FIFO,+queue.type=SimpleCQ")
    assert (await get(client, "orders")).attributes == {"message.type": "FIFO", "queue.type": "SimpleCQ"}
    await client.create_topic("orders", attributes="-message.type")
    assert (await get(client, "orders")).attributes == {"queue.type": "SimpleCQ"}
    answer = await client.create_topic("orders", attributes="-queue.type", expect=1)
    assert "unchangeable" in answer.remark


async def test_several_topics_at_once(client: Client) -> None:
    await client.create_topic("first")
    body = CreateTopicListRequestBody(
        [
            TopicConfig(topic_name="first", read_queue_nums=4, write_queue_nums=4),
            TopicConfig(topic_name="second", attributes={"+message.type": "DELAY"}),
            TopicConfig(topic_name="third", attributes={"message.type": "FIFO"}),
        ]
    )
    await client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, body)
    assert (await get(client, "second")).attributes == {"message.type": "DELAY"}
    assert (await get(client, "third")).attributes == {"message.type": "FIFO"}


async def test_several_topics_are_all_checked_before_one_is_created(world: World, client: Client) -> None:
    body = CreateTopicListRequestBody([TopicConfig(topic_name="good"), TopicConfig(topic_name="not good")])
    await client.ask(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, None, body, expect=29)
    assert "good" not in world.broker.topics


async def test_an_unknown_topic_has_no_settings(client: Client) -> None:
    answer = await client.ask(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader("orders"), expect=17)
    assert "pocketmq topic create orders" in answer.remark


async def test_all_topics(world: World, client: Client) -> None:
    await client.create_topic("orders")
    answer = await client.ask(RequestCode.GET_ALL_TOPIC_CONFIG)
    body = msgspec.json.decode(answer.body)
    assert {"orders", "TBW102"} <= set(body["topicConfigTable"])
    assert answer.ext()["totalTopicNum"] == str(len(world.broker.topics))
    assert body["dataVersion"]["counter"] == world.broker.topics.data_version.counter


async def test_all_topics_page_by_page(world: World, client: Client) -> None:
    names: list[str] = []
    version: DataVersion | None = None
    while len(names) < len(world.broker.topics):
        known = msgspec.json.encode(version).decode() if version else None
        header = GetAllTopicConfigRequestHeader(len(names), known, 3)
        body = await client.ask_body(TopicConfigAndMappingSerializeWrapper, RequestCode.GET_ALL_TOPIC_CONFIG, header)
        assert 0 < len(body.topic_config_table) <= 3
        names.extend(body.topic_config_table)
        version = body.data_version
    assert sorted(names) == world.broker.topics.names()


async def test_a_reader_of_an_older_table_begins_anew(world: World, client: Client) -> None:
    stale = msgspec.json.encode(DataVersion(counter=1)).decode()
    header = GetAllTopicConfigRequestHeader(5, stale, 2)
    body = await client.ask_body(TopicConfigAndMappingSerializeWrapper, RequestCode.GET_ALL_TOPIC_CONFIG, header)
    assert list(body.topic_config_table) == world.broker.topics.names()[:2]


async def test_what_is_in_each_queue(world: World, client: Client) -> None:
    await client.create_topic("orders", read=1, write=2)
    await client.send(queue_id=1)
    await client.send(queue_id=1)
    await asyncio.sleep(30)
    table = await client.ask_body(
        TopicStatsTable, RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader("orders")
    )
    empty = table.offset_table[MessageQueue("orders", "broker-a", 0)]
    used = table.offset_table[MessageQueue("orders", "broker-a", 1)]
    assert (empty.min_offset, empty.max_offset, empty.last_update_timestamp) == (0, 0, 0)
    assert (used.min_offset, used.max_offset) == (0, 2)
    assert 29_000 < world.clock.time_ms() - used.last_update_timestamp < 31_000
    assert table.topic_put_tps == pytest.approx(2 / 30, rel=0.1)


async def test_an_unknown_topic_has_no_numbers(client: Client) -> None:
    await client.ask(RequestCode.GET_TOPIC_STATS_INFO, GetTopicStatsInfoRequestHeader("orders"), expect=17)


async def test_the_topics_of_the_broker_itself(client: Client) -> None:
    body = await client.ask_body(TopicList, RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER)
    assert {"TBW102", "SCHEDULE_TOPIC_XXXX"} <= set(body.topic_list)


async def test_a_deleted_topic_is_gone_with_its_messages_and_cursors(world: World, client: Client) -> None:
    await client.create_topic("orders")
    await client.create_group("g")
    await client.send()
    await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, UpdateConsumerOffsetRequestHeader("g", "orders", 0, 1))
    await client.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("orders"))
    assert "orders" not in world.broker.topics
    assert world.broker.log.queue("orders", 0) is None
    header = QueryConsumerOffsetRequestHeader("g", "orders", 0)
    await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, header, expect=22)
    assert "orders" not in {each.topic for each in world.broker.statistics.snapshot().topics}


async def test_deleting_what_is_not_there_is_fine(client: Client) -> None:
    await client.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader("orders"))


@pytest.mark.parametrize("topic", ["", "  ", "TBW102", "rmq_sys_anything"])
async def test_a_topic_that_cannot_be_deleted(client: Client, topic: str) -> None:
    await client.ask(RequestCode.DELETE_TOPIC_IN_BROKER, DeleteTopicRequestHeader(topic), expect=29)


async def test_queues_without_a_topic_are_cleaned_up(world: World, client: Client) -> None:
    await client.create_topic("orders")
    await client.send()
    world.broker.log.ensure_queue("forgotten", 0)
    await client.ask(RequestCode.CLEAN_UNUSED_TOPIC)
    assert world.broker.log.queue("forgotten", 0) is None
    assert world.broker.log.queue("orders", 0) is not None
