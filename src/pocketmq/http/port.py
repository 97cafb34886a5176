"""The HTTP port, which costs nothing until somebody connects.

The port is open from the start. The web framework behind it takes a fifth of a second and ten megabytes to load, so it
is loaded, in a thread, when the first connection comes. What that connection (and others meanwhile) sends is kept until
the framework is there, which then takes the connection over; later connections go to it at once.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from pocketmq.model.seams import Clock, Listener, Network
from pocketmq.net.addresses import format_address, socket_address

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.namesrv.server import NameServer

logger = logging.getLogger("pocketmq.http")

CLOSE_GRACE_S = 1.0
WAITING_BYTES_MAX = 64 * 1024
"""Most bytes kept of one connection until the framework is there."""
WAITING_MAX = 128
"""Most connections that wait for it."""


class HttpPort:
    """Health, metrics and the front page of one server."""

    def __init__(
        self,
        host: str,
        port: int,
        name_server: "NameServer | None",
        broker: "Broker | None",
        *,
        clock: Clock,
        network: Network,
    ) -> None:
        self.host = host
        self._port = port
        self._name_server = name_server
        self._broker = broker
        self._clock = clock
        self._network = network
        self._listener: Listener | None = None
        self._loading: asyncio.Task[None] | None = None
        self._factory: Callable[[], asyncio.Protocol] | None = None
        self._connections: set[Any] | None = None
        self._waiting: set[_WaitingConnection] = set()
        self._refusal: bytes | None = None

    @property
    def port(self) -> int:
        """The port in use."""
        return self._listener.port if self._listener is not None else self._port

    async def start(self) -> None:
        """Open the port. Raises OSError."""
        self._listener = await self._network.listen(self.host, self._port, self._accept)

    async def stop(self) -> None:
        """Close the port and what is connected; answers under way have a moment to be read."""
        if self._listener is not None:
            self._listener.close()
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loading
        for waiting in list(self._waiting):
            waiting.abort()
        connections = self._connections
        if not connections:
            return
        for connection in list(connections):
            connection.shutdown()
        deadline = self._clock.monotonic() + CLOSE_GRACE_S
        while connections and self._clock.monotonic() < deadline:
            await self._clock.sleep(0.01)
        for connection in list(connections):
            connection.transport.abort()

    def _accept(self) -> asyncio.Protocol:
        if self._factory is not None:
            return self._factory()
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load())
        return _WaitingConnection(self)

    async def _load(self) -> None:
        try:
            factory, connections = await asyncio.to_thread(_load_framework, self._name_server, self._broker)
        except ImportError as error:
            logger.error("the HTTP port needs the server extra (pip install 'pocketmq[server]'): %s", error)
            self._refusal = _unavailable("the HTTP port needs: pip install 'pocketmq[server]'\n")
            for waiting in list(self._waiting):
                waiting.refuse(self._refusal)
            return
        self._connections = connections
        self._factory = factory
        for waiting in list(self._waiting):
            waiting.hand_over(factory())

    def join(self, waiting: "_WaitingConnection") -> None:
        """A connection has come that must wait."""
        if self._factory is not None:
            waiting.hand_over(self._factory())
        elif len(self._waiting) >= WAITING_MAX:
            waiting.abort()
        else:
            self._waiting.add(waiting)
            if self._refusal is not None:
                waiting.refuse(self._refusal)

    def leave(self, waiting: "_WaitingConnection") -> None:
        """A connection waits no more."""
        self._waiting.discard(waiting)


class _WaitingConnection(asyncio.Protocol):
    """Keeps what arrives until the framework takes the connection over."""

    def __init__(self, port: HttpPort) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._data = bytearray()
        self._refusal: bytes | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._port.join(self)

    def data_received(self, data: bytes) -> None:
        if self._refusal is not None:
            self._answer(self._refusal)
            return
        self._data += data
        if len(self._data) > WAITING_BYTES_MAX:
            peer = self._transport.get_extra_info("peername") if self._transport is not None else None
            logger.warning("%s sent too much before it was answered; closed", format_address(*socket_address(peer)))
            self.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.leave(self)
        self._transport = None

    def hand_over(self, protocol: asyncio.Protocol) -> None:
        """Let `protocol` have the connection, and what it has brought so far."""
        self._port.leave(self)
        transport, self._transport = self._transport, None
        if transport is None or transport.is_closing():
            return
        transport.set_protocol(protocol)
        protocol.connection_made(transport)
        if self._data:
            protocol.data_received(bytes(self._data))

    def refuse(self, answer: bytes) -> None:
        """Write one answer and close, as soon as there is a request: before, the close would reset the connection."""
        if self._data:
            self._answer(answer)
        else:
            self._refusal = answer

    def _answer(self, answer: bytes) -> None:
        self._port.leave(self)
        if self._transport is not None:
            self._transport.write(answer)
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._port.leave(self)
        if self._transport is not None:
            self._transport.abort()


def _unavailable(text: str) -> bytes:
    body = text.encode()
    head = f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


def _load_framework(
    name_server: "NameServer | None", broker: "Broker | None"
) -> tuple[Callable[[], asyncio.Protocol], set[Any]]:
    """Import it and build the application; returns a protocol factory and the set of its connections.

    Raises ImportError.
    """
    from uvicorn import Config
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState

    from pocketmq.http.app import build_app

    config = Config(
        build_app(name_server, broker),
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        ws="none",
        h11_max_incomplete_event_size=WAITING_BYTES_MAX,
    )
    config.load()
    state = ServerState()

    def factory() -> asyncio.Protocol:
        return HttpToolsProtocol(config=config, server_state=state, app_state={})

    return factory, state.connections
