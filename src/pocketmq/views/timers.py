"""Messages that wait for their time: a fold over the records of the timer topics and over `TimersFired`.

Theory of operation. A pending timer is two integers: when it is due (ms since the epoch) and where its record stands
in the log. Timers that are due far from now lie unsorted in buckets of ten seconds, as bare machine integers: sixteen
bytes each. When a bucket becomes near it moves into a heap, where a timer is one integer, its due time above its
position. A timer leaves by `TimersFired` only, which is written
after its message was delivered: a crash between the two delivers twice, never not at all.

`take_due` lends the due timers to the caller: they are out of the heap, but still count as pending (and are in every
snapshot) until `TimersFired` names them or `put_back` returns them.
"""

import heapq
from array import array
from collections.abc import Iterable, Iterator

import msgspec

from pocketmq.views.journal import Entry, TimersFired

BUCKET_MS = 10_000
FIRED_UNSEEN_MAX = 100_000
"""Timers known to have fired but still in a far bucket; above this, the buckets are cleaned."""


POSITION_BITS = 63
POSITION_MASK = (1 << POSITION_BITS) - 1


class _State(msgspec.Struct, array_like=True):
    far: dict[int, bytes]
    near: bytes
    fired: list[int]


_decoder = msgspec.msgpack.Decoder(_State)


class Timers:
    """Pending timers, by due time."""

    def __init__(self) -> None:
        self._far: dict[int, array[int]] = {}
        """Bucket number -> due, position, due, position, ..."""
        self._far_numbers: list[int] = []
        """A heap of the keys of `_far`."""
        self._near: list[int] = []
        """A heap of due << POSITION_BITS | position."""
        self._near_below = 0
        """Timers of buckets with a smaller number go into the heap. Invariant: no key of `_far` is below."""
        self._lent: dict[int, int] = {}
        """Position -> due of the timers that `take_due` handed out."""
        self._fired: set[int] = set()
        """Fired while still in a bucket or in the heap: dropped when met. Invariant: each is in one of the two."""
        self._count = 0

    def __len__(self) -> int:
        """How many are pending."""
        return self._count

    def add(self, due_ms: int, position: int) -> None:
        """A record at `position` is to be delivered at `due_ms`."""
        self._count += 1
        self._place(due_ms, position)

    def _place(self, due_ms: int, position: int) -> None:
        number = due_ms // BUCKET_MS
        if number < self._near_below:
            heapq.heappush(self._near, due_ms << POSITION_BITS | position)
            return
        bucket = self._far.get(number)
        if bucket is None:
            bucket = self._far[number] = array("q")
            heapq.heappush(self._far_numbers, number)
        bucket.append(due_ms)
        bucket.append(position)

    def next_due(self) -> int | None:
        """When the next one is due that was not taken: exact when it is near, else not later. None without one."""
        if self._count <= len(self._lent):
            return None
        near = self._near
        while near and near[0] & POSITION_MASK in self._fired:
            self._fired.discard(heapq.heappop(near) & POSITION_MASK)
        begins = [near[0] >> POSITION_BITS] if near else []
        if self._far_numbers:
            begins.append(self._far_numbers[0] * BUCKET_MS)
        return min(begins, default=None)

    def take_due(self, now_ms: int, count_max: int) -> list[tuple[int, int]]:
        """Up to `count_max` timers that are due by `now_ms`, as (due, position), earliest first. They are lent."""
        self._bring_near(now_ms)
        near, fired = self._near, self._fired
        limit = now_ms + 1 << POSITION_BITS
        due: list[tuple[int, int]] = []
        while near and near[0] < limit and len(due) < count_max:
            timer = heapq.heappop(near)
            due_ms, position = timer >> POSITION_BITS, timer & POSITION_MASK
            if fired and position in fired:
                fired.discard(position)
                continue
            self._lent[position] = due_ms
            due.append((due_ms, position))
        return due

    def put_back(self, timers: Iterable[tuple[int, int]]) -> None:
        """Return lent timers that could not be delivered now."""
        for due_ms, position in timers:
            if self._lent.pop(position, None) is not None:
                self._place(due_ms, position)

    def _bring_near(self, now_ms: int) -> None:
        below = now_ms // BUCKET_MS + 1
        if below <= self._near_below:
            return
        while self._far_numbers and self._far_numbers[0] < below:
            bucket = self._far.pop(heapq.heappop(self._far_numbers))
            timers = [due << POSITION_BITS | at for due, at in zip(bucket[::2], bucket[1::2], strict=True)]
            if len(timers) > len(self._near):
                self._near += timers
                heapq.heapify(self._near)
            else:
                for timer in timers:
                    heapq.heappush(self._near, timer)
        self._near_below = below

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if not isinstance(entry, TimersFired):
            return
        self._count -= len(entry.positions)
        for position in entry.positions:
            if self._lent.pop(position, None) is None:
                self._fired.add(position)
        if len(self._fired) > FIRED_UNSEEN_MAX:
            self._clean()

    def _clean(self) -> None:
        """Drop what has fired, so that the set of it stays small."""
        timers = list(self._all_placed())
        self._far.clear()
        self._far_numbers.clear()
        self._near.clear()
        self._fired.clear()
        for due_ms, position in timers:
            self._place(due_ms, position)

    def _all_placed(self) -> Iterator[tuple[int, int]]:
        fired = self._fired
        for timer in self._near:
            if timer & POSITION_MASK not in fired:
                yield timer >> POSITION_BITS, timer & POSITION_MASK
        for bucket in self._far.values():
            for due_ms, position in zip(bucket[::2], bucket[1::2], strict=True):
                if position not in fired:
                    yield due_ms, position

    def pending(self) -> Iterator[tuple[int, int]]:
        """Every pending timer as (due, position), in no order."""
        yield from self._all_placed()
        for position, due_ms in self._lent.items():
            yield due_ms, position

    def between(self, start: int, end: int) -> list[tuple[int, int]]:
        """Pending timers whose records stand in [start, end) of the log, by position."""
        found = [timer for timer in self.pending() if start <= timer[1] < end]
        return sorted(found, key=lambda timer: timer[1])

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        near = array("q")
        for timer in self._near:
            near.append(timer >> POSITION_BITS)
            near.append(timer & POSITION_MASK)
        for position, due_ms in self._lent.items():
            near.append(due_ms)
            near.append(position)
        far = {number: bucket.tobytes() for number, bucket in self._far.items()}
        return msgspec.msgpack.encode(_State(far, near.tobytes(), list(self._fired)))

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        self._far = {number: array("q", data) for number, data in state.far.items()}
        self._far_numbers = sorted(self._far)
        self._near.clear()
        self._lent.clear()
        self._fired = set(state.fired)
        near = array("q", state.near)
        self._near = [due << POSITION_BITS | at for due, at in zip(near[::2], near[1::2], strict=True)]
        heapq.heapify(self._near)
        self._near_below = 0
        self._count = len(self._near) + sum(map(len, self._far.values())) // 2 - len(self._fired)
