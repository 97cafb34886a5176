"""The log keeps its promises at every crash point, and the test that says so finds planted bugs."""

from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import explore
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.log_workload import History, Workload, check_promises, content_of, opened

SEEDS = range(3)


def settings(flush: str = "sync") -> StoreSettings:
    return StoreSettings(data_dir="data", segment_bytes=4096, index_stretch_bytes=4096, flush=flush)  # type: ignore[arg-type]


async def run_log(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """Fills several segments in two lives of the log, some bursts on top of others that are still being synced."""
    workload = Workload(history)
    for _ in range(2):
        async with opened(disk, clock, settings()) as log:
            for burst in range(8):
                workload.burst(log, 4)
                if burst % 3:
                    await clock.sleep(0.003)
            await log.wait_durable(log.max_position)
            workload.burst(log, 2)


async def check_log(disk: SimulatedDisk, clock: VirtualClock, history: History) -> None:
    """What was acknowledged is there after reopening, again after reopening twice, and the log takes new messages."""
    async with opened(disk, clock, settings()) as log:
        content = content_of(log)
    check_promises(content, history)
    async with opened(disk, clock, settings()) as log:
        assert content_of(log) == content
        Workload(history, seed=2).burst(log, 5)
        await log.wait_durable(log.max_position)
        assert len(content_of(log)) == len(content) + 5


def test_nothing_acknowledged_is_lost_at_any_crash_point() -> None:
    assert explore(run_log, check_log, history=History, seeds=SEEDS) > 100
