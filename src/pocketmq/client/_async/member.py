"""One member of a consumer group: messages of its share of the queues, one after another, and what becomes of them.

Theory of operation. The assignment (`assignment.py`) says which queues this consumer reads; each has a reader that
fills a buffer. A reader with messages stands in `_ready`, once; handing out goes round these readers, some messages
at a time, so that no queue starves another. With order, a reader hands out one message and stands in line again only
when it is settled. Any number of tasks may iterate over one consumer; each message goes to one of them.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from pocketmq.client._async.assignment import Assignment
from pocketmq.client._async.cursors import BrokerCursors
from pocketmq.client._async.delivery import Delivery
from pocketmq.client._async.locks import QueueLocks
from pocketmq.client._async.reader import QueueReader
from pocketmq.client._async.retrying import Retries
from pocketmq.client.allocators import AverageAllocator
from pocketmq.client.buffers import QueueBuffer
from pocketmq.client.filters import Filter, Tag
from pocketmq.client.options import timestamp_ms
from pocketmq.client.parts import Allocator, Cursors, MessageBuffer
from pocketmq.model.errors import ClientClosedError, PocketMQError, UsageError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import RETRY_PREFIX, retry_topic

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

Mode = Literal["clustering", "broadcasting"]
FromWhere = Literal["first", "last"] | datetime | float

HAND_COUNT = 16
"""Messages taken from one reader before the next one has its turn."""


class ConsumerOptions(msgspec.Struct, kw_only=True):
    """Everything about a consumer but its name and subscriptions. Times in seconds."""

    mode: Mode = "clustering"
    orderly: bool = False
    from_where: FromWhere = "last"
    concurrency: int = 1024
    fetch_count: int = 32
    wait_s: float = 15.0
    buffer_messages_max: int = 1000
    buffer_bytes_max: int = 100 * 1024 * 1024
    buffer_span_max: int = 2000
    attempts_max: int | None = None
    drain_s: float = 30.0
    suspend_s: float = 1.0
    reraise: bool = False
    allocator: Allocator = msgspec.field(default_factory=AverageAllocator)
    cursors: Cursors | None = None
    buffer: Callable[[int], MessageBuffer] | None = None


class Member:
    """The inside of a `Consumer`."""

    consume_type = "CONSUME_PASSIVELY"
    """How heartbeats call it that messages are brought to whoever iterates, and not fetched."""

    def __init__(self, core: "Core", group: str, subscriptions: Mapping[str, Filter], options: ConsumerOptions) -> None:
        self.core = core
        self.group = group
        self.options = options
        self.broadcasting = options.mode == "broadcasting"
        self.orderly = options.orderly
        self.reraise = options.reraise
        self.fetch_count = options.fetch_count
        self.wait_s = options.wait_s
        self.subscriptions: dict[str, Filter] = dict(subscriptions)
        if not self.broadcasting:
            self.subscriptions[retry_topic(group)] = Tag.ALL
        self.version_ms = core.clock.time_ms()
        self.started_ms = self.version_ms
        self.chain = core.handle_chain(group, broadcasting=self.broadcasting, orderly=self.orderly)
        """The middleware around the handling of messages; None when there is none."""
        self.cursors = options.cursors or core.default_cursors(self.broadcasting)
        self.commits_with_pulls = isinstance(self.cursors, BrokerCursors)
        self.assignment = Assignment(self, options.allocator, options.drain_s)
        self._retries = Retries(core, group, options.attempts_max)
        self._locks = QueueLocks(core, group)
        self._start: asyncio.Task[None] | None = None
        self._ready: deque[QueueReader] = deque()
        self._hand: deque[Delivery] = deque()
        self._direct: deque[Delivery] = deque()
        self._out = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._closed = False

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Join the group and begin to read; done by iterating, too.

        Raises PocketMQError when no server answers, UsageError (code 23) for a filter that cannot be understood.
        """
        if self._closed:
            raise ClientClosedError(f"the consumer of {self.group} is closed")
        if self._start is None:
            self.core.add_member(self)
            self._start = asyncio.get_running_loop().create_task(self._join())
        try:
            await asyncio.shield(self._start)
        except PocketMQError:
            self.core.remove_member(self)
            self._start = None
            raise

    async def _join(self) -> None:
        await self.assignment.find_routes()
        await self.core.heartbeats.check_filters(self)
        await self.core.heartbeats.send_for(self)
        await self.assignment.rebalance()

    async def close(self) -> None:
        """Leave the group: taken messages are waited for (as long as `drain` says), positions stored, then goodbye."""
        if self._closed:
            return
        self._closed = True
        self._wake_all()
        if self._start is not None:
            self._start.cancel()
            await asyncio.gather(self._start, return_exceptions=True)
        await self.assignment.close()
        if self._start is not None:
            await self.core.heartbeats.unregister(self)
        self.core.remove_member(self)

    @property
    def closed(self) -> bool:
        """Whether the consumer was closed."""
        return self._closed

    def announced(self) -> Mapping[str, Filter]:
        """What heartbeats say this consumer has subscribed to."""
        return self.subscriptions

    # -- handing out -------------------------------------------------------------------------------------------------

    async def next(self, timeout: float | None = None) -> Delivery | None:
        """The next message, or None when the consumer is closed or none came in `timeout` seconds."""
        if self._start is None or not self._start.done():
            await self.start()
        deadline = None if timeout is None else self.core.clock.monotonic() + timeout
        while True:
            if self._closed:
                return None
            message = self.take()
            if message is not None:
                return message
            if not await self._wait(deadline):
                return None

    def take(self) -> Delivery | None:
        """The next message, if there is one now."""
        if self._direct:
            return self._direct.popleft()
        if self._out >= self.options.concurrency:
            return None
        if not self._hand and not self._fill_hand():
            return None
        message = self._hand.popleft()
        message.context.out += 1
        self._out += 1
        return message

    def _fill_hand(self) -> bool:
        ready = self._ready
        while ready:
            reader = ready.popleft()
            reader.listed = False
            buffer = reader.buffer
            if buffer is None or reader.leaving:
                continue
            if self.orderly:
                # Comes back into the line when the message is settled, or the lock renewed.
                free = buffer.unsettled == buffer.waiting and reader.is_locked
                messages = buffer.take(1) if free else []
            else:
                messages = buffer.take(HAND_COUNT)
                if buffer.waiting:
                    reader.listed = True
                    ready.append(reader)
            if messages:
                self._hand.extend(messages)  # type: ignore[arg-type]
                return True
        return False

    async def _wait(self, deadline: float | None) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        timer = None
        if deadline is not None:
            left = deadline - self.core.clock.monotonic()
            if left <= 0:
                self._waiters.remove(waiter)
                return False
            timer = self.core.clock.call_later(left, _settle, waiter)
        try:
            await waiter
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in self._waiters:
                self._waiters.remove(waiter)
            elif waiter.cancelled():
                self._wake()
        return True

    def _wake(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return

    def _wake_all(self) -> None:
        while self._waiters:
            self._wake()

    def on_messages(self, reader: QueueReader) -> None:
        """A reader has messages to hand out."""
        if not reader.listed and not reader.leaving:
            reader.listed = True
            self._ready.append(reader)
        # One waiter for each message would be most; a woken one that finds nothing waits again.
        buffer = reader.buffer
        count = 1 if self.orderly or buffer is None else buffer.waiting
        while self._waiters and count > 0:
            self._wake()
            count -= 1

    def on_settled(self, reader: QueueReader) -> None:
        """A message that was out has been settled or put back."""
        reader.out -= 1
        self._out -= 1
        buffer = reader.buffer
        if buffer is not None and buffer.waiting and not reader.listed and not reader.leaving:
            reader.listed = True
            self._ready.append(reader)
        if self._waiters and (self._ready or self._hand):
            self._wake()

    def forget_out(self, reader: QueueReader) -> None:
        """What is out of a reader's queue can no longer be settled."""
        self._out -= reader.out
        reader.out = 0
        self._wake()

    def forget_waiting(self, reader: QueueReader) -> None:
        """Take back what is in hand of one reader but was given to nobody."""
        buffer = reader.buffer
        kept: deque[Delivery] = deque()
        for message in self._hand:
            if message.context is reader and buffer is not None:
                buffer.put_back(message)
            else:
                kept.append(message)
        self._hand = kept

    def deliver_directly(self, message: Delivery) -> None:
        """Hand out a message that an operator sent for a try."""
        self._direct.append(message)
        self._wake()

    # -- what readers need -------------------------------------------------------------------------------------------

    def make_buffer(self, position: int) -> MessageBuffer:
        """A buffer for one queue."""
        if self.options.buffer is not None:
            return self.options.buffer(position)
        return QueueBuffer(
            position,
            count_max=self.options.buffer_messages_max,
            bytes_max=self.options.buffer_bytes_max,
            span_max=self.options.buffer_span_max,
        )

    async def start_position(self, queue: MessageQueue) -> tuple[int, bool]:
        """Where to begin with a queue: the stored position and True, else what `from_where` says and False."""
        stored = await self.cursors.load(self.group, queue)
        if stored is not None:
            return stored, True
        return await self._first_position(queue), False

    async def _first_position(self, queue: MessageQueue) -> int:
        offsets = self.core.offsets
        where = self.options.from_where
        if where == "first" or queue.topic.startswith(RETRY_PREFIX) or self.assignment.is_newer_than_us(queue):
            return await offsets.first(queue)
        if where == "last":
            return await offsets.end(queue)
        return await offsets.at(queue, timestamp_ms(where, "from_where"))

    async def lock(self, reader: QueueReader) -> None:
        """Get or renew the broker's lock for a queue. Raises PocketMQError when another consumer holds it."""
        await self._locks.lock(reader)

    async def give_back(self, reader: QueueReader, message: Delivery, delay_s: float | None, dead: bool) -> bool:
        """A message failed: in order it stays here and is tried again; else the broker brings it again."""
        if self.broadcasting:
            logger.warning("message %s is lost to this instance: broadcasting knows no retry", message.message_id)
            return reader.ack(message)
        if self.orderly and not dead:
            # The attempts were made here, so the broker does not know of them.
            dead = self._retries.used_up(message)
            if not dead:
                self._pause(reader, message, self.options.suspend_s if delay_s is None else delay_s)
                return True
        try:
            await self._retries.give_back(message, reader.queue, delay_s, dead)
        except PocketMQError as error:
            logger.warning(
                "message %s cannot be given back, it is tried again from here: %s", message.message_id, error
            )
            self._pause(reader, message, 5.0)
            return True
        return reader.ack(message)

    def _pause(self, reader: QueueReader, message: Delivery, pause_s: float) -> None:
        message.reconsume_times += 1
        self.core.clock.call_later(pause_s, reader.put_back, message)

    async def unlock(self, reader: QueueReader) -> None:
        """Return the broker's lock of a queue, if there is one."""
        if self.orderly:
            await self._locks.unlock(reader)

    def renew_locks(self) -> Awaitable[None]:
        """Renew the locks of all queues."""
        return self._locks.renew(self.assignment.readers())

    # -- for users ---------------------------------------------------------------------------------------------------

    @property
    def queues(self) -> list[MessageQueue]:
        """The queues that this consumer reads now."""
        return sorted(reader.queue for reader in self.assignment.readers())

    def positions(self) -> dict[MessageQueue, int]:
        """The position in each queue that is read now: all before it is settled."""
        readers = self.assignment.readers()
        return {reader.queue: reader.position for reader in readers if reader.position is not None}

    async def store_positions(self) -> None:
        """Store the positions that have changed. Raises PocketMQError."""
        positions = {
            reader.queue: position
            for reader in self.assignment.readers()
            if (position := reader.unstored()) is not None
        }
        if not positions:
            return
        await self.cursors.store(self.group, positions, final=False)
        for queue, position in positions.items():
            reader = self.assignment.reader(queue)
            if reader is not None:
                reader.was_stored(position)

    def store_soon(self, reader: QueueReader) -> None:
        """Store the position of one queue beside."""
        self.core.spawn(reader.store(final=False))

    async def commit(self) -> None:
        """Store all positions now, which else happens every few seconds. Raises PocketMQError."""
        positions = self.positions()
        if positions:
            await self.cursors.store(self.group, positions, final=True)
            for reader in self.assignment.readers():
                if reader.queue in positions:
                    reader.was_stored(positions[reader.queue])

    def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on reading a queue at `offset`. Raises UsageError when this consumer does not read it."""
        reader = self.assignment.reader(queue)
        if reader is None:
            raise UsageError(f"this consumer does not read {queue}; another one of {self.group} may")
        reader.seek(offset)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
