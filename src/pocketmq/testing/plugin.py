"""The pytest plugin: fixtures that give each test a broker.

    async def test_orders_are_billed(pocketmq_client, pocketmq_server):
        await pocketmq_client.send("orders", b"...")
        pocketmq_server.advance(60)

`pocketmq_server` is one embedded server for the whole run; with `--pocketmq-url` it stands for a real cluster.
`pocketmq_client` is for async tests, whatever runs them (pytest-asyncio, anyio); `pocketmq_sync_client` for the others.

This module is imported by every pytest run of everybody who has PocketMQ installed, so it imports nothing by itself.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pocketmq.client import Client
    from pocketmq.sync import Client as SyncClient
    from pocketmq.testing.embedded import EmbeddedServer
    from pocketmq.testing.fixtures import RealCluster


def pytest_addoption(parser: pytest.Parser) -> None:
    """The option `--pocketmq-url`."""
    parser.getgroup("pocketmq").addoption(
        "--pocketmq-url",
        metavar="HOST:PORT[;HOST:PORT]",
        default=None,
        help="run tests that use the pocketmq fixtures on this cluster (its name servers), not on an embedded server",
    )


@pytest.fixture(scope="session")
def pocketmq_server(pytestconfig: pytest.Config) -> "Iterator[EmbeddedServer | RealCluster]":
    """A server with `.namesrv` (an address for `connect`) and `.advance(seconds)`, shared by all tests of the run.

    On a real cluster time cannot be moved: a test that calls `advance` is skipped there.
    """
    from pocketmq.testing.fixtures import open_server

    with open_server(pytestconfig.getoption("--pocketmq-url")) as server:
        yield server


@pytest.fixture
def pocketmq_client(pocketmq_server: "EmbeddedServer | RealCluster") -> "Iterator[Client]":
    """An async client that connects when it is first used, on the loop that uses it, and is closed there."""
    from pocketmq.testing.fixtures import lazy_client

    with lazy_client(pocketmq_server.namesrv) as client:
        yield client


@pytest.fixture
def pocketmq_sync_client(pocketmq_server: "EmbeddedServer | RealCluster") -> "Iterator[SyncClient]":
    """A blocking client, connected."""
    from pocketmq.sync import connect

    with connect(pocketmq_server.namesrv) as client:
        yield client
