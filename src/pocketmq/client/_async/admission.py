"""How much may wait to be sent: a bound by count and by bytes, with waiters served in order."""

import asyncio
from collections import deque

from pocketmq.model.errors import BackPressureError
from pocketmq.model.seams import Clock


class Admission:
    """Room for messages that are not acknowledged yet. One message always fits into an empty room."""

    __slots__ = ("_bytes", "_bytes_max", "_clock", "_count", "_count_max", "_empty", "_waiters")

    def __init__(self, clock: Clock, count_max: int, bytes_max: int) -> None:
        self._clock = clock
        self._count_max = count_max
        self._bytes_max = bytes_max
        self._count = 0
        self._bytes = 0
        self._waiters: deque[tuple[asyncio.Future[None], int]] = deque()
        self._empty: asyncio.Future[None] | None = None

    @property
    def count(self) -> int:
        """Messages inside."""
        return self._count

    def try_enter(self, size: int) -> bool:
        """Enter if there is room now and nobody waits. The quick way of `enter`."""
        if self._waiters or self._count >= self._count_max or (self._count and self._bytes + size > self._bytes_max):
            return False
        self._count += 1
        self._bytes += size
        return True

    async def enter(self, size: int, timeout_s: float) -> None:
        """Enter, waiting for room when there is none. Raises BackPressureError after `timeout_s` seconds."""
        if self.try_enter(size):
            return
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (waiter, size)
        self._waiters.append(entry)
        timer = self._clock.call_later(timeout_s, self._give_up, waiter, timeout_s)
        try:
            await waiter
        except BaseException:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.leave(size)  # Admitted and cancelled in the same turn.
            elif entry in self._waiters:
                self._waiters.remove(entry)
                self._admit()
            raise
        finally:
            timer.cancel()

    def _give_up(self, waiter: "asyncio.Future[None]", timeout_s: float) -> None:
        if not waiter.done():
            waiter.set_exception(
                BackPressureError(
                    f"no room for another message in {timeout_s:g} s: {self._count} messages of {self._bytes} bytes "
                    f"wait for their acknowledgement (limits: {self._count_max} and {self._bytes_max})"
                )
            )

    def leave(self, size: int) -> None:
        """Make room again."""
        self._count -= 1
        self._bytes -= size
        if self._waiters:
            self._admit()
        elif self._empty is not None and self._count == 0 and not self._empty.done():
            self._empty.set_result(None)

    async def emptied(self, timeout_s: float) -> bool:
        """Wait until nothing is inside, at most `timeout_s` seconds; whether that came true."""
        if self._count == 0:
            return True
        empty = self._empty = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(timeout_s, _settle, empty)
        try:
            await empty
        finally:
            timer.cancel()
            self._empty = None
        return self._count == 0

    def _admit(self) -> None:
        while self._waiters:
            waiter, size = self._waiters[0]
            if waiter.done():
                self._waiters.popleft()
                continue
            if self._count >= self._count_max or (self._count and self._bytes + size > self._bytes_max):
                return
            self._waiters.popleft()
            self._count += 1
            self._bytes += size
            waiter.set_result(None)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
