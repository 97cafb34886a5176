"""One queue of a pull consumer: a queue reader that can be paused, and knows what was handed out.

Theory of operation. What a poll hands out is *taken* from the buffer, and *settled* by the next poll (or by a commit),
so the buffer's position is always that of the earlier polls. With auto-commit this is the position that is stored, by
the same means as everywhere. Without, the reader has no position to store at all: only a commit stores one.
"""

import asyncio
from typing import TYPE_CHECKING, cast

from pocketmq.client._async.pulling import Puller, PullResult
from pocketmq.client._async.reader import QueueReader
from pocketmq.client.parts import MessageBuffer
from pocketmq.client.pulled import PulledMessage
from pocketmq.model.message import MessageQueue

if TYPE_CHECKING:
    from pocketmq.client._async.pull_member import PullMember


class PullReader(QueueReader):
    """Reads one queue for one pull consumer."""

    __slots__ = ("_handed_to", "_resumed", "paused", "revoked", "rewound", "told")

    _member: "PullMember"

    def __init__(self, member: "PullMember", queue: MessageQueue, puller: Puller) -> None:
        super().__init__(member, queue, puller)
        self.paused = False
        """By the program: nothing is pulled, and nothing handed out."""
        self.revoked = False
        """It will be let go: the same, for good."""
        self.rewound = False
        """Whether the position may have gone back since it was stored: brokers want to be asked properly then."""
        self.told: asyncio.Future[None] | None = None
        """Done when the program knows that this queue has come, or will go."""
        self._handed_to = 0
        self._resumed: asyncio.Future[None] | None = None

    # -- positions ---------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int | None:
        """The offset to store without being asked, if there is one."""
        return super().position if self._member.auto_commit else None

    @property
    def settled_to(self) -> int | None:
        """Where a commit of all that is settled puts the position; None before reading has begun."""
        return super().position

    @property
    def next_to_hand_out(self) -> int | None:
        """The offset from which the next poll takes; None before reading has begun."""
        buffer = self.buffer
        if buffer is None:
            return None
        return self._handed_to if buffer.waiting or self.leaving else self._next_offset

    def was_stored(self, position: int) -> None:
        """The position has been stored."""
        self.rewound = False
        super().was_stored(position)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        if self.told is not None:
            # The program may want to begin elsewhere.
            await asyncio.shield(self.told)
        await super()._run()

    async def _step(self) -> None:
        if self.paused or self.revoked:
            self._resumed = asyncio.get_running_loop().create_future()
            await self._resumed
            return
        await super()._step()

    async def _take_in(self, buffer: MessageBuffer, result: PullResult, took_s: float) -> None:
        if not buffer.waiting:
            # What a filter left out since the last message counts as handed out.
            self._handed_to = self._next_offset
        await super()._take_in(buffer, result, took_s)

    def _clear(self, buffer: MessageBuffer, offset: int) -> None:
        super()._clear(buffer, offset)
        self._handed_to = offset

    def seek(self, offset: int) -> None:
        """Go on at `offset`; what was fetched is forgotten, and what was handed out counts no more."""
        self.rewound = True
        super().seek(offset)

    def hand_out(self, count_max: int) -> list[PulledMessage]:
        """Up to `count_max` messages, in order."""
        buffer = self.buffer
        if buffer is None or self.paused or self.revoked or self.leaving:
            return []
        messages = cast(list[PulledMessage], buffer.take(count_max))
        if messages:
            self._handed_to = messages[-1].queue_offset + 1
            self.out += len(messages)
        return messages

    def settle(self, message: PulledMessage) -> None:
        """The program is done with a message."""
        if self.buffer is not None and self.buffer.settle(message):
            self._settled(self.buffer)

    def unsettle(self, message: PulledMessage) -> None:
        """The program will not say whether it is done with a message."""
        if self.buffer is not None:
            self.buffer.put_back(message)
            self._settled(self.buffer)

    # -- what the program says ---------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Hand out nothing more, and pull no more than what is under way."""
        self.paused = True

    def resume(self) -> None:
        """Go on."""
        self.paused = False
        if self._resumed is not None and not self._resumed.done():
            self._resumed.set_result(None)
        if self.buffer is not None and self.buffer.waiting:
            self._member.on_messages(self)

    def refilter(self, puller: Puller) -> None:
        """Go on with another filter; what was fetched with the old one and not handed out is fetched anew."""
        if self.leaving or self.revoked:
            return
        self._puller = puller
        if self._task is not None:
            self._task.cancel()
        buffer, offset = self.buffer, self.next_to_hand_out
        if buffer is not None and offset is not None:
            buffer.drop_waiting()
            buffer.put((), offset)
            self._next_offset = offset
        self.start()

    async def leave(self, drain_s: float) -> None:
        """Let go in good order: what was handed out is waited for, and a commit that is under way."""
        await super().leave(drain_s)
        await self._member.commits_under_way()
