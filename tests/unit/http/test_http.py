"""The HTTP port over real sockets: health, metrics, the front page, and its late loading."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pocketmq.http import port as http_port
from pocketmq.http.port import HttpPort
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.errors import StoreFullError
from pocketmq.model.settings import Settings
from pocketmq.net.clock import SystemClock
from pocketmq.net.dialer import Connections
from pocketmq.net.network import TcpNetwork
from pocketmq.server.server import Server
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.send import SendMessageRequestHeader

CLOCK = SystemClock()
NETWORK = TcpNetwork()


async def get(port: int, path: str, *, method: str = "GET") -> tuple[int, str]:
    """Status and body."""
    async with asyncio.timeout(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split(b" ")[1]), body.decode()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    settings = Settings()
    settings.namesrv.port = settings.broker.port = settings.http.port = 0
    settings.store.segment_bytes = 1024 * 1024
    settings.store.ephemeral = True
    server = Server(settings, clock=CLOCK, network=NETWORK, disk=MemoryDisk())
    await server.start()
    yield server
    await server.stop()


def port_of(server: Server) -> int:
    assert server.http is not None
    return server.http.port


async def send(server: Server, topic: str) -> None:
    assert server.broker is not None
    connections = Connections(NETWORK, CLOCK)
    connection = await connections.get(f"127.0.0.1:{server.broker.port}")
    header = SendMessageRequestHeader(
        producer_group="g", topic=topic, default_topic="TBW102", default_topic_queue_nums=4, queue_id=0, sys_flag=0,
        born_timestamp=0, flag=0,
    )  # fmt: skip
    answer = await connection.request(RequestCode.SEND_MESSAGE, header, b"body", timeout_s=5)
    assert answer.code == 0
    await connections.close()


async def test_a_running_server_is_live_and_ready_and_has_a_front_page(server: Server) -> None:
    port = port_of(server)
    assert await get(port, "/health/live") == (200, '{"status":"live"}')
    assert await get(port, "/health/ready") == (200, '{"status":"ready","problems":[]}')
    status, page = await get(port, "/")
    assert status == 200 and "PocketMQ" in page and "/metrics" in page
    assert (await get(port, "/nosuch"))[0] == 404
    assert (await get(port, "/metrics", method="POST"))[0] == 405


async def test_a_server_that_refuses_writes_is_live_but_not_ready(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server.broker is not None
    monkeypatch.setattr(type(server.broker.log), "refusal", StoreFullError("the disk is full"))
    status, body = await get(port_of(server), "/health/ready")
    assert status == 503 and "the disk is full" in body
    assert (await get(port_of(server), "/health/live"))[0] == 200


async def test_a_broker_without_its_name_server_is_not_ready(server: Server) -> None:
    assert server.broker is not None
    for known in server.broker.registration.servers:
        known.registered = False
    status, body = await get(port_of(server), "/health/ready")
    assert status == 503 and "not registered with any name server" in body


async def test_metrics_have_rocketmqs_names_and_count_what_was_sent(server: Server) -> None:
    await send(server, "orders")
    await send(server, "orders")
    status, text = await get(port_of(server), "/metrics")
    assert status == 200
    node = 'cluster="DefaultCluster"'
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    sent = [line for line in lines if line.startswith("rocketmq_messages_in_total") and 'topic="orders"' in line]
    assert len(sent) == 1 and node in sent[0] and sent[0].endswith(" 2.0") and 'message_type="normal"' in sent[0]
    names = {line.partition("{")[0].partition(" ")[0] for line in lines}
    assert {
        "rocketmq_broker_permission",
        "rocketmq_topic_number",
        "rocketmq_message_size_bucket",
        "rocketmq_storage_size_bytes",
        "rocketmq_storage_flush_behind_bytes",
        "rocketmq_namesrv_brokers",
        "process_resident_memory_bytes",
    } <= names
    assert all(line.isprintable() for line in lines)


async def test_many_first_connections_are_all_answered(server: Server) -> None:
    answers = await asyncio.gather(*(get(port_of(server), "/health/live") for _ in range(20)))
    assert {status for status, _ in answers} == {200}


async def test_one_who_leaves_while_the_framework_loads_disturbs_nobody(server: Server) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.close()
    assert (await get(port_of(server), "/health/live"))[0] == 200


async def test_without_the_server_extra_the_port_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*parts: Any) -> Any:
        raise ImportError("No module named 'starlette'")

    monkeypatch.setattr(http_port, "_load_framework", fail)
    port = HttpPort("127.0.0.1", 0, None, None, clock=CLOCK, network=NETWORK)
    await port.start()
    try:
        for _ in range(2):
            status, body = await get(port.port, "/health/live")
            assert status == 503 and "pocketmq[server]" in body
    finally:
        await port.stop()


async def test_stop_ends_connections_that_are_kept_open(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
    writer.write(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert await reader.readuntil(b'"live"}')
    await server.stop()
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
