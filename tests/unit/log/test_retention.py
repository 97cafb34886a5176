"""Old segments go, early when the disk fills up, and never before what lives in them was carried forward."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.log.log import Log
from pocketmq.log.reading import ReadStatus
from pocketmq.log.retention import Alarm, AlarmKind
from pocketmq.model.errors import StoreFullError
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk

OpenLog = Callable[..., Any]
HOUR_S = 3600.0


@pytest.fixture
def disk(clock: VirtualClock) -> Disk:
    return SimulatedDisk(1, clock=clock)


async def fill(log: Log, tools: Any, clock: VirtualClock, segments: int) -> None:
    """Records for so many segments, one minute apart; the quiet queue has one in the first."""
    if log.queue("quiet", 0) is None:
        tools.send(log, "quiet", 0, b"old")
    end = log.max_position + segments * 8192
    while log.max_position < end:
        tools.send(log, "orders", 0, b"x" * 1000)
        await clock.sleep(60)


async def test_a_segment_goes_when_its_newest_record_is_too_old(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings
) -> None:
    settings.retention_hours = 1.0
    log = await open_log()
    await fill(log, tools, clock, 3)
    assert log.min_position == 0
    await clock.sleep(2 * HOUR_S)
    assert len(log.segments) == 1
    orders, quiet = log.queue("orders", 0), log.queue("quiet", 0)
    assert log.min_offset(orders) == log.max_offset(orders) - len(tools.bodies(log, "orders")) > 15
    assert (log.min_offset(quiet), log.max_offset(quiet)) == (1, 1)
    assert log.read(quiet, 0, 32, 1000).status is ReadStatus.TOO_SMALL
    assert log.read(orders, 0, 32, 1000).next_offset == log.min_offset(orders)
    assert log.offset_by_time(orders, 0) == log.min_offset(orders)
    assert all(file.start >= log.min_position for file in log.runs.files)
    names = [name for name in log.disk.list_folder(log.runs.folder) if name.endswith(".run")]
    assert all(int(name[:20]) >= log.min_position for name in names)


async def test_it_is_still_gone_after_reopening(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings
) -> None:
    settings.retention_hours = 1.0
    log = await open_log()
    await fill(log, tools, clock, 3)
    await clock.sleep(2 * HOUR_S)
    before = {queue.topic: (queue.min_offset, queue.next_offset) for queue in log.queues}
    await log.close()
    again = await open_log()
    assert {queue.topic: (queue.min_offset, queue.next_offset) for queue in again.queues} == before
    tools.send(again, "quiet", 0, b"new")
    assert tools.bodies(again, "quiet") == [b"new"]


async def test_the_segment_being_written_never_goes(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings
) -> None:
    settings.retention_hours = 0.0
    log = await open_log()
    tools.send(log, body=b"kept")
    await clock.sleep(100 * HOUR_S)
    assert tools.bodies(log) == [b"kept"]


@pytest.mark.parametrize(("hours", "deleted"), [("*", True), ("04", None), ("25", False)])
async def test_deletion_by_age_keeps_to_its_hours(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings, hours: str, deleted: bool | None
) -> None:
    settings.retention_hours = 0.5
    settings.delete_when = hours
    log = await open_log()
    await fill(log, tools, clock, 2)
    await clock.sleep(1 * HOUR_S)
    if deleted is not None:
        assert (log.min_position > 0) == deleted
    await clock.sleep(24 * HOUR_S)
    assert (log.min_position > 0) == (deleted is not False)


async def test_what_still_lives_in_a_segment_is_carried_forward_first(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings
) -> None:
    settings.retention_hours = 1.0
    log = await open_log()
    seen: list[tuple[int, int]] = []

    async def carry(start: int, end: int) -> None:
        assert log.min_position == start
        seen.append((start, end))
        if len(seen) == 1:
            raise RuntimeError("not yet")
        tools.send(log, "timers", 0, b"carried")
        await log.wait_durable(log.max_position, force=True)

    log.retention.before_delete = carry
    await fill(log, tools, clock, 2)
    await clock.sleep(3 * HOUR_S)
    assert seen[:3] == [(0, 8192), (0, 8192), (8192, 16384)]
    assert log.min_position >= 16384
    assert tools.bodies(log, "timers")[-1] == b"carried"


async def test_a_filling_disk_raises_the_alarm_and_deletes_before_it_refuses(
    open_log: OpenLog, tools: Any, clock: VirtualClock, disk: SimulatedDisk
) -> None:
    log = await open_log()
    alarms: list[Alarm] = []
    log.retention.on_alarm = alarms.append
    await fill(log, tools, clock, 6)
    disk.capacity_bytes = int(disk.used_bytes / 0.80)
    await clock.sleep(11)
    assert 0 < log.min_position <= 2 * 8192, "above the first mark, one segment per check"
    disk.capacity_bytes = int(disk.used_bytes / 0.88)
    await clock.sleep(11)
    assert [alarm.kind for alarm in alarms] == [AlarmKind.DISK_FILLING, AlarmKind.DISK_FINE]
    assert log.retention.used_percent < 85
    tools.send(log)


async def test_the_lower_of_the_first_two_marks_counts(
    open_log: OpenLog, tools: Any, clock: VirtualClock, disk: SimulatedDisk, settings: StoreSettings
) -> None:
    settings.disk_used_max = 88
    log = await open_log()
    await fill(log, tools, clock, 6)
    disk.capacity_bytes = int(disk.used_bytes / 0.86)
    await clock.sleep(11)
    assert log.min_position > 0
    assert log.retention.used_percent < 85


async def test_above_the_last_mark_nothing_is_taken_until_there_is_room(
    open_log: OpenLog, tools: Any, clock: VirtualClock, disk: SimulatedDisk
) -> None:
    log = await open_log()
    alarms: list[Alarm] = []
    log.retention.on_alarm = alarms.append
    tools.send(log, body=b"kept")
    await clock.sleep(1)
    disk.capacity_bytes = int(disk.used_bytes / 0.95)
    await clock.sleep(11)
    with pytest.raises(StoreFullError, match="disk_used_refuse") as caught:
        tools.stage(log)
    assert caught.value.code == 14
    assert tools.bodies(log) == [b"kept"]
    disk.capacity_bytes = disk.used_bytes * 10
    await clock.sleep(11)
    tools.send(log, body=b"later")
    assert tools.bodies(log) == [b"kept", b"later"]
    assert [alarm.kind for alarm in alarms] == [AlarmKind.DISK_FULL, AlarmKind.DISK_FINE]


async def test_the_oldest_segment_can_be_deleted_on_request(log: Log, tools: Any, clock: VirtualClock) -> None:
    assert not await log.retention.delete_oldest()
    await fill(log, tools, clock, 2)
    assert await log.retention.delete_oldest()
    assert log.min_position == 8192
