"""Records become durable within their time, and a flush answers everybody that it covers."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.model.errors import StoreError
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk

OpenLog = Callable[..., Any]


@pytest.fixture
def disk(clock: VirtualClock) -> Disk:
    return SimulatedDisk(1, clock=clock)


@pytest.fixture
def synchronous(settings: StoreSettings) -> StoreSettings:
    settings.flush = "sync"
    return settings


async def test_async_answers_at_once_and_flushes_within_the_interval(
    open_log: OpenLog, tools: Any, clock: VirtualClock, settings: StoreSettings
) -> None:
    log = await open_log()
    tools.send(log)
    answers: list[bool] = []
    log.when_durable(log.max_position, answers.append)
    assert answers == [True]
    assert log.durable_position == 0
    await clock.sleep(settings.flush_interval_s + 0.1)
    assert log.durable_position == log.max_position


async def test_an_idle_log_flushes_nothing(open_log: OpenLog, tools: Any, clock: VirtualClock) -> None:
    log = await open_log()
    tools.send(log)
    await clock.sleep(5)
    flushes = log.statistics().flushes
    await clock.sleep(1000)
    assert log.statistics().flushes == flushes


async def test_async_can_be_asked_for_a_real_flush(open_log: OpenLog, tools: Any) -> None:
    log = await open_log()
    tools.send(log)
    assert await log.wait_durable(log.max_position, force=True)
    assert log.durable_position == log.max_position


async def test_sync_answers_after_the_fsync(
    open_log: OpenLog, synchronous: StoreSettings, disk: SimulatedDisk, tools: Any, clock: VirtualClock
) -> None:
    log = await open_log()
    tools.send(log)
    answers: list[bool] = []
    log.when_durable(log.max_position, answers.append)
    assert answers == []
    await clock.sleep(0.1)
    assert answers == [True]
    assert not [path for path in disk.unsynced() if "commitlog" in path]


async def test_one_fsync_answers_all_that_waited_and_the_next_all_that_came_meanwhile(
    open_log: OpenLog, synchronous: StoreSettings, disk: SimulatedDisk, tools: Any, clock: VirtualClock
) -> None:
    log = await open_log()
    await clock.sleep(1)
    disk.sync_seconds_max = 0.5
    before = log.statistics().flushes
    answers: list[int] = []
    for number in range(5):
        tools.send(log)
        log.when_durable(log.max_position, lambda done, number=number: answers.append(number))
    await clock.sleep(0.001)
    for number in range(5, 10):
        tools.send(log)
        log.when_durable(log.max_position, lambda done, number=number: answers.append(number))
    await clock.sleep(5)
    assert answers == list(range(10))
    assert log.statistics().flushes - before == 2


async def test_a_flush_that_takes_too_long_is_answered_with_no(
    open_log: OpenLog, synchronous: StoreSettings, disk: SimulatedDisk, tools: Any, clock: VirtualClock
) -> None:
    synchronous.flush_timeout_s = 0.001
    log = await open_log()
    disk.sync_seconds_max = 100.0
    tools.send(log)
    assert not await log.wait_durable(log.max_position)
    disk.sync_seconds_max = 0.0
    await clock.sleep(200)
    assert log.durable_position == log.max_position


async def test_after_a_failed_fsync_no_record_is_taken_and_none_confirmed(
    open_log: OpenLog, synchronous: StoreSettings, disk: SimulatedDisk, tools: Any, clock: VirtualClock
) -> None:
    log = await open_log()
    tools.send(log, body=b"durable")
    assert await log.wait_durable(log.max_position)
    disk.fail("sync", path="commitlog")
    tools.send(log, body=b"doubtful")
    assert not await log.wait_durable(log.max_position)
    with pytest.raises(StoreError, match="could not make the log durable"):
        tools.stage(log)
    assert not await log.wait_durable(log.max_position, force=True)
    assert tools.bodies(log)[0] == b"durable"
    await clock.sleep(10)
    assert log.durable_position < log.max_position


async def test_a_new_segment_counts_when_its_name_is_durable(
    open_log: OpenLog, synchronous: StoreSettings, disk: SimulatedDisk, tools: Any
) -> None:
    log = await open_log()
    for _ in range(20):
        tools.send(log, body=b"x" * 1000)
        assert await log.wait_durable(log.max_position)
        assert not [path for path in disk.unsynced() if "commitlog" in path]


async def test_a_callback_that_fails_does_not_harm_the_others(
    open_log: OpenLog, synchronous: StoreSettings, tools: Any
) -> None:
    log = await open_log()
    errors: list[dict[str, Any]] = []
    log.clock.loop.set_exception_handler(lambda loop, context: errors.append(context))
    tools.send(log)

    def fail(done: bool) -> None:
        raise ValueError("mine")

    log.when_durable(log.max_position, fail)
    assert await log.wait_durable(log.max_position)
    tools.send(log)
    assert await log.wait_durable(log.max_position)
    assert len(errors) == 1


async def test_closing_flushes_what_is_written(open_log: OpenLog, disk: SimulatedDisk, tools: Any) -> None:
    log = await open_log()
    tools.send(log, body=b"last")
    await log.close()
    assert not [path for path in disk.unsynced() if "commitlog" in path]
    with pytest.raises(StoreError, match="closed"):
        tools.stage(log)
