"""Consuming with a handler: some workers that iterate over one consumer."""

import asyncio
from collections.abc import Awaitable, Callable

from pocketmq.client._async.consumer import Consumer
from pocketmq.client._async.delivery import Delivery


async def run_workers(consumer: Consumer, handler: Callable[[Delivery], Awaitable[object]], count: int) -> None:
    """Let `count` workers call `handler` until the consumer is closed; then, or when cancelled, close it."""

    async def work() -> None:
        async for message in consumer:
            async with message:
                await handler(message)

    async with consumer:
        workers = [asyncio.get_running_loop().create_task(work()) for _ in range(count)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
