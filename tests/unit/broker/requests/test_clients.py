"""Heartbeats, lists of clients and notices, as clients see them."""

import asyncio
from typing import Any

import msgspec
import pytest

from pocketmq.model.config import Subscription
from pocketmq.wire.bodies.clients import (
    CheckClientRequestBody,
    ConsumerConnection,
    GetConsumerListByGroupResponseBody,
    ProducerConnection,
    ProducerTableInfo,
)
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.clients import (
    GetConsumerConnectionListRequestHeader,
    GetConsumerListByGroupRequestHeader,
    GetProducerConnectionListRequestHeader,
    UnregisterClientRequestHeader,
)

World = Any
Client = Any


async def consumer_ids(client: Client, group: str = "g") -> list[str]:
    body = await client.ask_body(
        GetConsumerListByGroupResponseBody,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        GetConsumerListByGroupRequestHeader(group),
    )
    return list(body.consumer_id_list)


def notices(client: Client) -> list[str]:
    """Groups that the client was told of, one-way."""
    assert all(command.code == RequestCode.NOTIFY_CONSUMER_IDS_CHANGED for command in client.asked)
    assert all(command.is_oneway for command in client.asked)
    return [command.ext()["consumerGroup"] for command in client.asked]


async def test_a_heartbeat_creates_the_group_and_its_retry_topic(world: World, client: Client) -> None:
    fields = await client.heartbeat(groups=("g",))
    assert fields == {"IS_SUPPORT_HEART_BEAT_V2": "true", "IS_SUB_CHANGE": "true", "handover": "true"}
    assert "g" in world.broker.groups
    retry = world.broker.topics.get("%RETRY%g")
    assert (retry.read_queue_nums, retry.write_queue_nums, retry.perm) == (1, 1, 6)


async def test_the_retry_topic_has_as_many_queues_as_the_group_asks_for(world: World, client: Client) -> None:
    await client.create_group("g", retry_queue_nums=3)
    await client.heartbeat(groups=("g",), unit_mode=True)
    retry = world.broker.topics.get("%RETRY%g")
    assert (retry.read_queue_nums, retry.topic_sys_flag) == (3, 2)


async def test_a_group_that_may_not_be_created_is_skipped_in_silence(world: World, client: Client) -> None:
    world.settings.broker.auto_create_group = False
    await client.heartbeat(groups=("g",), producers=("p",))
    assert "g" not in world.broker.groups
    assert world.broker.clients.client_ids("g") == []
    assert len(world.broker.clients.producers("p")) == 1


async def test_a_group_name_that_cannot_be_does_not_keep_the_others_away(world: World, client: Client) -> None:
    body = {
        "clientID": "c1",
        "consumerDataSet": [{"groupName": "no blanks"}, {"groupName": "g"}],
        "producerDataSet": [],
    }
    await client.ask(RequestCode.HEART_BEAT, None, msgspec.json.encode(body), expect=29)
    assert world.broker.clients.client_ids("g") == ["c1"]


async def test_a_heartbeat_as_a_go_client_writes_it(world: World, client: Client) -> None:
    body = (
        b'{"clientID":"10.0.0.2@1","producerDataSet":[{"groupName":"p"}],"consumerDataSet":[{"groupName":"g",'
        b'"consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING","consumeFromWhere":"CONSUME_FROM_FIRST_OFFSET",'
        b'"subscriptionDataSet":[{"classFilterMode":false,"topic":"orders","subString":"a||b","tagsSet":["a","b"],'
        b'"codeSet":[97,"98"],"subVersion":"17","expressionType":""}],"unitMode":false}]}'
    )
    await client.ask(RequestCode.HEART_BEAT, None, body)
    found = world.broker.clients.subscription(None, "g", "orders")
    assert (found.sub_string, found.code_set, found.sub_version) == ("a||b", [97, 98], 17)


async def test_a_heartbeat_that_is_no_json_is_an_error(client: Client) -> None:
    await client.ask(RequestCode.HEART_BEAT, None, b"hello", expect=1)


async def test_heartbeat_v2_asks_for_everything_after_a_restart(world: World, client: Client) -> None:
    first = await client.heartbeat(groups=("g",), fingerprint=7)
    assert first["IS_SUB_CHANGE"] == "false"
    again = await client.heartbeat(groups=("g",), fingerprint=7, without=True)
    assert again["IS_SUB_CHANGE"] == "false"
    await world.restart()
    client = await world.connect()
    lost = await client.heartbeat(groups=("g",), fingerprint=7, without=True)
    assert lost["IS_SUB_CHANGE"] == "true"
    assert await consumer_ids(client) == ["c1"]


async def test_the_consumer_list_of_a_group(world: World, client: Client) -> None:
    other = await world.connect()
    await client.heartbeat("c1", groups=("g",))
    await other.heartbeat("c2", groups=("g",))
    assert sorted(await consumer_ids(client)) == ["c1", "c2"]


async def test_a_group_without_consumers_has_no_list(client: Client) -> None:
    header = GetConsumerListByGroupRequestHeader("g")
    answer = await client.ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header, expect=1)
    assert answer.remark == "no consumer for this group, g"


async def test_members_are_told_who_comes_and_who_goes(world: World, client: Client) -> None:
    await client.heartbeat("c1", groups=("g",))
    await asyncio.sleep(1)
    client.asked.clear()
    other = await world.connect()
    await other.heartbeat("c2", groups=("g",))
    await asyncio.sleep(1)
    assert (notices(client), notices(other)) == (["g"], ["g"])
    other.connection.close()
    await asyncio.sleep(1)
    assert notices(client) == ["g", "g"]
    assert await consumer_ids(client) == ["c1"]


async def test_a_heartbeat_that_changes_nothing_tells_nobody(client: Client) -> None:
    await client.heartbeat(groups=("g",))
    await asyncio.sleep(1)
    client.asked.clear()
    await client.heartbeat(groups=("g",))
    await asyncio.sleep(1)
    assert notices(client) == []


async def test_a_group_may_switch_notices_off(world: World, client: Client) -> None:
    await client.create_group("g", notify_consumer_ids_changed_enable=False)
    await client.heartbeat(groups=("g",))
    await asyncio.sleep(1)
    assert notices(client) == []


async def test_unregistering(world: World, client: Client) -> None:
    await client.heartbeat(groups=("g", "h"), producers=("p",))
    await client.ask(
        RequestCode.UNREGISTER_CLIENT, UnregisterClientRequestHeader("c1", producer_group="p", consumer_group="g")
    )
    assert world.broker.clients.client_ids("g") == []
    assert world.broker.clients.client_ids("h") == ["c1"]
    assert world.broker.clients.producers("p") == []


async def test_a_client_that_sends_no_heartbeat_is_forgotten(world: World, client: Client) -> None:
    await client.heartbeat(groups=("g",))
    for _ in range(11):
        await asyncio.sleep(10)
        assert await consumer_ids(client) == ["c1"], "it asks, but it must say that it is there"
    await asyncio.sleep(25)
    assert world.broker.clients.client_ids("g") == []
    assert client.connection.closed


async def test_who_consumes(world: World, client: Client) -> None:
    await client.heartbeat("c1", groups=("g",), topics={"orders": "a || b"})
    found = await client.ask_body(
        ConsumerConnection,
        RequestCode.GET_CONSUMER_CONNECTION_LIST,
        GetConsumerConnectionListRequestHeader("g"),
    )
    (connection,) = found.connection_set
    assert connection.client_id == "c1"
    assert connection.client_addr.startswith("10.0.0.1:")
    assert (connection.language, connection.version) == ("PYTHON", 479)
    assert found.subscription_table["orders"].sub_string == "a || b"
    assert (found.consume_type, found.message_model) == ("CONSUME_PASSIVELY", "CLUSTERING")


async def test_nobody_consumes(client: Client) -> None:
    header = GetConsumerConnectionListRequestHeader("g")
    await client.ask(RequestCode.GET_CONSUMER_CONNECTION_LIST, header, expect=206)


async def test_who_produces(client: Client) -> None:
    await client.heartbeat("c1", producers=("p",))
    found = await client.ask_body(
        ProducerConnection, RequestCode.GET_PRODUCER_CONNECTION_LIST, GetProducerConnectionListRequestHeader("p")
    )
    assert [connection.client_id for connection in found.connection_set] == ["c1"]
    table = await client.ask_body(ProducerTableInfo, RequestCode.GET_ALL_PRODUCER_INFO)
    (info,) = table.data["p"]
    assert info.remote_ip == found.connection_set[0].client_addr
    assert info.last_update_timestamp > 0


async def test_nobody_produces(client: Client) -> None:
    header = GetProducerConnectionListRequestHeader("p")
    await client.ask(RequestCode.GET_PRODUCER_CONNECTION_LIST, header, expect=1)


@pytest.mark.parametrize(
    ("expression_type", "expression", "allowed", "code"),
    [
        ("TAG", "a || b", True, 0),
        (None, "*", True, 0),
        ("SQL92", "a > 1", True, 0),
        ("SQL92", "a > ", True, 23),
        ("SQL92", "a > 1", False, 1),
        ("NONSENSE", "a", True, 23),
    ],
)
async def test_a_client_asks_whether_its_filter_will_do(
    world: World, client: Client, expression_type: str | None, expression: str, allowed: bool, code: int
) -> None:
    world.settings.broker.sql_filter = allowed
    subscription = Subscription(topic="orders", sub_string=expression, expression_type=expression_type)
    body = CheckClientRequestBody("c1", "g", subscription)
    answer = await client.ask(RequestCode.CHECK_CLIENT_CONFIG, None, body, expect=code)
    if code == 1:
        assert answer.remark.startswith("The broker does not support consumer to filter message by SQL92")
