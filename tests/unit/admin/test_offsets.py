"""Positions: show, reset, skip, clone."""

from datetime import datetime, timedelta

import pytest

import pocketmq
from pocketmq.admin import Admin
from pocketmq.model.errors import BrokerError, RouteNotFoundError, UsageError
from pocketmq.testing import AsyncEmbeddedServer

QUEUES = [pocketmq.MessageQueue("orders", "broker-a", number) for number in range(2)]


@pytest.fixture(autouse=True)
async def messages(admin: Admin, client: pocketmq.Client) -> None:
    """Topic orders: five messages in queue 0, three in queue 1; group billing."""
    await admin.topics.create("orders", queues=2)
    await admin.groups.create("billing")
    for number in range(8):
        await client.send("orders", str(number).encode(), queue=QUEUES[0 if number < 5 else 1])


async def positions(admin: Admin, group: str = "billing") -> list[int | None]:
    stored = await admin.offsets.positions(group, "orders")
    return [stored.get(queue) for queue in QUEUES]


async def test_positions_are_shown_with_their_lag(admin: Admin, client: pocketmq.Client) -> None:
    await client.commit_offset(QUEUES[0], 4, group="billing")
    shown = await admin.offsets.show("billing", topic="orders")
    assert [(each.queue, each.end_offset, each.position, each.lag) for each in shown.queues] == [
        (0, 5, 4, 1),
        (1, 3, 0, 3),
    ]
    assert shown.lag == 4
    assert await positions(admin) == [4, None]


async def test_a_reset_to_the_first_or_last_message(admin: Admin) -> None:
    changes = await admin.offsets.reset("billing", "orders", "last")
    assert [(change.queue, change.before, change.after) for change in changes] == [(0, None, 5), (1, None, 3)]
    assert await positions(admin) == [5, 3]
    changes = await admin.offsets.reset("billing", "orders", "first")
    assert [(change.before, change.after) for change in changes] == [(5, 0), (3, 0)]
    assert await positions(admin) == [0, 0]


async def test_a_reset_of_one_queue_to_a_number(admin: Admin) -> None:
    (change,) = await admin.offsets.reset("billing", "orders", 2, queue=1)
    assert (change.queue, change.after) == (1, 2)
    assert await positions(admin) == [None, 2]


async def test_a_number_that_a_queue_does_not_have_changes_nothing(admin: Admin) -> None:
    with pytest.raises(UsageError, match="queue 1 of orders on broker-a has offsets 0 to 3, not 4"):
        await admin.offsets.reset("billing", "orders", 4)
    assert await positions(admin) == [None, None]


async def test_a_reset_to_a_time(admin: Admin, client: pocketmq.Client, server: AsyncEmbeddedServer) -> None:
    await server.advance(60)
    await client.send("orders", b"late", queue=QUEUES[0])
    now = datetime.fromtimestamp(server.clock.time_ms() / 1000)
    await admin.offsets.reset("billing", "orders", now - timedelta(seconds=30))
    assert await positions(admin) == [5, 3]
    await admin.offsets.reset("billing", "orders", now - timedelta(hours=1))
    assert await positions(admin) == [0, 0]


async def test_a_reset_moves_a_consumer_that_is_connected(admin: Admin, client: pocketmq.Client) -> None:
    async with client.consume("orders", group="billing", from_where="first") as consumer:
        seen = []
        for _ in range(8):
            async with await anext(consumer) as message:
                seen.append(message.body)
        await admin.offsets.reset("billing", "orders", 4, queue=0)
        async with await anext(consumer) as message:
            assert message.body == b"4"


async def test_what_is_not_there_is_an_error(admin: Admin) -> None:
    with pytest.raises(BrokerError, match="no group nobody"):
        await admin.offsets.reset("nobody", "orders", "last")
    with pytest.raises(BrokerError, match="no group nobody"):
        await admin.offsets.show("nobody")
    with pytest.raises(RouteNotFoundError, match="no topic invoices"):
        await admin.offsets.reset("billing", "invoices", "last")
    with pytest.raises(UsageError, match="no such queue; it has broker-a: 0 to 1"):
        await admin.offsets.reset("billing", "orders", "last", queue=9)
    assert await positions(admin) == [None, None]


async def test_skip_leaves_out_all_that_waits(admin: Admin, client: pocketmq.Client) -> None:
    await client.commit_offset(QUEUES[0], 1, group="billing")
    await admin.offsets.skip("billing")
    assert await positions(admin) == [5, 3]
    assert (await admin.offsets.show("billing")).lag == 0


async def test_clone_copies_positions_exactly(admin: Admin, client: pocketmq.Client) -> None:
    await admin.groups.create("audit")
    await client.commit_offset(QUEUES[0], 3, group="billing")
    (change,) = await admin.offsets.clone("billing", "audit")
    assert (change.topic, change.queue, change.before, change.after) == ("orders", 0, None, 3)
    assert await positions(admin, "audit") == [3, None]


async def test_clone_needs_two_groups_that_exist(admin: Admin) -> None:
    with pytest.raises(UsageError, match="the same group"):
        await admin.offsets.clone("billing", "billing")
    with pytest.raises(BrokerError, match="no group audit"):
        await admin.offsets.clone("billing", "audit")
