"""Queue locks, as orderly consumers take them."""

import asyncio
from typing import Any

from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.clients import LockBatchRequestBody, LockBatchResponseBody, UnlockBatchRequestBody
from pocketmq.wire.codes import RequestCode

World = Any
Client = Any
QUEUES = [MessageQueue("orders", "broker-a", number) for number in range(2)]


async def lock(client: Client, client_id: str, queues: list[MessageQueue]) -> list[MessageQueue]:
    body = LockBatchRequestBody("g", client_id, queues)
    found = await client.ask_body(LockBatchResponseBody, RequestCode.LOCK_BATCH_MQ, None, body)
    return list(found.lock_ok_mq_set)


async def test_the_answer_names_the_queues_that_the_client_holds(client: Client) -> None:
    assert await lock(client, "one", QUEUES[:1]) == QUEUES[:1]
    assert await lock(client, "two", QUEUES) == QUEUES[1:]


async def test_a_lock_is_given_back(client: Client) -> None:
    await lock(client, "one", QUEUES)
    await client.ask(RequestCode.UNLOCK_BATCH_MQ, None, UnlockBatchRequestBody("g", "one", QUEUES))
    assert await lock(client, "two", QUEUES) == QUEUES


async def test_a_lock_outlives_its_connection_for_a_minute(world: World, client: Client) -> None:
    await lock(client, "one", QUEUES)
    client.connection.close()
    other = await world.connect()
    await asyncio.sleep(59)
    assert await lock(other, "two", QUEUES) == []
    await asyncio.sleep(2)
    assert await lock(other, "two", QUEUES) == QUEUES
