"""Making the log durable: one fsync at a time, each for everybody who waited when it began.

Theory of operation. `durable_position` follows `written_position`. A flush takes what is written now as its goal, syncs
the segments from the durable position to the goal, oldest first, and then answers everybody whose position is covered.
Who comes while an fsync runs is covered by the next one: that is the group commit. In `sync` mode a waiter starts a
flush at once; otherwise one begins `flush_interval_s` after the first byte that is not durable.

A new segment counts as durable only when the folder that holds its name was synced, too.

When an fsync fails, the log takes no more records until it is opened again. The kernel may have dropped the pages that
it could not write and marked them clean, so a second fsync would succeed without having written anything: trying again
would turn lost data into acknowledged data. Reads go on.
"""

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable

from pocketmq.log.disk import sync_folder
from pocketmq.log.tail import LogTail
from pocketmq.model.errors import StoreError
from pocketmq.model.seams import Cancellable, Clock, Disk

REASON = "flush"
"""The name under which a failed fsync refuses writes."""

Callback = Callable[[bool], None]
_Waiter = tuple[int, int, float, Callback]


class Flusher:
    """Flushes one log."""

    def __init__(
        self, disk: Disk, clock: Clock, tail: LogTail, *, synchronous: bool, interval_s: float, timeout_s: float
    ) -> None:
        self.durable_position = 0
        """Everything before it survives a power loss."""
        self.failed = False
        self.flush_count = 0
        self.on_durable: Callable[[int], None] | None = None
        """Called with the new durable position, before those who wait for it are answered."""
        self.synchronous = synchronous
        self.armed = False
        """A flush is running or will begin by itself."""
        self._disk = disk
        self._clock = clock
        self._tail = tail
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._waiters: list[_Waiter] = []
        self._numbers = itertools.count()
        self._named: set[int] = set()
        self._wake = asyncio.Event()
        self._timer: Cancellable | None = None
        self._expiry: Cancellable | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start_at(self, durable_position: int, named: Iterable[int]) -> None:
        """Everything before the position is durable, and the names of the segments that start at `named`."""
        self.durable_position = durable_position
        self._named = set(named)

    def start(self) -> None:
        """Begin to work beside the log."""
        self._task = asyncio.create_task(self._run(), name="pocketmq flush")
        self.arm()

    def arm(self) -> None:
        """Something was written: see that it becomes durable within the interval."""
        if not self.armed and not self.failed and self.durable_position < self._tail.written_position:
            self.armed = True
            if self._waiters:
                self._wake.set()
            else:
                self._timer = self._clock.call_later(self._interval_s, self._wake.set)

    def when_durable(self, position: int, callback: Callback, *, force: bool = False) -> None:
        """Call back with True once everything before `position` is as durable as the settings ask.

        In async mode that is as soon as it is written, unless `force` asks for a real flush. False when it did not
        happen within the time limit, or cannot happen any more. The callback may be called at once.
        """
        if position <= self.durable_position or (not force and not self.synchronous and not self.failed):
            callback(True)
        elif self.failed or self._closing:
            callback(False)
        else:
            deadline = self._clock.monotonic() + self._timeout_s
            heapq.heappush(self._waiters, (position, next(self._numbers), deadline, callback))
            if self._expiry is None:
                self._expiry = self._clock.call_later(self._timeout_s, self._expire)
            self._wake.set()

    def hurry(self) -> None:
        """Somebody wants to see what is written, and may not before it is durable: begin the next flush now."""
        if not self.failed and self.durable_position < self._tail.written_position:
            self._wake.set()

    async def wait_durable(self, position: int, *, force: bool = False) -> bool:
        """`when_durable`, awaited."""
        if self._task is None and not self._closing:
            await self._flush()  # at the start, before anything runs beside the log
            return True
        future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self.when_durable(position, lambda done: None if future.done() else future.set_result(done), force=force)
        return await future

    async def close(self) -> None:
        """Flush what is written, answer everybody, stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._task = None
        for timer in (self._timer, self._expiry):
            if timer is not None:
                timer.cancel()
        self._answer_all(False)

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._disarm()
            if not self.failed and self.durable_position < self._tail.written_position:
                self.armed = True
                try:
                    await self._flush()
                except Exception as error:
                    self._fail(error)
                self.armed = False
            if self._closing:
                return
            if self._waiters and self.durable_position < self._tail.written_position:
                self._wake.set()
            else:
                self.arm()
                self._tail.plan_notice()

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.armed = False

    async def _flush(self) -> None:
        """One round: everything that is written now becomes durable."""
        goal = self._tail.written_position
        while self.durable_position < goal:
            segment = self._tail.segments.find(self.durable_position)
            if segment is None or segment.file is None:
                raise FileNotFoundError(f"no segment holds position {self.durable_position}")
            if segment.start not in self._named:
                await sync_folder(self._disk, self._tail.segments.folder)
                self._named.add(segment.start)
            await self._disk.sync(segment.file)
            self.flush_count += 1
            self.durable_position = min(goal, segment.end)
            if self.durable_position == segment.end:
                self._named.discard(segment.start)
            if self.on_durable is not None:
                self.on_durable(self.durable_position)
            self._answer()

    def _answer(self) -> None:
        waiters = self._waiters
        while waiters and waiters[0][0] <= self.durable_position:
            _call(heapq.heappop(waiters)[3], True)

    def _answer_all(self, done: bool) -> None:
        waiters, self._waiters = sorted(self._waiters), []
        for _, _, _, callback in waiters:
            _call(callback, done)

    def _expire(self) -> None:
        """Answer those who waited too long."""
        self._expiry = None
        now = self._clock.monotonic()
        late = sorted(waiter for waiter in self._waiters if waiter[2] <= now)
        if late:
            self._waiters = [waiter for waiter in self._waiters if waiter[2] > now]
            heapq.heapify(self._waiters)
        if self._waiters:
            next_deadline = min(waiter[2] for waiter in self._waiters)
            self._expiry = self._clock.call_later(max(0.0, next_deadline - now), self._expire)
        for _, _, _, callback in late:
            _call(callback, False)

    def _fail(self, error: Exception) -> None:
        self.failed = True
        self._tail.refuse(
            REASON,
            StoreError(
                f"the disk could not make the log durable ({error}); no more records are taken. "
                f"Check the disk, then start the broker again",
                cause=error,
            ),
        )
        self._answer_all(False)


def _call(callback: Callback, done: bool) -> None:
    """Answer one who waited; what he does wrong must not end the flushing for the others."""
    try:
        callback(done)
    except Exception as error:
        context = {"message": "a flush callback failed", "exception": error}
        asyncio.get_running_loop().call_exception_handler(context)
