"""The inside of a pull consumer: a member of a group whose program takes messages by the handful, from where it wants.

Theory of operation. Everything below is as for other consumers: the assignment, the readers with their buffers and
water marks, heartbeats, cursors, operators' resets. Different is what happens on top. A poll first settles what the
poll before it handed out, then takes what the readers have. Java's pull consumer has no retry, and so this one does not
subscribe to the group's retry topic.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pocketmq.client._async.delivery import Delivery
from pocketmq.client._async.member import ConsumerOptions, Member
from pocketmq.client._async.pull_assignment import OnRebalance, PullAssignment
from pocketmq.client._async.pull_reader import PullReader
from pocketmq.client._async.reader import QueueReader
from pocketmq.client.filters import Filter
from pocketmq.client.pulled import PulledMessage
from pocketmq.model.errors import ClientClosedError, PocketMQError, UsageError
from pocketmq.model.message import MessageQueue

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

TURN_COUNT = 16
"""Messages taken from one queue before the next one has its turn."""


class PullMember(Member):
    """The inside of a `PullConsumer`."""

    consume_type = "CONSUME_ACTIVELY"
    assignment: PullAssignment

    def __init__(
        self,
        core: "Core",
        group: str,
        subscriptions: Mapping[str, Filter],
        options: ConsumerOptions,
        auto_commit: bool,
        on_rebalance: OnRebalance | None,
    ) -> None:
        super().__init__(core, group, subscriptions, options)
        self.subscriptions = dict(subscriptions)
        self.auto_commit = auto_commit
        self.commits_with_pulls = False
        self.assignment = PullAssignment(self, options.allocator, options.drain_s, on_rebalance)
        self._handed: list[tuple[PullReader, PulledMessage]] = []
        self._polling = False
        self._committing = asyncio.Lock()

    def announced(self) -> Mapping[str, Filter]:
        """What heartbeats say: a consumer that names its queues has no part in sharing them out."""
        return self.subscriptions if self.assignment.named is None else {}

    # -- what is read ------------------------------------------------------------------------------------------------

    async def subscribe(self, topic: str, wanted: Filter) -> None:
        """Take part in sharing out a topic's queues. Raises UsageError for a filter that cannot be understood."""
        if self.assignment.named is not None:
            raise UsageError("this consumer's queues were assigned by hand: it cannot subscribe, too")
        if self._closed:
            raise ClientClosedError(f"the consumer of {self.group} is closed")
        if self._start is not None:
            await self.start()
        old = self.subscriptions.get(topic)
        if old == wanted:
            return
        if self._start is not None and old is None:
            await self.assignment.learn(topic)
        await self._change_subscriptions({**self.subscriptions, topic: wanted})
        if old is not None:
            self.assignment.refilter(topic)
        elif self._start is not None:
            await self.assignment.rebalance()

    async def _change_subscriptions(self, subscriptions: dict[str, Filter]) -> None:
        before, self.subscriptions = self.subscriptions, subscriptions
        # Brokers take a subscription only when it is newer than the one they know.
        self.version_ms = max(self.core.clock.time_ms(), self.version_ms + 1)
        if self._start is None:
            return
        try:
            await self.core.heartbeats.check_filters(self)
        except PocketMQError:
            self.subscriptions = before
            raise
        await self.core.heartbeats.send_for(self)

    async def unsubscribe(self, topic: str) -> None:
        """Have no part in a topic any more; its queues are let go in good order."""
        if self.assignment.named is not None:
            raise UsageError("this consumer's queues were assigned by hand: assign others instead")
        if topic not in self.subscriptions:
            return
        await self.assignment.drop(topic)
        if self._start is not None and not self._closed:
            await self.core.heartbeats.send_all()

    async def assign(self, queues: Sequence[MessageQueue], filters: Mapping[str, Filter]) -> None:
        """Read exactly these queues, whatever others of the group do.

        What was handed out counts as done. Raises RouteNotFoundError, UsageError.
        """
        if self.subscriptions and self.assignment.named is None:
            raise UsageError("this consumer has subscribed: its queues are shared out, and cannot be assigned by hand")
        if self._closed:
            raise ClientClosedError(f"the consumer of {self.group} is closed")
        self.core.begin()
        for queue in queues:
            route = await self.core.routes.get(queue.topic)
            if queue.broker_name in route.brokers and queue not in route.readable:
                raise UsageError(f"{queue.topic} has no queue {queue.queue_id} to read on {queue.broker_name}")
        if self._start is not None:
            await self.start()
        self.settle_handed()
        before, named_before = self.subscriptions, self.assignment.named
        self.assignment.named = frozenset(queues)
        try:
            await self._change_subscriptions(dict(filters))
        except PocketMQError:
            self.assignment.named = named_before
            raise
        if self._start is None:
            return
        for topic, wanted in filters.items():
            if before.get(topic, wanted) != wanted:
                self.assignment.refilter(topic)
        await self.assignment.rebalance()

    # -- handing out -------------------------------------------------------------------------------------------------

    async def poll(self, count_max: int, timeout_s: float | None) -> list[PulledMessage]:
        """What there is, up to `count_max`; waits for the first message. Settles what was handed out before."""
        if self._polling:
            raise UsageError("a pull consumer is polled by one task at a time")
        if not self.subscriptions and self.assignment.named is None:
            raise UsageError("there is nothing to poll: subscribe to a topic or assign queues first")
        self._polling = True
        try:
            deadline = None if timeout_s is None else self.core.clock.monotonic() + timeout_s
            if self._start is None or not self._start.done() or self._closed:
                await self.start()
            self.settle_handed()
            while not self._closed:
                messages = self._take(count_max)
                if messages or not await self._wait(deadline):
                    return messages
            return []
        finally:
            self._polling = False

    def _take(self, count_max: int) -> list[PulledMessage]:
        found: list[PulledMessage] = []
        ready = self._ready
        while ready and len(found) < count_max:
            reader = ready.popleft()
            reader.listed = False
            assert isinstance(reader, PullReader)
            messages = reader.hand_out(min(TURN_COUNT, count_max - len(found)))
            if not messages:
                continue
            found += messages
            self._out += len(messages)
            self._handed += [(reader, message) for message in messages]
            if reader.buffer is not None and reader.buffer.waiting:
                reader.listed = True
                ready.append(reader)
        return found

    def settle_handed(self) -> None:
        """What was handed out is done with."""
        handed, self._handed = self._handed, []
        for reader, message in handed:
            reader.settle(message)

    def forget_out(self, reader: QueueReader) -> None:
        """What was handed out of a queue counts no more: it is read from elsewhere on."""
        self._handed = [pair for pair in self._handed if pair[0] is not reader]
        super().forget_out(reader)

    async def close(self) -> None:
        """Leave the group. What the last poll handed out comes again, unless that was settled or committed."""
        if not self._closed:
            handed, self._handed = self._handed, []
            for reader, message in handed:
                reader.unsettle(message)
        await super().close()

    async def finish(self) -> None:
        """Leave the group; what was handed out is done with."""
        self.settle_handed()
        await self.close()

    # -- positions ---------------------------------------------------------------------------------------------------

    def positions(self) -> dict[MessageQueue, int]:
        """Where the next poll takes from, in each queue."""
        readers = self.assignment.pull_readers()
        return {reader.queue: offset for reader in readers if (offset := reader.next_to_hand_out) is not None}

    async def store_positions(self) -> None:
        """Store the positions that have changed. Raises PocketMQError."""
        back = {
            reader.queue: position
            for reader in self.assignment.pull_readers()
            if reader.rewound and (position := reader.unstored()) is not None
        }
        if back:
            await self.cursors.store(self.group, back, final=True)
            for queue, position in back.items():
                reader = self.assignment.pull_reader(queue)
                if reader is not None:
                    reader.was_stored(position)
        await super().store_positions()

    async def commit_at(self, positions: Mapping[MessageQueue, int] | None) -> None:
        """Store positions, by default behind all that was handed out; returns when they are. Raises PocketMQError."""
        async with self._committing:
            readers = self.assignment.held()
            if positions is None:
                self.settle_handed()
                found = {queue: at for queue, reader in readers.items() if (at := reader.settled_to) is not None}
            else:
                found = dict(positions)
                for queue, offset in found.items():
                    if queue not in readers:
                        raise UsageError(f"this consumer does not read {queue}; another one of {self.group} may")
                    if offset < 0:
                        raise UsageError(f"the position {offset} of {queue} cannot be")
            if not found:
                return
            await self.cursors.store(self.group, found, final=True)
            for queue, offset in found.items():
                readers[queue].was_stored(offset)

    async def commit(self) -> None:
        """Store the positions behind all that was handed out. Raises PocketMQError."""
        await self.commit_at(None)

    async def commits_under_way(self) -> None:
        """Wait for a commit that is on its way."""
        async with self._committing:
            pass

    def reader_of(self, queue: MessageQueue) -> PullReader:
        """The reader of a queue. Raises UsageError when this consumer does not read it."""
        reader = self.assignment.pull_reader(queue)
        if reader is None:
            raise UsageError(f"this consumer does not read {queue}; another one of {self.group} may")
        return reader

    def readers_of(self, queues: Sequence[MessageQueue]) -> list[PullReader]:
        """The readers of some queues, by default of all. Raises UsageError when this consumer does not read them."""
        return [self.reader_of(queue) for queue in queues] if queues else self.assignment.pull_readers()

    # -- what operators do -------------------------------------------------------------------------------------------

    def store_soon(self, reader: QueueReader) -> None:
        """Store the position of a queue that an operator has reset."""
        offset = reader.buffer.position if reader.buffer is not None else None
        if self.auto_commit or offset is None:
            super().store_soon(reader)
        else:
            self.core.spawn(self._store_reset({reader.queue: offset}))

    async def _store_reset(self, positions: Mapping[MessageQueue, int]) -> None:
        try:
            await self.cursors.store(self.group, positions, final=False)
        except PocketMQError as error:
            logger.warning("the reset of %s was not stored: %s", self.group, error)

    def deliver_directly(self, message: Delivery) -> None:
        """A message that an operator sent for a try: a pull consumer has no handler to try it on."""
        message.context.put_back(message)
