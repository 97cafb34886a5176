"""Where blocking code meets the event loop: one loop on a thread of its own, for all blocking clients of the process.

A blocking call hands a coroutine function to the loop and waits for its result. The thread is started by the first
client and ends after the last one was closed. A process that was forked gets a thread of its own.
"""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

from pocketmq.model.errors import ClientClosedError, UsageError
from pocketmq.net.loop import new_event_loop

Params = ParamSpec("Params")
Result = TypeVar("Result")
Item = TypeVar("Item")
Wrapped = TypeVar("Wrapped")

JOIN_S = 5.0
HANDLER_THREADS_MAX = 64
"""Most blocking handlers that run at the same time, over all consumers of the process."""


class LoopThread:
    """An event loop on a daemon thread, and how many clients use it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.users = 0
        self.loop = new_event_loop()
        self.loop.set_default_executor(ThreadPoolExecutor(HANDLER_THREADS_MAX, thread_name_prefix="pocketmq-handler"))
        self.thread = threading.Thread(target=self._work, name="pocketmq", daemon=True)
        self.thread.start()

    def _work(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    def stop(self) -> None:
        """End the thread when what it does now is done."""
        self.loop.call_soon_threadsafe(self.loop.stop)
        if threading.current_thread() is not self.thread:
            self.thread.join(JOIN_S)


_guard = threading.Lock()
_shared: LoopThread | None = None


def _enter() -> LoopThread:
    global _shared
    with _guard:
        if _shared is None or _shared.pid != os.getpid():
            _shared = LoopThread()
        _shared.users += 1
        return _shared


def _leave(thread: LoopThread) -> None:
    global _shared
    with _guard:
        thread.users -= 1
        if thread.users or thread.pid != os.getpid():
            return
        if _shared is thread:
            _shared = None
    thread.stop()


class Portal:
    """One client's way to the loop, open until `release`."""

    def __init__(self) -> None:
        self._thread = _enter()
        self._open = True

    def release(self) -> None:
        """The client needs the loop no more; a second call does nothing."""
        if self._open:
            self._open = False
            _leave(self._thread)

    def call(
        self, function: Callable[Params, Coroutine[Any, Any, Result]], *args: Params.args, **kwargs: Params.kwargs
    ) -> Result:
        """Run a coroutine function on the loop and wait for it. An interrupted wait cancels it."""
        self._check_caller()
        future = asyncio.run_coroutine_threadsafe(function(*args, **kwargs), self._thread.loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def run(self, function: Callable[Params, Result], *args: Params.args, **kwargs: Params.kwargs) -> Result:
        """Run a plain function on the loop and wait for it."""

        async def work() -> Result:
            return function(*args, **kwargs)

        return self.call(work)

    def finish(
        self, function: Callable[Params, Coroutine[Any, Any, None]], *args: Params.args, **kwargs: Params.kwargs
    ) -> None:
        """Run what closes something; when the client is closed that was done already."""
        if self._open:
            self.call(function, *args, **kwargs)

    def in_thread(
        self, handler: Callable[[Wrapped], Result], wrap: Callable[[Item], Wrapped]
    ) -> Callable[[Item], Awaitable[Result]]:
        """A blocking handler as a coroutine function: it runs in a thread of the loop's pool."""

        async def work(item: Item) -> Result:
            return await self._thread.loop.run_in_executor(None, handler, wrap(item))

        return work

    def _check_caller(self) -> None:
        if not self._open:
            raise ClientClosedError("the client is closed")
        if self._thread.pid != os.getpid():
            raise ClientClosedError("a client does not outlive a fork: connect anew in the child process")
        if threading.current_thread() is self._thread.thread:
            raise UsageError("a blocking call would stop the loop that it waits for; use the asynchronous API there")
