"""Pending timers: due in order, and gone only when they have fired."""

import sys

from pocketmq.views.journal import TimersFired
from pocketmq.views.timers import BUCKET_MS, Timers

NOW = 1_700_000_000_000


def positions(timers: list[tuple[int, int]]) -> list[int]:
    return [position for _, position in timers]


def test_nothing_is_due_while_nothing_is_pending() -> None:
    timers = Timers()
    assert timers.next_due() is None
    assert timers.take_due(NOW, 10) == []
    assert len(timers) == 0


def test_timers_come_due_in_the_order_of_their_times() -> None:
    timers = Timers()
    timers.add(NOW + 3000, 1)
    timers.add(NOW + 1000, 2)
    timers.add(NOW + 2000, 3)
    assert timers.take_due(NOW, 10) == []
    assert positions(timers.take_due(NOW + 2000, 10)) == [2, 3]
    assert positions(timers.take_due(NOW + 3000, 10)) == [1]


def test_no_more_are_taken_than_were_asked_for() -> None:
    timers = Timers()
    for position in range(5):
        timers.add(NOW, position)
    assert len(timers.take_due(NOW, 3)) == 3
    assert len(timers.take_due(NOW, 3)) == 2


def test_a_timer_that_is_added_late_is_due_at_once() -> None:
    timers = Timers()
    timers.take_due(NOW, 10)
    timers.add(NOW - 5, 1)
    assert timers.next_due() == NOW - 5
    assert positions(timers.take_due(NOW, 10)) == [1]


def test_the_next_due_time_is_exact_when_it_is_near_and_never_too_late() -> None:
    timers = Timers()
    timers.take_due(NOW, 10)
    timers.add(NOW + 1, 1)
    assert timers.next_due() == NOW + 1
    timers = Timers()
    timers.add(NOW + 50 * BUCKET_MS + 17, 1)
    due = timers.next_due()
    assert due is not None
    assert NOW + 49 * BUCKET_MS < due <= NOW + 50 * BUCKET_MS + 17


def test_a_taken_timer_still_counts_until_it_has_fired() -> None:
    timers = Timers()
    timers.add(NOW, 1)
    timers.take_due(NOW, 10)
    assert len(timers) == 1
    assert list(timers.pending()) == [(NOW, 1)]
    timers.apply(TimersFired([1]))
    assert len(timers) == 0
    assert list(timers.pending()) == []


def test_timers_that_could_not_be_delivered_come_due_again() -> None:
    timers = Timers()
    timers.add(NOW, 1)
    timers.put_back(timers.take_due(NOW, 10))
    assert positions(timers.take_due(NOW, 10)) == [1]


def test_a_timer_that_fired_before_it_was_taken_is_never_taken() -> None:
    timers = Timers()
    timers.add(NOW, 1)
    timers.add(NOW + 10 * BUCKET_MS, 2)
    timers.add(NOW + 1, 3)
    timers.apply(TimersFired([1, 2]))
    assert len(timers) == 1
    assert timers.take_due(NOW + 20 * BUCKET_MS, 10) == [(NOW + 1, 3)]
    timers.apply(TimersFired([3]))
    assert timers.next_due() is None


def test_a_replay_of_many_fired_timers_keeps_no_list_of_them(monkeypatch) -> None:
    monkeypatch.setattr("pocketmq.views.timers.FIRED_UNSEEN_MAX", 10)
    timers = Timers()
    for position in range(100):
        timers.add(NOW + position * BUCKET_MS, position)
    for position in range(0, 100, 2):
        timers.apply(TimersFired([position]))
    assert len(timers) == 50
    taken = timers.take_due(NOW + 100 * BUCKET_MS, 100)
    assert positions(taken) == list(range(1, 100, 2))


def test_the_timers_of_a_stretch_of_the_log_can_be_listed() -> None:
    timers = Timers()
    for position in (30, 10, 20, 40):
        timers.add(NOW, position)
    assert timers.between(10, 31) == [(NOW, 10), (NOW, 20), (NOW, 30)]


def test_restored_timers_are_those_that_were_pending_taken_ones_included() -> None:
    timers = Timers()
    timers.add(NOW, 1)
    timers.add(NOW + 1, 2)
    timers.add(NOW + 7 * BUCKET_MS, 3)
    timers.add(NOW + 9 * BUCKET_MS, 4)
    timers.take_due(NOW, 10)
    timers.apply(TimersFired([4]))
    restored = Timers()
    restored.restore(timers.snapshot())
    assert sorted(restored.pending()) == [(NOW, 1), (NOW + 1, 2), (NOW + 7 * BUCKET_MS, 3)]
    assert len(restored) == 3
    assert positions(restored.take_due(NOW + 10 * BUCKET_MS, 10)) == [1, 2, 3]


def test_a_pending_timer_that_is_far_away_costs_a_few_bytes() -> None:
    timers = Timers()
    for position in range(10_000):
        timers.add(NOW + position * 50, position * 200)
    size = sum(sys.getsizeof(bucket) for bucket in timers._far.values())
    assert size / 10_000 < 30


def test_after_a_restart_an_earlier_timer_still_comes_first() -> None:
    timers = Timers()
    timers.add(NOW + 9000, 1)
    timers.take_due(NOW + 8999, 10)
    restored = Timers()
    restored.restore(timers.snapshot())
    restored.add(NOW + 2000, 2)
    due = restored.next_due()
    assert due is not None
    assert due <= NOW + 2000
    assert positions(restored.take_due(NOW + 9000, 10)) == [2, 1]
