"""A log on virtual time, on each kind of disk."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from pocketmq.log.disk import MemoryDisk, RealDisk
from pocketmq.log.log import Log
from pocketmq.log.queues import LogQueue
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import VirtualLoop
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import Record, decode_records

HOST = pack_host("10.0.0.1", 50000)
BROKER = pack_host("10.0.0.2", 10911)


with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _Policy = asyncio.DefaultEventLoopPolicy


class VirtualPolicy(_Policy):
    """Every test runs on a loop on which waiting takes no time."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop()


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    return VirtualPolicy()


@pytest.fixture
async def clock() -> VirtualClock:
    return VirtualClock(asyncio.get_running_loop())


@pytest.fixture(params=["memory", "real"])
def disk(request: pytest.FixtureRequest) -> Disk:
    return MemoryDisk() if request.param == "memory" else RealDisk()


@pytest.fixture
def settings(tmp_path: Path) -> StoreSettings:
    """Small segments and stretches, so that a few records fill them."""
    return StoreSettings(data_dir=str(tmp_path / "data"), segment_bytes=8192, index_stretch_bytes=4096)


OpenLog = Callable[..., Awaitable[Log]]


@pytest.fixture
async def open_log(disk: Disk, clock: VirtualClock, settings: StoreSettings) -> AsyncIterator[OpenLog]:
    """Opens a log on the test's disk; it is closed at the end."""
    async with AsyncExitStack() as stack:

        async def open_(**options: Any) -> Log:
            log = await Log.open(options.pop("disk", disk), clock, options.pop("settings", settings), **options)
            stack.push_async_callback(log.close)
            return log

        yield open_


@pytest.fixture
async def log(open_log: OpenLog) -> Log:
    return await open_log()


class Tools:
    """What tests do with a log again and again."""

    def send(self, log: Log, topic: str = "orders", queue_id: int = 0, body: bytes = b"hello", **options: Any) -> int:
        """Append and write one record; returns its position."""
        position = self.stage(log, topic, queue_id, body, **options)
        log.write()
        return position

    def stage(self, log: Log, topic: str = "orders", queue_id: int = 0, body: bytes = b"hello", **options: Any) -> int:
        """Append one record without writing it."""
        queue = log.ensure_queue(topic, queue_id)
        return log.append(
            queue,
            body,
            options.get("properties", b""),
            options.get("flag", 0),
            options.get("sys_flag", 0),
            1_700_000_000_000,
            options.get("born_host", HOST),
            options.get("store_host", BROKER),
            options.get("reconsume_times", 0),
            0,
            options.get("tag_code", 0),
        )

    def records(self, log: Log, queue: LogQueue | None) -> list[Record]:
        """Every record that a reader of a queue gets."""
        assert queue is not None
        found: list[Record] = []
        offset = log.min_offset(queue)
        while offset < log.max_offset(queue):
            part = log.read(queue, offset, 32, 1 << 20)
            for view in part.records:
                found += decode_records(view, check_crc=True)
            assert part.next_offset > offset
            offset = part.next_offset
        return found

    def bodies(self, log: Log, topic: str = "orders", queue_id: int = 0) -> list[bytes]:
        """The bodies of a queue, from its first offset to its last."""
        return [record.body for record in self.records(log, log.queue(topic, queue_id))]

    def content(self, log: Log) -> dict[tuple[str, int], list[tuple[int, int, bytes]]]:
        """Everything in the log: (queue offset, position, body) by queue."""
        return {
            (topic, queue.queue_id): [
                (record.queue_offset, record.physical_offset, record.body) for record in self.records(log, queue)
            ]
            for topic in sorted(log.topics())
            for queue in log.queues_of(topic)
        }


@pytest.fixture
def tools() -> Tools:
    return Tools()
