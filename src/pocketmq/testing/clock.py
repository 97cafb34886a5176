"""Time that a test owns, as the `Clock` seam shows it.

`VirtualClock` is the clock of one machine on a `VirtualLoop`: nobody ever waits.

`AdvanceableClock` is for a real loop with real sockets (the embedded server): it runs with the wall clock, and can be
moved forward, which fires everything that became due on the way, in order.
"""

import asyncio
import contextvars
import heapq
import itertools
import time
from collections.abc import Callable
from typing import Any

from pocketmq.model.seams import Cancellable

START_MS = 1_700_000_000_000
"""Wall-clock time at which virtual time begins, in ms since the epoch."""

_TURNS_PER_STEP = 6


class VirtualClock:
    """The `Clock` of one machine on a virtual loop. Its wall clock can be wrong; its monotonic time cannot.

    Args:
        loop: the loop whose time it shows; by default the one that is running when it is first used.
        start_ms: wall-clock time at the loop's time 0, in ms since the epoch.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None, *, start_ms: int = START_MS) -> None:
        self._loop = loop
        self._start_ms = start_ms
        self.skew_ms = 0
        """How far the wall clock is off, in ms; may be changed at any time, also backwards."""

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop whose time this clock shows."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def time_ms(self) -> int:
        """Wall-clock time in ms since the epoch, with the skew."""
        return self._start_ms + round(self.loop.time() * 1000) + self.skew_ms

    def monotonic(self) -> float:
        """Virtual seconds."""
        return self.loop.time()

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run `callback(*args)` after `delay` virtual seconds."""
        return self.loop.call_later(delay, callback, *args)

    async def sleep(self, delay: float) -> None:
        """Wait `delay` virtual seconds."""
        await asyncio.sleep(delay)

    def jump(self, milliseconds: int) -> None:
        """Set the wall clock forward (or back) by that much, as an operator or NTP does; no timer fires for it."""
        self.skew_ms += milliseconds


class _Timer:
    """One scheduled call of an `AdvanceableClock`."""

    __slots__ = ("args", "callback", "context", "when")

    def __init__(self, when: float, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.when = when
        self.callback: Callable[..., object] | None = callback
        self.args = args
        self.context = contextvars.copy_context()

    def cancel(self) -> None:
        self.callback = None
        self.args = ()

    def fire(self) -> None:
        callback, args = self.callback, self.args
        if callback is not None:
            self.cancel()
            self.context.run(callback, *args)


class AdvanceableClock:
    """A `Clock` on a real event loop that runs with the wall clock and can be moved forward.

    Theory of operation: timers are kept in a heap of our own, by this clock's time, and one timer of the loop is armed
    for the earliest. `advance` stops this clock's time, sets it to each due moment in turn, fires what is due then, and
    gives the loop some turns so that tasks which woke up can run (and set the next timer) before the time moves on. A
    server that does something every second does it 60 times when 60 seconds pass, as it would have in a minute.

    Args:
        loop: the loop that the timers fire on; by default the one that is running when it is first used.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop
        self._timers: list[tuple[float, int, _Timer]] = []
        self._sequence = itertools.count()
        self._ahead_s = 0.0
        self._stopped_at: float | None = None
        self._armed: asyncio.TimerHandle | None = None
        self._advancing = asyncio.Lock()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop that the timers fire on."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        return self._loop

    def time_ms(self) -> int:
        """Wall-clock time in ms since the epoch, moved forward by all that was advanced."""
        return round((time.time() - time.monotonic() + self.monotonic()) * 1000)

    def monotonic(self) -> float:
        """Seconds; the machine's monotonic clock, moved forward by all that was advanced."""
        return time.monotonic() + self._ahead_s if self._stopped_at is None else self._stopped_at

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run `callback(*args)` on the loop after `delay` seconds of this clock."""
        timer = _Timer(self.monotonic() + max(0.0, delay), callback, args)
        heapq.heappush(self._timers, (timer.when, next(self._sequence), timer))
        if self._timers[0][2] is timer:
            self._arm()
        return timer

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds of this clock."""
        if delay <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = self.loop.create_future()
        timer = self.call_later(delay, _wake, woken)
        try:
            await woken
        finally:
            timer.cancel()

    async def advance(self, seconds: float) -> None:
        """Move the time forward by `seconds`, firing what becomes due on the way, in order."""
        if seconds < 0:
            raise ValueError(f"time moves forward only, not by {seconds} s")
        async with self._advancing:
            target = self.monotonic() + seconds
            self._stopped_at = self.monotonic()
            try:
                while (timer := self._first()) is not None and timer.when <= target:
                    self._stopped_at = max(self._stopped_at, timer.when)
                    self._fire_due(self._stopped_at)
                    await self._settle()
                self._stopped_at = target
                await self._settle()
            finally:
                self._ahead_s = target - time.monotonic()
                self._stopped_at = None
                self._arm()

    def _first(self) -> _Timer | None:
        timers = self._timers
        while timers:
            if timers[0][2].callback is not None:
                return timers[0][2]
            heapq.heappop(timers)
        return None

    def _fire_due(self, now: float) -> None:
        due = []
        while (timer := self._first()) is not None and timer.when <= now:
            heapq.heappop(self._timers)
            due.append(timer)
        for timer in due:
            try:
                timer.fire()
            except Exception as error:
                context = {"message": "a timer of the clock failed", "exception": error}
                self.loop.call_exception_handler(context)

    async def _settle(self) -> None:
        for _ in range(_TURNS_PER_STEP):
            await asyncio.sleep(0)

    def _arm(self) -> None:
        if self._armed is not None:
            self._armed.cancel()
            self._armed = None
        timer = self._first()
        if timer is not None and self._stopped_at is None:
            self._armed = self.loop.call_later(max(0.0, timer.when - self.monotonic()), self._ring)

    def _ring(self) -> None:
        self._armed = None
        if self._stopped_at is None:
            # The loop may ring a hair early, since its clock and this one are read at different moments.
            self._fire_due(self.monotonic() + 0.0005)
            self._arm()


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
