"""An event loop on which waiting takes no time.

Deterministic: the same calls in the same order give the same run, whatever the machine is doing.
"""

import asyncio
import contextvars
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from pocketmq.testing.program import abandon, program_of

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

_LIMIT_S = 90 * 86_400.0


class DeadlockError(RuntimeError):
    """Nothing can happen any more on a virtual loop, and somebody still waits. The message lists who, and where."""


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop on virtual time; it never blocks and never touches the operating system.

    When nothing is ready, the time jumps to the next timer (timers of one moment run in the order they were set).
    With no timer left, or beyond `limit_s` seconds of virtual time, it raises `DeadlockError` instead of waiting for
    ever. Functions given to `run_in_executor` run on the loop itself, at the next turn.

    What belongs to a `Program` runs only while that is alive and not paused.
    """

    _ready: deque[asyncio.Handle]
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, *, limit_s: float = _LIMIT_S) -> None:
        super().__init__()
        self._now = 0.0
        self._limit_s = limit_s
        self._sequence = itertools.count()
        self._halted: BaseException | None = None
        self._selector = _JumpingSelector(self)
        self._clock_resolution = 1e-9
        self.set_task_factory(_make_task)  # type: ignore[arg-type]

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._now

    @property
    def halted(self) -> bool:
        """Whether `halt` was called."""
        return self._halted is not None

    def halt(self, reason: BaseException) -> None:
        """Stop the world: nothing that is scheduled runs any more, and the loop's `run_...` raises `reason`.

        The callback that is running goes on to its end; what it schedules is dropped.
        """
        if self._halted is None:
            self._halted = reason
            for handle in (*self._ready, *self._scheduled):
                handle.cancel()

    def _call_soon(
        self, callback: Callable[..., object], args: Sequence[Any], context: contextvars.Context | None
    ) -> asyncio.Handle:
        """Where asyncio makes every handle that is to run at once; after `halt` the call is dropped."""
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)
        if self._halted is not None:
            handle.cancel()
        return handle

    def call_at(
        self,
        when: float,
        callback: Callable[[*Arguments], object],
        *args: *Arguments,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        """Like asyncio's, but calls of the same moment keep the order in which they were set."""
        handle = _OrderedTimerHandle(when, callback, args, self, context, sequence=next(self._sequence))
        heapq.heappush(self._scheduled, handle)
        handle._scheduled = True
        if self._halted is not None:
            handle.cancel()
        return handle

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Arguments], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Run `func(*args)` on the loop at its next turn: threads would make the run depend on the machine."""
        future: asyncio.Future[Result] = self.create_future()
        self.call_soon(_complete, future, func, args)
        return future

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Like asyncio's; after `halt` nobody is left to hear of errors."""
        if self._halted is None:
            super().call_exception_handler(context)

    def close(self) -> None:
        """Close the loop. After `halt`, the tasks that were cut off are dropped without a word."""
        if self._halted is not None:
            for task in asyncio.all_tasks(self):
                abandon(task)
        super().close()

    def _jump(self, timeout: float | None) -> None:
        if self._halted is not None:
            raise self._halted
        if timeout is None:
            raise DeadlockError(f"nothing can happen any more; waiting: {describe_tasks(self)}")
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when())
            if self._now > self._limit_s:
                raise DeadlockError(f"{self._limit_s:g} s of virtual time have passed; waiting: {describe_tasks(self)}")

    def _process_events(self, event_list: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class _JumpingSelector:
    """Stands where asyncio waits for sockets; jumps in time instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[Any]:
        self._loop._jump(timeout)
        return []


class _Handle(asyncio.Handle):
    """A call that asks its program before it runs."""

    __slots__ = ()
    _context: contextvars.Context

    def _run(self) -> None:
        program = program_of(self._context)
        if program is None or program.admits(self):
            super()._run()


class _OrderedTimerHandle(asyncio.TimerHandle):
    """A timer that sorts by moment, then by when it was set, and asks its program before it runs."""

    __slots__ = ("_sequence",)
    _scheduled: bool
    _context: contextvars.Context

    def __init__(self, *args: Any, sequence: int) -> None:
        super().__init__(*args)
        self._sequence = sequence

    def _run(self) -> None:
        program = program_of(self._context)
        if program is None or program.admits(self):
            super()._run()

    def __lt__(self, other: object) -> bool:
        if isinstance(other, _OrderedTimerHandle):
            return (self.when(), self._sequence) < (other.when(), other._sequence)
        return NotImplemented


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    task = asyncio.Task(coroutine, loop=loop, **options)
    program = program_of(options.get("context"))
    if program is not None:
        program.adopt(task)
    return task


def _complete(future: asyncio.Future[Any], func: Callable[..., Any], args: tuple[Any, ...]) -> None:
    if future.cancelled():
        return
    try:
        result = func(*args)
    except Exception as error:
        future.set_exception(error)
    else:
        future.set_result(result)


def describe_tasks(loop: asyncio.AbstractEventLoop) -> str:
    """Every unfinished task of `loop` with the innermost line at which it waits, for people."""
    lines = sorted(f"{task.get_name()} {_where(task.get_coro())}" for task in asyncio.all_tasks(loop))
    return "; ".join(lines) if lines else "no task"


def _where(coroutine: Any) -> str:
    name = getattr(coroutine, "__qualname__", repr(coroutine))
    place = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None:
            place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
        coroutine = getattr(coroutine, "cr_await", None)
    return f"({name} at {place})" if place else f"({name})"


def run(main: Coroutine[Any, Any, Result], *, limit_s: float = _LIMIT_S) -> Result:
    """Run a coroutine to its end on a new `VirtualLoop`, like `asyncio.run`."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(limit_s=limit_s)) as runner:
        return runner.run(main)
