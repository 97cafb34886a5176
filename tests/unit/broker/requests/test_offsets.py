"""Cursors and queue offsets, as consumers and operators see them."""

import asyncio
from typing import Any

import pytest

from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.offsets import ConsumerOffsetSerializeWrapper, QueryCorrectionOffsetBody, ResetOffsetBody
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.offsets import (
    CloneGroupOffsetRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetMaxOffsetRequestHeader,
    GetMinOffsetRequestHeader,
    QueryConsumerOffsetRequestHeader,
    QueryCorrectionOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    UpdateConsumerOffsetRequestHeader,
)
from pocketmq.wire.headers.pull import PullMessageRequestHeader

World = Any
Client = Any


@pytest.fixture
async def ready(client: Client) -> Client:
    """A client, a topic with two queues, a group, and four messages in queue 0, a minute apart."""
    await client.create_topic("orders", queues=2)
    await client.create_group("g")
    for _ in range(4):
        await client.send()
        await asyncio.sleep(60)
    return client


async def commit(client: Client, offset: int, *, queue_id: int = 0, group: str = "g", topic: str = "orders") -> None:
    """As consumers do: one-way."""
    header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
    client.connection.request_oneway(RequestCode.UPDATE_CONSUMER_OFFSET, header)
    await asyncio.sleep(0.01)


async def set_cursor(
    client: Client, offset: int, *, expect: int = 0, queue_id: int = 0, group: str = "g", topic: str = "orders"
) -> Any:
    """As operators do: waiting for the answer."""
    header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
    return await client.ask(RequestCode.UPDATE_CONSUMER_OFFSET, header, expect=expect)


async def query(
    client: Client,
    *,
    expect: int = 0,
    queue_id: int = 0,
    group: str = "g",
    topic: str = "orders",
    zero: bool | None = None,
) -> int | None:
    header = QueryConsumerOffsetRequestHeader(group, topic, queue_id, zero)
    answer = await client.ask(RequestCode.QUERY_CONSUMER_OFFSET, header, expect=expect)
    return None if expect else int(answer.ext()["offset"])


async def reset(client: Client, *, expect: int = 0, **fields: Any) -> dict[int, int]:
    header = ResetOffsetRequestHeader(**{"group": "g", "topic": "orders", "timestamp": -1, "is_force": True} | fields)
    answer = await client.ask(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header, expect=expect)
    if expect:
        return {}
    table = decode_body(answer.body, ResetOffsetBody).offset_table
    assert all((queue.topic, queue.broker_name) == ("orders", "broker-a") for queue in table)
    return {queue.queue_id: offset for queue, offset in table.items()}


async def field(client: Client, code: int, header: Any, name: str = "offset") -> int:
    return int((await client.ask(code, header)).ext()[name])


# -- queues


async def test_the_ends_of_a_queue(ready: Client) -> None:
    assert await field(ready, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader("orders", 0)) == 4
    assert await field(ready, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader("orders", 0)) == 0


async def test_a_queue_that_does_not_exist_begins_and_ends_at_zero(ready: Client) -> None:
    for topic, queue_id in (("orders", 1), ("orders", 99), ("unknown", 0)):
        assert await field(ready, RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic, queue_id)) == 0
        assert await field(ready, RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic, queue_id)) == 0
        header = SearchOffsetRequestHeader(topic, queue_id, 1)
        assert await field(ready, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header) == 0


async def test_the_time_of_the_oldest_message(world: World, ready: Client) -> None:
    header = GetEarliestMsgStoretimeRequestHeader("orders", 0)
    found = await field(ready, RequestCode.GET_EARLIEST_MSG_STORETIME, header, "timestamp")
    assert 239_000 < world.clock.time_ms() - found < 241_000
    header = GetEarliestMsgStoretimeRequestHeader("orders", 1)
    assert await field(ready, RequestCode.GET_EARLIEST_MSG_STORETIME, header, "timestamp") == -1


async def test_an_offset_by_time(world: World, ready: Client) -> None:
    now = world.clock.time_ms()

    async def search(ago_s: float, boundary: str | None) -> int:
        header = SearchOffsetRequestHeader("orders", 0, int(now - ago_s * 1000), boundary)
        return await field(ready, RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, header)

    assert await search(1000, "LOWER") == 0
    assert await search(150, None) == 2
    assert await search(150, "LOWER") == 2
    assert await search(150, "UPPER") == 1
    assert await search(0, "LOWER") == 4
    assert await search(0, "UPPER") == 3


# -- cursors


async def test_a_commit_is_seen_at_once(ready: Client) -> None:
    await commit(ready, 3)
    assert await query(ready) == 3


async def test_a_cursor_never_goes_back_by_a_commit(ready: Client) -> None:
    await commit(ready, 3)
    await commit(ready, 1)
    assert await query(ready) == 3


async def test_who_waits_for_the_answer_may_set_it_back(ready: Client) -> None:
    await commit(ready, 3)
    await set_cursor(ready, 1)
    assert await query(ready) == 1


async def test_cursors_outlive_the_broker(world: World, ready: Client) -> None:
    await commit(ready, 3)
    await set_cursor(ready, 2, queue_id=1)
    await world.restart()
    client = await world.connect()
    assert await query(client) == 3
    assert await query(client, queue_id=1) == 2


async def test_a_cursor_beyond_the_end_may_be_committed_back(ready: Client) -> None:
    await set_cursor(ready, 1000)
    await commit(ready, 4)
    assert await query(ready) == 4


async def test_a_new_group_on_a_young_queue_begins_at_zero(ready: Client) -> None:
    assert await query(ready) == 0
    assert await query(ready, zero=True) == 0


async def test_a_consumer_may_decide_for_itself_where_to_begin(ready: Client) -> None:
    await query(ready, zero=False, expect=22)
    await query(ready, queue_id=1, expect=22)
    await query(ready, topic="unknown", expect=22)


@pytest.mark.parametrize(
    ("fields", "code"),
    [({"group": "nobody"}, 26), ({"topic": "nothing"}, 17), ({"queue_id": -1}, 29), ({"offset": -1}, 29)],
)
async def test_a_commit_that_cannot_be(ready: Client, fields: dict[str, Any], code: int) -> None:
    await set_cursor(ready, **{"offset": 1} | fields, expect=code)


async def test_all_cursors(ready: Client) -> None:
    await commit(ready, 3)
    await commit(ready, 0, queue_id=1)
    body = await ready.ask_body(ConsumerOffsetSerializeWrapper, RequestCode.GET_ALL_CONSUMER_OFFSET)
    assert body.offset_table == {"orders@g": {0: 3, 1: 0}}


# -- resets


async def test_a_reset_moves_the_cursors_and_tells_the_next_pull_once(ready: Client) -> None:
    await ready.heartbeat(groups=("g",))
    await commit(ready, 4)
    assert await reset(ready, queue_id=0, offset=1) == {0: 1}
    assert await query(ready) == 1
    told = await ready.pull("orders", "g", 4)
    assert (told.code, told.ext()["nextBeginOffset"]) == (21, "1")
    assert (await ready.pull("orders", "g", 1)).code == 0


async def test_a_held_pull_comes_back_at_once_so_that_the_consumer_is_told(world: World, ready: Client) -> None:
    await ready.heartbeat(groups=("g",))
    header = PullMessageRequestHeader("g", "orders", 0, 4, 32, 2, 0, 15_000, 0, None, None)
    held = ready.connection.start_request(RequestCode.PULL_MESSAGE, header, timeout_s=60)
    await asyncio.sleep(1)
    before = world.clock.monotonic()
    await reset(ready, queue_id=0, offset=1)
    assert (await held).code in (19, 21)
    assert world.clock.monotonic() - before < 1
    assert (await ready.pull("orders", "g", 4)).code == 21


async def test_until_it_is_told_commits_are_ignored(ready: Client) -> None:
    await reset(ready, queue_id=0, offset=1)
    await commit(ready, 4)
    answer = await set_cursor(ready, 4)
    assert answer.remark == "Offset has been previously reset"
    assert await query(ready) == 1


async def test_a_reset_by_time_covers_all_queues(world: World, ready: Client) -> None:
    assert await reset(ready, timestamp=world.clock.time_ms() - 150_000) == {0: 2, 1: 0}


async def test_a_reset_to_the_end(ready: Client) -> None:
    assert await reset(ready) == {0: 4, 1: 0}


async def test_a_pending_reset_outlives_the_broker(world: World, ready: Client) -> None:
    await reset(ready, queue_id=0, offset=1)
    await world.restart()
    client = await world.connect()
    await client.heartbeat(groups=("g",))
    assert (await client.pull("orders", "g", 4)).code == 21


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "nothing"}, 17),
        ({"group": "nobody"}, 26),
        ({"queue_id": 0, "offset": 6}, 1),
        ({"queue_id": 7, "offset": 0}, 29),
    ],
)
async def test_a_reset_that_cannot_be(ready: Client, fields: dict[str, Any], code: int) -> None:
    await reset(ready, expect=code, **fields)


# -- copies


async def test_a_group_takes_over_the_cursors_of_another(ready: Client) -> None:
    await ready.create_topic("bills")
    await ready.create_group("new")
    await commit(ready, 3)
    await commit(ready, 2, topic="bills")
    await ready.ask(RequestCode.CLONE_GROUP_OFFSET, CloneGroupOffsetRequestHeader("g", "new", None, True))
    assert await query(ready, group="new") == 3
    assert await query(ready, group="new", topic="bills") == 2


async def test_topics_that_the_consumers_left_are_not_copied_unless_offline(ready: Client) -> None:
    await ready.create_topic("bills")
    await ready.create_group("new")
    await commit(ready, 2, topic="bills")
    await ready.heartbeat(groups=("g",), topics={"orders": "*"})
    header = CloneGroupOffsetRequestHeader("g", "new", "bills", False)
    await ready.ask(RequestCode.CLONE_GROUP_OFFSET, header)
    await query(ready, group="new", topic="bills", expect=22)
    header.offline = True
    await ready.ask(RequestCode.CLONE_GROUP_OFFSET, header)
    assert await query(ready, group="new", topic="bills") == 2


async def test_the_smallest_cursor_of_all_groups(ready: Client) -> None:
    for group, offset in (("g", 3), ("h", 1), ("ignored", 0)):
        await ready.create_group(group)
        await commit(ready, offset, group=group)
    header = QueryCorrectionOffsetRequestHeader("g", "orders", "ignored")
    body = await ready.ask_body(QueryCorrectionOffsetBody, RequestCode.QUERY_CORRECTION_OFFSET, header)
    assert body.correction_offsets == {0: 1}
