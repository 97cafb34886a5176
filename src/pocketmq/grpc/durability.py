"""Waiting until what a call wrote is as durable as the settings ask."""

import asyncio
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker


async def written(broker: "Broker") -> PocketMQError | None:
    """Wait for all that was written until now; what to answer when it may be lost."""
    if not broker.gate.sync:
        return None
    done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

    def tell(durable: bool) -> None:
        if not done.done():
            done.set_result(durable)

    broker.log.when_durable(broker.log.written_position, tell)
    if await done:
        return None
    if broker.log.flusher.failed:
        return PocketMQError("the disk failed while the message was being stored; whether it was is not known")
    return PocketMQError(
        "the message is stored, but was not on the disk in time (setting store.flush_timeout_s)",
        code=ResponseCode.FLUSH_DISK_TIMEOUT,
    )
