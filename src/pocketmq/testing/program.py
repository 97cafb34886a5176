"""A program on a virtual loop: everything that it does can be stopped at once, paused, and resumed.

Theory of operation: the program is named in the context variables that asyncio hands from task to task and from
callback to callback. The loop asks before it runs anything. What belongs to a program that was killed is dropped, as if
the process had ended between two instructions; what belongs to one that is paused is kept until it is resumed, and it
finds then that time has passed.
"""

import asyncio
import contextvars
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")

_ENDINGS_MAX = 100
"""How often something that is dropped may try to wait in its `finally`."""


class _ProgramEnd(BaseException):
    """Thrown into what is dropped, so that Python can take it apart in good order."""


_PROGRAM: "contextvars.ContextVar[Program | None]" = contextvars.ContextVar("pocketmq_program", default=None)


class Program:
    """One program. `name` is for people."""

    def __init__(self, name: str = "program") -> None:
        self.name = name
        self.steps = 0
        """How many callbacks and steps of tasks it has run."""
        self.is_alive = True
        self.is_paused = False
        self._parked: list[asyncio.Handle] = []
        self._tasks: weakref.WeakKeyDictionary[asyncio.Task[Any], None] = weakref.WeakKeyDictionary()
        self._stop_at: int | None = None
        self._on_stop: Callable[[], object] | None = None

    def start(self, main: Coroutine[Any, Any, Result], *, name: str | None = None) -> asyncio.Task[Result]:
        """Run a coroutine as a part of the program, on the running loop."""
        return self.call(asyncio.get_running_loop().create_task, main, name=name or self.name)

    def call(self, function: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        """Call a function as a part of the program: what it starts and schedules belongs to it."""
        context = contextvars.copy_context()
        context.run(_PROGRAM.set, self)
        return context.run(function, *args, **kwargs)

    def kill(self) -> None:
        """End it here and now. Nothing of it runs any more, not even what cleans up."""
        if self.is_alive:
            self.is_alive = False
            self._parked.clear()
            for task in list(self._tasks):
                abandon(task)

    def pause(self) -> None:
        """Let it stand still until `resume`, as SIGSTOP does."""
        self.is_paused = True

    def resume(self) -> None:
        """Let it go on; what became due meanwhile happens now, in order."""
        self.is_paused = False
        parked, self._parked = self._parked, []
        for handle in parked:
            asyncio.get_running_loop().call_soon(run_handle, handle)

    def stop_at(self, step: int, action: Callable[[], object]) -> None:
        """Call `action` (kill it, say) instead of its step of that number: a crash at any `await` that is wanted."""
        self._stop_at = step
        self._on_stop = action

    def admits(self, handle: asyncio.Handle) -> bool:
        """Asked by the loop before each step; False when it must not run now."""
        if not self.is_alive:
            return False
        if self.is_paused:
            self._parked.append(handle)
            return False
        if self.steps == self._stop_at and self._on_stop is not None:
            action, self._on_stop = self._on_stop, None
            action()
            return self.is_alive and not self.is_paused
        self.steps += 1
        return True

    def adopt(self, task: asyncio.Task[Any]) -> None:
        """Called by the loop for every task that the program starts."""
        self._tasks[task] = None


def program_of(context: contextvars.Context | None = None) -> Program | None:
    """The program that a context belongs to; by default the current one."""
    return _PROGRAM.get() if context is None else context.get(_PROGRAM)


def run_handle(handle: asyncio.Handle) -> None:
    """Run a handle that was kept back, unless it was cancelled meanwhile."""
    if not handle.cancelled():
        handle._run()


def abandon(task: asyncio.Task[Any]) -> None:
    """Drop a task that will never run again, without a word."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    asyncio.tasks._unregister_task(task)  # so that nobody waits for its end
    coroutine = task.get_coro()
    if not isinstance(coroutine, Coroutine):
        return
    # Not `close`: that passes by asynchronous generators that are waiting inside.
    for _ in range(_ENDINGS_MAX):
        try:
            coroutine.throw(_ProgramEnd())
        except BaseException:
            return  # nobody is left to hear of it
