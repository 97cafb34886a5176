"""The HTTP port, which costs nothing until somebody connects.

The port is bound at the start. The web framework behind it takes a fifth of a second and tens of megabytes to load,
so it is loaded, in a thread, when the first connection waits; that connection and all others are then served on the
server's own event loop.
"""

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any

from pocketmq.model.errors import PocketMQError

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.namesrv.server import NameServer

logger = logging.getLogger(__name__)

CLOSE_GRACE_S = 1.0


class HttpPort:
    """Health, metrics and the front page of one server."""

    def __init__(self, host: str, port: int, name_server: "NameServer | None", broker: "Broker | None") -> None:
        self.host = host
        self.port = port
        self._name_server = name_server
        self._broker = broker
        self._socket: socket.socket | None = None
        self._loading: asyncio.Task[None] | None = None
        self._server: asyncio.Server | None = None
        self._state: Any = None

    async def start(self) -> None:
        """Bind the port. Raises OSError."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((self.host, self.port))
            listener.listen(128)
            listener.setblocking(False)
        except BaseException:
            listener.close()
            raise
        self._socket = listener
        self.port = listener.getsockname()[1]
        asyncio.get_running_loop().add_reader(listener.fileno(), self._first_connection)

    async def stop(self) -> None:
        """Close the port and what is connected."""
        listener, self._socket = self._socket, None
        if self._loading is not None:
            self._loading.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._loading
        elif listener is not None:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        if self._server is not None:
            self._server.close()
            for connection in list(self._state.connections):
                connection.shutdown()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._server.wait_closed(), CLOSE_GRACE_S)
        if listener is not None:
            listener.close()

    def _first_connection(self) -> None:
        assert self._socket is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        self._loading = loop.create_task(self._serve(self._socket))

    async def _serve(self, listener: socket.socket) -> None:
        try:
            factory, self._state = await asyncio.to_thread(_load, self._name_server, self._broker)
        except ImportError as error:
            logger.error("%s", PocketMQError(f"the HTTP port needs the server extra: {error}"))
            return
        self._server = await asyncio.get_running_loop().create_server(factory, sock=listener)


def _load(name_server: "NameServer | None", broker: "Broker | None") -> tuple[Any, Any]:
    """Import the web framework and build the application; returns a protocol factory and its shared state."""
    from uvicorn import Config
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
    from uvicorn.server import ServerState

    from pocketmq.http.app import build_app

    config = Config(
        build_app(name_server, broker), lifespan="off", log_config=None, access_log=False, server_header=False
    )
    config.load()
    state = ServerState()

    def factory() -> HttpToolsProtocol:
        return HttpToolsProtocol(config=config, server_state=state, app_state={})

    return factory, state
