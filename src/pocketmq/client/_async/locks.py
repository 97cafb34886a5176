"""Order needs that one consumer alone reads a queue: the broker's locks, taken, renewed and returned (41, 42)."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pocketmq.client._async.reader import QueueReader
from pocketmq.model.errors import BrokerError, DecodeError, PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies import LockBatchRequestBody, LockBatchResponseBody, decode_body, encode_body
from pocketmq.wire.codes import RequestCode, ResponseCode

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

LOCK_VALID_S = 30.0
"""How long we count on a lock; the broker keeps it for 60 s."""


class QueueLocks:
    """The locks that one group of this client holds."""

    def __init__(self, core: "Core", group: str) -> None:
        self._core = core
        self._group = group

    async def lock(self, reader: QueueReader) -> None:
        """Get or renew the lock of one queue. Raises PocketMQError when another consumer has it."""
        locked = await self._ask(await self._core.offsets.master(reader.queue), [reader.queue])
        if reader.queue not in locked:
            raise BrokerError(
                f"another consumer of {self._group} still has {reader.queue}",
                code=ResponseCode.SYSTEM_BUSY,
                retryable=True,
            )
        reader.locked_until = self._core.clock.monotonic() + LOCK_VALID_S

    async def renew(self, readers: Iterable[QueueReader]) -> None:
        """Renew the locks of many queues, with one request to each broker. Logs what fails."""
        by_address: dict[str, list[QueueReader]] = {}
        for reader in readers:
            try:
                by_address.setdefault(await self._core.offsets.master(reader.queue), []).append(reader)
            except PocketMQError as error:
                logger.warning("the lock of %s cannot be renewed: %s", reader.queue, error)
        for address, members in by_address.items():
            try:
                locked = await self._ask(address, [reader.queue for reader in members])
            except PocketMQError as error:
                logger.warning("locks of %s cannot be renewed: %s", self._group, error)
                continue
            until = self._core.clock.monotonic() + LOCK_VALID_S
            for reader in members:
                reader.locked_until = until if reader.queue in locked else 0.0
                reader.lock_renewed()

    async def _ask(self, address: str, queues: list[MessageQueue]) -> set[MessageQueue]:
        body = encode_body(
            LockBatchRequestBody(consumer_group=self._group, client_id=self._core.client_id, mq_set=queues)
        )
        answer = await self._core.remoting.call(address, RequestCode.LOCK_BATCH_MQ, None, body, what="lock queues")
        try:
            return set(decode_body(answer.body, LockBatchResponseBody).lock_ok_mq_set)
        except DecodeError as error:
            raise PocketMQError(f"the answer of {address} to a lock cannot be read", cause=error) from error

    async def unlock(self, reader: QueueReader) -> None:
        """Return the lock of a queue, so that the next consumer need not wait for it to expire."""
        if reader.locked_until == 0.0:
            return
        reader.locked_until = 0.0
        body = encode_body(
            LockBatchRequestBody(consumer_group=self._group, client_id=self._core.client_id, mq_set=[reader.queue])
        )
        try:
            address = await self._core.offsets.master(reader.queue)
            await self._core.remoting.call(address, RequestCode.UNLOCK_BATCH_MQ, None, body)
        except PocketMQError as error:
            logger.warning("the lock of %s was not returned, it expires by itself: %s", reader.queue, error)
