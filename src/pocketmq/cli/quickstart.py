"""`pocketmq quickstart`: the main job on an embedded server, told step by step."""

import asyncio
import time
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError

if TYPE_CHECKING:
    from pocketmq.client import Client, Delivery
    from pocketmq.testing.embedded import AsyncEmbeddedServer

TOPIC = "orders"
GROUP = "billing"
MESSAGES = 10
STEP_TIMEOUT_S = 10.0
RETRY_DELAY_S = 10.0


def quickstart() -> int:
    """Start an embedded cluster, send, consume, let one message fail and come back, show what happened."""
    return asyncio.run(_tell())


async def _tell() -> int:
    import pocketmq
    from pocketmq.testing.embedded import AsyncEmbeddedServer

    began = time.perf_counter()
    async with AsyncEmbeddedServer() as server:
        _say(
            f"started a name server and a broker in memory ({_ms(began)}); RocketMQ clients could use {server.namesrv}"
        )
        async with pocketmq.connect(server.namesrv) as client:
            await _send(client)
            await asyncio.wait_for(_consume(client, server), STEP_TIMEOUT_S)
            await _show_positions(client)
    _say(f"stopped; all of it took {_ms(began)}")
    print("\nNext: `pocketmq serve` runs a server that keeps its data; `pocketmq --help` lists the commands.")
    return 0


async def _send(client: "Client") -> None:
    began = time.perf_counter()
    receipts = await asyncio.gather(
        *(client.send(TOPIC, f"order {n}".encode(), tag="new", keys=[f"o-{n}"]) for n in range(MESSAGES))
    )
    queues = {receipt.queue.queue_id for receipt in receipts}
    _say(f"sent {MESSAGES} messages to topic {TOPIC}, which was created by that ({_ms(began)}, {len(queues)} queues)")
    first = receipts[0]
    _say(f"the receipt of the first: id {first.message_id}, queue {first.queue.queue_id}, offset {first.queue_offset}")


async def _consume(client: "Client", server: "AsyncEmbeddedServer") -> None:
    began = time.perf_counter()
    done: set[bytes] = set()
    failed = False
    async with client.consume(TOPIC, group=GROUP, from_where="first") as consumer:
        async for delivery in consumer:
            if not failed:
                failed = True
                await delivery.nack()
                _say(f"{_what(delivery)} was given back: it comes again in {RETRY_DELAY_S:g} s")
                continue
            async with delivery:
                done.add(delivery.body)
            if delivery.delivery_attempt > 1:
                _say(f"{_what(delivery)} came back, attempt {delivery.delivery_attempt}, and was acknowledged")
            if len(done) == MESSAGES - 1 and delivery.delivery_attempt == 1:
                _say(f"group {GROUP} got and acknowledged the other {len(done)} ({_ms(began)})")
                _say(f"moved the server's clock by {RETRY_DELAY_S:g} s, which a test can do too")
                await server.advance(RETRY_DELAY_S + 1)
            if len(done) == MESSAGES:
                return


async def _show_positions(client: "Client") -> None:
    behind = 0
    for queue in await client.queues(TOPIC):
        position = await client.committed_offset(queue, group=GROUP) or 0
        behind += await client.end_offset(queue) - position
    if behind:
        raise PocketMQError(f"group {GROUP} is {behind} messages behind, and should not be")
    _say(f"every message is acknowledged: group {GROUP} is 0 messages behind")


def _what(delivery: "Delivery") -> str:
    return f"{delivery.body.decode()!r} (key {' '.join(delivery.keys)})"


def _say(line: str) -> None:
    print(f"  {line}", flush=True)


def _ms(began: float) -> str:
    return f"{(time.perf_counter() - began) * 1000:.0f} ms"
