"""One end of a simulated connection: an asyncio transport without a socket.

Theory of operation: what one end writes goes into its `Pipe` with a moment of arrival, in order. At that moment the
other end hands it to its protocol, unless it has paused reading; then it is kept there. Bytes that the other end keeps,
or that a partition holds back, are the write buffer of the writing end, less a window that the two systems' own buffers
take. A closed end says so to the other end in order, behind what it wrote; a reset does the same but without waiting.
"""

import asyncio
import contextvars
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Literal, Protocol

from pocketmq.model.seams import Cancellable

Address = tuple[str, int]
Ending = Literal["eof", "reset"]

WINDOW_BYTES = 256 * 1024
"""What the systems of both ends take before a writer notices that nobody reads."""

HIGH_WATER_BYTES = 64 * 1024
READ_BYTES_MAX = 256 * 1024
"""Most bytes that are given to a protocol at once."""

_SAME_MOMENT_S = 1e-6


class Wire(Protocol):
    """What a connection needs of the network that it is part of."""

    def schedule(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run `callback(*args)` after `delay` seconds, whatever becomes of the caller."""

    def now(self) -> float:
        """Seconds on the network's clock."""

    def travel_seconds(self, source: str, target: str) -> float:
        """How long the next piece takes."""

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether nothing gets through now."""

    def cut(self, data: bytes) -> list[bytes]:
        """The pieces in which `data` arrives."""

    def breaks(self, transport: "SimulatedTransport") -> bool:
        """Whether the connection broke just now."""

    def forget(self, transport: "SimulatedTransport") -> None:
        """The end is gone."""


class Pipe:
    """What is on its way from one end to the other, in order."""

    def __init__(self, wire: Wire, source: "SimulatedTransport", target: "SimulatedTransport") -> None:
        self._wire = wire
        self._source = source
        self._target = target
        self._pieces: deque[tuple[float, bytes | Ending]] = deque()
        self._last = 0.0
        self._timer: Cancellable | None = None
        self.bytes = 0

    def put(self, piece: bytes | Ending) -> None:
        """Send bytes, or the end of them."""
        delay = self._wire.travel_seconds(self._source.host, self._target.host)
        self._last = max(self._last, self._wire.now() + delay)
        self._pieces.append((self._last, piece))
        self.bytes += len(piece) if isinstance(piece, bytes) else 0
        self._arm()

    def clear(self) -> None:
        """Lose all that is on its way."""
        self._pieces.clear()
        self.bytes = 0
        self._arm()

    def resume(self) -> None:
        """Go on after a partition."""
        if self._pieces and self._timer is None:
            delay = self._wire.travel_seconds(self._source.host, self._target.host)
            self._last = max(self._last, self._wire.now() + delay)
            self._timer = self._wire.schedule(delay, self._arrive)

    @property
    def is_blocked(self) -> bool:
        """Whether a partition holds back what is on its way."""
        return self._wire.is_blocked(self._source.host, self._target.host)

    def _arm(self) -> None:
        if not self._pieces and self._timer is not None:
            self._timer.cancel()
            self._timer = None
        elif self._pieces and self._timer is None:
            self._timer = self._wire.schedule(max(0.0, self._pieces[0][0] - self._wire.now()), self._arrive)

    def _arrive(self) -> None:
        self._timer = None
        if self.is_blocked:
            return  # `resume` goes on
        now = self._wire.now() + _SAME_MOMENT_S
        arrived: list[bytes] = []
        ending: Ending | None = None
        while self._pieces and self._pieces[0][0] <= now and ending is None:
            piece = self._pieces.popleft()[1]
            if isinstance(piece, bytes):
                arrived.append(piece)
                self.bytes -= len(piece)
            else:
                ending = piece
        self._arm()
        if arrived and self._wire.breaks(self._source):
            return
        if arrived:
            for data in self._wire.cut(b"".join(arrived)):
                self._target.take(data)
        if ending is not None:
            self._target.take(ending)


class SimulatedTransport(asyncio.Transport):
    """One end of a connection. `host` is the address of the machine it is on."""

    def __init__(
        self, wire: Wire, protocol: Any, local: Address, remote: Address, context: contextvars.Context
    ) -> None:
        super().__init__({"sockname": local, "peername": remote})
        self.host = local[0]
        self._wire = wire
        self._protocol = protocol
        self._context = context
        self._pipe: Pipe | None = None
        self._peer: SimulatedTransport | None = None
        self._kept: deque[bytes | Ending] = deque()
        self._kept_bytes = 0
        self._delivering: Cancellable | None = None
        self._reading = True
        self._closing = False
        self._ended = False
        self._wrote_eof = False
        self._is_over = False
        self._high, self._low = HIGH_WATER_BYTES, HIGH_WATER_BYTES // 4
        self._paused = False

    def join(self, peer: "SimulatedTransport") -> None:
        """Make `peer` the other end; each end calls it once."""
        self._peer = peer
        self._pipe = Pipe(self._wire, self, peer)

    def open(self) -> None:
        """Tell the protocol that the connection is made."""
        self._context.copy().run(self._protocol.connection_made, self)

    # What protocols call.

    def get_protocol(self) -> Any:
        return self._protocol

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._protocol = protocol

    def is_closing(self) -> bool:
        return self._closing

    def is_reading(self) -> bool:
        return self._reading and not self._closing

    def pause_reading(self) -> None:
        self._reading = False

    def resume_reading(self) -> None:
        if not self._closing and not self._reading:
            self._reading = True
            self._deliver_later()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._wrote_eof:
            raise RuntimeError("Cannot call write() after write_eof()")
        if data and not self._closing and self._pipe is not None:
            self._pipe.put(bytes(data))
            self._check_flow()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        if not self._wrote_eof and not self._closing and self._pipe is not None:
            self._wrote_eof = True
            self._pipe.put("eof")

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        if high is None:
            high = HIGH_WATER_BYTES if low is None else 4 * low
        low = high // 4 if low is None else low
        if not 0 <= low <= high:
            raise ValueError(f"high ({high!r}) must be >= low ({low!r}) must be >= 0")
        self._high, self._low = high, low
        self._check_flow()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        if self._pipe is None or self._peer is None:
            return 0
        waiting = self._peer._kept_bytes + (self._pipe.bytes if self._pipe.is_blocked else 0)
        return max(0, waiting - WINDOW_BYTES)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            if self._pipe is not None and not self._wrote_eof:
                self._pipe.put("eof")
            self._finish_when_written()

    def abort(self) -> None:
        self._closing = True
        self._end(None, tell_peer=True)

    # What the network and the other end call.

    def take(self, piece: bytes | Ending) -> None:
        """Something arrived from the other end."""
        if piece == "reset":
            self._end(ConnectionResetError("Connection reset by peer"), tell_peer=False)
        elif self._is_over:
            if isinstance(piece, bytes) and self._pipe is not None and self._peer is not None:
                self._pipe.put("reset")
        elif not self._closing:
            self._kept.append(piece)
            self._kept_bytes += len(piece) if isinstance(piece, bytes) else 0
            if self._delivering is None:
                self._deliver()

    def lose(self, error: OSError) -> None:
        """The connection broke: what was on its way is lost, and the protocol hears of it."""
        if self._pipe is not None:
            self._pipe.clear()
        self._end(error, tell_peer=False)

    def vanish(self) -> None:
        """The process of this end is gone: nobody here hears anything any more."""
        self._closing = self._is_over = self._ended = True
        self._kept.clear()
        self._kept_bytes = 0

    def reset_peer(self) -> None:
        """Tell the other end that nobody is here."""
        if self._pipe is not None:
            self._pipe.put("reset")

    def resume(self) -> None:
        """A partition was healed."""
        if self._pipe is not None:
            self._pipe.resume()
        self._check_flow()

    # Inside.

    def _deliver_later(self) -> None:
        if self._kept and self._delivering is None:
            self._delivering = self._wire.schedule(0, self._deliver)

    def _deliver(self) -> None:
        self._delivering = None
        while self._kept and self._reading and not self._closing:
            piece = self._kept.popleft()
            if piece == "eof":
                self._call_protocol(self._take_eof)
            elif isinstance(piece, bytes):
                if len(piece) > READ_BYTES_MAX:
                    self._kept.appendleft(piece[READ_BYTES_MAX:])
                    piece = piece[:READ_BYTES_MAX]
                self._kept_bytes -= len(piece)
                self._call_protocol(self._protocol.data_received, piece)
        if self._peer is not None:
            self._peer._check_flow()

    def _take_eof(self) -> None:
        if not self._protocol.eof_received():
            self.close()

    def _call_protocol(self, callback: Callable[..., object], *args: object) -> None:
        try:
            self._context.copy().run(callback, *args)
        except Exception as error:
            context = {
                "message": "a protocol failed",
                "exception": error,
                "transport": self,
                "protocol": self._protocol,
            }
            asyncio.get_running_loop().call_exception_handler(context)
            self._closing = True
            self._end(error, tell_peer=True)

    def _check_flow(self) -> None:
        size = self.get_write_buffer_size()
        if self._ended:
            return
        if size > self._high and not self._paused:
            self._paused = True
            self._call_protocol(self._protocol.pause_writing)
        elif size <= self._low and self._paused:
            self._paused = False
            self._call_protocol(self._protocol.resume_writing)
        self._finish_when_written()

    def _finish_when_written(self) -> None:
        if self._closing and not self._ended and self.get_write_buffer_size() == 0:
            self._end(None, tell_peer=False)

    def _end(self, error: Exception | None, *, tell_peer: bool) -> None:
        if self._ended:
            return
        self._ended = self._closing = True
        if tell_peer:
            self.reset_peer()
        self._kept.clear()
        self._kept_bytes = 0
        self._wire.schedule(0, self._finish, error)

    def _finish(self, error: Exception | None) -> None:
        if not self._is_over:
            self._is_over = True
            self._wire.forget(self)
            if self._protocol is not None:
                self._context.copy().run(self._protocol.connection_lost, error)
