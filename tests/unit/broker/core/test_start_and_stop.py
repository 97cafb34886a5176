"""Starting and stopping: what a broker finds again, what it makes anew, and who may open a data directory."""

import asyncio
import logging

import pytest

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.model.errors import SettingError, StoreCorruptError, StoreLockedError
from pocketmq.model.names import JOURNAL_TOPIC
from pocketmq.views.journal import Cursor, CursorsCommitted

COMMIT, SUBSCRIPTION = 1, 4


async def test_a_new_broker_has_the_system_topics(world) -> None:
    broker = await world.start()
    queues = {config.topic_name: (config.write_queue_nums, config.perm) for config in broker.topics}
    assert queues["TBW102"] == (8, 7)
    assert queues["SCHEDULE_TOPIC_XXXX"] == (18, 6)
    assert queues["BenchmarkTest"] == (1024, 6)
    assert queues["DefaultCluster"] == (16, 7)
    assert queues["broker-a"] == (1, 7)
    assert queues["DefaultCluster_REPLY_TOPIC"] == (1, 6)
    assert "RMQ_SYS_TRANS_HALF_TOPIC" in queues
    assert JOURNAL_TOPIC not in queues


async def test_both_ports_are_open_and_the_fast_one_is_two_below(world) -> None:
    broker = await world.start()
    assert broker.port == 10911
    assert broker.vip_port == 10909
    peer = await world.connect()
    await peer.send()
    broker.port = broker.vip_port
    fast = await world.connect()
    assert (await fast.send()).code == 0
    assert len(await fast.records()) == 2


async def test_any_free_ports_will_do(world) -> None:
    broker = await world.start(broker__port=0)
    assert broker.port > 0
    assert broker.vip_port > 0
    assert broker.port != broker.vip_port


async def test_everything_is_found_again_after_a_restart(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull(offset=5, flags=SUBSCRIPTION | COMMIT, commit_offset=5)
    await world.broker.topic_service.put(TopicConfig(topic_name="made", read_queue_nums=3, write_queue_nums=3))
    await world.broker.topic_service.put_group(GroupConfig(group_name="billing", retry_max_times=2))
    version = world.broker.topics.data_version
    await world.restart()
    broker = world.broker
    assert broker.topics.get("made").read_queue_nums == 3
    assert broker.topics.data_version == version
    assert broker.groups.get("billing").retry_max_times == 2
    assert broker.cursors.get("consumers", "orders", 0) == 5
    peer = await world.connect()
    assert len(await peer.records()) == 5
    assert (await peer.send()).ext()["queueOffset"] == "5"


async def test_everything_is_found_again_after_a_crash_commits_within_their_lag(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull(offset=3, flags=SUBSCRIPTION | COMMIT, commit_offset=3)
    await world.clock.sleep(1.1)
    await peer.pull(offset=4, flags=SUBSCRIPTION | COMMIT, commit_offset=4)
    await world.crash()
    assert world.broker.cursors.get("consumers", "orders", 0) == 3
    assert "orders" in world.broker.topics
    peer = await world.connect()
    assert len(await peer.records()) == 5


async def test_after_a_snapshot_only_the_rest_is_replayed(world, peer, monkeypatch) -> None:
    for _ in range(20):
        await peer.send_batch(bodies=[b"x"])
        await peer.pull(offset=1, flags=SUBSCRIPTION | COMMIT, commit_offset=1)
    await world.clock.sleep(61)
    snapshot = world.broker.snapshots.position
    assert snapshot > 0
    world.broker.journal.write([CursorsCommitted([Cursor("late", "orders", 0, 9)])])
    replayed = []
    original = type(world.broker.journal).replay
    monkeypatch.setattr(
        type(world.broker.journal), "replay", lambda self, body: (replayed.append(1), original(self, body))
    )
    await world.crash()
    assert len(replayed) == 1
    assert world.broker.cursors.get("late", "orders", 0) == 9
    assert world.broker.cursors.get("consumers", "orders", 0) == 1


async def test_without_changes_no_snapshot_is_written(world, peer) -> None:
    await peer.send()
    await world.clock.sleep(61)
    before = world.disk.operation_count
    await world.clock.sleep(300)
    assert world.disk.operation_count == before


async def test_a_damaged_snapshot_costs_a_longer_replay_and_nothing_else(world, peer, caplog) -> None:
    await peer.send()
    await world.broker.topic_service.put_group(GroupConfig(group_name="billing", retry_max_times=2))
    await world.stop()
    for name in world.disk.list_folder("/data/views"):
        world.disk.rot(f"/data/views/{name}", 40)
    await world.start()
    assert world.broker.groups.get("billing").retry_max_times == 2
    assert "orders" in world.broker.topics


async def test_a_snapshot_that_is_whole_but_not_understood_is_passed_over(world, peer, caplog) -> None:
    await peer.send()
    position = world.broker.log.written_position
    await world.stop()
    from pocketmq.log.snapshots import SnapshotStore

    SnapshotStore(world.disk, "/data/views").save("broker", position + 10_000, b"something else")
    await world.start()
    assert "orders" in world.broker.topics
    assert "rebuilt" in caplog.text


async def test_a_journal_record_of_a_newer_version_is_not_skipped_in_silence(world, peer, caplog) -> None:
    log = world.broker.log
    queue = log.ensure_queue(JOURNAL_TOPIC, 0)
    log.append(queue, b"\x91\x92\xa9from-2099\x01", b"", 0, 0, 1, bytes(8), bytes(8))
    log.write()
    with pytest.raises(StoreCorruptError, match="newer version"):
        await world.crash()
    world.disk._locks.clear()
    await world.start(store__accept_damage=True)
    assert "left out" in caplog.text


async def test_a_second_broker_on_the_same_directory_is_refused(world, peer) -> None:
    from pocketmq.broker.broker import Broker

    second = Broker(world.broker.settings, clock=world.clock, disk=world.disk, network=world.network)
    with pytest.raises(StoreLockedError, match="in use by another process"):
        await second.start()
    assert (await peer.send()).code == 0


async def test_a_start_that_fails_leaves_nothing_open(world, peer) -> None:
    from pocketmq.broker.broker import Broker

    settings = type(world.broker.settings)()
    settings.store.data_dir = "/other"
    settings.broker.port = world.broker.port
    second = Broker(settings, clock=world.clock, disk=world.disk, network=world.network)
    with pytest.raises(OSError):
        await second.start()
    settings.broker.port = 20_911
    third = Broker(settings, clock=world.clock, disk=world.disk, network=world.network)
    await third.start()
    await third.stop()
    await third.stop()


async def test_delay_levels_that_cannot_be_read_are_refused(world) -> None:
    with pytest.raises(SettingError, match="soon"):
        await world.start(broker__delay_levels="1s soon")


async def test_a_stopped_broker_leaves_no_task_and_no_timer_behind(world, peer) -> None:
    await peer.send()
    await world.stop()
    await asyncio.sleep(0)
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert others == []


async def test_the_views_name_their_topics_and_cursors_when_a_group_or_topic_goes(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 3)
    await peer.pull(offset=3, flags=SUBSCRIPTION | COMMIT, commit_offset=3)
    service = world.broker.topic_service
    await service.delete_group("consumers", drop_cursors=True)
    assert "consumers" not in world.broker.groups
    assert world.broker.cursors.get("consumers", "orders", 0) is None
    await service.delete("orders")
    assert (await peer.pull()).code == 17
    await world.restart()
    assert "orders" not in world.broker.topics


async def test_a_topic_that_was_deleted_and_made_again_starts_empty(world, peer) -> None:
    await peer.send_batch(bodies=[b"old"] * 3)
    await world.broker.topic_service.delete("orders")
    answer = await peer.send(body=b"new")
    assert answer.code == 0
    offset = int(answer.ext()["queueOffset"])
    assert [record.body for record in await peer.records(offset=offset)] == [b"new"]
    assert (await peer.pull(offset=0)).ext()["nextBeginOffset"] in (str(offset), str(offset + 1))


async def test_a_topic_with_messages_but_without_settings_is_inferred(world, peer, caplog) -> None:
    await peer.send(queue_id=2)
    log, journal = world.broker.log, world.broker.journal
    with caplog.at_level(logging.WARNING):
        queue = log.ensure_queue("orphan", 4)
        log.append(queue, b"x", b"", 0, 0, 1, bytes(8), bytes(8))
        log.write()
        await world.restart()
    assert journal is not world.broker.journal
    assert world.broker.topics.get("orphan").read_queue_nums == 5
    assert "orphan" in caplog.text


async def test_segments_that_go_leave_their_timers_and_settings_behind(world) -> None:
    await world.start(store__segment_bytes=64 * 1024, store__retention_hours=1.0)
    peer = await world.connect()
    await peer.send(body=b"late", properties={"UNIQ_KEY": "k", "TIMER_DELAY_SEC": str(10 * 3600)})
    for _ in range(100):
        await peer.send(body=b"x" * 2000)
    await world.clock.sleep(3 * 3600)
    await peer.send(body=b"y" * 2000)
    await world.clock.sleep(3600)
    assert world.broker.log.min_position > 0
    assert len(world.broker.timers) == 1
    await world.crash()
    peer = await world.connect()
    assert "orders" in world.broker.topics
    assert len(world.broker.timers) == 1
    await world.clock.sleep(7 * 3600)
    start = world.broker.log.min_offset(world.broker.log.queue("orders", 0))
    assert b"late" in [record.body for record in await peer.records(offset=max(start, 100))]


async def test_a_log_with_an_unfinished_end_says_where_it_was_cut(world, caplog: pytest.LogCaptureFixture) -> None:
    broker = await world.start()
    peer = await world.connect()
    await peer.send()
    end = broker.log.written_position
    await world.stop()
    file = world.disk.open("/data/commitlog/00000000000000000000")
    file.write_at(end, b"torn")
    file.close()
    with caplog.at_level(logging.INFO):
        await world.start()
    (line,) = [line for line in caplog.messages if "not completely written" in line]
    assert f"position {end} " in line
