"""The journal: one door to the log and the views."""

import errno

import pytest

from pocketmq.model.config import TopicConfig
from pocketmq.model.errors import StoreError, StoreFullError
from pocketmq.model.names import JOURNAL_TOPIC
from pocketmq.views.journal import Cursor, CursorReset, CursorsCommitted, TopicPut, decode_entries
from pocketmq.wire.record import decode_records


def journaled(world) -> list:
    log = world.broker.log
    queue = log.queue(JOURNAL_TOPIC, 0)
    found = log.read(queue, 0, 1000, 1 << 30)
    return [entry for part in found.records for record in decode_records(part) for entry in decode_entries(record.body)]


def put(name: str) -> TopicPut:
    return TopicPut(TopicConfig(topic_name=name), 1)


async def test_what_is_written_is_in_the_views_and_in_the_log(world) -> None:
    await world.start()
    world.broker.journal.write([put("a"), put("b")])
    assert "a" in world.broker.topics
    assert journaled(world)[-2:] == [put("a"), put("b")]


async def test_listeners_hear_of_entries_that_are_in_the_views_already(world) -> None:
    await world.start()
    heard = []
    world.broker.journal.listeners.append(lambda entry: heard.append((entry, "a" in world.broker.topics)))
    world.broker.journal.write([put("a")])
    assert heard == [(put("a"), True)]


async def test_what_the_log_does_not_take_is_not_in_the_views_either(world) -> None:
    await world.start()
    world.disk.fail("write", path="commitlog", error=errno.ENOSPC)
    with pytest.raises(StoreFullError):
        world.broker.journal.write([put("a")])
    assert "a" not in world.broker.topics
    world.broker.journal.write([put("a")])
    assert "a" in world.broker.topics


async def test_a_durable_write_returns_when_the_disk_has_it(world) -> None:
    await world.start(store__flush_interval_s=1000.0)
    log = world.broker.log
    await world.broker.journal.write_durable([put("a")])
    assert log.flusher.durable_position == log.written_position


async def test_a_durable_write_says_when_the_disk_does_not_confirm_it(world) -> None:
    await world.start()
    world.disk.fail("sync", path="commitlog")
    with pytest.raises(StoreError, match="did not confirm") as caught:
        await world.broker.journal.write_durable([put("a")])
    assert caught.value.code == 10


async def test_commits_are_seen_at_once_and_gathered_into_one_record(world) -> None:
    await world.start()
    journal = world.broker.journal
    before = len(journaled(world))
    for offset in range(1, 100):
        assert journal.commit_later("billing", "orders", offset % 3, offset)
    assert world.broker.cursors.get("billing", "orders", 0) == 99
    assert len(journaled(world)) == before
    await world.clock.sleep(1.01)
    (entry,) = journaled(world)[before:]
    assert isinstance(entry, CursorsCommitted)
    assert sorted(cursor.offset for cursor in entry.cursors) == [97, 98, 99]
    await world.clock.sleep(10)
    assert len(journaled(world)) == before + 1


async def test_a_commit_that_changes_nothing_is_not_written(world) -> None:
    await world.start()
    journal = world.broker.journal
    journal.commit_later("billing", "orders", 0, 5)
    await world.clock.sleep(2)
    before = len(journaled(world))
    assert not journal.commit_later("billing", "orders", 0, 5)
    assert not journal.commit_later("billing", "orders", 0, 4)
    await world.clock.sleep(2)
    assert len(journaled(world)) == before


async def test_a_reset_wins_over_a_commit_that_was_not_written_yet(world) -> None:
    await world.start()
    journal = world.broker.journal
    journal.commit_later("billing", "orders", 0, 100)
    journal.write([CursorReset(Cursor("billing", "orders", 0, 50))])
    await world.clock.sleep(2)
    await world.crash()
    assert world.broker.cursors.get("billing", "orders", 0) == 50


async def test_commits_wait_while_the_disk_is_full(world) -> None:
    await world.start()
    world.disk.fail("write", path="commitlog", times=3, error=errno.ENOSPC)
    world.broker.journal.commit_later("billing", "orders", 0, 100)
    await world.clock.sleep(10)
    await world.crash()
    assert world.broker.cursors.get("billing", "orders", 0) == 100


async def test_many_commits_are_split_over_several_records(world, monkeypatch) -> None:
    monkeypatch.setattr("pocketmq.broker.journal.ENTRIES_PER_RECORD_MAX", 10)
    await world.start()
    for number in range(25):
        world.broker.journal.commit_later(f"group-{number}", "orders", 0, 1)
    await world.clock.sleep(2)
    sizes = [len(entry.cursors) for entry in journaled(world) if isinstance(entry, CursorsCommitted)]
    assert sizes == [10, 10, 5]
