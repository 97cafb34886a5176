"""Whatever is folded in: a stored state and the rest of the log give the same as the whole log; cursors never fall."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.views.cursors import Cursors
from pocketmq.views.groups import GroupTable
from pocketmq.views.journal import (
    Cursor,
    CursorReset,
    CursorsCommitted,
    Entry,
    GroupDelete,
    GroupOffsetsDropped,
    GroupPut,
    ResetTaken,
    TimersFired,
    TopicDelete,
    TopicPut,
    decode_entries,
    encode_entries,
)
from pocketmq.views.timers import BUCKET_MS, Timers
from pocketmq.views.topics import TopicTable

names = st.sampled_from(["a", "b", "c"])
queue_ids = st.integers(0, 2)
offsets = st.integers(0, 20)
times = st.integers(0, 1000)
cursors = st.builds(Cursor, names, names, queue_ids, offsets)
entries: st.SearchStrategy[Entry] = st.one_of(
    st.builds(TopicPut, st.builds(TopicConfig, topic_name=names, write_queue_nums=queue_ids), times),
    st.builds(TopicDelete, names, times),
    st.builds(GroupPut, st.builds(GroupConfig, group_name=names, retry_max_times=queue_ids), times),
    st.builds(GroupDelete, names, times),
    st.builds(CursorsCommitted, st.lists(cursors, max_size=4)),
    st.builds(CursorReset, cursors, st.booleans()),
    st.builds(ResetTaken, names, names, queue_ids),
    st.builds(GroupOffsetsDropped, names),
)


class AllViews:
    """The views of a broker, together."""

    def __init__(self) -> None:
        self.topics, self.groups, self.cursors = TopicTable(), GroupTable(), Cursors()
        self.parts = (self.topics, self.groups, self.cursors)

    def fold(self, log: list[Entry]) -> "AllViews":
        for entry in log:
            for view in self.parts:
                view.apply(entry)
        return self

    def reborn(self) -> "AllViews":
        other = AllViews()
        for mine, its in zip(self.parts, other.parts, strict=True):
            its.restore(mine.snapshot())
        return other

    def content(self) -> object:
        pending = {
            (group, topic, queue_id): self.cursors.pending_reset(group, topic, queue_id)
            for group in "abc"
            for topic in "abc"
            for queue_id in range(3)
        }
        return (
            sorted(self.topics, key=lambda config: config.topic_name),
            self.topics.data_version,
            sorted(self.groups, key=lambda config: config.group_name),
            self.groups.data_version,
            list(self.cursors.listing()),
            pending,
        )


@settings(max_examples=50)
@given(st.lists(entries, max_size=40), st.integers(0, 40))
def test_a_stored_state_and_the_rest_of_the_log_give_the_whole(log: list[Entry], stored_after: int) -> None:
    whole = AllViews().fold(log)
    resumed = AllViews().fold(log[:stored_after]).reborn().fold(log[stored_after:])
    assert resumed.content() == whole.content()


@settings(max_examples=50)
@given(st.lists(entries, max_size=30))
def test_entries_survive_the_log(log: list[Entry]) -> None:
    assert decode_entries(encode_entries(log)) == log


@settings(max_examples=50)
@given(st.lists(entries, max_size=40), st.integers(0, 40))
def test_folding_recent_commits_in_twice_changes_nothing(log: list[Entry], position: int) -> None:
    """Commits are visible before they are in the log, so a stored state may hold some that are replayed again."""
    commits = [entry for entry in log[position:] if isinstance(entry, CursorsCommitted)]
    once = AllViews().fold(log[:position]).fold(commits)
    twice = AllViews().fold(log[:position]).fold(commits).reborn().fold(commits)
    assert once.content() == twice.content()


@settings(max_examples=50)
@given(st.lists(entries, max_size=60))
def test_a_cursor_falls_only_by_a_reset_or_when_its_topic_or_group_goes(log: list[Entry]) -> None:
    views = Cursors()
    for entry in log:
        before = {(c.group, c.topic, c.queue_id): c.offset for c in views.listing()}
        views.apply(entry)
        after = {(c.group, c.topic, c.queue_id): c.offset for c in views.listing()}
        if isinstance(entry, CursorReset | GroupOffsetsDropped | TopicDelete):
            continue
        assert all(after[key] >= offset for key, offset in before.items())


class TimerModel:
    """Timers the slow and obvious way."""

    def __init__(self) -> None:
        self.pending: dict[int, int] = {}


timer_steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 6 * BUCKET_MS)),
    st.tuples(st.just("fire"), st.integers(0, 10)),
    st.tuples(st.just("take"), st.integers(1, 5)),
    st.tuples(st.just("pass"), st.integers(0, 2 * BUCKET_MS)),
    st.tuples(st.just("store"), st.just(0)),
)


@settings(max_examples=100)
@given(st.lists(timer_steps, max_size=60))
def test_timers_agree_with_a_plain_list(steps: list[tuple[str, int]]) -> None:
    timers, model = Timers(), TimerModel()
    now, position = 0, 0
    for step, number in steps:
        if step == "add":
            position += 100
            timers.add(now + number - BUCKET_MS, position)
            model.pending[position] = now + number - BUCKET_MS
        elif step == "fire" and model.pending:
            fired = sorted(model.pending)[number % len(model.pending)]
            timers.apply(TimersFired([fired]))
            del model.pending[fired]
        elif step == "take":
            taken = timers.take_due(now, number)
            expected = sorted(due for due in model.pending.values() if due <= now)[:number]
            assert [due for due, _ in taken] == expected
            assert all(model.pending[where] == due for due, where in taken)
            if number % 2:
                timers.put_back(taken)
            else:
                timers.apply(TimersFired([where for _, where in taken]))
                for _, where in taken:
                    del model.pending[where]
        elif step == "pass":
            now += number
        else:
            stored = timers.snapshot()
            timers = Timers()
            timers.restore(stored)
        assert len(timers) == len(model.pending)
        assert sorted(timers.pending()) == sorted((due, where) for where, due in model.pending.items())
        due = timers.next_due()
        assert (due is None) == (not model.pending)
        if due is not None:
            assert due <= min(model.pending.values())
