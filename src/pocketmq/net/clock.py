"""The real `Clock`: the machine's clocks and the running event loop."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from pocketmq.model.seams import Cancellable


class SystemClock:
    """Wall time, monotonic time and timers of the event loop that is running when they are asked for."""

    __slots__ = ()

    # The function itself, not a method around it: it is read once for every batch of bytes that arrives.
    monotonic = staticmethod(time.monotonic)

    def time_ms(self) -> int:
        """Wall-clock time in milliseconds since the Unix epoch."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run `callback(*args)` on the running event loop after `delay` seconds."""
        return asyncio.get_running_loop().call_later(delay, callback, *args)

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds (0 gives other tasks one turn)."""
        await asyncio.sleep(delay)
