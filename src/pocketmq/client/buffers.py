"""The default message buffer: what was fetched of one queue, in offset order, within water marks.

Theory of operation. A message is in one of three states: waiting (fetched, nobody has it), taken, settled. The offsets
of the messages not yet settled stand in `_offsets`, in order; a settled offset in the middle is marked in `_settled`
and leaves when all before it have left. So the position to commit is the first offset of the list, or where the next
fetch begins when the list is empty, and it can never pass a message that is not settled.

A buffer of an idle queue must be small (there may be many thousands), hence lists and not deques, made when needed.
"""

from collections.abc import Sequence

from pocketmq.model.message import ReceivedMessage

COMPACT_AT = 256
"""Entries left behind at the front of a list before it is cut."""


class QueueBuffer:
    """Waiting and unsettled messages of one queue.

    High-water marks stop fetching: `count_max` messages, `bytes_max` bytes of records, or `span_max` between the first
    and the last unsettled offset. It goes on when all are below three quarters of that.
    """

    __slots__ = (
        "_bytes",
        "_bytes_max",
        "_count_max",
        "_full",
        "_head",
        "_next_offset",
        "_offsets",
        "_settled",
        "_span_max",
        "_taken",
        "_waiting",
        "_waiting_head",
    )

    def __init__(
        self,
        position: int = 0,
        *,
        count_max: int = 1000,
        bytes_max: int = 100 * 1024 * 1024,
        span_max: int = 2000,
    ) -> None:
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._span_max = span_max
        self._next_offset = position
        self._reset()

    def _reset(self) -> None:
        self._offsets: list[int] = []
        self._head = 0
        self._waiting: list[ReceivedMessage] = []
        self._waiting_head = 0
        self._taken: dict[int, int] = {}
        self._settled: set[int] | None = None
        self._bytes = 0
        self._full = False

    @property
    def position(self) -> int:
        """The offset to commit: all messages below it are settled."""
        if self._head == len(self._offsets):
            return self._next_offset
        # Below the first one only after `drop_waiting` has forgotten messages that were put back.
        return min(self._offsets[self._head], self._next_offset)

    @property
    def waiting(self) -> int:
        """Messages that can be taken."""
        return len(self._waiting) - self._waiting_head

    @property
    def unsettled(self) -> int:
        """Messages that wait or are taken."""
        return self.waiting + len(self._taken)

    @property
    def bytes(self) -> int:
        """Bytes of the records that are not settled."""
        return self._bytes

    @property
    def full(self) -> bool:
        """True from the moment that a high-water mark is passed until all counts are below the low ones."""
        return self._full

    def put(self, messages: Sequence[ReceivedMessage], next_offset: int) -> None:
        """Add what a fetch brought, in offset order; the next fetch will start at `next_offset`."""
        self._next_offset = next_offset
        if not messages:
            return
        assert self._head == len(self._offsets) or messages[0].queue_offset > self._offsets[-1], "offsets only rise"
        self._offsets.extend([message.queue_offset for message in messages])
        self._waiting.extend(messages)
        self._bytes += sum([message.store_size for message in messages])
        self._check_level()

    def take(self, count_max: int) -> list[ReceivedMessage]:
        """Hand out up to `count_max` waiting messages, lowest offset first."""
        head = self._waiting_head
        messages = self._waiting[head : head + count_max]
        for message in messages:
            self._taken[message.queue_offset] = message.store_size
        head += len(messages)
        if head == len(self._waiting):
            self._waiting.clear()
            head = 0
        elif head >= COMPACT_AT:
            del self._waiting[:head]
            head = 0
        self._waiting_head = head
        return messages

    def settle(self, message: ReceivedMessage) -> bool:
        """The message is done with. False when it was not taken from here, or settled before."""
        offset = message.queue_offset
        size = self._taken.pop(offset, None)
        if size is None:
            return False
        self._bytes -= size
        offsets = self._offsets
        if offsets[self._head] == offset:
            self._advance()
        elif self._settled is None:
            self._settled = {offset}
        else:
            self._settled.add(offset)
        if self._full:
            self._check_level()
        return True

    def _advance(self) -> None:
        """Leave the first offset behind, and all settled ones that follow it."""
        offsets, settled = self._offsets, self._settled
        head = self._head + 1
        if settled:
            while head < len(offsets) and offsets[head] in settled:
                settled.discard(offsets[head])
                head += 1
        if head == len(offsets):
            offsets.clear()
            head = 0
        elif head >= COMPACT_AT:
            del offsets[:head]
            head = 0
        self._head = head

    def put_back(self, message: ReceivedMessage) -> None:
        """A message that was taken waits again, before all others."""
        if self._taken.pop(message.queue_offset, None) is None:
            return
        if self._waiting_head:
            self._waiting_head -= 1
            self._waiting[self._waiting_head] = message
        else:
            self._waiting.insert(0, message)

    def drop_waiting(self) -> int:
        """Forget the messages that nobody took, as if they had never been fetched; returns how many."""
        dropped = self._waiting[self._waiting_head :]
        if not dropped:
            return 0
        gone = {message.queue_offset for message in dropped}
        # Messages that were put back may lie below taken ones: the next fetch begins at the lowest that was dropped.
        self._next_offset = min(gone)
        self._offsets = [offset for offset in self._offsets[self._head :] if offset not in gone]
        self._head = 0
        self._bytes -= sum(message.store_size for message in dropped)
        self._waiting.clear()
        self._waiting_head = 0
        self._check_level()
        return len(dropped)

    def clear(self, position: int) -> None:
        """Forget everything and start again at `position`."""
        self._next_offset = position
        self._reset()

    def _check_level(self) -> None:
        count, span = self.unsettled, self._span()
        if count >= self._count_max or self._bytes >= self._bytes_max or span >= self._span_max:
            self._full = True
        elif self._full:
            low = count * 4 <= self._count_max * 3 and self._bytes * 4 <= self._bytes_max * 3
            self._full = not (low and span * 4 <= self._span_max * 3)

    def _span(self) -> int:
        if self._head == len(self._offsets):
            return 0
        return self._offsets[-1] - self._offsets[self._head]
