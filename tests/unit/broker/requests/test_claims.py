"""Claims: queues of concurrent consumers that change hands in good order."""

import asyncio
from typing import Any

from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.clients import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.clients import (
    LockBatchMqRequestHeader,
    UnlockBatchMqRequestHeader,
    UnregisterClientRequestHeader,
)

World = Any
Client = Any
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


async def claim(client: Client, client_id: str, queues: list[MessageQueue]) -> list[MessageQueue]:
    header, body = LockBatchMqRequestHeader(handover=True), LockBatchRequestBody("g", client_id, queues)
    found = await client.ask_body(LockBatchResponseBody, RequestCode.LOCK_BATCH_MQ, header, body)
    return list(found.lock_ok_mq_set)


async def release(client: Client, client_id: str, queues: list[MessageQueue]) -> None:
    header, body = UnlockBatchMqRequestHeader(handover=True), UnlockBatchRequestBody("g", client_id, queues)
    await client.ask(RequestCode.UNLOCK_BATCH_MQ, header, body)


async def join(world: World, client_id: str) -> Client:
    client = await world.connect()
    assert (await client.heartbeat(client_id, groups=("g",)))["handover"] == "true"
    return client


def told(client: Client) -> int:
    """How often a member was told that a queue is free."""
    return sum(command.ext().get("handover") == "true" for command in client.asked)


async def test_a_claimed_queue_goes_to_nobody_else_until_it_is_released(world: World) -> None:
    one, two = await join(world, "one"), await join(world, "two")
    assert await claim(one, "one", QUEUES[:1]) == QUEUES[:1]
    assert await claim(two, "two", QUEUES) == QUEUES[1:]
    await release(one, "one", QUEUES[:1])
    assert await claim(two, "two", QUEUES) == QUEUES


async def test_who_was_refused_is_told_at_once_when_the_queue_is_free(world: World) -> None:
    one, two, three = [await join(world, client_id) for client_id in ("one", "two", "three")]
    await claim(one, "one", QUEUES)
    await claim(two, "two", QUEUES)
    await asyncio.sleep(1)
    await release(one, "one", QUEUES)
    await asyncio.sleep(0.01)
    assert (told(one), told(two), told(three)) == (0, 1, 0)


async def test_who_waits_for_a_lock_is_told_too(world: World) -> None:
    one, two = await join(world, "one"), await join(world, "two")
    body = LockBatchRequestBody("g", "one", QUEUES)
    await one.ask(RequestCode.LOCK_BATCH_MQ, None, body)
    await two.ask(RequestCode.LOCK_BATCH_MQ, None, LockBatchRequestBody("g", "two", QUEUES))
    await one.ask(RequestCode.UNLOCK_BATCH_MQ, None, body)
    await asyncio.sleep(0.01)
    assert told(two) == 1


async def test_claims_are_no_locks(world: World, client: Client) -> None:
    await claim(client, "one", QUEUES)
    assert not world.broker.locks.group_holds_locks("g", world.clock.monotonic()), "retries would go elsewhere"
    body = LockBatchRequestBody("g", "two", QUEUES)
    found = await client.ask_body(LockBatchResponseBody, RequestCode.LOCK_BATCH_MQ, None, body)
    assert found.lock_ok_mq_set == QUEUES


async def test_a_pull_asks_for_no_claim(world: World) -> None:
    await (await world.connect()).send()
    one, two = await join(world, "one"), await join(world, "two")
    await claim(one, "one", QUEUES)
    assert (await two.pull("orders", "g", 0)).code == 0


async def test_the_claims_of_a_client_that_is_gone_end_soon(world: World) -> None:
    one, two = await join(world, "one"), await join(world, "two")
    await claim(one, "one", QUEUES)
    one.connection.close()
    await asyncio.sleep(0.5)
    assert await claim(two, "two", QUEUES) == [], "it may be reconnecting"
    await asyncio.sleep(0.6)
    assert told(two) == 1
    assert await claim(two, "two", QUEUES) == QUEUES


async def test_a_client_that_reconnects_keeps_its_claims(world: World) -> None:
    one, two = await join(world, "one"), await join(world, "two")
    await claim(one, "one", QUEUES)
    one.connection.close()
    await asyncio.sleep(0.5)
    await join(world, "one")
    await asyncio.sleep(5)
    assert await claim(two, "two", QUEUES) == []
    assert told(two) == 0


async def test_a_goodbye_ends_all_claims_at_once(world: World) -> None:
    one, two = await join(world, "one"), await join(world, "two")
    await claim(one, "one", QUEUES)
    assert await claim(two, "two", QUEUES) == []
    await one.ask(RequestCode.UNREGISTER_CLIENT, UnregisterClientRequestHeader(client_id="one", consumer_group="g"))
    assert await claim(two, "two", QUEUES) == QUEUES


async def test_a_claim_that_is_not_renewed_expires(world: World, client: Client) -> None:
    await claim(client, "one", QUEUES)
    await asyncio.sleep(40)
    await claim(client, "one", QUEUES[:1])
    await asyncio.sleep(21)
    assert await claim(client, "two", QUEUES) == QUEUES[1:]
