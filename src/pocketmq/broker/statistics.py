"""What passed through the broker: counted on the hot path, asked for by operators (codes 28 and 315) and by the HTTP
metrics.

A topic has a counter of what came in; a group has one per topic of what went out, and one of what it sent back. The
hot path keeps hold of a counter object where it can and calls `add`.
"""

from bisect import bisect_left
from datetime import date
from typing import NamedTuple

from pocketmq.broker.series import Series
from pocketmq.model.seams import Cancellable, Clock

SAMPLE_INTERVAL_S = 10.0
COUNTERS_MAX = 1_000_000
"""Most counters kept; beyond it what is counted goes into one that nobody sees."""
MESSAGE_SIZES = (1024, 4096, 512 * 1024, 1024 * 1024, 2 * 1024 * 1024, 4 * 1024 * 1024)
"""Upper bounds, in bytes, of the classes that message sizes are counted in; a last class takes the rest."""
_RECENT_SAMPLES = 61


class Rates(NamedTuple):
    """Messages (or bytes) per second over about 10 s, 1 min and 10 min."""

    ten_seconds: float
    minute: float
    ten_minutes: float


class Totals(NamedTuple):
    """Numbers of the whole broker since it started."""

    messages_in: int
    bytes_in: int
    puts: int
    puts_failed: int
    messages_out: int
    bytes_out: int
    gets_found: int
    gets_missed: int
    messages_sent_back: int
    messages_to_dead_letter: int
    message_sizes: tuple[int, ...]
    """Messages by size class, see `MESSAGE_SIZES`; each counts as the average of its topic at that time."""


class TopicNumbers(NamedTuple):
    """What came into one topic since the broker started."""

    topic: str
    messages_in: int
    bytes_in: int


class GroupNumbers(NamedTuple):
    """What one group took from one topic since the broker started."""

    topic: str
    group: str
    messages_out: int
    bytes_out: int
    messages_sent_back: int
    messages_to_dead_letter: int


class StatisticsSnapshot(NamedTuple):
    """All numbers at one moment."""

    totals: Totals
    topics: list[TopicNumbers]
    groups: list[GroupNumbers]


class GroupCounters:
    """One group in one topic."""

    __slots__ = ("out", "sent_back", "to_dead_letter")

    def __init__(self, now_ms: int) -> None:
        self.out = Series(now_ms)
        self.sent_back = Series(now_ms)
        self.to_dead_letter = 0


class Statistics:
    """All counters of one broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        now_ms = clock.time_ms()
        self.started_ms = now_ms
        self.total_in = Series(now_ms)
        self.total_out = Series(now_ms)
        self.total_sent_back = Series(now_ms)
        self.puts_failed = 0
        self.gets_missed = 0
        self.to_dead_letter = 0
        self.message_sizes = [0] * (len(MESSAGE_SIZES) + 1)
        self._topics: dict[str, Series] = {}
        self._groups: dict[tuple[str, str], GroupCounters] = {}
        self._lost_topic = Series(now_ms)
        self._lost_group = GroupCounters(now_ms)
        self._recent: list[tuple[int, int, int, int, int]] = [(now_ms, 0, 0, 0, 0)]
        """Of each step: time, messages in, messages out, gets missed, bytes out."""
        self._day: date = _local_day(now_ms)
        self.in_yesterday_morning = self.in_today_morning = 0
        self.out_yesterday_morning = self.out_today_morning = 0
        self._timer: Cancellable | None = None

    # -- the hot path ------------------------------------------------------------------------------------------------

    def topic(self, topic: str) -> Series:
        """What came into `topic`. Stays the same object for as long as the topic exists."""
        found = self._topics.get(topic)
        if found is None:
            if len(self._topics) >= COUNTERS_MAX:
                return self._lost_topic
            found = self._topics[topic] = Series(self._clock.time_ms())
        return found

    def group(self, topic: str, group: str) -> GroupCounters:
        """What `group` took from `topic`."""
        found = self._groups.get((topic, group))
        if found is None:
            if len(self._groups) >= COUNTERS_MAX:
                return self._lost_group
            found = self._groups[(topic, group)] = GroupCounters(self._clock.time_ms())
        return found

    def count_in(self, topic: str, messages: int, size_bytes: int) -> None:
        """`messages` of together `size_bytes` were stored in `topic` by one call."""
        self.topic(topic).add(messages, size_bytes)

    def count_out(self, topic: str, group: str, messages: int, size_bytes: int) -> None:
        """`group` was given `messages` of together `size_bytes` from `topic` in one answer; 0: it found nothing."""
        if not messages:
            self.gets_missed += 1
            return
        self.group(topic, group).out.add(messages, size_bytes)
        self.total_out.add(messages, size_bytes)

    def count_sent_back(self, topic: str, group: str, *, dead: bool) -> None:
        """`group` gave a message of `topic` back; `dead`: it went to the dead letters."""
        counters = self.group(topic, group)
        counters.sent_back.add(1, 0)
        self.total_sent_back.add(1, 0)
        if dead:
            counters.to_dead_letter += 1
            self.to_dead_letter += 1

    # -- time --------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to sample."""
        self._timer = self._clock.call_later(SAMPLE_INTERVAL_S, self._tick)

    def close(self) -> None:
        """Stop sampling; the numbers stay."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def sample(self) -> None:
        """Remember all counters as they are now."""
        now_ms = self._clock.time_ms()
        self._sum_up()
        for series in self._topics.values():
            series.sample(now_ms)
        for counters in self._groups.values():
            counters.out.sample(now_ms)
            counters.sent_back.sample(now_ms)
        for series in (self.total_in, self.total_out, self.total_sent_back):
            series.sample(now_ms)
        self._recent.append((now_ms, *self._now()))
        del self._recent[:-_RECENT_SAMPLES]
        today = _local_day(now_ms)
        if today != self._day:
            self._day = today
            self.in_yesterday_morning, self.in_today_morning = self.in_today_morning, self.total_in.messages
            self.out_yesterday_morning, self.out_today_morning = self.out_today_morning, self.total_out.messages

    def _tick(self) -> None:
        self._timer = self._clock.call_later(SAMPLE_INTERVAL_S, self._tick)
        self.sample()

    def _sum_up(self) -> None:
        """Bring the totals up to the topics' counters."""
        for series in (*self._topics.values(), self._lost_topic):
            self._take(series)

    def _take(self, series: Series) -> None:
        messages, size_bytes, merged = series.take_new()
        if messages:
            self.total_in.messages += messages
            self.total_in.size_bytes += size_bytes
            self.total_in.merged += merged
            self.message_sizes[bisect_left(MESSAGE_SIZES, size_bytes // messages)] += messages

    def _now(self) -> tuple[int, int, int, int]:
        return self.total_in.messages, self.total_out.messages, self.gets_missed, self.total_out.size_bytes

    # -- questions ---------------------------------------------------------------------------------------------------

    def put_rates(self) -> Rates:
        """Messages stored per second."""
        return self._rates(0)

    def get_rates(self) -> Rates:
        """Messages given to consumers per second."""
        return self._rates(1)

    def missed_rates(self) -> Rates:
        """Pulls that found nothing, per second."""
        return self._rates(2)

    def byte_rates(self) -> Rates:
        """Bytes given to consumers per second."""
        return self._rates(3)

    def topic_rate(self, topic: str) -> float:
        """Messages per second that came into a topic, over the last minute."""
        found = self._topics.get(topic)
        return found.minute(self._clock.time_ms()).messages_per_second if found is not None else 0.0

    def group_rate(self, topic: str, group: str) -> float:
        """Messages per second that a group took from a topic, over the last minute."""
        found = self._groups.get((topic, group))
        return found.out.minute(self._clock.time_ms()).messages_per_second if found is not None else 0.0

    def named(self, name: str, key: str) -> tuple[Series, bool] | None:
        """What `VIEW_BROKER_STATS_DATA` calls `name` and `key`: the counter, and whether its bytes are meant; None
        when unknown.

        Keys are a topic, `topic@group`, or the cluster's name for the broker's own counters.
        """
        what, _, unit = name.rpartition("_")
        if unit not in ("NUMS", "SIZE"):
            return None
        found: Series | None = None
        if what == "TOPIC_PUT":
            found = self._topics.get(key)
        elif what == "BROKER_PUT":
            self._sum_up()
            found = self.total_in
        elif what == "BROKER_GET":
            found = self.total_out
        else:
            topic, _, group = key.rpartition("@")
            counters = self._groups.get((topic, group))
            if counters is not None and what == "GROUP_GET":
                found = counters.out
            elif counters is not None and what == "SNDBCK_PUT":
                found = counters.sent_back
        return None if found is None else (found, unit == "SIZE")

    def snapshot(self) -> StatisticsSnapshot:
        """All numbers as they are now."""
        self._sum_up()
        totals = Totals(
            self.total_in.messages,
            self.total_in.size_bytes,
            self.total_in.calls,
            self.puts_failed,
            self.total_out.messages,
            self.total_out.size_bytes,
            self.total_out.calls,
            self.gets_missed,
            self.total_sent_back.messages,
            self.to_dead_letter,
            tuple(self.message_sizes),
        )
        topics = [TopicNumbers(name, each.messages, each.size_bytes) for name, each in self._topics.items()]
        groups = [
            GroupNumbers(
                topic, group, each.out.messages, each.out.size_bytes, each.sent_back.messages, each.to_dead_letter
            )
            for (topic, group), each in self._groups.items()
        ]
        return StatisticsSnapshot(totals, topics, groups)

    def forget_topic(self, topic: str) -> None:
        """The topic was deleted."""
        series = self._topics.pop(topic, None)
        if series is not None:
            self._take(series)
        for key in [key for key in self._groups if key[0] == topic]:
            del self._groups[key]

    def forget_group(self, group: str) -> None:
        """The group was deleted."""
        for key in [key for key in self._groups if key[1] == group]:
            del self._groups[key]

    def _rates(self, which: int) -> Rates:
        now_ms = self._clock.time_ms()
        self._sum_up()
        value = self._now()[which]
        ten_seconds, minute, ten_minutes = (
            self._rate(which, value, now_ms, window_ms) for window_ms in (10_000, 60_000, 600_000)
        )
        return Rates(ten_seconds, minute, ten_minutes)

    def _rate(self, which: int, value: int, now_ms: int, window_ms: int) -> float:
        begin = self._recent[0]
        for sample in self._recent:
            if sample[0] > now_ms - window_ms:
                break
            begin = sample
        return (value - begin[which + 1]) * 1000 / max(now_ms - begin[0], 1)


def _local_day(time_ms: int) -> date:
    return date.fromtimestamp(time_ms / 1000)
