"""Cursors go forwards by commits, and backwards only when somebody means it."""

from pocketmq.views.cursors import Cursors
from pocketmq.views.journal import (
    Cursor,
    CursorReset,
    CursorsCommitted,
    GroupOffsetsDropped,
    ResetTaken,
    TopicDelete,
)


def committed(*cursors: Cursor) -> CursorsCommitted:
    return CursorsCommitted(list(cursors))


def test_a_group_that_never_committed_has_no_cursor() -> None:
    assert Cursors().get("billing", "orders", 0) is None


def test_a_commit_moves_a_cursor_forwards() -> None:
    cursors = Cursors()
    assert cursors.commit("billing", "orders", 0, 5)
    assert cursors.commit("billing", "orders", 0, 9)
    assert cursors.get("billing", "orders", 0) == 9


def test_a_commit_below_the_cursor_is_ignored() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 0, 9)
    assert not cursors.commit("billing", "orders", 0, 5)
    assert not cursors.commit("billing", "orders", 0, 9)
    cursors.apply(committed(Cursor("billing", "orders", 0, 3)))
    assert cursors.get("billing", "orders", 0) == 9


def test_a_first_commit_of_zero_counts() -> None:
    cursors = Cursors()
    assert cursors.commit("billing", "orders", 0, 0)
    assert cursors.get("billing", "orders", 0) == 0


def test_a_reset_moves_a_cursor_backwards() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 0, 9)
    cursors.apply(CursorReset(Cursor("billing", "orders", 0, 2)))
    assert cursors.get("billing", "orders", 0) == 2
    assert cursors.commit("billing", "orders", 0, 3)


def test_commits_are_ignored_while_an_announced_reset_waits_for_its_consumer() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 0, 9)
    cursors.apply(CursorReset(Cursor("billing", "orders", 0, 2), announce=True))
    assert cursors.pending_reset("billing", "orders", 0) == 2
    assert not cursors.commit("billing", "orders", 0, 10)
    cursors.apply(ResetTaken("billing", "orders", 0))
    assert cursors.pending_reset("billing", "orders", 0) is None
    assert cursors.commit("billing", "orders", 0, 3)


def test_an_announced_reset_of_one_queue_leaves_the_others_alone() -> None:
    cursors = Cursors()
    cursors.apply(CursorReset(Cursor("billing", "orders", 0, 2), announce=True))
    assert cursors.commit("billing", "orders", 1, 5)
    assert cursors.pending_reset("billing", "orders", 1) is None


def test_a_later_reset_that_is_not_announced_ends_the_one_that_was() -> None:
    cursors = Cursors()
    cursors.apply(CursorReset(Cursor("billing", "orders", 0, 2), announce=True))
    cursors.apply(CursorReset(Cursor("billing", "orders", 0, 4)))
    assert cursors.pending_reset("billing", "orders", 0) is None
    assert cursors.get("billing", "orders", 0) == 4


def test_dropping_a_group_forgets_all_that_it_committed() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 0, 9)
    cursors.commit("shipping", "orders", 0, 4)
    cursors.apply(CursorReset(Cursor("billing", "returns", 0, 2), announce=True))
    cursors.apply(GroupOffsetsDropped("billing"))
    assert cursors.groups() == ["shipping"]
    assert cursors.pending_reset("billing", "returns", 0) is None


def test_deleting_a_topic_forgets_the_cursors_in_it() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 0, 9)
    cursors.commit("billing", "returns", 0, 4)
    cursors.apply(TopicDelete("orders", 1))
    assert cursors.topics_of("billing") == ["returns"]
    assert cursors.get("billing", "orders", 0) is None


def test_cursors_can_be_listed_for_people() -> None:
    cursors = Cursors()
    cursors.commit("shipping", "orders", 1, 4)
    cursors.commit("shipping", "orders", 0, 3)
    cursors.commit("billing", "orders", 0, 9)
    assert list(cursors.listing()) == [
        Cursor("billing", "orders", 0, 9),
        Cursor("shipping", "orders", 0, 3),
        Cursor("shipping", "orders", 1, 4),
    ]
    assert cursors.groups_of("orders") == ["billing", "shipping"]
    assert cursors.queues_of("shipping", "orders") == {0: 3, 1: 4}
    assert len(cursors) == 3


def test_restored_cursors_are_those_that_were_stored() -> None:
    cursors = Cursors()
    cursors.commit("billing", "orders", 7, 9)
    cursors.apply(CursorReset(Cursor("shipping", "orders", 0, 2), announce=True))
    restored = Cursors()
    restored.restore(cursors.snapshot())
    assert list(restored.listing()) == list(cursors.listing())
    assert restored.pending_reset("shipping", "orders", 0) == 2
