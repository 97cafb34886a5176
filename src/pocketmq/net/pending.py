"""Our own requests on one connection that wait for an answer: numbers, futures and one timer for all time-outs."""

from typing import Protocol

from pocketmq.model.errors import BackPressureError, PocketMQError, RequestTimeoutError
from pocketmq.model.seams import Cancellable, Clock
from pocketmq.wire.command import Command

REQUESTS_PENDING_MAX = 65_535
"""Most requests without an answer on one connection."""
OPAQUE_MAX = 0x7FFF_FFFF
_RESOLUTION_S = 0.001


class AnswerReceiver(Protocol):
    """What takes the answer to a request: a future, or something that is quicker than one. Told once, and at once."""

    def done(self) -> bool:
        """True when nobody wants the answer any more."""

    def set_result(self, result: Command, /) -> None:
        """The answer."""

    def set_exception(self, exception: BaseException, /) -> None:
        """There will be no answer."""


class PendingRequests:
    """Opaque number -> the future, or whatever else, that takes the answer.

    A timer for each request would cost more than the rest of the request; so there is one, set to the earliest
    deadline, and it looks through the table when it fires. Under load that is about once per time-out.
    """

    __slots__ = ("_clock", "_next_opaque", "_peer", "_table", "_timer", "_timer_at")

    def __init__(self, clock: Clock, peer: str) -> None:
        self._clock = clock
        self._peer = peer
        self._table: dict[int, tuple[AnswerReceiver, float]] = {}
        self._next_opaque = 0
        self._timer: Cancellable | None = None
        self._timer_at = 0.0

    def __len__(self) -> int:
        return len(self._table)

    def take_opaque(self) -> int:
        """A number that no waiting request has. It wraps round after 2**31 requests."""
        opaque = self._next_opaque
        while opaque in self._table:
            opaque = opaque + 1 & OPAQUE_MAX
        self._next_opaque = opaque + 1 & OPAQUE_MAX
        return opaque

    def check_room(self) -> None:
        """Raises BackPressureError when too many wait already."""
        if len(self._table) >= REQUESTS_PENDING_MAX:
            raise BackPressureError(f"{len(self._table)} requests to {self._peer} wait for an answer already")

    def add(self, opaque: int, receiver: AnswerReceiver, timeout_s: float) -> None:
        """Remember who waits for the answer with this number, and for how long."""
        deadline = self._clock.monotonic() + timeout_s
        self._table[opaque] = (receiver, deadline)
        if self._timer is None or deadline < self._timer_at:
            self._set_timer(timeout_s, deadline)

    def forget(self, opaque: int) -> None:
        """Nobody waits for this answer any more."""
        self._table.pop(opaque, None)

    def settle(self, answer: Command) -> None:
        """Give an answer to the request that waits for it; one that comes too late is dropped."""
        entry = self._table.pop(answer.opaque, None)
        if entry is not None and not entry[0].done():
            entry[0].set_result(answer)

    def fail_all(self, error: PocketMQError) -> None:
        """The connection is gone: nobody gets an answer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        entries = list(self._table.values())
        self._table.clear()
        for receiver, _ in entries:
            if not receiver.done():
                receiver.set_exception(type(error)(error.message))

    def _set_timer(self, delay_s: float, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(delay_s, self._expire)
        self._timer_at = deadline

    def _expire(self) -> None:
        self._timer = None
        now = self._clock.monotonic() + _RESOLUTION_S
        for opaque in [opaque for opaque, (_, deadline) in self._table.items() if deadline <= now]:
            receiver, _ = self._table.pop(opaque)
            if not receiver.done():
                receiver.set_exception(RequestTimeoutError(f"{self._peer} did not answer in time"))
        if self._table:
            deadline = min(deadline for _, deadline in self._table.values())
            self._set_timer(max(_RESOLUTION_S, deadline - now), deadline)
