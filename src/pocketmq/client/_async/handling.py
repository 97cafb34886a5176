"""Middleware around the handling of a message, also where the handling is a block: `async with message`.

Theory of operation. `run(handler)` is the plain case: the innermost `forward` calls the handler. For a block there is
no function to call. There the middleware's coroutine is stepped by hand: entering the block runs it up to the innermost
`forward`, where it stands still; leaving the block lets it go on, with the block's exception if there is one. Both
steps run in the task of the block, so that context variables that the middleware sets are seen inside, and whatever
else the middleware awaits is passed on to the event loop.
"""

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from functools import partial
from typing import Any

from pocketmq.client.middleware import Fetched, HandleForward, Host, Incoming, Middleware, overrides
from pocketmq.model.errors import UsageError
from pocketmq.model.message import ReceivedMessage


class HandleChain:
    """The middleware of one consumer."""

    __slots__ = ("_broadcasting", "_group", "_host", "_layers", "_listeners", "_orderly")

    def __init__(
        self, middleware: Sequence[Middleware], host: Host, *, group: str, broadcasting: bool, orderly: bool
    ) -> None:
        self._layers = [each.handle for each in reversed(middleware) if overrides(each, "handle")]
        self._listeners = [each.received for each in middleware if overrides(each, "received")]
        self._host = host
        self._group = group
        self._broadcasting = broadcasting
        self._orderly = orderly

    @property
    def handles(self) -> bool:
        """Whether any of it is around the handling."""
        return bool(self._layers)

    @property
    def listens(self) -> bool:
        """Whether any of it wants to know what was fetched."""
        return bool(self._listeners)

    def received(self, fetched: Fetched) -> None:
        """Tell it what was fetched."""
        for listener in self._listeners:
            listener(fetched)

    def incoming(self, message: ReceivedMessage) -> Incoming:
        """What the middleware is given for a message."""
        return Incoming(
            message=message,
            client_id=self._host.client_id,
            group=self._group,
            broadcasting=self._broadcasting,
            orderly=self._orderly,
        )

    def around(self, innermost: HandleForward) -> HandleForward:
        """A handler with the middleware around it."""
        for layer in self._layers:
            innermost = partial(layer, forward=innermost)
        return innermost


class Handling:
    """One message that is being handled with middleware around."""

    __slots__ = ("incoming",)

    def __init__(self, incoming: Incoming) -> None:
        self.incoming = incoming

    async def leave(self, error: BaseException | None) -> BaseException | None:
        """The handling is over; returns the error that counts."""
        return error


class BlockHandling(Handling):
    """The same for a block."""

    __slots__ = ("_coroutine", "_pause")

    def __init__(self, chain: HandleChain, message: ReceivedMessage) -> None:
        super().__init__(chain.incoming(message))
        self._pause: _Pause | None = None
        call = chain.around(self._stand_still)
        self._coroutine: Coroutine[Any, Any, Any] = _as_coroutine(call, self.incoming)

    async def _stand_still(self, incoming: Incoming) -> None:
        if self._pause is not None:
            raise UsageError("the block of `async with message` runs once; handlers of `run` can run again")
        self._pause = _Pause()
        await self._pause

    async def enter(self) -> bool:
        """Run the middleware up to the block; False when it ended before. Raises what it raises."""
        return not await self._go_on(partial(self._coroutine.send, None))

    async def leave(self, error: BaseException | None) -> BaseException | None:
        """Let the middleware go on behind the block; returns the error that counts then."""
        step: Callable[[], Any]
        if error is None:
            step = partial(self._coroutine.send, None)
        else:
            step = partial(self._coroutine.throw, error)
        try:
            await self._go_on(step)
        except BaseException as raised:
            return raised
        # Who was cancelled, or told to end, ends, whatever middleware makes of it.
        return None if error is None or isinstance(error, Exception) else error

    @types.coroutine
    def _go_on(self, step: Callable[[], Any]) -> Generator[Any, Any, bool]:
        """Step the coroutine until it stands still (False) or ends (True)."""
        while True:
            try:
                yielded = step()
            except StopIteration:
                return True
            if yielded is self._pause and yielded is not None:
                return False
            try:
                result = yield yielded
            except BaseException as error:
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, result)


class _Pause:
    """Awaiting it gives control back to whoever steps the coroutine."""

    def __await__(self) -> "Generator[_Pause, Any, None]":
        yield self


async def _as_coroutine(call: Callable[[Incoming], Awaitable[Any]], incoming: Incoming) -> Any:
    return await call(incoming)
