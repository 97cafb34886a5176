"""The same connections over real sockets on the loopback: ports, dialling, resets, slow readers."""

import asyncio
import socket
from collections.abc import AsyncIterator
from typing import Any

import pytest

from pocketmq.model.errors import ClientClosedError, ConnectError, ConnectionClosedError, UsageError
from pocketmq.net.clock import SystemClock
from pocketmq.net.dialer import Connections
from pocketmq.net.network import TcpNetwork
from pocketmq.net.remoting import RemotingConnection
from pocketmq.net.server import RemotingServer
from pocketmq.wire.command import Command, encode_request, encode_response

pytestmark = pytest.mark.filterwarnings("ignore:Overriding the:DeprecationWarning")

CLOCK = SystemClock()
NETWORK = TcpNetwork()


def echo(connection: RemotingConnection, command: Command) -> bytes:
    return encode_response(command.opaque, 0, None, None, command.body)


@pytest.fixture(params=["asyncio", "uvloop"])
def event_loop_policy(request: pytest.FixtureRequest) -> asyncio.AbstractEventLoopPolicy:
    if request.param == "uvloop":
        policy: asyncio.AbstractEventLoopPolicy = pytest.importorskip("uvloop").EventLoopPolicy()
        return policy
    return asyncio.DefaultEventLoopPolicy()


@pytest.fixture
async def server() -> AsyncIterator[RemotingServer]:
    server = RemotingServer(CLOCK, NETWORK, on_request=echo)
    await server.listen("127.0.0.1", 0)
    yield server
    await server.stop()


@pytest.fixture
async def connections() -> AsyncIterator[Connections]:
    connections = Connections(NETWORK, CLOCK)
    yield connections
    await connections.close()


async def until(condition: Any) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - a condition of another task
            await asyncio.sleep(0.001)


async def test_requests_and_answers_cross_a_real_connection(server: RemotingServer, connections: Connections) -> None:
    connection = await connections.get(f"127.0.0.1:{server.port}")
    answers = await asyncio.gather(*(connection.request(10, body=b"%d" % number, timeout_s=5) for number in range(100)))
    assert [answer.body for answer in answers] == [b"%d" % number for number in range(100)]
    (accepted,) = server.connections
    assert accepted.peer_address == connection.local_address
    assert accepted.local_address == connection.peer_address == ("127.0.0.1", server.port)


async def test_both_sides_switch_off_nagle(server: RemotingServer, connections: Connections) -> None:
    connection = await connections.get(f"127.0.0.1:{server.port}")
    (accepted,) = server.connections
    for side in (connection, accepted):
        assert side._transport is not None
        assert side._transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_those_who_dial_at_once_share_one_connection(server: RemotingServer, connections: Connections) -> None:
    address = f"127.0.0.1:{server.port}"
    found = await asyncio.gather(*(connections.get(address) for _ in range(5)))
    assert len(set(map(id, found))) == 1
    assert connections.peek(address) is found[0]
    found[0].abort()
    await until(lambda: not connections.open_connections())
    assert await connections.get(address) is not found[0]


async def test_one_who_gives_up_does_not_take_the_dial_away(server: RemotingServer, connections: Connections) -> None:
    address = f"127.0.0.1:{server.port}"
    impatient = asyncio.ensure_future(connections.get(address))
    patient = asyncio.ensure_future(connections.get(address))
    await asyncio.sleep(0)
    impatient.cancel()
    assert not (await patient).closed


async def test_an_address_where_nobody_listens_is_an_error_that_names_it(connections: Connections) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(ConnectError, match=address):
            await connections.get(address)
    with pytest.raises(UsageError, match="host:port"):
        await connections.get("nonsense")
    await connections.close()
    with pytest.raises(ClientClosedError):
        await connections.get(address)


async def test_a_taken_port_is_refused_by_name(server: RemotingServer) -> None:
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        await NETWORK.listen("127.0.0.1", server.port, lambda: None)


async def test_a_name_with_several_addresses_gets_one_port() -> None:
    listener = await NETWORK.listen("localhost", 0, lambda: RemotingConnection(CLOCK, on_request=echo))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
        writer.write(encode_request(10, 1))
        assert await reader.read(8)
        writer.close()
    finally:
        listener.close()


async def test_a_peer_that_shuts_its_sending_side_still_gets_its_answers(server: RemotingServer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(encode_request(10, 1, body=b"last words"))
    writer.write_eof()
    assert (await reader.read()).endswith(b"last words")
    writer.close()


async def test_a_reset_in_the_middle_of_a_write_ends_only_that_connection(
    server: RemotingServer, connections: Connections
) -> None:
    raw = socket.create_connection(("127.0.0.1", server.port))
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    await asyncio.to_thread(raw.sendall, encode_request(10, 1, body=b"x" * 4_000_000))
    raw.close()
    await until(lambda: not server.connections)
    connection = await connections.get(f"127.0.0.1:{server.port}")
    assert (await connection.request(10, body=b"ok", timeout_s=5)).body == b"ok"


async def test_a_slow_reader_gets_all_of_many_large_answers(server: RemotingServer) -> None:
    size, count = 1_000_000, 20
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)

    async def send() -> None:
        for opaque in range(count):
            writer.write(encode_request(10, opaque, body=b"x" * size))
            await writer.drain()

    sending = asyncio.ensure_future(send())
    received = 0
    async with asyncio.timeout(30):
        while received < size * count:
            received += len(await reader.read(65_536))
    await sending
    writer.close()


async def test_stop_closes_the_connections_and_frees_the_port(connections: Connections) -> None:
    server = RemotingServer(CLOCK, NETWORK, on_request=lambda *_: None)
    port = (await server.listen("127.0.0.1", 0)).port
    connection = await connections.get(f"127.0.0.1:{port}")
    waiting = connection.start_request(11, timeout_s=30)
    await until(lambda: server.connections)
    await server.stop()
    with pytest.raises(ConnectionClosedError):
        await waiting
    again = RemotingServer(CLOCK, NETWORK, on_request=echo)
    await again.listen("127.0.0.1", port)
    await again.stop()
