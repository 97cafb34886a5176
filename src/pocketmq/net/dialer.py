"""One shared connection to each address, dialled when it is first asked for."""

import asyncio
import logging
import os

from pocketmq.model.errors import ClientClosedError, ConnectError
from pocketmq.model.seams import Clock, Network
from pocketmq.net.addresses import parse_address
from pocketmq.net.remoting import ConnectionCallback, RemotingConnection, RequestHandler

logger = logging.getLogger("pocketmq.net")

CONNECT_TIMEOUT_S = 3.0


class Connections:
    """Address -> one connection. Several who ask at once share the dial; a closed connection is forgotten."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        *,
        on_request: RequestHandler | None = None,
        on_batch_end: ConnectionCallback | None = None,
        on_open: ConnectionCallback | None = None,
        on_closed: ConnectionCallback | None = None,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        serialize_type: int = 0,
        idle_s: float | None = None,
    ) -> None:
        self._network = network
        self._clock = clock
        self._on_request = on_request
        self._on_batch_end = on_batch_end
        self._on_open = on_open
        self._on_closed = on_closed
        self._connect_timeout_s = connect_timeout_s
        self._serialize_type = serialize_type
        self._idle_s = idle_s
        self._open: dict[str, RemotingConnection] = {}
        self._dials: dict[str, asyncio.Task[RemotingConnection]] = {}
        self._closed = False

    def peek(self, address: str) -> RemotingConnection | None:
        """The open connection to an address, or None; never dials."""
        connection = self._open.get(address)
        return None if connection is None or connection.closed else connection

    def open_connections(self) -> list[RemotingConnection]:
        """Those that are open now."""
        return [connection for connection in self._open.values() if not connection.closed]

    async def get(self, address: str) -> RemotingConnection:
        """The connection to `host:port`. Raises ConnectError, UsageError (not an address), ClientClosedError."""
        connection = self.peek(address)
        if connection is not None:
            return connection
        if self._closed:
            raise ClientClosedError("the client is closed")
        dial = self._dials.get(address)
        if dial is None:
            host, port = parse_address(address)
            dial = asyncio.get_running_loop().create_task(self._dial(address, host, port))
            self._dials[address] = dial
        try:
            # One who gives up must not take the dial away from the others.
            return await asyncio.shield(dial)
        except asyncio.CancelledError:
            if dial.cancelled() and self._closed:
                raise ClientClosedError("the client is closed") from None
            raise

    async def _dial(self, address: str, host: str, port: int) -> RemotingConnection:
        def forget(connection: RemotingConnection) -> None:
            if self._open.get(address) is connection:
                del self._open[address]
            if self._on_closed is not None:
                self._on_closed(connection)

        def make() -> RemotingConnection:
            return RemotingConnection(
                self._clock,
                on_request=self._on_request,
                on_batch_end=self._on_batch_end,
                on_open=self._on_open,
                on_closed=forget,
                serialize_type=self._serialize_type,
                idle_s=self._idle_s,
                accepted=False,
            )

        try:
            connection: RemotingConnection = await self._network.connect(
                host, port, make, timeout=self._connect_timeout_s
            )
        except TimeoutError as error:
            raise ConnectError(f"{address} did not accept a connection in {self._connect_timeout_s:g} s") from error
        except OSError as error:
            # asyncio's own text is "Connect call failed ('127.0.0.1', 9876)".
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or error
            raise ConnectError(f"cannot connect to {address}: {reason}", cause=error) from error
        finally:
            self._dials.pop(address, None)
        if not connection.closed:
            self._open[address] = connection
        return connection

    def drop(self, address: str) -> None:
        """Close the connection to an address, if there is one; the next `get` dials anew."""
        connection = self._open.pop(address, None)
        if connection is not None:
            connection.close()

    async def close(self) -> None:
        """Close all connections and give up the dials under way."""
        self._closed = True
        dials = list(self._dials.values())
        for dial in dials:
            dial.cancel()
        if dials:
            await asyncio.gather(*dials, return_exceptions=True)
        for connection in list(self._open.values()):
            connection.close()
        self._open.clear()
