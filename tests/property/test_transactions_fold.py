"""Whatever happens to transactions, in whatever order the log tells it: each half ends once, and a stored state and the
rest of the log give the same as the whole log."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.views.journal import HalfRenewed, HalvesChecked, HalvesEnded
from pocketmq.views.transactions import Transactions

SIZE = 100

steps = st.lists(
    st.tuples(
        st.sampled_from(["half", "half", "copy", "mark", "copy and mark", "move", "check", "renew", "ended", "store"]),
        st.integers(0, 10),
    ),
    max_size=60,
)


@dataclass
class Model:
    """The log as a list of functions on a view, and what is open, the slow and obvious way."""

    records: list = field(default_factory=list)
    open: dict[int, dict[str, int]] = field(default_factory=dict)
    """Number of a half -> where it stands now, and how often it was asked about."""
    halves: list[dict[str, int]] = field(default_factory=list)
    offset: int = 0
    stored_after: int = 0

    @property
    def position(self) -> int:
        return len(self.records) * SIZE

    def half(self) -> None:
        number, position, offset = len(self.halves), self.position, self.offset
        self.records.append(lambda view: view.fold_half(position, offset, position, b"UNIQ_KEY\x01k\x02"))
        self.halves.append({"known": position, "known_offset": offset, "position": position, "offset": offset})
        self.open[number] = {**self.halves[number], "checks": 0}
        self.offset += 1

    def move(self, number: int) -> None:
        position, offset = self.position, self.offset
        half = self.open[number]
        properties = f"TRAN_PREPARED_QUEUE_OFFSET\x01{half['known_offset']}\x02PMQ_HALF_AT\x01{half['known']}\x02"
        self.records.append(lambda view: view.fold_half(position, offset, position, properties.encode()))
        half["position"] = self.halves[number]["position"] = position
        half["offset"] = self.halves[number]["offset"] = offset
        self.offset += 1

    def copy(self, number: int) -> None:
        position = self.halves[number]["position"]
        self.records.append(lambda view: view.fold_copy(position))
        self.open.pop(number, None)

    def mark(self, number: int) -> None:
        position, offset = self.position, self.halves[number]["offset"]
        self.records.append(lambda view: view.fold_mark(position, b"%d,99999," % offset))
        self.open.pop(number, None)

    def entry(self, entry: object) -> None:
        self.records.append(lambda view: view.apply(entry))


def content(view: Transactions) -> dict[int, tuple[int, ...]]:
    found = {}
    for position in view.positions():
        half = view.find(position)
        assert half is not None
        assert view.find(half.known_position) is half
        found[half.known_position] = (half.position, half.queue_offset, half.known_offset, half.checks, half.stored_ms)
    assert len(found) == len(view)
    return found


def whole_state(view: Transactions) -> object:
    return content(view), sorted(view.unmarked()), view.mark_position


@settings(max_examples=150, deadline=None)
@given(steps)
def test_the_fold_is_what_happened_and_can_be_resumed_anywhere(story: list[tuple[str, int]]) -> None:
    model = Model()
    for what, number in story:
        chosen = number % len(model.halves) if model.halves else None
        if what == "half":
            model.half()
        elif what == "store":
            model.stored_after = len(model.records)
        elif chosen is None:
            continue
        elif what in ("copy", "copy and mark"):
            model.copy(chosen)
            if what != "copy":
                model.mark(chosen)
        elif what == "mark":
            model.mark(chosen)
        elif what == "move" and chosen in model.open:
            model.move(chosen)
        elif what == "check":
            model.entry(HalvesChecked([model.halves[chosen]["position"]]))
            if chosen in model.open:
                model.open[chosen]["checks"] += 1
        elif what == "renew":
            model.entry(HalfRenewed(model.halves[chosen]["position"]))
            if chosen in model.open:
                model.open[chosen]["checks"] = 0
        elif what == "ended":
            model.entry(HalvesEnded([model.halves[chosen]["position"]]))
            model.open.pop(chosen, None)

    view = Transactions()
    resumed = Transactions()
    for index, record in enumerate(model.records):
        if index == model.stored_after:
            resumed = Transactions()
            resumed.restore(view.snapshot())
        record(view)
        if index >= model.stored_after:
            record(resumed)
    expected = {
        half["known"]: (half["position"], half["offset"], half["known_offset"], half["checks"], half["known"])
        for half in model.open.values()
    }
    assert content(view) == expected
    if model.stored_after < len(model.records):
        assert whole_state(resumed) == whole_state(view)
