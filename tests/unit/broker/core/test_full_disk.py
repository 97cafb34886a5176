"""A broker whose disk runs full says so without a line for everything that fails, and gets out of it by itself."""

import errno
import logging

import pytest

from pocketmq.model.errors import StoreError

SMALL = {"store__segment_bytes": 64 * 1024, "store__index_stretch_bytes": 16 * 1024}


async def fill(world, peer, bytes_wanted: int) -> None:
    end = world.broker.log.max_position + bytes_wanted
    while world.broker.log.max_position < end:
        await peer.send(body=b"x" * 4000)


async def test_delayed_messages_do_not_keep_a_full_disk_full(world) -> None:
    await world.start(**SMALL)
    peer = await world.connect()
    await peer.send(body=b"late", properties={"UNIQ_KEY": "k", "DELAY": "18"})
    await fill(world, peer, 10 * 64 * 1024)
    world.disk.capacity_bytes = int(world.disk.used_bytes / 0.92)
    await world.clock.sleep(60)
    assert world.broker.log.min_position > 0
    assert (await peer.send()).code == 0
    await world.clock.sleep(2 * 3600)
    queue = world.broker.log.queue("orders", 0)
    assert b"late" in [record.body for record in await peer.records(offset=queue.next_offset - 1)]


async def test_a_segment_stays_while_the_views_cannot_be_stored(world, monkeypatch: pytest.MonkeyPatch) -> None:
    """The journal in it is the only place that says which topics there are."""
    await world.start(**SMALL)
    peer = await world.connect()
    await fill(world, peer, 10 * 64 * 1024)

    async def in_vain(position: int, *, force: bool = False) -> bool:
        return False

    monkeypatch.setattr(world.broker.log, "wait_durable", in_vain)
    with pytest.raises(StoreError):
        await world.broker._before_delete(0, world.broker.log.written_position)


async def test_one_line_tells_of_many_refusals(world, caplog: pytest.LogCaptureFixture) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.fail("write", path="commitlog", times=1000, error=errno.ENOSPC)
    with caplog.at_level(logging.INFO):
        for number in range(100):
            assert (await peer.send()).code == 14
            await peer.pull(group=f"group{number}")
    assert len([line for line in caplog.messages if "refused" in line]) == 1
    assert len([line for line in caplog.messages if "not stored yet" in line]) == 1


async def test_views_that_cannot_be_stored_are_told_in_a_sentence(world, caplog: pytest.LogCaptureFixture) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.fail("write", path="views", times=1000, error=errno.ENOSPC)
    await world.clock.sleep(100)
    (line,) = [line for line in caplog.messages if "views" in line]
    assert "No space left" in line
    assert all(record.exc_info is None for record in caplog.records)


async def test_a_full_disk_raises_an_alarm_and_its_end_is_told(world, caplog: pytest.LogCaptureFixture) -> None:
    await world.start()
    peer = await world.connect()
    await peer.send()
    world.disk.capacity_bytes = int(world.disk.used_bytes / 0.95)
    with caplog.at_level(logging.INFO):
        await world.clock.sleep(15)
        world.disk.capacity_bytes = None
        await world.clock.sleep(15)
    said = [(record.levelname, record.getMessage()) for record in caplog.records if "% full" in record.getMessage()]
    assert said[0][0] == "WARNING" and "no messages are taken" in said[0][1]
    assert said[-1][0] == "INFO"
