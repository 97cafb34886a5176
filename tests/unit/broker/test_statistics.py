"""Counters: what passed, over which window, and at what rate."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.broker.series import Series
from pocketmq.broker.statistics import Statistics

T0 = 1_700_000_000_000


class StepClock:
    def __init__(self) -> None:
        self.ms = T0
        self.scheduled: list[tuple[float, Callable[..., object]]] = []

    def monotonic(self) -> float:
        return self.ms / 1000

    def time_ms(self) -> int:
        return self.ms

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Any:
        self.scheduled.append((delay, callback))

        class Call:
            def cancel(self) -> None: ...

        return Call()

    async def sleep(self, delay: float) -> None:
        raise AssertionError("statistics never sleep")


@pytest.fixture
def clock() -> StepClock:
    return StepClock()


@pytest.fixture
def statistics(clock: StepClock) -> Statistics:
    return Statistics(clock)


def run(clock: StepClock, statistics: Statistics, seconds: int, each_step: Callable[[], None] = lambda: None) -> None:
    """Let `seconds` pass, sampling every ten seconds as the broker does."""
    for _ in range(seconds // 10):
        each_step()
        clock.ms += 10_000
        statistics.sample()


def test_a_fresh_counter_reports_what_it_has_since_it_exists() -> None:
    series = Series(T0)
    series.add(10, 1000)
    minute = series.minute(T0 + 5_000)
    assert (minute.messages, minute.size_bytes, minute.calls) == (10, 1000, 1)
    assert minute.messages_per_second == 2.0
    assert minute.bytes_per_second == 200.0


def test_the_minute_forgets_what_is_older(clock: StepClock, statistics: Statistics) -> None:
    statistics.count_in("t", 100, 100)
    run(clock, statistics, 120)
    statistics.count_in("t", 6, 60)
    series = statistics.topic("t")
    assert series.minute(clock.ms).messages == 6
    assert series.hour(clock.ms).messages == 106
    assert series.minute(clock.ms).messages_per_second == 0.1


def test_the_hour_and_the_day_forget_too(clock: StepClock, statistics: Statistics) -> None:
    statistics.count_in("t", 1, 1)
    run(clock, statistics, 2 * 3600)
    statistics.count_in("t", 2, 2)
    series = statistics.topic("t")
    assert series.hour(clock.ms).messages == 2
    assert series.day(clock.ms).messages == 3
    run(clock, statistics, 25 * 3600)
    assert series.day(clock.ms).messages == 0
    assert series.messages == 3


def test_a_counter_that_rests_keeps_few_samples(clock: StepClock, statistics: Statistics) -> None:
    statistics.count_in("t", 1, 1)
    run(clock, statistics, 3600)
    held = statistics.topic("t")._samples
    assert held is not None
    assert [len(samples) // 4 for samples in held] == [1, 1, 1]


def test_a_busy_counter_keeps_no_more_than_its_windows_need(clock: StepClock, statistics: Statistics) -> None:
    run(clock, statistics, 30 * 3600, lambda: statistics.count_in("t", 1, 1))
    held = statistics.topic("t")._samples
    assert held is not None
    assert [len(samples) // 4 for samples in held] == [7, 7, 25]


def test_rates_of_the_broker_over_three_windows(clock: StepClock, statistics: Statistics) -> None:
    run(clock, statistics, 600, lambda: statistics.count_in("t", 100, 100))
    run(clock, statistics, 60)
    rates = statistics.put_rates()
    assert rates.ten_seconds == 0.0
    assert rates.minute == 0.0
    assert rates.ten_minutes == pytest.approx(9.0)


def test_pulls_that_find_nothing_are_counted_apart(clock: StepClock, statistics: Statistics) -> None:
    run(clock, statistics, 60, lambda: statistics.count_out("t", "g", 0, 0))
    assert statistics.missed_rates().minute == pytest.approx(0.1)
    assert statistics.get_rates().minute == 0.0
    assert statistics.snapshot().groups == []


def test_operators_find_counters_by_their_names(statistics: Statistics) -> None:
    statistics.count_in("t", 3, 300)
    statistics.count_out("t", "g", 2, 200)
    statistics.count_sent_back("t", "g", dead=False)
    values = {}
    for name, key in [
        ("TOPIC_PUT_NUMS", "t"),
        ("TOPIC_PUT_SIZE", "t"),
        ("GROUP_GET_NUMS", "t@g"),
        ("GROUP_GET_SIZE", "t@g"),
        ("SNDBCK_PUT_NUMS", "t@g"),
        ("BROKER_PUT_NUMS", "DefaultCluster"),
        ("BROKER_GET_NUMS", "DefaultCluster"),
    ]:
        found = statistics.named(name, key)
        assert found is not None, name
        values[name] = found[0].size_bytes if found[1] else found[0].messages
    assert list(values.values()) == [3, 300, 2, 200, 1, 3, 2]


@pytest.mark.parametrize(
    ("name", "key"), [("TOPIC_PUT_NUMS", "u"), ("GROUP_GET_NUMS", "t"), ("NONSENSE", "t"), ("TOPIC_PUT_X", "t")]
)
def test_an_unknown_counter_is_none(statistics: Statistics, name: str, key: str) -> None:
    statistics.count_in("t", 1, 1)
    assert statistics.named(name, key) is None


def test_the_snapshot_holds_everything(statistics: Statistics) -> None:
    statistics.count_in("t", 2, 2 * 5000)
    statistics.sample()
    statistics.count_in("t", 1, 10)
    statistics.count_out("t", "g", 3, 10_010)
    statistics.count_sent_back("t", "g", dead=True)
    snapshot = statistics.snapshot()
    assert snapshot.totals.messages_in == 3
    assert snapshot.totals.puts == 2
    assert snapshot.totals.messages_to_dead_letter == 1
    assert snapshot.totals.message_sizes == (1, 0, 2, 0, 0, 0, 0)
    assert [tuple(topic) for topic in snapshot.topics] == [("t", 3, 10_010)]
    assert [tuple(group) for group in snapshot.groups] == [("t", "g", 3, 10_010, 1, 1)]


def test_a_deleted_topic_or_group_is_forgotten(statistics: Statistics) -> None:
    statistics.count_in("t", 1, 1)
    statistics.count_out("t", "g", 1, 1)
    statistics.count_out("u", "g", 1, 1)
    statistics.count_out("u", "h", 1, 1)
    statistics.forget_topic("t")
    statistics.forget_group("g")
    snapshot = statistics.snapshot()
    assert snapshot.topics == []
    assert [(each.topic, each.group) for each in snapshot.groups] == [("u", "h")]


def test_beyond_the_limit_only_the_totals_count(statistics: Statistics, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.statistics.COUNTERS_MAX", 1)
    statistics.count_in("t", 1, 1)
    statistics.count_in("u", 1, 1)
    snapshot = statistics.snapshot()
    assert [each.topic for each in snapshot.topics] == ["t"]
    assert snapshot.totals.messages_in == 2


def test_a_new_day_keeps_the_numbers_of_its_morning(clock: StepClock, statistics: Statistics) -> None:
    statistics.count_in("t", 5, 5)
    run(clock, statistics, 24 * 3600)
    assert statistics.in_today_morning == 5
    statistics.count_in("t", 2, 2)
    run(clock, statistics, 24 * 3600)
    assert (statistics.in_yesterday_morning, statistics.in_today_morning) == (5, 7)


def test_sampling_goes_on_until_close(clock: StepClock, statistics: Statistics) -> None:
    statistics.start()
    delay, tick = clock.scheduled.pop()
    assert delay == 10.0
    tick()
    assert len(clock.scheduled) == 1
    statistics.close()
