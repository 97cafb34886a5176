"""The index: what is in memory, what is in runs, and the task that moves one to the other.

Theory of operation. The newest stretch of the log is indexed in memory: each queue holds its own units, a
`KeyCollector` the keys. When the stretch has `index_stretch_bytes`, or its segment is full, it is cut at the end of
what is written, waits until the log is durable up to there, and becomes a run; then its units leave the memory. When
the segment is full, its runs become one. The table of queues is stored each time that happens.

So at any moment: runs cover `[min_position, covered)`, memory covers the rest, and a power loss costs at most reading
the log from `covered` on. All of it can be made again from the log.

Everything here is done in steps of a few milliseconds with other tasks in between. Between two steps queues grow, and
may be taken back when a write fails; but only at their end, and only records that are not yet durable, which are never
part of a run.
"""

import asyncio
from bisect import bisect_left
from collections.abc import Awaitable, Callable

from pocketmq.log.key_index import KeyCollector
from pocketmq.log.queue_table import DROPPED, encode_table, encode_topic
from pocketmq.log.queues import UNIT, UNIT_BYTES, LogQueue
from pocketmq.log.run_format import DirectoryEntry, queue_key
from pocketmq.log.run_store import RunFile, RunStore, release_units
from pocketmq.log.run_writer import (
    STEP_ENTRIES,
    STEP_UNITS,
    RunWriter,
    merge_runs,
    sorted_in_pieces,
    sorted_keys,
)
from pocketmq.log.snapshots import SnapshotStore
from pocketmq.log.staging import NOWHERE, TimeRange
from pocketmq.log.tail import LogTail
from pocketmq.model.errors import StoreError
from pocketmq.model.seams import Clock, Disk

RUNS_PER_SEGMENT_MAX = 24
"""More runs than this in a segment (a server that is often restarted makes small ones) are merged early."""

COLLECT_BYTES = 1024 * 1024
"""The keys of the newest records are collected each time the log grew by so much."""

COLLECT_S = 0.004
COLLECT_BLOCKS = 16
"""How long keys are collected, and from how many blocks, before other tasks get a turn.

More than one block, so that the index cannot fall behind a log that grows by several blocks between two turns.
"""

RETRY_S = 5.0
"""How long the index waits after an error of the disk."""

TABLE = "queues"

WaitDurable = Callable[[int], Awaitable[bool]]


class Index:
    """The index of one log."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        tail: LogTail,
        runs: RunStore,
        tables: SnapshotStore | None,
        *,
        stretch_bytes: int,
        wait_durable: WaitDurable,
    ) -> None:
        self.runs = runs
        self.covered = 0
        """Runs cover the log up to here."""
        self.keys = KeyCollector(tail.segments, 0)
        self.notice_at = NOWHERE
        """The position at which the task has something to do."""
        self.last_error: Exception | None = None
        """Why the index could not be written the last time; None again after it could."""
        self.rebuild: Callable[[RunFile], Awaitable[None]] | None = None
        """Makes a damaged run again."""
        self._disk = disk
        self._clock = clock
        self._tail = tail
        self._tables = tables
        self.stretch_bytes = stretch_bytes
        self._wait_durable = wait_durable
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        self._merge_due = False
        self.table_due = False
        """Something changed in the table that should not wait for the next run."""
        self.lock = asyncio.Lock()
        """Held while runs or the table change."""

    def start_at(self, covered: int) -> None:
        """Begin a new stretch: everything before `covered` is in runs, nothing behind it is indexed yet."""
        self.covered = covered
        self.keys = KeyCollector(self._tail.segments, covered)

    def start(self) -> None:
        """Begin to work beside the log."""
        self._merge_due = True
        self._task = asyncio.create_task(self._run(), name="pocketmq index")
        self.wake()

    def wake(self) -> None:
        """There is something to do."""
        self.notice_at = NOWHERE
        self._wake.set()

    async def close(self) -> None:
        """Put the newest stretch into a run and store the table, so that the next start has nothing to read."""
        # Not cancelled: between two steps a run may be in place whose units are still in memory.
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
            self._task = None
        try:
            while self.covered < self._tail.written_position and await self.write_run():
                pass
            await self.save_table()
        except (OSError, StoreError) as error:
            self.last_error = error  # the next start reads the log from `covered` on
        self.runs.close()

    # -- the task -----------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._closing:
                return
            try:
                async with self.lock:
                    await self.work()
            except Exception as error:  # whatever it is: without the index, memory would grow with the log
                self.last_error = error
                if not isinstance(error, (OSError, StoreError)):
                    context = {"message": "the index of the log failed", "exception": error}
                    asyncio.get_running_loop().call_exception_handler(context)
                self._clock.call_later(RETRY_S, self.wake)
            else:
                self.last_error = None
                self._plan()

    async def work(self) -> None:
        """Do all that is due: repair runs, collect keys, write runs, merge them."""
        while self.runs.damaged and self.rebuild is not None:
            await self.rebuild(self.runs.damaged[0])
            del self.runs.damaged[0]
        await self._collect_keys()
        while self._stretch_end() is not None and not self._closing:
            if not await self.write_run():
                raise StoreError("the log did not become durable, so this part of its index cannot be stored yet")
            self._merge_due = True
            await self._collect_keys()
        if self._merge_due and not self._closing:
            await self.merge()
            self._merge_due = False
        if self.table_due:
            await self.save_table()

    def _plan(self) -> None:
        """Say when the task has something to do next."""
        self.notice_at = min(
            self._tail.written_position + COLLECT_BYTES, self.covered + self.stretch_bytes, self._segment_end()
        )
        if self._tail.written_position >= self.notice_at:
            self.wake()
        self._tail.plan_notice()

    def _segment_end(self) -> int:
        segment = self._tail.segments.find(self.covered)
        return NOWHERE if segment is None else segment.end

    def _stretch_end(self) -> int | None:
        """Where the stretch is to be cut, None when that is not due."""
        written = self._tail.written_position
        segment_end = self._segment_end()
        if written >= segment_end:
            return segment_end
        return written if written - self.covered >= self.stretch_bytes else None

    # -- keys ---------------------------------------------------------------------------------------------------

    async def _collect_keys(self) -> None:
        self._take_marks(self._segment_end())
        await self._collect_blocks()

    async def _collect_blocks(self) -> None:
        """Collect the keys of all whole blocks, a few milliseconds at a time however many there are."""
        while self.keys.behind:
            deadline = self._clock.monotonic() + COLLECT_S
            for _ in range(min(self.keys.behind, COLLECT_BLOCKS)):
                self.keys.collect_block()
                if self._clock.monotonic() >= deadline:
                    break
            await self._clock.sleep(0)

    def _take_marks(self, end: int) -> None:
        del self._tail.marks[: self.keys.add_blocks(self._tail.marks, end)]

    # -- runs ---------------------------------------------------------------------------------------------------

    async def write_run(self) -> bool:
        """Put the stretch that is in memory into a run. Returns False when the log did not become durable."""
        end = min(self._tail.written_position, self._segment_end())
        timestamps = self._take_timestamps(end)
        queues = list(self._tail.touched)
        self._take_marks(end)
        await self._collect_blocks()
        self.keys.finish(end)
        if not await self._wait_durable(end):
            self._tail.stretch_timestamps.add_range(timestamps)
            return False
        entries = await self._entries_before(end, queues)
        writer = RunWriter(self._disk, self._clock, self.runs.folder, self.covered, end)
        unit_count = sum(entry.unit_count for entry, _ in entries)
        writer.open(unit_count, sum(len(keys) for keys in self.keys.lists))
        try:
            for entry, queue in entries:
                for start in range(0, entry.unit_count, STEP_UNITS):
                    stop = min(start + STEP_UNITS, entry.unit_count)
                    await writer.add_units(queue.units[start * UNIT_BYTES : stop * UNIT_BYTES])
            await self._clock.sleep(0)
            if self.keys.lists:
                writer.begin_list()
                async for keys in sorted_keys(self.keys.lists, self._clock):
                    await writer.add_keys(keys)
            await writer.finish([entry for entry, _ in entries], self.keys.blocks, timestamps.first, timestamps.last)
        except BaseException:
            self._tail.stretch_timestamps.add_range(timestamps)
            writer.abandon()
            raise
        file = self.runs.add(self.covered, end)
        self.start_at(end)
        for number, (entry, queue) in enumerate(entries):
            queue.last_run = file.start
            release_units(queue, entry.unit_count, UNIT_BYTES)
            if not queue.units:
                self._tail.touched.pop(queue, None)
            if number % STEP_ENTRIES == 0:
                await self._clock.sleep(0)
        return True

    async def _entries_before(self, end: int, queues: list[LogQueue]) -> list[tuple[DirectoryEntry, LogQueue]]:
        """The directory of the stretch: each queue with a unit before `end`, in order."""
        named: dict[tuple[int, str], tuple[DirectoryEntry, LogQueue]] = {}
        for number, queue in enumerate(queues):
            count = units_before(queue.units, end)
            if count:
                key = queue_key(queue.topic, queue.queue_id)
                entry = DirectoryEntry(key, queue.topic, queue.queue_id, queue.memory_offset, count, queue.last_run)
                named[key, queue.topic] = entry, queue
            if number % STEP_ENTRIES == 0:
                await self._clock.sleep(0)
        names = await sorted_in_pieces(list(named), self._clock)
        await self._clock.sleep(0)
        return [named[name] for name in names]

    def _take_timestamps(self, end: int) -> TimeRange:
        """The range of the store timestamps in the stretch up to `end`."""
        tail = self._tail
        taken = TimeRange(tail.stretch_timestamps.first, tail.stretch_timestamps.last)
        segment = tail.segments.find(self.covered)
        first = segment.timestamp_at(self.covered) if segment is not None else None
        if first is not None:
            taken.add(first)
        if end == tail.max_position:
            tail.stretch_timestamps = TimeRange(tail.last_timestamp, tail.last_timestamp)
        return taken

    async def merge(self) -> None:
        """Make one run of those of a segment that is full, or that has too many."""
        for segment in list(self._tail.segments):
            files = self.runs.files[self.runs.number_at(segment.start) : self.runs.number_at(segment.end)]
            sealed = segment.end <= self.covered
            if (sealed and len(files) > 1) or len(files) > RUNS_PER_SEGMENT_MAX:
                await self._merge(files)
                await self.save_table()

    async def _merge(self, files: list[RunFile]) -> None:
        runs = [self.runs.open(file) for file in files]
        try:
            await merge_runs(self._disk, self._clock, self.runs.folder, runs)
        except StoreError as error:
            for file, run in zip(files, runs, strict=True):
                if run.path in error.message:
                    raise self.runs.report(file, error) from error
            raise
        self.runs.add(files[0].start, files[-1].end)

    # -- the table ----------------------------------------------------------------------------------------------

    async def save_table(self) -> None:
        """Store where every queue stands at `covered`."""
        if self._tables is None:
            return
        self.table_due = False
        floors = self.runs.floors
        # Dropped queues first: one that comes back in between is then stored twice, and the last one counts.
        topics = [
            encode_topic(queue.topic, [(queue, floors.get(queue, 0), DROPPED)]) for queue in self._tail.queues.dropped()
        ]
        count = 0
        for topic in self._tail.queues.topics():
            queues = [(queue, floors.get(queue, 0), 0) for queue in self._tail.queues.of_topic(topic)]
            topics.append(encode_topic(topic, queues))
            count += len(queues)
            if count >= STEP_ENTRIES:
                count = 0
                await self._clock.sleep(0)
        await self._tables.save_beside(TABLE, self.covered, encode_table(topics))


def units_before(units: bytearray, end: int) -> int:
    """How many units, from the front, have a position before `end`."""
    count = len(units) // UNIT_BYTES
    if not count or UNIT.unpack_from(units, len(units) - UNIT_BYTES)[0] < end:
        return count
    return bisect_left(range(count), end, key=lambda number: UNIT.unpack_from(units, number * UNIT_BYTES)[0])
