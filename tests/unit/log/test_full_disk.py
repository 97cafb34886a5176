"""A disk that is full, or takes no writes, loses nothing that was promised and is forgiven when there is room again."""

import errno
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.log.disk import MemoryDisk
from pocketmq.model.errors import StoreError, StoreFullError
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.disk import SimulatedDisk

OpenLog = Callable[..., Any]


@pytest.fixture
def disk() -> Disk:
    return SimulatedDisk(1)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
async def test_a_failed_write_takes_back_what_was_staged(
    open_log: OpenLog, disk: SimulatedDisk, tools: Any, error: int
) -> None:
    log = await open_log()
    tools.send(log, body=b"kept")
    end = log.max_position
    disk.fail("write", path="commitlog", error=error)
    tools.stage(log, body=b"lost")
    tools.stage(log, "bills", body=b"lost as well")
    with pytest.raises(StoreFullError) as caught:
        log.write()
    assert (caught.value.code, caught.value.retryable) == (14, True)
    assert "2 messages were not stored" in str(caught.value)
    assert log.max_position == log.written_position == end
    assert log.write_failures == 1
    assert tools.bodies(log) == [b"kept"]
    assert tools.bodies(log, "bills") == []
    tools.send(log, body=b"later")
    assert tools.bodies(log) == [b"kept", b"later"]
    await log.close()
    again = await open_log()
    assert tools.bodies(again) == [b"kept", b"later"]
    assert tools.bodies(again, "bills") == [] if again.queue("bills", 0) else True


async def test_a_disk_without_room_refuses_and_recovers_by_itself(
    open_log: OpenLog, disk: SimulatedDisk, tools: Any
) -> None:
    log = await open_log()
    disk.capacity_bytes = disk.used_bytes + 3000
    accepted = 0
    with pytest.raises(StoreFullError):
        for _ in range(100):
            tools.send(log, body=b"x" * 400)
            accepted += 1
    assert len(tools.bodies(log)) == accepted > 2
    disk.capacity_bytes = None
    for _ in range(20):
        tools.send(log, body=b"x" * 400)
    assert len(tools.bodies(log)) == accepted + 20


@pytest.mark.parametrize("failing_write", range(4))
async def test_a_write_that_fills_segments_is_taken_back_whole(
    open_log: OpenLog, disk: SimulatedDisk, tools: Any, failing_write: int
) -> None:
    log = await open_log()
    tools.send(log, body=b"kept")
    end = log.max_position
    disk.fail("write", path=f"commitlog/{8192 * failing_write:020d}")
    for _ in range(40):
        tools.stage(log, body=b"x" * 1000)
    with pytest.raises(StoreFullError):
        log.write()
    assert log.max_position == end
    assert len(log.segments) == 1
    assert bytes(log.segments[0].view[end:]) == bytes(8192 - end)
    for number in range(40):
        tools.stage(log, body=bytes([number]) * 1000)
    log.write()
    expected = [b"kept"] + [bytes([number]) * 1000 for number in range(40)]
    assert tools.bodies(log) == expected
    await log.close()
    again = await open_log()
    assert tools.bodies(again) == expected


async def test_the_writer_hears_of_a_write_that_failed_in_a_readers_hands(
    open_log: OpenLog, disk: SimulatedDisk, tools: Any
) -> None:
    log = await open_log()
    tools.send(log, body=b"kept")
    tools.stage(log, body=b"lost")
    disk.fail("write", path="commitlog")
    assert tools.bodies(log) == [b"kept"]
    with pytest.raises(StoreFullError):
        tools.stage(log, body=b"behind it")
    with pytest.raises(StoreFullError):
        log.write()
    log.write()
    tools.send(log, body=b"later")
    assert tools.bodies(log) == [b"kept", b"later"]


async def test_waiters_are_not_woken_by_a_failed_write(open_log: OpenLog, disk: SimulatedDisk, tools: Any) -> None:
    log = await open_log()
    told: list[Any] = []
    log.on_written = told.append
    log.ensure_queue("orders", 0).waiters = ["somebody"]
    disk.fail("write", path="commitlog")
    tools.stage(log)
    with pytest.raises(StoreFullError):
        log.write()
    log.write()
    assert told == []


async def test_refusals_have_reasons_and_end_one_by_one(open_log: OpenLog, tools: Any) -> None:
    log = await open_log()
    log.refuse("a", StoreFullError("no room"))
    log.refuse("b", StoreError("no disk"))
    with pytest.raises(StoreFullError, match="no room"):
        tools.stage(log)
    log.refuse("a", None)
    with pytest.raises(StoreError, match="no disk"):
        tools.stage(log)
    log.refuse("b", None)
    tools.send(log)
    assert len(tools.bodies(log)) == 1


async def test_a_memory_disk_is_full_at_its_capacity(open_log: OpenLog, settings: StoreSettings, tools: Any) -> None:
    disk = MemoryDisk(capacity_bytes=6000)
    log = await open_log(disk=disk)
    with pytest.raises(StoreFullError):
        for _ in range(100):
            tools.send(log, body=b"x" * 400)
    count = len(tools.bodies(log))
    assert 8 < count < 15
    disk.capacity_bytes = 1 << 20
    tools.send(log)
    assert len(tools.bodies(log)) == count + 1
