"""The real `Network`: TCP through the running event loop, IPv4 and IPv6."""

import asyncio
import socket
import sys
from collections.abc import Callable
from ssl import SSLContext
from typing import Any

BACKLOG = 1024


class TcpListener:
    """One listening port, possibly on several addresses of the same name."""

    __slots__ = ("_servers", "host", "port")

    def __init__(self, host: str, port: int, servers: list[asyncio.Server]) -> None:
        self.host = host
        self.port = port
        self._servers = servers

    def close(self) -> None:
        """Accept no more; connections already open stay."""
        for server in self._servers:
            server.close()
        self._servers.clear()


class TcpNetwork:
    """Listens and connects with TCP.

    Both event loops that are supported set TCP_NODELAY on every connection. The TLS contexts, when given, are used for
    all listeners and for all connections made.
    """

    __slots__ = ("_client_tls", "_server_tls")

    def __init__(self, *, server_tls: SSLContext | None = None, client_tls: SSLContext | None = None) -> None:
        self._server_tls = server_tls
        self._client_tls = client_tls

    async def listen(self, host: str, port: int, protocol_factory: Callable[[], Any]) -> TcpListener:
        """Listen on host and port (0: any free one, the same for each address of the host).

        An empty host means every interface. Raises OSError that names the address when the port cannot be had.
        """
        loop = asyncio.get_running_loop()
        sockets = await _bind(host, port)
        servers: list[asyncio.Server] = []
        try:
            for bound in sockets:
                server = await loop.create_server(protocol_factory, sock=bound, backlog=BACKLOG, ssl=self._server_tls)
                servers.append(server)
        except BaseException:
            for server in servers:
                server.close()
            for bound in sockets[len(servers) :]:
                bound.close()
            raise
        return TcpListener(host, sockets[0].getsockname()[1], servers)

    async def connect(self, host: str, port: int, protocol_factory: Callable[[], Any], *, timeout: float) -> Any:
        """Connect and return the protocol. Raises OSError, or TimeoutError after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(timeout):
            _, protocol = await loop.create_connection(protocol_factory, host, port, ssl=self._client_tls)
        return protocol


async def _bind(host: str, port: int) -> list[socket.socket]:
    """A bound socket for each address of the host; all on one port, also when any free one was asked for."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, kind, protocol, _, address in dict.fromkeys(found):
        try:
            if port == 0 and sockets:
                address = (address[0], sockets[0].getsockname()[1], *address[2:])
            sockets.append(_bind_one(family, kind, protocol, address))
        except OSError as error:
            # A name such as `localhost` may stand for an address family that the machine does not have; a port
            # that is taken on one address, though, must not pass for success on another.
            failure = OSError(error.errno, f"cannot listen on {host or '*'}:{port}: {error.strerror or error}")
            if not _is_absent_family(error):
                break
    else:
        if sockets:
            return sockets
    for bound in sockets:
        bound.close()
    raise failure or OSError(f"cannot listen on {host or '*'}:{port}: the host has no address")


def _bind_one(family: int, kind: int, protocol: int, address: Any) -> socket.socket:
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setblocking(False)
        if sys.platform != "win32":
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        bound.bind(address)
    except BaseException:
        bound.close()
        raise
    return bound


def _is_absent_family(error: OSError) -> bool:
    import errno

    return error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}
