"""The port of the gRPC endpoint: plaintext and TLS on the same one, and nothing to pay until somebody connects.

Theory of operation. The first bytes of a connection tell what it is: a TLS handshake, HTTP/2 in plaintext, or a
mistake, which is told. The gRPC library is loaded, in a thread, when the first client comes; then its server listens on
a port of this machine, and each connection is passed on to it, with TLS taken off. What a client sends before that is
kept, up to a bound, and then not read; what one side does not take is not read from the other.
"""

import asyncio
import contextlib
import logging
import ssl
from typing import TYPE_CHECKING, Any, cast

from pocketmq.broker.complaints import Complaints
from pocketmq.grpc.tls import HANDSHAKE, TlsLayer, server_context
from pocketmq.model.seams import Cancellable, Clock, Listener, Network
from pocketmq.net.addresses import format_address, socket_address
from pocketmq.net.network import TcpNetwork

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.grpc.grpcio_server import Ends, GrpcioServer
    from pocketmq.grpc.service import Service

logger = logging.getLogger("pocketmq.grpc")

PREFACE = b"PRI * HTTP/2.0"
FIRST_BYTES_S = 20.0
"""How long a new connection has to say anything."""
CONNECT_S = 5.0
CLOSE_GRACE_S = 0.5
KEPT_BYTES_MAX = 256 * 1024
"""A connection that has brought this much before it can be passed on is not read until then."""
BUFFER_BYTES = 256 * 1024
MISSING = "the gRPC endpoint needs the extra grpc (pip install 'pocketmq[grpc]')"
_HTTP1 = (b"GET ", b"POST", b"HEAD", b"PUT ", b"OPTI")
_HTTP1_ANSWER = (
    b"HTTP/1.1 505 HTTP Version Not Supported\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"This port speaks gRPC (HTTP/2). Health and metrics are on the HTTP port.\n"
)


class GrpcPort:
    """The gRPC endpoint of one broker."""

    def __init__(self, broker: "Broker", *, clock: Clock, network: Network) -> None:
        self.settings = broker.settings.grpc
        self.clock = clock
        self.complaints = Complaints(clock, logger)
        self.service: Service | None = None
        """The procedures; None until somebody has connected."""
        self._broker = broker
        self._network = network
        self._listener: Listener | None = None
        self._server: GrpcioServer | None = None
        self._inner_port = 0
        self._loading: asyncio.Task[None] | None = None
        self._failed = False
        self._connections: set[_Connection] = set()
        self._ends: dict[str, Ends] = {}
        self._context: ssl.SSLContext | None = None

    @property
    def port(self) -> int:
        """The port in use."""
        return self._listener.port if self._listener is not None else self.settings.port

    async def start(self) -> None:
        """Open the port. Raises OSError; SettingError for a certificate that cannot be used."""
        if self.settings.tls and self.settings.certificate:
            self._context = server_context(self.settings, self.clock.time_ms())
        self._listener = await self._network.listen(self.settings.host, self.settings.port, lambda: _Connection(self))

    async def stop(self) -> None:
        """Close the port and what is connected; calls under way have a moment to end."""
        if self._listener is not None:
            self._listener.close()
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)
        if self.service is not None:
            self.service.close()
        if self._server is not None:
            await self._server.stop(CLOSE_GRACE_S)
        for connection in list(self._connections):
            connection.abort()

    # -- for connections ---------------------------------------------------------------------------------------------

    def join(self, connection: "_Connection") -> bool:
        """A connection was made; False when there are too many."""
        if len(self._connections) >= self.settings.connections_max:
            self.complaints.warn("connections", f"{len(self._connections)} gRPC connections are open; more are refused")
            return False
        self._connections.add(connection)
        return True

    def leave(self, connection: "_Connection") -> None:
        """A connection was lost."""
        self._connections.discard(connection)

    def tls(self) -> ssl.SSLContext | None:
        """What TLS connections are made with; None when they are not taken."""
        if self._context is None and self.settings.tls:
            self._context = server_context(self.settings, self.clock.time_ms())
        return self._context

    async def pass_on(self, connection: "_Connection") -> "_Passage | None":
        """A way to the server within, for one connection; None when there is no server."""
        if self._server is None and not self._failed:
            if self._loading is None:
                self._loading = asyncio.get_running_loop().create_task(self._load())
            await asyncio.shield(self._loading)
        if self._failed:
            return None
        # Within this machine, whatever network the clients come over: the server opens sockets of its own.
        passage: _Passage = await TcpNetwork().connect(
            "127.0.0.1", self._inner_port, lambda: _Passage(self, connection), timeout=CONNECT_S
        )
        return passage

    def note(self, name: str, ends: "Ends | None") -> None:
        """The server will know the connection with these ends by this name; None: no more."""
        if ends is None:
            self._ends.pop(name, None)
        else:
            self._ends[name] = ends

    async def _load(self) -> None:
        try:
            server_class, service_class, schema = await asyncio.to_thread(_import)
        except ImportError as error:
            self._failed = True
            logger.error("%s: %s", MISSING, error)
            return
        self.service = service_class(self._broker, schema)
        self._server = server_class(self.service, self.clock, self._ends.get, idle_s=self.settings.idle_s)
        self._inner_port = await self._server.start()


def _import() -> tuple[Any, Any, Any]:
    """What takes long to load. Raises ImportError."""
    from pocketmq.grpc.grpcio_server import GrpcioServer
    from pocketmq.grpc.service import Service
    from pocketmq.wire.grpc.schema import schema

    return GrpcioServer, Service, schema()


class _Connection(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, port: GrpcPort) -> None:
        self._port = port
        self._transport: asyncio.Transport | None = None
        self._kept = bytearray()
        self._layer: TlsLayer | None = None
        self._known = False
        """Whether the first bytes have told what it is."""
        self._passage: _Passage | None = None
        self._passing: asyncio.Task[None] | None = None
        self._timer: Cancellable | None = None
        self._paused = False
        self.peer_address = self.local_address = ("", 0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.peer_address = socket_address(transport.get_extra_info("peername"))
        self.local_address = socket_address(transport.get_extra_info("sockname"))
        self._transport.set_write_buffer_limits(BUFFER_BYTES)
        if not self._port.join(self):
            self.abort()
            return
        self._timer = self._port.clock.call_later(FIRST_BYTES_S, self.abort)

    def data_received(self, data: bytes) -> None:
        try:
            if not self._known and not self._tell(data):
                return
            if self._layer is not None:
                data = self._layer.open(data)
                self._write(self._layer.sealed())
        except ssl.SSLError as error:
            self._complain("tls", f"TLS failed: {error.reason or error}")
            self.abort()
            return
        if data:
            self._pass(data)
        if self._layer is not None and self._layer.ended:
            self.close()

    def _tell(self, data: bytes) -> bool:
        """Find out what it is; False when it is a mistake, which was dealt with."""
        self._known = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if data[0] == HANDSHAKE:
            context = self._port.tls()
            if context is None:
                self._complain("tls-off", "it wants TLS, which is switched off (setting grpc.tls)")
                self.abort()
                return False
            self._layer = TlsLayer(context)
        elif not PREFACE.startswith(data[: len(PREFACE)]) and not data.startswith(PREFACE):
            self._complain("garbage", "that is not HTTP/2; is it a client of the remoting protocol, or a browser?")
            if data.startswith(_HTTP1):
                self._write(_HTTP1_ANSWER)
                self.close()
            else:
                self.abort()
            return False
        return True

    def _pass(self, data: bytes) -> None:
        if self._passage is not None:
            self._passage.write(data)
            return
        self._kept += data
        if self._passing is None:
            self._passing = asyncio.get_running_loop().create_task(self._open_passage())
        if len(self._kept) > KEPT_BYTES_MAX and self._transport is not None:
            self._transport.pause_reading()

    async def _open_passage(self) -> None:
        try:
            passage = await self._port.pass_on(self)
        except (OSError, TimeoutError) as error:
            self._complain("passage", f"the server within does not answer: {error}")
            passage = None
        if passage is None or self._transport is None:
            if passage is not None:
                passage.close()
            self.abort()
            return
        self._passage = passage
        if self._paused:
            passage.pause_reading()
        passage.write(bytes(self._kept))
        self._kept.clear()
        self.resume_reading()

    def answer(self, data: bytes) -> None:
        """What the server within says."""
        if self._layer is not None:
            try:
                data = self._layer.seal(data)
            except ssl.SSLError:
                self.abort()
                return
        self._write(data)

    def _write(self, data: bytes) -> None:
        if data and self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        self._paused = True
        if self._passage is not None:
            self._passage.pause_reading()

    def resume_writing(self) -> None:
        self._paused = False
        if self._passage is not None:
            self._passage.resume_reading()

    def pause_reading(self) -> None:
        """The server within takes no more now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """It takes more again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """Close when what is to be sent is sent."""
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        if self._transport is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._port.leave(self)
        if self._timer is not None:
            self._timer.cancel()
        if self._passage is not None:
            self._passage.close()

    def _complain(self, kind: str, message: str) -> None:
        self._port.complaints.warn(kind, f"{format_address(*self.peer_address)} at the gRPC port: {message}")


class _Passage(asyncio.Protocol):
    """The way from one client's connection to the server within."""

    def __init__(self, port: GrpcPort, connection: _Connection) -> None:
        self._port = port
        self._connection = connection
        self._transport: asyncio.Transport | None = None
        self._name = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        from pocketmq.grpc.grpcio_server import Ends

        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(BUFFER_BYTES)
        self._name = f"ipv4:{format_address(*socket_address(transport.get_extra_info('sockname')))}"
        self._port.note(self._name, Ends(self._connection.peer_address, self._connection.local_address))

    def data_received(self, data: bytes) -> None:
        self._connection.answer(data)

    def write(self, data: bytes) -> None:
        """What the client says."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def pause_writing(self) -> None:
        self._connection.pause_reading()

    def resume_writing(self) -> None:
        self._connection.resume_reading()

    def pause_reading(self) -> None:
        """The client takes no more now."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """It takes more again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self) -> None:
        """The client is gone."""
        if self._transport is not None:
            with contextlib.suppress(RuntimeError):
                self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._port.note(self._name, None)
        self._transport = None
        self._connection.close()
