"""Queue locks: one owner per queue and group, for as long as it renews."""

import pytest

from pocketmq.broker.locks import QueueLocks
from pocketmq.model.message import MessageQueue

FIRST = MessageQueue("orders", "broker-a", 0)
SECOND = MessageQueue("orders", "broker-a", 1)


@pytest.fixture
def locks() -> QueueLocks:
    return QueueLocks(60.0)


def test_a_free_queue_goes_to_whoever_asks(locks: QueueLocks) -> None:
    assert locks.lock("g", "one", [FIRST, SECOND], 0.0) == [FIRST, SECOND]
    assert locks.owner("g", FIRST, 0.0) == "one"


def test_a_held_queue_is_left_out_of_the_answer(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    assert locks.lock("g", "two", [FIRST, SECOND], 59.0) == [SECOND]


def test_groups_do_not_see_each_other(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    assert locks.lock("other", "two", [FIRST], 0.0) == [FIRST]


def test_a_lock_expires_sixty_seconds_after_it_was_last_taken(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    locks.lock("g", "one", [FIRST], 50.0)
    assert locks.lock("g", "two", [FIRST], 110.0) == []
    assert locks.owner("g", FIRST, 110.1) is None
    assert locks.lock("g", "two", [FIRST], 110.1) == [FIRST]


def test_only_the_owner_gives_a_lock_back(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    assert locks.unlock("g", "two", [FIRST]).queues == 0
    assert locks.owner("g", FIRST, 1.0) == "one"
    assert locks.unlock("g", "one", [FIRST, SECOND]).queues == 1
    assert locks.owner("g", FIRST, 1.0) is None
    assert len(locks) == 0


def test_a_group_consumes_in_order_while_it_holds_an_unexpired_lock(locks: QueueLocks) -> None:
    assert not locks.group_holds_locks("g", 0.0)
    locks.lock("g", "one", [FIRST], 0.0)
    assert locks.group_holds_locks("g", 60.0)
    assert not locks.group_holds_locks("g", 60.1)


def test_expired_locks_take_no_room(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    locks.lock("g", "one", [SECOND], 30.0)
    assert locks.expire(61.0) == 1
    assert len(locks) == 1
    assert locks.owner("g", SECOND, 61.0) == "one"


def test_nothing_is_granted_beyond_the_limit(locks: QueueLocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.locks.LOCKS_MAX", 1)
    assert locks.lock("g", "one", [FIRST, SECOND], 0.0) == [FIRST]
    assert locks.lock("h", "one", [FIRST], 0.0) == []
    assert locks.lock("g", "one", [FIRST], 0.0) == [FIRST]


def test_who_was_refused_is_named_when_the_queue_is_free(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST, SECOND], 0.0)
    locks.lock("g", "two", [FIRST], 1.0)
    locks.lock("g", "three", [SECOND], 1.0)
    assert locks.unlock("g", "one", [FIRST]) == (1, {"two"})
    assert locks.unlock_all("g", "one") == (1, {"three"})


def test_who_gives_up_waiting_is_not_named(locks: QueueLocks) -> None:
    locks.lock("g", "one", [FIRST], 0.0)
    locks.lock("g", "two", [FIRST], 1.0)
    assert locks.unlock("g", "two", [FIRST]) == (0, set())
    assert locks.unlock("g", "one", [FIRST]) == (1, set())


def test_only_so_many_are_remembered_as_waiting(locks: QueueLocks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.locks.WAITING_MAX", 2)
    locks.lock("g", "one", [FIRST], 0.0)
    for client_id in ("two", "three", "four"):
        locks.lock("g", client_id, [FIRST], 1.0)
    assert locks.unlock("g", "one", [FIRST]).waiting == {"two", "three"}
