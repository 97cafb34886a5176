"""An embedded server, an admin and a client of it."""

from collections.abc import AsyncIterator

import pytest

import pocketmq
from pocketmq.admin import Admin, connect_admin
from pocketmq.testing import AsyncEmbeddedServer


@pytest.fixture
async def server() -> AsyncIterator[AsyncEmbeddedServer]:
    async with AsyncEmbeddedServer() as running:
        yield running


@pytest.fixture
async def admin(server: AsyncEmbeddedServer) -> AsyncIterator[Admin]:
    async with connect_admin(server.namesrv) as connected:
        yield connected


@pytest.fixture
async def client(server: AsyncEmbeddedServer) -> AsyncIterator[pocketmq.Client]:
    async with pocketmq.connect(server.namesrv) as connected:
        yield connected
