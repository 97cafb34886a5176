"""The embedded server: up at once, in a thread or on the running loop, with time that can be moved."""

import asyncio

import pytest

from pocketmq.model.errors import BrokerError, PocketMQError
from pocketmq.testing.embedded import AsyncEmbeddedServer, EmbeddedServer, embedded_settings
from pocketmq.testing.raw import RawClient


async def send_and_read(broker: str, topic: str) -> list[bytes]:
    async with await RawClient.connect(broker) as client:
        await client.create_topic(topic, 1)
        await client.send(topic, 0, b"hello")
        return [record.body for record in await client.read(topic, 0)]


def test_it_serves_blocking_code_from_a_thread_of_its_own() -> None:
    with EmbeddedServer() as server:
        assert server.namesrv.startswith("127.0.0.1:")
        assert asyncio.run(send_and_read(server.broker_address, "orders")) == [b"hello"]


async def test_it_serves_a_running_loop_from_its_thread() -> None:
    with EmbeddedServer() as server:
        assert await send_and_read(server.broker_address, "orders") == [b"hello"]


async def test_it_serves_on_the_running_loop_itself() -> None:
    async with AsyncEmbeddedServer() as server:
        assert await send_and_read(server.broker_address, "orders") == [b"hello"]


def test_several_run_side_by_side() -> None:
    with EmbeddedServer() as one, EmbeddedServer() as other:
        assert one.namesrv != other.namesrv


def test_time_can_be_moved_and_nobody_is_forgotten_for_it() -> None:
    async def main(server: EmbeddedServer) -> None:
        async with await RawClient.connect(server.broker_address) as client:
            await client.create_topic("orders", 1)
            before = server.call(lambda inner: inner.clock.time_ms())
            server.advance(3600)
            assert server.call(lambda inner: inner.clock.time_ms()) - before >= 3_600_000
            await client.send("orders", 0, b"still connected")
            assert server.call(lambda inner: inner.server.name_server.connections) > 0

    with EmbeddedServer() as server:
        asyncio.run(main(server))


def test_a_delayed_message_comes_when_time_is_moved() -> None:
    async def main(server: EmbeddedServer) -> None:
        async with await RawClient.connect(server.broker_address) as client:
            await client.create_topic("orders", 1)
            await client.send("orders", 0, b"later", properties={"DELAY": "5"})
            server.advance(59)
            assert await client.read("orders", 0) == []
            server.advance(2)
            assert [record.body for record in await client.read("orders", 0)] == [b"later"]

    with EmbeddedServer() as server:
        asyncio.run(main(server))


def test_it_can_be_started_again_on_the_same_ports_with_what_was_stored() -> None:
    async def read(server: EmbeddedServer) -> list[bytes]:
        async with await RawClient.connect(server.broker_address) as client:
            return [record.body for record in await client.read("orders", 0)]

    with EmbeddedServer() as server:
        addresses = (server.namesrv, server.broker_address)
        asyncio.run(send_and_read(server.broker_address, "orders"))
        server.restart()
        assert (server.namesrv, server.broker_address) == addresses
        assert asyncio.run(read(server)) == [b"hello"]


def test_settings_can_be_changed() -> None:
    async def main(server: EmbeddedServer) -> None:
        async with await RawClient.connect(server.broker_address) as client:
            with pytest.raises(BrokerError, match="unheard-of"):
                await client.send("unheard-of", 0, b"hello")

    settings = embedded_settings()
    settings.broker.auto_create_topic = False
    with EmbeddedServer(settings) as server:
        asyncio.run(main(server))


def test_what_keeps_it_from_starting_is_raised() -> None:
    with EmbeddedServer() as server:
        settings = embedded_settings()
        settings.namesrv.port = int(server.namesrv.rpartition(":")[2])
        with pytest.raises(PocketMQError, match="name server could not start"):
            EmbeddedServer(settings).start()


def test_what_is_not_running_says_so_and_stopping_twice_is_fine() -> None:
    server = EmbeddedServer().start()
    server.stop()
    server.stop()
    with pytest.raises(RuntimeError, match="not running"):
        server.advance(1)
