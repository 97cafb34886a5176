"""The asking side of a connection: our own requests, one-way or with an answer, and the wait for a slow peer."""

import asyncio
import logging
from collections.abc import Mapping

from pocketmq.model.errors import ConnectionClosedError, RequestTimeoutError
from pocketmq.model.seams import Clock
from pocketmq.net.addresses import format_address
from pocketmq.net.pending import AnswerReceiver, PendingRequests
from pocketmq.wire.command import Command, encode_request
from pocketmq.wire.headers.base import Header

Buffer = bytes | bytearray | memoryview

logger = logging.getLogger("pocketmq.net")


class Requester:
    """Sends requests over a transport that `RemotingConnection` has, and matches the answers to them."""

    __slots__ = (
        "_clock",
        "_closing",
        "_paused",
        "_pending",
        "_transport",
        "_waiters",
        "close_reason",
        "peer_address",
        "serialize_type",
    )

    def __init__(self, clock: Clock, serialize_type: int) -> None:
        self._clock = clock
        self.serialize_type = serialize_type
        self.peer_address: tuple[str, int] = ("", 0)
        self.close_reason: str | None = None
        self._transport: asyncio.Transport | None = None
        self._closing = False
        self._paused = False
        self._pending: PendingRequests | None = None
        self._waiters: list[asyncio.Future[None]] | None = None

    @property
    def peer(self) -> str:
        """The peer's address as text, for messages."""
        return format_address(*self.peer_address)

    @property
    def closed(self) -> bool:
        """True once the connection is closed or about to be; nothing can be written then."""
        return self._closing

    @property
    def congested(self) -> bool:
        """True while the peer does not read as fast as we write: what can wait should."""
        return self._paused

    def write(self, data: Buffer) -> None:
        """Send one frame."""
        raise NotImplementedError

    def _write_soon(self, data: Buffer) -> None:
        raise NotImplementedError

    def _queue(self, data: Buffer) -> None:
        raise NotImplementedError

    async def request(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_s: float,
    ) -> Command:
        """Send a request and wait for its answer, whatever its code.

        Raises RequestTimeoutError, ConnectionClosedError, BackPressureError (too many requests wait already).
        """
        if self._paused:
            await self._wait_writable(timeout_s)
        opaque, future = self._start(code, header, body, timeout_s)
        try:
            return await future
        finally:
            if self._pending is not None:
                self._pending.forget(opaque)

    def start_request(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_s: float,
    ) -> "asyncio.Future[Command]":
        """The same without waiting: the future gets the answer or the error. Raises what can be known at once."""
        return self._start(code, header, body, timeout_s)[1]

    def send_request(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        timeout_s: float,
        receiver: AnswerReceiver,
        queued: bool = False,
    ) -> None:
        """The quick form: `receiver` is told the answer, or that there is none, in the midst of reading.

        Requests of one turn of the loop leave in one write; `queued` ones with the next `flush`, for callers who know
        when that is. Raises what can be known at once.
        """
        pending = self._requests()
        pending.check_room()
        opaque = pending.take_opaque()
        frame = encode_request(code, opaque, header, body, serialize_type=self.serialize_type)
        pending.add(opaque, receiver, timeout_s)
        if queued:
            self._queue(frame)
        else:
            self._write_soon(frame)

    def request_oneway(self, code: int, header: Header | Mapping[str, str] | None = None, body: bytes = b"") -> None:
        """Send a request that gets no answer. Raises ConnectionClosedError."""
        opaque = self._requests().take_opaque()
        self.write(encode_request(code, opaque, header, body, oneway=True, serialize_type=self.serialize_type))

    def _start(
        self, code: int, header: Header | Mapping[str, str] | None, body: bytes, timeout_s: float
    ) -> "tuple[int, asyncio.Future[Command]]":
        pending = self._requests()
        pending.check_room()
        opaque = pending.take_opaque()
        frame = encode_request(code, opaque, header, body, serialize_type=self.serialize_type)
        future: asyncio.Future[Command] = asyncio.get_running_loop().create_future()
        pending.add(opaque, future, timeout_s)
        self.write(frame)
        return opaque, future

    def _requests(self) -> PendingRequests:
        if self._closing or self._transport is None:
            raise self._closed_error()
        if self._pending is None:
            self._pending = PendingRequests(self._clock, self.peer)
        return self._pending

    async def _wait_writable(self, timeout_s: float) -> None:
        waiter = asyncio.get_running_loop().create_future()
        if self._waiters is None:
            self._waiters = []
        self._waiters.append(waiter)
        timer = self._clock.call_later(timeout_s, _settle_waiter, waiter)
        try:
            await waiter
        finally:
            timer.cancel()
            if self._waiters and waiter in self._waiters:
                self._waiters.remove(waiter)
        if self._paused and not self._closing:
            raise RequestTimeoutError(f"{self.peer} does not read what is sent to it")

    def _wake_waiters(self) -> None:
        waiters, self._waiters = self._waiters, None
        for waiter in waiters or ():
            _settle_waiter(waiter)

    def _settle(self, answer: Command) -> None:
        """Hand over an answer. It may reach somebody else's code: what goes wrong there ends there."""
        if self._pending is None:
            return
        try:
            self._pending.settle(answer)
        except Exception as error:
            debug = logger.isEnabledFor(logging.DEBUG)
            logger.error("the answer of %s could not be taken: %r", self.peer, error, exc_info=debug)

    def _fail_requests(self) -> None:
        """The connection is gone: nobody gets an answer."""
        self._wake_waiters()
        pending, self._pending = self._pending, None
        if pending is not None:
            pending.fail_all(self._closed_error())

    def _closed_error(self) -> ConnectionClosedError:
        reason = self.close_reason or "it was never opened"
        return ConnectionClosedError(f"the connection to {self.peer} is closed ({reason})")


def _settle_waiter(waiter: "asyncio.Future[None]") -> None:
    if not waiter.done():
        waiter.set_result(None)
