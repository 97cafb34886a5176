"""Requests to brokers and name servers: one connection per address, one table of errors, name-server fail-over."""

import logging
from collections.abc import Callable, Mapping, Sequence

from pocketmq.client.broker_errors import error_of, unexpected
from pocketmq.model.errors import (
    BrokerError,
    ConnectError,
    ConnectionClosedError,
    DecodeError,
    PocketMQError,
    RequestTimeoutError,
)
from pocketmq.model.seams import Clock, Network
from pocketmq.net.dialer import Connections
from pocketmq.net.remoting import RemotingConnection, RequestHandler
from pocketmq.wire.codes import RequestCode, request_name
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import Header, HeaderT

logger = logging.getLogger("pocketmq.client")

SILENT_MAX = 3
"""Requests in a row without an answer, after which a connection is given up: its peer may be gone without a word."""

Fields = Header | Mapping[str, str] | None


class Remoting:
    """The client's end of all its connections."""

    def __init__(
        self,
        network: Network,
        clock: Clock,
        name_servers: Sequence[str],
        *,
        request_timeout_s: float,
        connect_timeout_s: float,
        on_request: RequestHandler,
        on_closed: Callable[[RemotingConnection], None],
    ) -> None:
        self.name_servers = tuple(name_servers)
        self.request_timeout_s = request_timeout_s
        self.connections = Connections(
            network, clock, on_request=on_request, on_closed=on_closed, connect_timeout_s=connect_timeout_s
        )
        self._current = 0
        self._silent: dict[str, int] = {}

    async def connect(self, address: str) -> RemotingConnection:
        """The open connection to an address, dialled when there is none. Its `context` is the address.

        Raises ConnectError, ClientClosedError.
        """
        connection = await self.connections.get(address)
        connection.context = address
        return connection

    async def ask(
        self,
        address: str,
        code: RequestCode,
        header: Fields = None,
        body: bytes = b"",
        *,
        timeout_s: float | None = None,
    ) -> Command:
        """Send a request and return its answer, whatever its code.

        Raises ConnectError, ConnectionClosedError, RequestTimeoutError.
        """
        connection = self.connections.peek(address) or await self.connect(address)
        try:
            answer = await connection.request(code, header, body, timeout_s=timeout_s or self.request_timeout_s)
        except RequestTimeoutError:
            self.was_silent(address)
            raise
        if self._silent:
            self._silent.pop(address, None)
        return answer

    def was_silent(self, address: str) -> None:
        """A request was not answered in time. After some in a row the connection is taken for dead and made anew."""
        count = self._silent.get(address, 0) + 1
        if count < SILENT_MAX:
            self._silent[address] = count
            return
        logger.warning("%s has not answered %d requests in a row; connecting anew", address, count)
        self._silent.pop(address, None)
        self.connections.drop(address)

    async def call(
        self,
        address: str,
        code: RequestCode,
        header: Fields = None,
        body: bytes = b"",
        *,
        what: str | None = None,
        timeout_s: float | None = None,
    ) -> Command:
        """The same, but an answer that is no success is raised as the error of its code."""
        answer = await self.ask(address, code, header, body, timeout_s=timeout_s)
        if answer.code != 0:
            raise error_of(answer, what or request_name(code), address)
        return answer

    async def oneway(self, address: str, code: RequestCode, header: Fields = None, body: bytes = b"") -> None:
        """Send a request that gets no answer. Raises ConnectError, ConnectionClosedError."""
        connection = self.connections.peek(address) or await self.connect(address)
        connection.request_oneway(code, header, body)

    async def ask_name_server(self, code: RequestCode, header: Fields = None, body: bytes = b"") -> tuple[Command, str]:
        """Ask the current name server, or the next that answers; returns the answer and who gave it.

        Raises ConnectError when none answers; the cause is the last one's error.
        """
        count = len(self.name_servers)
        failure: PocketMQError | None = None
        for step in range(count):
            index = (self._current + step) % count
            address = self.name_servers[index]
            try:
                answer = await self.ask(address, code, header, body)
            except (ConnectError, ConnectionClosedError, RequestTimeoutError) as error:
                failure = error
                logger.debug("name server %s: %s", address, error)
                continue
            self._current = index
            return answer, address
        names = ", ".join(self.name_servers)
        raise ConnectError(f"no name server answers ({names}): {failure}", cause=failure)

    async def call_name_servers(self, code: RequestCode, header: Fields = None, body: bytes = b"") -> None:
        """Tell all name servers the same thing, as an operator must. Raises the first error after all were tried."""
        failure: PocketMQError | None = None
        for address in self.name_servers:
            try:
                await self.call(address, code, header, body)
            except PocketMQError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    @property
    def name_server(self) -> str:
        """The name server that answered last."""
        return self.name_servers[self._current]

    @property
    def local_host(self) -> str | None:
        """This machine's address as the servers see it; None before the first connection."""
        for connection in self.connections.open_connections():
            if connection.local_address[0]:
                return connection.local_address[0]
        return None

    async def close(self) -> None:
        """Close all connections."""
        await self.connections.close()


def read_header(answer: Command, kind: type[HeaderT], what: str, address: str) -> HeaderT:
    """The typed header of an answer. Raises ProtocolError."""
    try:
        return answer.header(kind)
    except DecodeError as error:
        raise unexpected(answer, what, address, error) from error


def is_code(error: BaseException, *codes: int) -> bool:
    """Whether an error is a server's answer with one of these codes."""
    return isinstance(error, BrokerError) and error.code in codes
