"""A clock that is moved by hand and a transport that keeps what was written."""

import asyncio
import heapq
import itertools
from collections.abc import Callable
from typing import Any

import pytest


class ManualTimer:
    def __init__(self, callback: Callable[..., object], args: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.args = args

    def cancel(self) -> None:
        self.callback = None


class ManualClock:
    """Stands still until `advance` is called; timers run inside it, in order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[tuple[float, int, ManualTimer]] = []
        self._order = itertools.count()

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> ManualTimer:
        timer = ManualTimer(callback, args)
        heapq.heappush(self._timers, (self.now + delay, next(self._order), timer))
        return timer

    async def sleep(self, delay: float) -> None:
        woken = asyncio.get_running_loop().create_future()
        self.call_later(delay, woken.set_result, None)
        await woken

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        while self._timers and self._timers[0][0] <= end:
            when, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, when)
            if timer.callback is not None:
                timer.callback(*timer.args)
        self.now = end

    @property
    def timers(self) -> int:
        return sum(timer.callback is not None for _, _, timer in self._timers)


class FakeTransport(asyncio.Transport):
    """Keeps each write apart; says how much waits as the test wants it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("10.0.0.9", 50_000), "sockname": ("10.0.0.1", 10_911)})
        self.writes: list[bytes] = []
        self.reading = True
        self.closing = False
        self.aborted = False
        self.waiting = 0
        self.limits: tuple[int | None, int | None] = (None, None)

    def write(self, data: Any) -> None:
        self.writes.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        self.writes.append(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (high, low)

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def transport() -> FakeTransport:
    return FakeTransport()
