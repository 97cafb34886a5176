"""What the pytest fixtures give out: an embedded server or a real cluster, and a client of the test's own loop."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Self, cast

import pytest

import pocketmq
from pocketmq.client import Client
from pocketmq.testing.embedded import EmbeddedServer


class RealCluster:
    """Stands where the embedded server would, for a cluster that runs somewhere (`--pocketmq-url`)."""

    def __init__(self, namesrv: str) -> None:
        self.namesrv = namesrv

    def advance(self, seconds: float) -> None:
        """Skip the test: the time of a real cluster cannot be moved."""
        pytest.skip("moves time, which a real cluster does not let us do")


def open_server(url: str | None) -> "AbstractContextManager[EmbeddedServer | RealCluster]":
    """An embedded server, or the cluster at `url`."""
    return EmbeddedServer() if url is None else nullcontext(RealCluster(url))


class LazyClient:
    """Looks like a `Client`; makes one when it is first used, on the event loop that uses it.

    Why: the fixture is a plain one, so that it needs no async plugin of a certain kind, and has no loop of its own. A
    client must be closed on its own loop. Some plugins close that loop before fixtures are torn down, so the client
    also hangs on an asynchronous generator: event loops finish those before they are closed.
    """

    def __init__(self, namesrv: str) -> None:
        self._namesrv = namesrv
        self._client: Client | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._life: AsyncGenerator[None, None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._open(), name)

    async def __aenter__(self) -> Self:
        self._open()
        return self

    async def __aexit__(self, *_: object) -> None:
        """The fixture closes the client."""

    def _open(self) -> Client:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise RuntimeError("pocketmq_client is for async tests; take pocketmq_sync_client in others") from None
        if self._client is None or self._loop is not loop:
            self._client = pocketmq.connect(self._namesrv)
            self._loop = loop
            self._life = _close_at_the_end(self._client)
            # Runs to the `yield`, which waits for nothing; the loop knows of the generator from then on.
            try:
                self._life.__anext__().send(None)
            except StopIteration:
                pass
        return self._client

    def close(self) -> None:
        """Close the client on its loop, unless that was closed and has done it."""
        loop, life = self._loop, self._life
        if loop is not None and life is not None and not loop.is_closed() and not loop.is_running():
            loop.run_until_complete(life.aclose())


async def _close_at_the_end(client: Client) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await client.close()


@contextmanager
def lazy_client(namesrv: str) -> Iterator[Client]:
    """A client that connects when it is first used and is closed at the end."""
    client = LazyClient(namesrv)
    try:
        yield cast(Client, client)
    finally:
        client.close()
