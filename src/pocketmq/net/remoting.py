"""One connection of the remoting protocol, both directions over one transport.

Theory of operation. `data_received` hands the bytes to a `CommandReader` and goes through the whole commands that come
out: answers settle the futures of our own requests, requests go to `on_request`, which is a plain function. What it
returns is queued; when all commands of the batch are done, `on_batch_end` runs (the broker writes its log there) and
the queue leaves in one write. No task is made, no future awaited: a connection that says nothing costs its slots and
one timer.

Back-pressure. While the peer reads too slowly (the transport calls `pause_writing`), an accepted connection reads no
more from it, and commands already read wait in `_backlog`, which one read bounds. Answers that come later (held pulls)
and requests to the peer still pile up in the transport; above `OUTPUT_BYTES_MAX` the connection is cut. A dialled
connection goes on reading: it is the answers it reads that let the other side go on, and stopping both sides would stop
them for good.

What may live here: bytes, batches, futures, limits. What a code means belongs to those who are called.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any, cast

from pocketmq.model.errors import PocketMQError, ProtocolError
from pocketmq.model.seams import Cancellable, Clock
from pocketmq.net.addresses import socket_address
from pocketmq.net.requester import Buffer, Requester
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.frame import CommandReader

OUTPUT_BYTES_MAX = 64 * 1024 * 1024
"""A peer that lets this much pile up is cut off."""
OUTPUT_HIGH_BYTES = 1024 * 1024
"""Above this the transport tells us to pause; half of it and we go on."""
BATCH_BYTES_MAX = 1024 * 1024
"""Answers of one batch beyond this are written before the batch goes on."""
CLOSE_GRACE_S = 5.0
"""How long a peer may take to read what was written before the connection was closed."""
JOIN_BYTES_MAX = 64 * 1024

Answer = bytes | Sequence[Buffer] | None
RequestHandler = Callable[["RemotingConnection", Command], Answer]
ConnectionCallback = Callable[["RemotingConnection"], None]

logger = logging.getLogger("pocketmq.net")


class RemotingConnection(Requester, asyncio.Protocol):
    """Both directions of the remoting protocol over one transport.

    `on_request(connection, command)` answers a request: bytes, a list of buffers, or None when the answer comes later
    through `write`, or never. An exception that it raises becomes an answer with code 1 (or the error's own).
    `idle_s`: close after so long without a byte from the peer. `accepted` says which side dialled.
    `context` is free for whoever owns the connection (a client's registration, say).
    """

    __slots__ = (
        "__weakref__",
        "_backlog",
        "_close_wanted",
        "_in_batch",
        "_last_read",
        "_last_waiting",
        "_on_batch_end",
        "_on_closed",
        "_on_open",
        "_on_request",
        "_output",
        "_output_bytes",
        "_reader",
        "_timer",
        "accepted",
        "context",
        "idle_s",
        "local_address",
    )

    def __init__(
        self,
        clock: Clock,
        *,
        on_request: RequestHandler | None = None,
        on_batch_end: ConnectionCallback | None = None,
        on_open: ConnectionCallback | None = None,
        on_closed: ConnectionCallback | None = None,
        serialize_type: int = 0,
        idle_s: float | None = None,
        accepted: bool = True,
    ) -> None:
        super().__init__(clock, serialize_type)
        self._on_request = on_request or _refuse_all
        self._on_batch_end = on_batch_end
        self._on_open = on_open
        self._on_closed = on_closed
        self.idle_s = idle_s
        self.accepted = accepted
        self.context: Any = None
        self.local_address: tuple[str, int] = ("", 0)
        self._reader = CommandReader()
        self._output: list[Buffer] = []
        self._output_bytes = 0
        self._in_batch = False
        self._close_wanted: str | None = None
        self._backlog: list[Command] | None = None
        self._timer: Cancellable | None = None
        self._last_read = 0.0
        self._last_waiting = 0

    # -- what the transport tells us ---------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        assert self._transport is None, "a connection object is used once"
        self._transport = stream = cast(asyncio.Transport, transport)
        self.peer_address = socket_address(transport.get_extra_info("peername"))
        self.local_address = socket_address(transport.get_extra_info("sockname"))
        stream.set_write_buffer_limits(OUTPUT_HIGH_BYTES, OUTPUT_HIGH_BYTES // 2)
        if self.idle_s:
            self._last_read = self._clock.monotonic()
            self._timer = self._clock.call_later(self.idle_s, self._check_idle)
        if self._on_open is not None:
            self._on_open(self)

    def data_received(self, data: bytes) -> None:
        """Called by the event loop with what arrived. The hot path."""
        if self._closing:
            return
        self._last_read = self._clock.monotonic()
        try:
            commands = self._reader.feed(data)
        except ProtocolError as error:
            self._cut_off(error)
            return
        if self._backlog is not None:
            self._backlog.extend(commands)
            return
        if commands:
            self._handle(commands)

    def eof_received(self) -> bool:
        """The peer will send no more: what is queued is still written, then the transport closes."""
        return False

    def pause_writing(self) -> None:
        """Called by the transport when the peer reads too slowly."""
        self._paused = True
        transport = self._transport
        if self.accepted and transport is not None and not transport.is_closing():
            transport.pause_reading()

    def resume_writing(self) -> None:
        """Called by the transport when the peer has caught up."""
        self._paused = False
        self._wake_waiters()
        backlog, self._backlog = self._backlog, None
        if backlog and not self._closing:
            self._handle(backlog)
        transport = self._transport
        if self.accepted and not self._paused and transport is not None and not transport.is_closing():
            self._last_read = self._clock.monotonic()
            transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop, once, when the connection is gone for whatever reason."""
        self._closing = True
        if self.close_reason is None:
            self.close_reason = f"the peer closed it: {exc}" if exc else "the peer closed it"
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._transport = None
        self._backlog = None
        self._output.clear()
        self._reader = CommandReader()
        self._fail_requests()
        if self._on_closed is not None:
            self._on_closed(self)

    # -- handling requests -------------------------------------------------------------------------------------------

    def _handle(self, commands: list[Command]) -> None:
        output = self._output
        on_request = self._on_request
        self._in_batch = True
        for index, command in enumerate(commands):
            if command.flag & 1:
                self._settle(command)
                continue
            try:
                answer = on_request(self, command)
            except Exception as error:
                answer = self._failed(command, error)
            if answer is None or command.flag & 2:
                continue
            if isinstance(answer, bytes):
                output.append(answer)
                self._output_bytes += len(answer)
            else:
                output.extend(answer)
                self._output_bytes += sum(len(part) for part in answer)
            if self._output_bytes > BATCH_BYTES_MAX and not self._go_on(commands, index + 1):
                return
        self._end_batch()

    def _go_on(self, commands: list[Command], index: int) -> bool:
        """Write what has piled up in the middle of a batch; False when the rest must wait for the peer."""
        self._end_batch()
        if self._closing:
            return False
        if self._paused and self.accepted and index < len(commands):
            self._backlog = commands[index:]
            return False
        self._in_batch = True
        return True

    def _end_batch(self) -> None:
        self._in_batch = False
        if self._on_batch_end is not None:
            try:
                self._on_batch_end(self)
            except Exception as error:
                # What is queued may claim what was not done: say nothing rather than something wrong.
                self._output.clear()
                self._log_failure("the end of a batch", error)
                self.abort("an internal error")
                return
        if self._output:
            self._flush()
        if self._close_wanted is not None:
            self.close(self._close_wanted)

    def _failed(self, command: Command, error: Exception) -> bytes:
        if isinstance(error, PocketMQError):
            code, remark = error.code, str(error)
        else:
            code, remark = 1, f"{type(error).__name__}: {error}"
            self._log_failure(f"request {command.code}", error)
        return encode_response(command.opaque, code, remark, serialize_type=command.serialize_type)

    def _log_failure(self, what: str, error: Exception) -> None:
        logger.error("%s from %s failed: %r", what, self.peer, error, exc_info=logger.isEnabledFor(logging.DEBUG))

    def hold_output(self) -> list[Buffer]:
        """Take the answers queued so far: for `on_batch_end`, when they must wait. `write_all` sends them later."""
        held = self._output
        self._output = []
        self._output_bytes = 0
        return held

    # -- writing -----------------------------------------------------------------------------------------------------

    def write(self, data: Buffer) -> None:
        """Send one frame; in the middle of a batch it leaves with the batch. Does nothing on a closed connection."""
        if self._closing:
            return
        self._output.append(data)
        self._output_bytes += len(data)
        if not self._in_batch:
            self._flush()

    def _write_soon(self, data: Buffer) -> None:
        """Like `write`, but what is written in one turn of the loop leaves together, in one system call."""
        first = not self._output
        self._output.append(data)
        self._output_bytes += len(data)
        if self._in_batch:
            return
        if self._output_bytes > JOIN_BYTES_MAX:
            self._flush()
        elif first:
            asyncio.get_running_loop().call_soon(self.flush)

    def _queue(self, data: Buffer) -> None:
        self._output.append(data)
        self._output_bytes += len(data)

    def flush(self) -> None:
        """Write what is queued now. In the midst of reading it does nothing: the end of the batch does it."""
        if self._output and not self._in_batch:
            self._flush()

    def write_all(self, buffers: Sequence[Buffer]) -> None:
        """Send several buffers that belong together; like `write`."""
        if self._closing or not buffers:
            return
        self._output.extend(buffers)
        self._output_bytes += sum(len(part) for part in buffers)
        if not self._in_batch:
            self._flush()

    def _flush(self) -> None:
        output = self._output
        transport = self._transport
        if transport is None or transport.is_closing():
            # Broken, and we hear of it in the next turn; asyncio would log a line for each write.
            output.clear()
            self._output_bytes = 0
            return
        if len(output) == 1:
            transport.write(output[0])
        elif self._output_bytes <= JOIN_BYTES_MAX:
            transport.write(b"".join(output))
        else:
            transport.writelines(output)
        output.clear()
        self._output_bytes = 0
        if self._paused:
            self._check_output(transport)

    def _check_output(self, transport: asyncio.Transport) -> None:
        waiting = transport.get_write_buffer_size()
        if waiting > OUTPUT_BYTES_MAX:
            logger.warning(
                "%s does not read what it asked for (%d MiB wait); connection closed", self.peer, waiting >> 20
            )
            self.abort("the peer did not read what it asked for")

    # -- closing -----------------------------------------------------------------------------------------------------

    def close(self, reason: str = "closed on this side") -> None:
        """Write what is queued, then close. A peer that does not read it is cut off after a while."""
        if self._closing:
            return
        if self._in_batch:
            # What is queued may not leave before the end of the batch has made it true.
            self._close_wanted = reason
            return
        if self._output:
            self._flush()
        if self.closed:  # the flush has cut it off
            return
        self._closing = True
        self.close_reason = reason
        if self._transport is not None:
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._clock.call_later(CLOSE_GRACE_S, self.abort)
            self._transport.close()

    def abort(self, reason: str = "closed on this side") -> None:
        """Close at once; what is queued is lost."""
        self._closing = True
        self.close_reason = self.close_reason or reason
        self._output.clear()
        if self._transport is not None:
            self._transport.abort()

    def _cut_off(self, error: ProtocolError) -> None:
        logger.warning("%s did not speak the remoting protocol: %s; connection closed", self.peer, error)
        self.abort(str(error))

    def _check_idle(self) -> None:
        if self._closing or self.idle_s is None:
            return
        left = self._last_read + self.idle_s - self._clock.monotonic()
        if left <= 0.001 and self._paused and self._transport is not None:
            # We stopped reading because the peer reads slowly; it is alive as long as it takes something.
            waiting = self._transport.get_write_buffer_size()
            left = self.idle_s if waiting != self._last_waiting else 0.0
            self._last_waiting = waiting
        if left > 0.001:
            self._timer = self._clock.call_later(left, self._check_idle)
            return
        logger.debug("%s said nothing for %g s; connection closed", self.peer, self.idle_s)
        self._timer = None
        self.close("the peer said nothing for too long")


def _refuse_all(connection: RemotingConnection, command: Command) -> bytes:
    remark = f"request type {command.code} not supported"
    return encode_response(command.opaque, 3, remark, serialize_type=command.serialize_type)
