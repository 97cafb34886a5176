"""Sharing out queues for clients that let the broker do it."""

from typing import Any

import pytest

from pocketmq.broker.assignment import share, share_for_pop
from pocketmq.model.errors import PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.groups import MessageRequestModeSerializeWrapper, SetMessageRequestModeRequestBody
from pocketmq.wire.bodies.offsets import QueryAssignmentRequestBody, QueryAssignmentResponseBody
from pocketmq.wire.codes import RequestCode

World = Any
Client = Any


def queues(count: int, broker: str = "a") -> list[MessageQueue]:
    return [MessageQueue("t", broker, number) for number in range(count)]


def numbers(assigned: list[MessageQueue]) -> list[int]:
    return [queue.queue_id for queue in assigned]


@pytest.mark.parametrize(
    ("strategy", "count", "clients", "expected"),
    [
        ("AVG", 8, 3, [[0, 1, 2], [3, 4, 5], [6, 7]]),
        ("AVG", 4, 2, [[0, 1], [2, 3]]),
        ("AVG", 2, 3, [[0], [1], []]),
        ("AVG_BY_CIRCLE", 8, 3, [[0, 3, 6], [1, 4, 7], [2, 5]]),
        ("AVG_BY_CIRCLE", 1, 2, [[0], []]),
    ],
)
def test_queues_are_shared_out(strategy: str, count: int, clients: int, expected: list[list[int]]) -> None:
    ids = [f"c{number}" for number in range(clients)]
    assert [numbers(share(strategy, me, ids, queues(count))) for me in ids] == expected


def test_a_stranger_gets_nothing() -> None:
    assert share("AVG", "stranger", ["c0"], queues(4)) == []
    assert share_for_pop("AVG", "stranger", ["c0", "c1", "c2"], queues(4), 1) == []


def test_an_unknown_strategy_is_refused() -> None:
    with pytest.raises(PocketMQError, match="AVG_BY_CIRCLE") as refused:
        share("MACHINE_ROOM", "c0", ["c0"], queues(4))
    assert refused.value.code == 29


@pytest.mark.parametrize("share_queues", [0, -1, 2, 5])
def test_popping_from_all_queues_is_one_entry_for_each_broker(share_queues: int) -> None:
    both = queues(2, "a") + queues(2, "b")
    found = share_for_pop("AVG", "c0", ["c0", "c1", "c2"], both, share_queues)
    assert found == [MessageQueue("t", "a", -1), MessageQueue("t", "b", -1)]


def test_popping_from_ones_own_queues_and_the_neighbours() -> None:
    ids = ["c0", "c1", "c2"]
    assert [sorted(numbers(share_for_pop("AVG", me, ids, queues(6), 1))) for me in ids] == [
        [0, 1, 2, 3],
        [2, 3, 4, 5],
        [0, 1, 4, 5],
    ]


def test_with_more_consumers_than_queues_everybody_pops_from_one() -> None:
    ids = ["c0", "c1", "c2", "c3"]
    assert [numbers(share_for_pop("AVG", me, ids, queues(2), 1)) for me in ids] == [[0], [1], [0], [1]]


async def ask(client: Client, client_id: str = "c1", **fields: Any) -> QueryAssignmentResponseBody:
    body = QueryAssignmentRequestBody(**{"topic": "orders", "consumer_group": "g", "client_id": client_id} | fields)
    found: QueryAssignmentResponseBody = await client.ask_body(
        QueryAssignmentResponseBody, RequestCode.QUERY_ASSIGNMENT, None, body
    )
    return found


def assigned(found: QueryAssignmentResponseBody) -> list[tuple[str, int]]:
    assert found.message_queue_assignments is not None
    return [(each.mode, each.message_queue.queue_id) for each in found.message_queue_assignments]


async def test_the_broker_shares_out_its_queues(world: World, client: Client) -> None:
    await client.create_topic("orders", queues=4)
    other = await world.connect()
    await client.heartbeat("c1", groups=("g",))
    await other.heartbeat("c2", groups=("g",))
    assert assigned(await ask(client, "c1")) == [("PULL", 0), ("PULL", 1)]
    assert assigned(await ask(client, "c2", strategy_name="AVG_BY_CIRCLE")) == [("PULL", 1), ("PULL", 3)]
    assert len(assigned(await ask(client, "c1", message_model="BROADCASTING"))) == 4


async def test_what_is_not_known_is_not_shared_out(client: Client) -> None:
    assert (await ask(client)).message_queue_assignments is None
    await client.create_topic("orders")
    assert (await ask(client)).message_queue_assignments is None


async def set_mode(client: Client, *, expect: int = 0, **fields: Any) -> None:
    body = SetMessageRequestModeRequestBody(**{"topic": "orders", "consumer_group": "g", "mode": "POP"} | fields)
    await client.ask(RequestCode.SET_MESSAGE_REQUEST_MODE, None, body, expect=expect)


async def test_a_group_is_told_to_pop(world: World, client: Client) -> None:
    await client.create_topic("orders")
    await client.heartbeat("c1", groups=("g",))
    await set_mode(client)
    assert assigned(await ask(client)) == [("POP", -1)]
    await world.restart()
    client = await world.connect()
    body = await client.ask_body(MessageRequestModeSerializeWrapper, RequestCode.GET_ALL_MESSAGE_REQUEST_MODE)
    assert body.message_request_mode_map["orders"]["g"].mode == "POP"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"topic": "%RETRY%g"}, 16),
        ({"topic": "unknown"}, 17),
        ({"consumer_group": "unknown"}, 26),
        ({"mode": "PUSH"}, 29),
    ],
)
async def test_a_mode_that_cannot_be(client: Client, fields: dict[str, str], code: int) -> None:
    await client.create_topic("orders")
    await client.create_group("g")
    await set_mode(client, expect=code, **fields)
