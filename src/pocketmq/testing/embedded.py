"""A name server and a broker inside this process, in memory, on free ports: made for tests, up in a moment.

    with EmbeddedServer() as server:                # in a thread of its own: for blocking code and any event loop
        client = pocketmq.sync.connect(server.namesrv)
        server.advance(30)                          # half a minute passes for the server, at once

    async with AsyncEmbeddedServer() as server:     # on the running loop, for who wants everything in one thread
        client = pocketmq.connect(server.namesrv)
        await server.advance(30)

It is the very server that `pocketmq serve` runs; only the disk is in memory and the clock can be moved. Nobody
is forgotten for being silent while time is moved forward: the server's own time-outs for idle peers are off by default.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar

from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.seams import Disk, Network
from pocketmq.model.settings import Settings
from pocketmq.net.network import TcpNetwork
from pocketmq.server.server import Server
from pocketmq.testing.clock import AdvanceableClock

Result = TypeVar("Result")

_HOST = "127.0.0.1"
_NEVER_S = 10 * 365 * 86_400.0


def embedded_settings() -> Settings:
    """The settings of an embedded server: ephemeral, free ports, and idle peers are never forgotten."""
    settings = Settings()
    settings.store.ephemeral = True
    settings.store.data_dir = "data"
    settings.broker.port = settings.namesrv.port = 0
    settings.broker.client_expire_s = settings.namesrv.broker_expire_s = _NEVER_S
    settings.grpc.port = settings.http.port = -1
    return settings


class AsyncEmbeddedServer:
    """An embedded server on the event loop that is running when it is started.

    Args:
        settings: by default `embedded_settings()`; change what a test needs in those.
        disk: by default a new one in memory; give one to keep what is stored from one server to the next.
        network: by default real sockets on 127.0.0.1.
    """

    def __init__(
        self, settings: Settings | None = None, *, disk: Disk | None = None, network: Network | None = None
    ) -> None:
        self.settings = settings or embedded_settings()
        self.disk = disk or MemoryDisk()
        self.network = network or TcpNetwork()
        self.clock: AdvanceableClock
        self.server: Server
        """What `pocketmq serve` runs, too: `server.broker`, `server.name_server`."""
        self._running = False

    @property
    def namesrv(self) -> str:
        """`host:port` of the name server: what `pocketmq.connect` takes."""
        return f"{_HOST}:{self.settings.namesrv.port}"

    @property
    def broker_address(self) -> str:
        """`host:port` of the broker's main port."""
        return f"{_HOST}:{self.settings.broker.port}"

    async def start(self) -> Self:
        """Start the name server, then the broker; both serve when this returns. Started again, on the same ports."""
        settings = self.settings
        settings.broker.namesrv = ""
        self.clock = AdvanceableClock(asyncio.get_running_loop())
        self.server = Server(
            settings, clock=self.clock, network=self.network, disk=self.disk, parts=("namesrv", "broker")
        )
        await self.server.start()
        assert self.server.name_server is not None and self.server.broker is not None
        settings.namesrv.port = self.server.name_server.port
        settings.broker.port = self.server.broker.port
        self._running = True
        return self

    async def stop(self) -> None:
        """Stop both. Fine when they have stopped."""
        if self._running:
            self._running = False
            await self.server.stop()

    async def restart(self) -> None:
        """Stop, and start on the same disk and ports."""
        await self.stop()
        await self.start()

    async def advance(self, seconds: float) -> None:
        """Let `seconds` pass for the server: all that becomes due on the way happens, in order."""
        await self.clock.advance(seconds)

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()


class EmbeddedServer:
    """An embedded server in a thread of its own, for blocking code and for tests on any event loop.

    Its methods block until they are done, which takes milliseconds. Takes the arguments of `AsyncEmbeddedServer`.
    """

    def __init__(
        self, settings: Settings | None = None, *, disk: Disk | None = None, network: Network | None = None
    ) -> None:
        self.inner = AsyncEmbeddedServer(settings, disk=disk, network=network)
        """The server itself; touch it only from its own thread, by `run` or `call`."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def namesrv(self) -> str:
        """`host:port` of the name server: what `pocketmq.connect` takes."""
        return self.inner.namesrv

    @property
    def broker_address(self) -> str:
        """`host:port` of the broker's main port."""
        return self.inner.broker_address

    def start(self) -> Self:
        """Start; it serves when this returns. Raises what kept it from starting."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=_serve, args=(self._loop,), name="pocketmq embedded server", daemon=True
            )
            self._thread.start()
            try:
                self.run(self.inner.start())
            except BaseException:
                self._end_thread()
                raise
        return self

    def stop(self) -> None:
        """Stop. Fine when it has stopped."""
        if self._loop is not None:
            try:
                self.run(self.inner.stop())
            finally:
                self._end_thread()

    def restart(self) -> None:
        """Stop, and start on the same disk and ports."""
        self.run(self.inner.restart())

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass for the server: all that becomes due on the way happens, in order."""
        self.run(self.inner.advance(seconds))

    def run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the server's own loop, wait, and return its result."""
        if self._loop is None:
            coroutine.close()
            raise RuntimeError("the embedded server is not running; call start()")
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def call(self, function: Callable[[AsyncEmbeddedServer], Result]) -> Result:
        """Call `function(server)` on the server's own loop, wait, and return its result: for looks inside."""

        async def main() -> Result:
            return function(self.inner)

        return self.run(main())

    def _end_thread(self) -> None:
        assert self._loop is not None and self._thread is not None
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop = self._thread = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """What the thread does: run the loop until it is stopped, then leave nothing behind."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
