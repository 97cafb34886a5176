"""Requests that wait for a message: long polls.

Theory of operation. A held request hangs on the `LogQueue` it waits for (`waiters`), on its connection, and on a wheel
of time slots. It leaves all three at once, by whichever comes first: a message that it accepts, its time-out, the end
of its connection, the end of the broker. The wheel has one timer of the clock for all requests, set for the next slot
that holds any; putting in and taking out are a dictionary operation each.
"""

import heapq
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pocketmq.log.queues import LogQueue
    from pocketmq.model.seams import Cancellable, Clock

SLOT_S = 0.02
"""Time-outs are answered at most this much late, never early."""


class Held:
    """One waiting request. Subclasses say how it is answered."""

    __slots__ = ("connection", "queue", "slot")

    def __init__(self, connection: Any, queue: "LogQueue") -> None:
        self.connection = connection
        self.queue = queue
        self.slot = -1
        """Slot of the wheel while held, -1 otherwise."""

    def try_answer(self) -> bool:
        """Something was written to the queue: answer if it is wanted; False to wait on."""
        raise NotImplementedError

    def answer_empty(self) -> None:
        """The time is over: answer with what there is."""
        raise NotImplementedError


class _Connection(Protocol):
    def __hash__(self) -> int: ...


class Holds:
    """All requests that are held, at most `held_max`."""

    def __init__(self, clock: "Clock", held_max: int) -> None:
        self._clock = clock
        self._held_max = held_max
        self._count = 0
        self._wheel: dict[int, dict[Held, None]] = {}
        self._slots: list[int] = []
        """A heap of the keys of `_wheel`."""
        self._timer: Cancellable | None = None
        self._timer_slot = 0
        self._by_connection: dict[_Connection, dict[Held, None]] = {}

    def __len__(self) -> int:
        return self._count

    def hold(self, held: Held, timeout_s: float) -> bool:
        """Keep `held` until it can be answered, at most `timeout_s`; False when too many are held already."""
        if self._count >= self._held_max:
            return False
        slot = math.ceil((self._clock.monotonic() + timeout_s) / SLOT_S)
        held.slot = slot
        bucket = self._wheel.get(slot)
        if bucket is None:
            bucket = self._wheel[slot] = {}
            heapq.heappush(self._slots, slot)
            if self._timer is None or slot < self._timer_slot:
                self._set_timer(slot)
        bucket[held] = None
        waiters: Any = held.queue.waiters
        if waiters is None:
            held.queue.waiters = {held: None}
        else:
            waiters[held] = None
        self._by_connection.setdefault(held.connection, {})[held] = None
        self._count += 1
        return True

    def release(self, held: Held) -> None:
        """Take `held` out, unanswered; no effect when it is not held."""
        if held.slot < 0:
            return
        del self._wheel[held.slot][held]
        held.slot = -1
        waiters: Any = held.queue.waiters
        del waiters[held]
        if not waiters:
            held.queue.waiters = None
        of_connection = self._by_connection[held.connection]
        del of_connection[held]
        if not of_connection:
            del self._by_connection[held.connection]
        self._count -= 1

    def wake(self, queues: Iterable["LogQueue"]) -> None:
        """Messages were written to these queues: answer who wants them, oldest request first."""
        for queue in queues:
            waiters: Any = queue.waiters
            if waiters:
                for held in list(waiters):
                    if held.slot >= 0 and held.try_answer():
                        self.release(held)

    def answer_all(self, queue: "LogQueue") -> None:
        """The queue is about to go: answer whoever waits for it."""
        waiters: Any = queue.waiters
        self._expire(waiters or {})

    def drop_connection(self, connection: _Connection) -> None:
        """The connection is gone, and with it what it waited for."""
        for held in list(self._by_connection.get(connection, ())):
            self.release(held)

    def close(self) -> None:
        """Answer everything that is held with what there is."""
        for bucket in list(self._wheel.values()):
            self._expire(bucket)
        self._wheel.clear()
        self._slots.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _expire(self, bucket: dict[Held, None]) -> None:
        for held in list(bucket):
            if held.slot >= 0:
                self.release(held)
                held.answer_empty()

    def _set_timer(self, slot: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_slot = slot
        delay = max(0.0, slot * SLOT_S - self._clock.monotonic())
        self._timer = self._clock.call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._slots and self._slots[0] * SLOT_S <= now:
            slot = heapq.heappop(self._slots)
            self._expire(self._wheel[slot])
            del self._wheel[slot]
        while self._slots and not self._wheel[self._slots[0]]:
            del self._wheel[heapq.heappop(self._slots)]
        if self._slots:
            self._set_timer(self._slots[0])
