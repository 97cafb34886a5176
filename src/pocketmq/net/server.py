"""A listening port of the remoting protocol and the connections it has accepted."""

import asyncio

from pocketmq.model.seams import Cancellable, Clock, Listener, Network
from pocketmq.net.remoting import ConnectionCallback, RemotingConnection, RequestHandler

STOP_GRACE_S = 1.0


class RemotingServer:
    """Accepts connections on one port; each is a `RemotingConnection` with the handlers given here."""

    def __init__(
        self,
        clock: Clock,
        network: Network,
        *,
        on_request: RequestHandler,
        on_batch_end: ConnectionCallback | None = None,
        on_open: ConnectionCallback | None = None,
        on_closed: ConnectionCallback | None = None,
        idle_s: float | None = None,
    ) -> None:
        self._clock = clock
        self._network = network
        self._on_request = on_request
        self._on_batch_end = on_batch_end
        self._on_open = on_open
        self._on_closed = on_closed
        self._idle_s = idle_s
        self._listeners: list[Listener] = []
        self._drained: asyncio.Event | None = None
        self.connections: set[RemotingConnection] = set()

    async def listen(self, host: str, port: int) -> Listener:
        """Open a port (0: any free one); may be called again for further ports. Raises OSError."""
        listener = await self._network.listen(host, port, self._accept)
        self._listeners.append(listener)
        return listener

    @property
    def host(self) -> str:
        """The host of the first port."""
        return self._listeners[0].host

    @property
    def port(self) -> int:
        """The first port, as it really is."""
        return self._listeners[0].port

    def _accept(self) -> RemotingConnection:
        return RemotingConnection(
            self._clock,
            on_request=self._on_request,
            on_batch_end=self._on_batch_end,
            on_open=self._opened,
            on_closed=self._lost,
            idle_s=self._idle_s,
        )

    def _opened(self, connection: RemotingConnection) -> None:
        self.connections.add(connection)
        if not self._listeners:
            # Accepted by the system before the port was closed, seen after.
            connection.close("the server stops")
        elif self._on_open is not None:
            self._on_open(connection)

    def _lost(self, connection: RemotingConnection) -> None:
        self.connections.discard(connection)
        if self._on_closed is not None:
            self._on_closed(connection)
        if self._drained is not None and not self.connections:
            self._drained.set()

    def stop_accepting(self) -> None:
        """Close the ports; connections stay."""
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def stop(self) -> None:
        """Close the ports and all connections; what is queued is still written to those who read it soon."""
        self.stop_accepting()
        if not self.connections:
            return
        self._drained = drained = asyncio.Event()
        for connection in list(self.connections):
            connection.close("the server stops")
        timer: Cancellable = self._clock.call_later(STOP_GRACE_S, self._abort_all)
        try:
            await drained.wait()
        finally:
            timer.cancel()
            self._drained = None

    def _abort_all(self) -> None:
        for connection in list(self.connections):
            connection.abort("the server stops")
