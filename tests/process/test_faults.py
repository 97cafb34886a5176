"""A real server meets what the world does to it: a second server, a full disk, thousands of peers, garbage."""

import asyncio
import contextlib
import os
import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pocketmq.model.errors import BrokerError
from pocketmq.testing.process import ServerProcess
from pocketmq.testing.raw import RawClient
from pocketmq.wire.codes import ResponseCode

pytestmark = [pytest.mark.process, pytest.mark.slow]

MIB = 1 << 20


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    with ServerProcess(None, work_dir=tmp_path, http=True) as process:
        yield process


async def until_sent(client: RawClient, topic: str, body: bytes) -> int:
    """Send until the broker takes it; returns the offset."""
    async with asyncio.timeout(30):
        while True:
            try:
                return (await client.send(topic, 0, body)).queue_offset
            except BrokerError as error:
                assert error.code == ResponseCode.SERVICE_NOT_AVAILABLE
                await asyncio.sleep(0.05)


def test_a_second_server_on_the_same_directory_is_refused(tmp_path: Path) -> None:
    with ServerProcess(tmp_path / "data") as first:
        second = ServerProcess(tmp_path / "data", name="second")
        second.launch()
        assert second.wait_end() == 1
        assert "in use by another process" in second.output
        assert "Traceback" not in second.output
        assert first.is_running
        first.stop()
        with second:
            assert second.is_running


def test_it_stops_when_asked_and_says_so_with_its_exit_code(tmp_path: Path) -> None:
    server = ServerProcess(tmp_path / "data").start()
    assert server.stop() == 0
    assert "Traceback" not in server.output


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 48 MiB of its own; needs the right to mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
    )
    if not mounted:
        pytest.skip("mounting a small file system is not allowed here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=False)


@pytest.mark.parametrize("refuse_at", [90, 100])
async def test_a_full_disk_refuses_writes_serves_reads_and_recovers(
    small_disk: Path, tmp_path: Path, refuse_at: int
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 16 * MIB)
    limits = {f"store.disk_used_{name}": refuse_at for name in ("max", "clean", "refuse")}
    with ServerProcess(small_disk / "data", settings=limits, work_dir=tmp_path) as server:
        async with await RawClient.connect(server.broker) as client:
            await client.create_topic("load", 1)
            body = os.urandom(256 * 1024)
            sent = 0
            with pytest.raises(BrokerError) as caught:
                while sent < 1000:
                    await client.send("load", 0, body)
                    sent += 1
            assert caught.value.code == ResponseCode.SERVICE_NOT_AVAILABLE
            assert sent > 10
            assert "disk" in caught.value.message
            records = await client.read("load", 0)
            assert [record.body == body for record in records] == [True] * sent
            with pytest.raises(BrokerError):
                await client.send("load", 0, body)
            ballast.unlink()
            assert await until_sent(client, "load", body) == sent
            assert len(await client.read("load", 0)) == sent + 1
        assert server.stop() == 0
        server.start()
        async with await RawClient.connect(server.broker) as client:
            assert len(await client.read("load", 0)) == sent + 1


async def test_it_starts_on_a_disk_without_any_room_and_serves_what_is_there(small_disk: Path, tmp_path: Path) -> None:
    settings = {f"store.disk_used_{name}": 100 for name in ("max", "clean", "refuse")}
    with ServerProcess(small_disk / "data", settings=settings, work_dir=tmp_path) as server:
        async with await RawClient.connect(server.broker) as client:
            await client.create_topic("load", 1)
            await client.send("load", 0, b"before")
        server.kill()
        ballast = small_disk / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
            while file.write(b"x" * 4096) == 4096:
                pass
        server.start()
        async with await RawClient.connect(server.broker) as client:
            assert [record.body for record in await client.read("load", 0)] == [b"before"]
            with pytest.raises(BrokerError):
                await client.send("load", 0, b"too much")
            ballast.unlink()
            assert await until_sent(client, "load", b"after") == 1


def connect_all(address: str, count: int) -> list[socket.socket]:
    host, _, port = address.rpartition(":")
    return [socket.create_connection((host, int(port)), timeout=30) for _ in range(count)]


@pytest.mark.timeout(300)
async def test_ten_thousand_idle_connections_cost_less_than_300_mb(server: ServerProcess) -> None:
    import resource

    count = 10_000
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < count + 200:
        pytest.skip("not enough file descriptors are allowed here")
    before = server.resident_bytes()
    async with await RawClient.connect(server.broker) as client:
        await client.create_topic("load", 1)
        peers = await asyncio.to_thread(connect_all, server.broker, count)
        try:
            await client.send("load", 0, b"still here")
            assert server.resident_bytes() < 300 * MIB
            print(f"{(server.resident_bytes() - before) / count:.0f} bytes for each of {count} connections")
        finally:
            for peer in peers:
                peer.close()
        await client.send("load", 0, b"and afterwards")


GARBAGE = {
    "random bytes": bytes(range(256)) * 40,
    "an HTTP request": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a TLS hello": bytes.fromhex("16030100f8010000f40303") + b"x" * 200,
    "a frame that is too large": struct.pack(">II", 0x7FFFFFFF, 100) + b"x" * 100,
    "a negative length": struct.pack(">iI", -5, 100) + b"x" * 100,
    "a header longer than its frame": struct.pack(">II", 20, 1000) + b"x" * 100,
    "a header that is no JSON": struct.pack(">II", 24, 20) + b"not json, not at all",
}


def what_happens(address: str, data: bytes) -> bytes:
    """Send bytes, and read until the server closes the connection."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=10) as peer:
        received = b""
        with contextlib.suppress(ConnectionError):
            peer.sendall(data)
            while chunk := peer.recv(65536):
                received += chunk
        return received


@pytest.mark.parametrize("port", ["namesrv", "broker", "vip"])
async def test_garbage_closes_its_connection_and_harms_nobody(server: ServerProcess, port: str) -> None:
    address: str = getattr(server, port)
    async with await RawClient.connect(server.broker) as client:
        await client.create_topic("load", 1)
        for number, data in enumerate(GARBAGE.values()):
            assert await asyncio.to_thread(what_happens, address, data) == b""
            assert (await client.send("load", 0, b"fine")).queue_offset == number
    lines = [line for line in server.output.splitlines() if "127.0.0.1" in line and "closed" in line]
    assert len(lines) == len(GARBAGE), server.output
    assert any("HTTP" in line for line in lines)
    assert any("TLS" in line for line in lines)
    assert "Traceback" not in server.output


async def test_garbage_on_the_http_port_harms_nobody(server: ServerProcess) -> None:
    async with await RawClient.connect(server.broker) as client:
        await client.create_topic("load", 1)
        for number, data in enumerate(GARBAGE.values()):
            await asyncio.to_thread(what_happens, server.http, data)
            assert (await client.send("load", 0, b"fine")).queue_offset == number
    answer = await asyncio.to_thread(what_happens, server.http, b"GET /health/ready HTTP/1.0\r\n\r\n")
    assert b" 200 " in answer.splitlines()[0]
    assert "Traceback" not in server.output
