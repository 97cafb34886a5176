"""Units move from memory into runs, runs of a full segment become one, and readers notice nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.log.log import Log
from pocketmq.log.queues import NO_UNITS
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.wire.record import decode_record

OpenLog = Callable[..., Any]


async def fill(log: Log, tools: Any, clock: VirtualClock, count: int, *, size: int = 200) -> None:
    """Send records to a busy queue, to three less busy ones, and one to a quiet one at the start."""
    if log.queue("quiet", 0) is None:
        tools.send(log, "quiet", 0, b"first")
    for number in range(count):
        tools.send(log, "busy", 0, b"%d" % number + b"x" * size)
        tools.send(log, "orders", number % 3, b"%d" % number)
        await clock.sleep(0.05)
    await clock.sleep(2)


async def test_units_leave_the_memory_and_can_still_be_read(log: Log, tools: Any, clock: VirtualClock) -> None:
    await fill(log, tools, clock, 100)
    assert log.index.covered > log.max_position - 2 * 4096
    assert len(log.queue("busy", 0).units) < 30 * 20  # type: ignore[union-attr]
    assert log.queue("quiet", 0).units is NO_UNITS  # type: ignore[union-attr]
    assert [body.rstrip(b"x") for body in tools.bodies(log, "busy")] == [b"%d" % number for number in range(100)]
    assert tools.bodies(log, "quiet") == [b"first"]
    assert tools.bodies(log, "orders", 1) == [b"%d" % number for number in range(1, 100, 3)]


async def test_each_full_segment_has_one_run(log: Log, tools: Any, clock: VirtualClock) -> None:
    await fill(log, tools, clock, 100)
    full = [(segment.start, segment.end) for segment in list(log.segments)[:-1]]
    assert [(file.start, file.end) for file in log.runs.files][: len(full)] == full
    names = [name for name in log.disk.list_folder(log.runs.folder) if name.endswith(".run")]
    assert len(names) == len(log.runs.files)


async def test_every_offset_can_be_jumped_to(log: Log, tools: Any, clock: VirtualClock) -> None:
    await fill(log, tools, clock, 60)
    for topic in ("busy", "orders", "quiet"):
        for queue in log.queues_of(topic):
            for offset in [*reversed(range(queue.next_offset)), 0, queue.next_offset - 1]:
                found = log.read(queue, offset, 1, 1 << 20)
                assert decode_record(found.records[0]).queue_offset == offset


async def test_reads_across_runs_come_in_order_and_without_gaps(log: Log, tools: Any, clock: VirtualClock) -> None:
    await fill(log, tools, clock, 100)
    queue = log.queue("busy", 0)
    assert queue is not None
    found = log.read(queue, 0, 100, 1 << 20)
    assert found.count == 100
    assert [position for position, _, _ in log.units(queue, 0, 200)] == sorted(
        position for position, _, _ in log.units(queue, 0, 200)
    )


async def test_few_runs_are_kept_open(
    open_log: OpenLog, settings: StoreSettings, tools: Any, clock: VirtualClock
) -> None:
    settings.index_runs_open_max = 2
    log = await open_log()
    await fill(log, tools, clock, 100)
    assert len(tools.bodies(log, "busy")) == 100
    assert len(tools.bodies(log, "quiet")) == 1
    assert sum(1 for file in log.runs.files if file.run is not None) <= 2


async def test_writing_goes_on_while_a_run_is_written(
    log: Log, tools: Any, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = clock.sleep
    written = 0

    async def sleep(delay: float) -> None:
        nonlocal written
        if delay == 0 and written < 300:
            tools.send(log, "between", written % 2, b"%d" % written)
            written += 1
        await original(delay)

    monkeypatch.setattr(clock, "sleep", sleep)
    await fill(log, tools, clock, 60)
    assert written > 30
    for queue_id in range(2):
        assert tools.bodies(log, "between", queue_id) == [b"%d" % number for number in range(queue_id, written, 2)]
    assert len(tools.bodies(log, "busy")) == 60


async def test_an_opened_log_is_the_same_and_reads_only_its_end(
    open_log: OpenLog, tools: Any, clock: VirtualClock
) -> None:
    log = await open_log()
    await fill(log, tools, clock, 60)
    content = tools.content(log)
    await log.close()
    again = await open_log()
    assert again.recovery.scanned_bytes == 0
    assert tools.content(again) == content
    assert {queue.topic: queue.min_offset for queue in again.queues} == {"busy": 0, "orders": 0, "quiet": 0}


@pytest.mark.parametrize("lost", ["table", "newest run", "oldest run", "all runs", "index"])
async def test_whatever_is_missing_of_the_index_is_made_again(
    open_log: OpenLog, disk: Disk, tools: Any, clock: VirtualClock, lost: str
) -> None:
    log = await open_log()
    await fill(log, tools, clock, 60)
    content = tools.content(log)
    await log.close()
    folder = log.runs.folder
    names = list(disk.list_folder(folder))
    runs = [name for name in names if name.endswith(".run")]
    tables = [name for name in names if name.startswith("queues-")]
    for name in {
        "table": tables,
        "newest run": runs[-1:],
        "oldest run": runs[:1],
        "all runs": runs,
        "index": names,
    }[lost]:
        disk.remove(f"{folder}/{name}")
    again = await open_log()
    assert tools.content(again) == content
    await fill(again, tools, clock, 40)
    assert len(tools.bodies(again, "busy")) == 100
    assert len(tools.bodies(again, "quiet")) == 1


@pytest.mark.parametrize("at", [0, 20, 130, 200, -5])
async def test_a_damaged_run_is_made_again(
    open_log: OpenLog, disk: Disk, tools: Any, clock: VirtualClock, at: int
) -> None:
    log = await open_log()
    await fill(log, tools, clock, 60)
    content = tools.content(log)
    await log.close()
    path = log.runs.files[1].path
    file = disk.open(path)
    offset = at % file.size
    file.write_at(offset, bytes([file.read_at(offset, 1)[0] ^ 0x40]))
    file.close()
    again = await open_log()
    try:
        assert tools.content(again) == content
    except StoreCorruptError as error:
        assert error.retryable
        assert "being made again" in str(error)
        again.index.wake()
        await clock.sleep(1)
        assert tools.content(again) == content
    assert not again.runs.damaged


async def test_many_restarts_do_not_leave_many_files(open_log: OpenLog, tools: Any, clock: VirtualClock) -> None:
    bodies = []
    for number in range(60):
        log = await open_log()
        bodies.append(b"%d" % number)
        tools.send(log, body=bodies[-1])
        await clock.sleep(0.01)
        await log.close()
    log = await open_log()
    await clock.sleep(1)
    assert tools.bodies(log) == bodies
    assert len(log.runs.files) < 30


async def test_a_dropped_topic_stays_dropped(open_log: OpenLog, tools: Any, clock: VirtualClock) -> None:
    log = await open_log()
    await fill(log, tools, clock, 30)
    log.drop_topic("busy")
    await fill(log, tools, clock, 30)
    assert len(tools.bodies(log, "busy")) == 30
    log.drop_topic("orders")
    await log.close()
    again = await open_log()
    assert again.queues_of("orders") == []
    assert len(tools.bodies(again, "busy")) == 30
    assert again.min_offset(again.queue("busy", 0)) == 30
    tools.send(again, "orders", 0, b"new")
    assert tools.bodies(again, "orders", 0) == [b"new"]
    assert again.max_offset(again.queue("orders", 0)) == 21


async def test_times_are_found_across_runs(log: Log, tools: Any, clock: VirtualClock) -> None:
    times = []
    for number in range(100):
        times.append(clock.time_ms())
        tools.send(log, body=b"%d" % number + b"x" * 200)
        await clock.sleep(1)
    queue = log.queue("orders", 0)
    assert queue is not None
    assert log.offset_by_time(queue, 0) == 0
    assert log.offset_by_time(queue, times[-1] + 1) == 100
    assert log.offset_by_time(queue, times[-1] + 1, "upper") == 99
    assert log.offset_by_time(queue, 0, "upper") == 0
    for number in (0, 1, 17, 50, 99):
        assert log.offset_by_time(queue, times[number]) == number
        assert log.offset_by_time(queue, times[number] - 1) == number
        assert log.offset_by_time(queue, times[number], "upper") == number
        assert log.offset_by_time(queue, times[number] - 1, "upper") == max(number - 1, 0)


async def test_an_index_that_cannot_be_written_is_a_problem_until_it_can(
    open_log: OpenLog, tools: Any, clock: VirtualClock
) -> None:
    disk = SimulatedDisk(1)
    log = await open_log(disk=disk)
    disk.fail("write", path="/index/", times=3)
    await fill(log, tools, clock, 60)
    await clock.sleep(60)
    assert log.problems() == []
    assert len(tools.bodies(log, "busy")) == 60
    disk.fail("write", path="/index/", times=1000)
    await fill(log, tools, clock, 60)
    assert ["the index cannot be written" in problem for problem in log.problems()] == [True]
    assert len(tools.bodies(log, "busy")) == 120
