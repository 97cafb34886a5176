"""A server of several parts starts and stops in order, and says where it is."""

import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.errors import PocketMQError, SettingError
from pocketmq.model.settings import Settings
from pocketmq.net.clock import SystemClock
from pocketmq.net.dialer import Connections
from pocketmq.net.network import TcpNetwork
from pocketmq.server.server import ALL_PARTS, Server
from pocketmq.wire.bodies import ClusterInfo, decode_body
from pocketmq.wire.codes import RequestCode

CLOCK = SystemClock()
NETWORK = TcpNetwork()


def free_ports() -> Settings:
    settings = Settings()
    settings.namesrv.port = settings.broker.port = settings.grpc.port = settings.http.port = 0
    settings.store.segment_bytes = 1024 * 1024
    return settings


def make(settings: Settings, parts: frozenset[str] = ALL_PARTS, disk: MemoryDisk | None = None) -> Server:
    return Server(settings, clock=CLOCK, network=NETWORK, disk=disk or MemoryDisk(), parts=parts)


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    connections = Connections(NETWORK, CLOCK)
    yield connections
    await connections.close()


async def test_all_parts_serve_when_start_returns(connections: Connections) -> None:
    server = make(free_ports())
    ready = await server.start()
    try:
        assert ready.namesrv and ready.broker and ready.http and ready.grpc and ready.pid
        connection = await connections.get(ready.namesrv)
        answer = await connection.request(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_s=5)
        cluster = decode_body(answer.body, ClusterInfo)
        assert cluster.broker_addr_table["broker-a"].broker_addrs == {0: ready.broker}
        assert not (await connections.get(ready.broker)).closed
    finally:
        await server.stop()
    await server.stop()


async def test_parts_that_are_off_are_not_there(connections: Connections) -> None:
    settings = free_ports()
    settings.http.port = settings.broker.port = -1
    server = make(settings)
    ready = await server.start()
    await server.stop()
    assert ready.namesrv and ready.broker is None and ready.http is None


async def test_a_broker_alone_registers_with_the_name_server_it_was_given(connections: Connections) -> None:
    name_server = make(free_ports(), frozenset({"namesrv"}))
    where = (await name_server.start()).namesrv
    assert where is not None
    settings = free_ports()
    settings.broker.namesrv = where
    broker = make(settings, frozenset({"broker"}))
    ready = await broker.start()
    try:
        answer = await (await connections.get(where)).request(RequestCode.GET_BROKER_CLUSTER_INFO, timeout_s=5)
        assert decode_body(answer.body, ClusterInfo).broker_addr_table["broker-a"].broker_addrs == {0: ready.broker}
    finally:
        await broker.stop()
        await name_server.stop()


async def test_the_server_s_own_name_server_may_be_among_those_it_was_given() -> None:
    ready = await (first := make(free_ports())).start()
    await first.stop()
    settings = free_ports()
    settings.namesrv.port = int(ready.namesrv.rpartition(":")[2])
    settings.broker.namesrv = f"{ready.namesrv};127.0.0.1:1"
    server = make(settings)
    await server.start()
    await server.stop()
    assert settings.broker.namesrv == f"{ready.namesrv};127.0.0.1:1"


async def test_a_port_that_is_taken_is_named_and_nothing_is_left_open() -> None:
    first = make(free_ports())
    ready = await first.start()
    try:
        assert ready.http is not None
        settings = free_ports()
        settings.http.port = int(ready.http.rpartition(":")[2])
        second = make(settings)
        with pytest.raises(PocketMQError, match=f"HTTP server could not start .port {settings.http.port}"):
            await second.start()
        assert second.broker is not None and not second.broker.running
    finally:
        await first.stop()


async def test_a_data_directory_in_use_is_refused() -> None:
    disk = MemoryDisk()
    first = make(free_ports(), disk=disk)
    await first.start()
    try:
        with pytest.raises(PocketMQError, match=r"another process|in use|locked"):
            await make(free_ports(), disk=disk).start()
    finally:
        await first.stop()


def test_settings_that_contradict_each_other_are_refused_before_anything_starts() -> None:
    settings = free_ports()
    settings.broker.id = 1
    with pytest.raises(SettingError, match="no replicas"):
        make(settings)


def test_the_web_framework_is_not_loaded_to_start_a_server() -> None:
    code = (
        "import sys, pocketmq.server.server, pocketmq.server.config\n"
        "heavy = {'starlette', 'uvicorn', 'prometheus_client', 'structlog', 'rich', 'cyclopts'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
