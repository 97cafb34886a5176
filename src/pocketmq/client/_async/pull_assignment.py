"""Which queues a pull consumer reads: its share of a group's topics, or those that its program named.

Both ways, a queue is taken on and let go as for any consumer. On top, the program can be told: a new queue is read only
after it knows (it may want to begin elsewhere), and a queue that goes is let go only after it knows (it may want to
commit), within the time for draining.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from pocketmq.client._async.assignment import Assignment
from pocketmq.client._async.pull_reader import PullReader
from pocketmq.client._async.pulling import Puller
from pocketmq.client._async.reader import QueueReader
from pocketmq.client.parts import Allocator
from pocketmq.client.pulled import PulledMessage, Rebalance
from pocketmq.model.message import MessageQueue

if TYPE_CHECKING:
    from pocketmq.client._async.pull_member import PullMember

logger = logging.getLogger("pocketmq.client")

OnRebalance = Callable[[Rebalance], Awaitable[object]]


class Change:
    """Queues that come and go together, and whether the program knows."""

    def __init__(self) -> None:
        self.assigned: list[MessageQueue] = []
        self.revoked: list[MessageQueue] = []
        self.told: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(self) -> None:
        """The program knows, or has had its time."""
        if not self.told.done():
            self.told.set_result(None)


class PullAssignment(Assignment):
    """The queue readers of one pull consumer."""

    _member: "PullMember"

    def __init__(
        self, member: "PullMember", allocator: Allocator, drain_s: float, on_rebalance: OnRebalance | None
    ) -> None:
        super().__init__(member, allocator, drain_s)
        self.named: frozenset[MessageQueue] | None = None
        """The queues that the program named; None when they are shared out in the group."""
        self._on_rebalance = on_rebalance
        self._change: Change | None = None
        self._telling = asyncio.Lock()
        self._going: dict[MessageQueue, PullReader] = {}

    def pull_reader(self, queue: MessageQueue) -> PullReader | None:
        """The reader of a queue that is read now."""
        reader = self._readers.get(queue)
        return reader if isinstance(reader, PullReader) else None

    def pull_readers(self) -> list[PullReader]:
        """The readers of all queues that are read now."""
        return [reader for reader in self._readers.values() if isinstance(reader, PullReader)]

    def held(self) -> dict[MessageQueue, PullReader]:
        """The readers of all queues in which positions may be committed: also those on the point of leaving."""
        return {**self._going, **{reader.queue: reader for reader in self.pull_readers()}}

    # -- changes -----------------------------------------------------------------------------------------------------

    async def rebalance(self) -> None:
        """Change over to the queues that are named, or to this consumer's share. Raises PocketMQError."""
        if self.named is None:
            await super().rebalance()
            return
        async with self._lock:
            if self._closed:
                return
            for topic in {queue.topic for queue in (*self.named, *self._readers)}:
                self._apply(topic, [queue for queue in self.named if queue.topic == topic])

    async def learn(self, topic: str) -> None:
        """Learn where a topic is that is read from now on. Raises PocketMQError when no name server answers."""
        self._at_first[topic] = await self._route(topic)

    async def drop(self, topic: str) -> None:
        """Let go of a topic's queues."""
        async with self._lock:
            self._member.subscriptions.pop(topic, None)
            self._at_first.pop(topic, None)
            for queue in [queue for queue in self._readers if queue.topic == topic]:
                self._let_go(queue)

    def refilter(self, topic: str) -> None:
        """The filter of a topic is another one now."""
        for reader in self.pull_readers():
            if reader.queue.topic == topic:
                reader.refilter(self._puller(reader.queue))

    def _puller(self, queue: MessageQueue) -> Puller:
        member = self._member
        wanted = member.subscriptions[queue.topic]
        return Puller(
            self._core.remoting, queue, member.group, wanted, member.version_ms, lite=True, make=PulledMessage
        )

    def _take_on(self, queue: MessageQueue) -> None:
        reader = PullReader(self._member, queue, self._puller(queue))
        self._readers[queue] = reader
        change = self._note(reader)
        if change is not None:
            change.assigned.append(queue)
        reader.start()

    def _let_go(self, queue: MessageQueue) -> None:
        reader = self.pull_reader(queue)
        if reader is not None:
            reader.revoked = True
            self._going[queue] = reader
            change = self._note(reader)
            if change is not None:
                change.revoked.append(queue)
        super()._let_go(queue)

    async def _leave(self, reader: QueueReader) -> None:
        try:
            if isinstance(reader, PullReader) and reader.told is not None:
                await asyncio.shield(reader.told)
            await super()._leave(reader)
        finally:
            self._going.pop(reader.queue, None)

    # -- telling -----------------------------------------------------------------------------------------------------

    def _note(self, reader: PullReader) -> Change | None:
        if self._on_rebalance is None:
            return None
        if self._change is None:
            self._change = Change()
            self._core.spawn(self._tell(self._change, self._on_rebalance))
        reader.told = self._change.told
        return self._change

    async def _tell(self, change: Change, on_rebalance: OnRebalance) -> None:
        self._change = None
        timer = self._core.clock.call_later(self._drain_s, change.settle)
        try:
            async with self._telling:
                await on_rebalance(
                    Rebalance(assigned=tuple(sorted(change.assigned)), revoked=tuple(sorted(change.revoked)))
                )
        except Exception:
            logger.exception("on_rebalance of %s failed", self._member.group)
        finally:
            timer.cancel()
            change.settle()
