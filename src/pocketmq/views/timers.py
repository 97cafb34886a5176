"""Messages that wait for their time: a fold over the records of the timer topics and over `TimersFired`.

Theory of operation. A pending timer is two integers: when it is due (ms since the epoch) and where its record stands
in the log. Timers that are due far from now lie unsorted in buckets of ten seconds, as bare machine integers: sixteen
bytes each. When a bucket becomes near it moves into a heap. A timer leaves by `TimersFired` only, which is written
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


class _State(msgspec.Struct, array_like=True):
    timers: bytes
    fired: list[int]


_decoder = msgspec.msgpack.Decoder(_State)


class Timers:
    """Pending timers, by due time."""

    def __init__(self) -> None:
        self._far: dict[int, array[int]] = {}
        """Bucket number -> due, position, due, position, ..."""
        self._near: list[tuple[int, int]] = []
        """A heap of (due, position)."""
        self._near_below = 0
        """Buckets with a smaller number are in the heap. Invariant: no key of `_far` is below."""
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
            heapq.heappush(self._near, (due_ms, position))
            return
        bucket = self._far.get(number)
        if bucket is None:
            bucket = self._far[number] = array("q")
        bucket.append(due_ms)
        bucket.append(position)

    def next_due(self) -> int | None:
        """When the next one is due that was not taken: exact when it is near, else not later. None without one."""
        if self._count <= len(self._lent):
            return None
        while self._near:
            due_ms, position = self._near[0]
            if position not in self._fired:
                return due_ms
            heapq.heappop(self._near)
            self._fired.discard(position)
        return min(self._far) * BUCKET_MS if self._far else None

    def take_due(self, now_ms: int, count_max: int) -> list[tuple[int, int]]:
        """Up to `count_max` timers that are due by `now_ms`, as (due, position), earliest first. They are lent."""
        self._bring_near(now_ms)
        near, fired = self._near, self._fired
        due: list[tuple[int, int]] = []
        while near and near[0][0] <= now_ms and len(due) < count_max:
            timer = heapq.heappop(near)
            if fired and timer[1] in fired:
                fired.discard(timer[1])
                continue
            self._lent[timer[1]] = timer[0]
            due.append(timer)
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
        for number in sorted(number for number in self._far if number < below):
            bucket = self._far.pop(number)
            timers = list(zip(bucket[::2], bucket[1::2], strict=True))
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
        self._near.clear()
        self._fired.clear()
        for due_ms, position in timers:
            self._place(due_ms, position)

    def _all_placed(self) -> Iterator[tuple[int, int]]:
        fired = self._fired
        for timer in self._near:
            if timer[1] not in fired:
                yield timer
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
        parts = [bucket.tobytes() for bucket in self._far.values()]
        close = array("q")
        for due_ms, position in self._near:
            close.append(due_ms)
            close.append(position)
        for position, due_ms in self._lent.items():
            close.append(due_ms)
            close.append(position)
        return msgspec.msgpack.encode(_State(b"".join([*parts, close.tobytes()]), list(self._fired)))

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        numbers = array("q")
        numbers.frombytes(state.timers)
        self._far.clear()
        self._near.clear()
        self._lent.clear()
        self._fired = set(state.fired)
        self._near_below = 0
        for due_ms, position in zip(numbers[::2], numbers[1::2], strict=True):
            self._place(due_ms, position)
        self._count = len(numbers) // 2 - len(self._fired)
