"""What a program sees of a consumer."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Self

from pocketmq.client._async.delivery import Delivery, handle
from pocketmq.client._async.member import Member
from pocketmq.client.namespaces import queue_with_namespace, queue_without_namespace, without_namespace
from pocketmq.model.message import MessageQueue


class Consumer:
    """Messages of one group's topics. Iterate over it; it starts by itself, and ends with `close` or its client.

    async for message in client.consume("orders", group="billing"):
        async with message:
            ...

    Any number of tasks may iterate over one consumer; each message goes to one of them.
    """

    def __init__(self, member: Member) -> None:
        self._member = member

    async def start(self) -> Self:
        """Join the group and begin to read; iterating does it, too. Raises PocketMQError when no server answers."""
        await self._member.start()
        return self

    async def close(self) -> None:
        """Leave the group: what is out is waited for (as long as `drain` says), positions are stored, then goodbye."""
        await self._member.close()

    async def __aenter__(self) -> Self:
        """Start."""
        await self._member.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        await self._member.close()

    def __aiter__(self) -> Self:
        """The consumer itself."""
        return self

    async def __anext__(self) -> Delivery:
        """The next message; waits for it. Ends when the consumer is closed."""
        message = await self._member.next()
        if message is None:
            raise StopAsyncIteration
        return message

    async def next(self, timeout: float | None = None) -> Delivery | None:
        """The next message, or None when the consumer is closed or none came in `timeout` seconds."""
        return await self._member.next(timeout)

    async def run(self, handler: Callable[[Delivery], Awaitable[object]], *, concurrency: int = 20) -> None:
        """Consume with a handler, up to `concurrency` messages at the same time, until the consumer is closed.

        A handler that returns acknowledges its message; one that raises gives it back. What it returns for a request
        (bytes, or what the client's serializer takes) is sent as the reply. When this is cancelled, the consumer is
        closed in good order.
        """

        async def work() -> None:
            async for message in self:
                await handle(message, handler)

        async with self:
            workers = [asyncio.get_running_loop().create_task(work()) for _ in range(concurrency)]
            try:
                await asyncio.gather(*workers)
            finally:
                for worker in workers:
                    worker.cancel()
                await asyncio.gather(*workers, return_exceptions=True)

    @property
    def group(self) -> str:
        """The group's name."""
        return without_namespace(self._member.group, self._member.core.options.namespace)

    @property
    def closed(self) -> bool:
        """Whether the consumer was closed."""
        return self._member.closed

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this consumer reads now."""
        namespace = self._member.core.options.namespace
        return [queue_without_namespace(queue, namespace) for queue in self._member.queues]

    def positions(self) -> dict[MessageQueue, int]:
        """The position in each queue that is read now: all before it is settled."""
        namespace = self._member.core.options.namespace
        positions = self._member.positions()
        return {queue_without_namespace(queue, namespace): position for queue, position in positions.items()}

    async def commit(self) -> None:
        """Store all positions now, which else happens every few seconds. Raises PocketMQError."""
        await self._member.commit()

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on reading a queue at `offset`. Raises UsageError when this consumer does not read it."""
        self._member.seek(queue_with_namespace(queue, self._member.core.options.namespace), offset)
