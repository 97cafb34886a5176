"""Open transactions: a fold over half messages and over whatever says that one has ended.

Theory of operation. A *half* is a message that its producer has not decided about yet: a record of the half topic. It
is open until the log says that it has ended, which any of these does:

- a copy of it elsewhere whose `prepared_transaction_offset` is the position of the half: the committed message, or the
  one in the topic of those that were asked about too often;
- a mark, which is a record of the op topic: its body lists queue offsets of halves (`12,15,`), decided either way;
- `HalvesEnded`, for halves that another broker had dealt with.

The first of them counts, the others change nothing. So it does not matter where a crash falls between the copy and the
mark: what is in the log ends a half once.

A half whose segment is about to be deleted is stored again, with the offset and the position that its producer knows as
properties. That record takes the place of the first one; the producer's numbers still find it.

Memory: some 350 bytes for an open half, nothing for one that has ended.
"""

from array import array
from collections.abc import Iterable, Iterator

import msgspec

from pocketmq.views.journal import Entry, HalfRenewed, HalvesChecked, HalvesEnded
from pocketmq.wire.properties import PropertyKey, property_finder

NO_IMMUNITY = -1
"""The half may be asked about as soon as the broker's settings say."""

KNOWN_POSITION = "PMQ_HALF_AT"
"""On a half that was stored again: the position that its producer knows."""

_FIELDS = 7
_DIGITS_MAX = 18
_IMMUNITY_DIGITS_MAX = 9
_find_immunity = property_finder(PropertyKey.CHECK_IMMUNITY_TIME.encode())
_find_known_offset = property_finder(PropertyKey.TRANSACTION_PREPARED_QUEUE_OFFSET.encode())
_find_known_position = property_finder(KNOWN_POSITION.encode())


class Half(msgspec.Struct, gc=False):
    """An open half message: where it stands, and what its producer knows it by."""

    position: int
    queue_offset: int
    known_position: int
    known_offset: int
    stored_ms: int
    """When it was first stored."""
    immunity_ms: int
    """How long nobody is to be asked about it, or `NO_IMMUNITY`."""
    checks: int = 0
    """How often a producer was asked."""


class _State(msgspec.Struct, array_like=True):
    halves: bytes
    unmarked: list[int]
    mark_position: int
    first_offset: int


_decoder = msgspec.msgpack.Decoder(_State)


class Transactions:
    """The open halves, in the order in which they were stored."""

    def __init__(self) -> None:
        self._by_position: dict[int, Half] = {}
        self._by_offset: dict[int, Half] = {}
        """Both find a half by where it stands; one that was stored again by what its producer knows, too."""
        self.count = 0
        """How many are open."""
        self.mark_position = 0
        """Of the last mark."""
        self._first_offset = -1
        """The smallest queue offset of a half that was folded in."""
        self._unmarked: dict[int, None] = {}
        """Queue offsets of the halves that a copy has ended and no mark yet."""

    def __len__(self) -> int:
        """How many are open."""
        return self.count

    # -- what is asked -----------------------------------------------------------------------------------------------

    def find(self, position: int) -> Half | None:
        """The open half at a position, or that its producer knows by it."""
        return self._by_position.get(position)

    def positions(self) -> list[int]:
        """Where the open halves stand, oldest first; a half that was stored again counts as new."""
        return [position for position, half in self._by_position.items() if half.position == position]

    def between(self, start: int, end: int) -> list[Half]:
        """The open halves whose records stand in [start, end) of the log, by position."""
        found = [half for half in self._halves() if start <= half.position < end]
        return sorted(found, key=lambda half: half.position)

    def first_position(self) -> int | None:
        """Where the open half stands that comes first in the log."""
        return min((half.position for half in self._halves()), default=None)

    def unmarked(self) -> list[int]:
        """Queue offsets of the halves of which a copy is in the log, but no mark."""
        return list(self._unmarked)

    def _halves(self) -> Iterator[Half]:
        return (half for position, half in self._by_position.items() if half.position == position)

    # -- records of the log ------------------------------------------------------------------------------------------

    def fold_half(self, position: int, queue_offset: int, store_timestamp: int, properties: bytes) -> None:
        """A record of the half topic."""
        if self._first_offset < 0:
            self._first_offset = queue_offset
        known_position = _number(_find_known_position(properties), position)
        known_offset = _number(_find_known_offset(properties), queue_offset)
        former = self._by_offset.get(known_offset)
        if former is not None:
            self.move(former, position, queue_offset)
        elif known_offset == queue_offset or known_offset < self._first_offset:
            self._put(
                Half(position, queue_offset, known_position, known_offset, store_timestamp, immunity_of(properties))
            )
        # Else the first one has ended, and this one with it.

    def fold_mark(self, position: int, body: bytes) -> None:
        """A record of the op topic that is a mark."""
        self.mark_position = position
        for text in body.split(b","):
            offset = _number(text, -1)
            if offset >= 0:
                half = self._by_offset.get(offset)
                if half is not None:
                    self._drop(half)
                self._unmarked.pop(offset, None)

    def fold_copy(self, prepared_position: int) -> None:
        """A record that says that it comes from the half at `prepared_position`."""
        half = self._by_position.get(prepared_position)
        if half is not None:
            self._drop(half)
            self._unmarked[half.queue_offset] = None

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if isinstance(entry, HalvesChecked):
            for position in entry.positions:
                half = self._by_position.get(position)
                if half is not None:
                    half.checks += 1
        elif isinstance(entry, HalvesEnded):
            for position in entry.positions:
                half = self._by_position.get(position)
                if half is not None:
                    self._drop(half)
        elif isinstance(entry, HalfRenewed):
            half = self._by_position.get(entry.position)
            if half is not None:
                half.checks = 0

    # -- the same, for who has just written it -----------------------------------------------------------------------

    def add(self, position: int, queue_offset: int, stored_ms: int, immunity_ms: int) -> None:
        """A new half was stored."""
        if self._first_offset < 0:
            self._first_offset = queue_offset
        self.count += 1
        half = Half(position, queue_offset, position, queue_offset, stored_ms, immunity_ms)
        self._by_position[position] = self._by_offset[queue_offset] = half

    def end(self, halves: Iterable[Half], mark_position: int) -> None:
        """These halves have ended, and the mark at `mark_position` says so."""
        self.mark_position = mark_position
        for half in halves:
            if self._by_position.get(half.position) is half:
                self._drop(half)

    def marked(self, queue_offsets: Iterable[int], mark_position: int) -> None:
        """A mark was written for halves that a copy had ended before."""
        self.mark_position = mark_position
        for offset in queue_offsets:
            self._unmarked.pop(offset, None)

    def move(self, half: Half, position: int, queue_offset: int) -> None:
        """An open half was stored again at `position`; the record before does not count any more."""
        self._forget(half)
        half.position = position
        half.queue_offset = queue_offset
        self._remember(half)

    # -- inside ------------------------------------------------------------------------------------------------------

    def _put(self, half: Half) -> None:
        self.count += 1
        self._remember(half)

    def _drop(self, half: Half) -> None:
        self.count -= 1
        self._forget(half)

    def _remember(self, half: Half) -> None:
        self._by_position[half.position] = self._by_offset[half.queue_offset] = half
        if half.known_position != half.position:
            self._by_position[half.known_position] = self._by_offset[half.known_offset] = half

    def _forget(self, half: Half) -> None:
        del self._by_position[half.position], self._by_offset[half.queue_offset]
        if half.known_position != half.position:
            self._by_position.pop(half.known_position, None)
            self._by_offset.pop(half.known_offset, None)

    # -- storing -----------------------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        numbers = array("q")
        for half in self._halves():
            numbers.extend(msgspec.structs.astuple(half))
        return msgspec.msgpack.encode(
            _State(numbers.tobytes(), list(self._unmarked), self.mark_position, self._first_offset)
        )

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        numbers = array("q")
        numbers.frombytes(state.halves)
        self._by_position.clear()
        self._by_offset.clear()
        self.count = 0
        self._unmarked = dict.fromkeys(state.unmarked)
        self.mark_position = state.mark_position
        self._first_offset = state.first_offset
        for start in range(0, len(numbers), _FIELDS):
            self._put(Half(*numbers[start : start + _FIELDS]))


def immunity_of(properties: bytes) -> int:
    """The immunity in ms that a message asks for, or `NO_IMMUNITY`."""
    text = _find_immunity(properties)
    if text is None or not text.isdigit() or len(text) > _IMMUNITY_DIGITS_MAX:
        return NO_IMMUNITY
    return int(text) * 1000


def _number(text: bytes | None, otherwise: int) -> int:
    return int(text) if text is not None and text.isdigit() and len(text) <= _DIGITS_MAX else otherwise
