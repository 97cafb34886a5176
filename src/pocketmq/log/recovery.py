"""Opening a data directory: what is loaded, what is read, what is cut, what is refused.

Theory of operation.
1. Runs are loaded by their headers; stretches that no run covers are made again from the log. The table of queues says
   where each queue stood; the directories of newer runs bring it up to `covered`.
2. The log is read from `covered` on. It ends at the first position where no valid record begins.
3. What lies behind that end is a torn tail, which is cut, or damage, which is an error: see `pocketmq.log.end_of_log`.
4. Records of the topics that the views are folded from are given to them again, from the position that they cover.
"""

from collections.abc import Callable, Container

from pocketmq.log.end_of_log import HOW_TO_ACCEPT, EndOfLog, missing
from pocketmq.log.index import TABLE, Index
from pocketmq.log.queue_table import load_table
from pocketmq.log.queues import UNIT, LogQueue, QueueTable
from pocketmq.log.rebuild import rebuild_run
from pocketmq.log.report import Damage, Progress, RecoveryReport
from pocketmq.log.run_format import Run
from pocketmq.log.run_store import RunFile, RunStore
from pocketmq.log.scanner import Replay, ReplayedRecord, ScanEnd, Scanner, Stop, check_record
from pocketmq.log.segments import Segment, Segments
from pocketmq.log.snapshots import SnapshotStore
from pocketmq.log.staging import TimeRange
from pocketmq.log.tail import LogTail
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.seams import Clock, Disk

__all__ = ["Progress", "Recovery", "RecoveryReport"]

YIELD_BYTES = 4 * 1024 * 1024
"""How much is read before other tasks get a turn."""


class Recovery:
    """One start of one log."""

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        root: str,
        tail: LogTail,
        index: Index,
        *,
        replay: Replay,
        replay_from: int,
        replay_topics: Container[str],
        progress: Callable[[Progress], None] | None,
        torn_bytes_max: int,
        accept_damage: bool,
    ) -> None:
        self.report = RecoveryReport()
        self._disk = disk
        self._clock = clock
        self._tail = tail
        self._index = index
        self._segments: Segments = tail.segments
        self._replay = replay
        self._replay_from = replay_from
        self._replay_topics = replay_topics
        self._progress = progress
        self._accept_damage = accept_damage
        self._index_waits = False
        self._end_of_log = EndOfLog(
            disk,
            clock,
            root,
            tail.segments,
            self.report,
            torn_bytes_max=torn_bytes_max,
            accept_damage=accept_damage,
        )
        self._reported_bytes = 0

    async def run(self, runs: RunStore, tables: SnapshotStore) -> int:
        """Do all of it; returns where the log ends. Raises StoreCorruptError, OSError."""
        start = self._segments[0].start if len(self._segments) else 0
        await self._load_runs(runs, tables, start)
        covered = runs.end if runs.end is not None else start
        self._check_reaches(covered, "the index")
        self._index.start_at(covered)
        self._tail.written_position = self._tail.max_position = covered
        self._tail.last_timestamp = runs.files[-1].last_timestamp if runs.files else 0
        await self._replay_covered(runs, covered)
        end = await self._scan(covered)
        self._end_of_log.set_stranded_aside(end)
        self._clamp(self._tail.queues)
        if end < self._replay_from:
            raise StoreCorruptError(missing(end, self._replay_from, "the stored views"))
        return end

    # -- the index ----------------------------------------------------------------------------------------------

    async def _load_runs(self, runs: RunStore, tables: SnapshotStore, start: int) -> None:
        runs.load()
        gone = [file for file in runs.files if file.end <= start]
        first_offsets = await self._offsets_behind(runs, gone)
        for file in gone:
            runs.remove(file)
        if runs.files:
            await self._fill_gaps(runs, start)
        queues = self._tail.queues
        position = -1
        # A table may be newer than the runs when those at the end were lost; then an older one, or none, is right.
        loaded = tables.load(TABLE, position_max=runs.end if runs.files else start)
        if loaded is not None:
            position, payload = loaded
            load_table(payload, queues, runs.floors)
        for file in list(runs.files):
            if file.end > position:
                run = await self._open(runs, file)
                for entry in run.directory():
                    _apply(queues.ensure(entry.topic, entry.queue_id), entry.first, entry.unit_count, file.start, runs)
                await self._clock.sleep(0)
        for (topic, queue_id), (offset, run_end) in first_offsets.items():
            queue = queues.get(topic, queue_id)
            if queue is not None and runs.floors.get(queue, 0) < run_end:
                queue.min_offset = max(queue.min_offset, offset)

    async def _offsets_behind(self, runs: RunStore, files: list[RunFile]) -> dict[tuple[str, int], tuple[int, int]]:
        """(topic, queue id) -> the offset behind those in runs whose segments somebody has deleted, and a run's end.

        A crash in the midst of deleting a segment leaves such runs, too; then the stored table knows this already.
        """
        offsets: dict[tuple[str, int], tuple[int, int]] = {}
        for file in files:
            try:
                for entry in runs.open(file).directory():
                    offsets[entry.topic, entry.queue_id] = entry.first + entry.unit_count, file.end
            except StoreCorruptError:
                runs.damaged.clear()
            await self._clock.sleep(0)
        return offsets

    async def _fill_gaps(self, runs: RunStore, start: int) -> None:
        """Make the runs again that are missing before the last one."""
        expected = start
        for file in list(runs.files):
            if file.start > expected:
                await self._rebuild(runs, expected, file.start)
            expected = max(expected, file.end)

    async def _open(self, runs: RunStore, file: RunFile) -> Run:
        """A run, made again first when it is damaged."""
        try:
            return runs.open(file)
        except StoreCorruptError:
            runs.damaged.clear()
            await self._rebuild(runs, file.start, file.end)
            return runs.open(runs.files[runs.number_at(file.start)])

    async def _units_from(self, runs: RunStore, file: RunFile, queue: LogQueue) -> list[tuple[int, int]]:
        """(position, size) of a queue's records in a run, from `replay_from` on."""
        for _ in range(2):
            run = await self._open(runs, runs.files[runs.number_at(file.start)])
            entry = run.find(queue.topic, queue.queue_id)
            if entry is None:
                return []
            try:
                units = run.units(entry.first_unit, entry.end - entry.first)
            except StoreCorruptError:
                runs.damaged.clear()
                await self._rebuild(runs, file.start, file.end)
                continue
            return [(at, size) for at, size, _ in UNIT.iter_unpack(units) if size and at >= self._replay_from]
        raise StoreCorruptError(f"{file.path} is damaged, and was damaged again after it was made again")

    async def _rebuild(self, runs: RunStore, start: int, end: int) -> None:
        position = start
        while position < end:
            segment = self._segments.find(position)
            if segment is None:
                raise StoreCorruptError(missing(position, end, "the index"))
            stop = min(end, segment.end)
            self._show("making the index again", position - start, end - start)
            damages = await rebuild_run(self._disk, self._clock, self._segments, runs, position, stop)
            if damages and not self._accept_damage:
                raise StoreCorruptError(f"the log is damaged at {damages[0]}. {HOW_TO_ACCEPT}")
            self.report.notes += damages
            self.report.rebuilt_bytes += stop - position
            position = stop

    def _check_reaches(self, position: int, what: str) -> None:
        """The log must have a segment that holds `position`, or end there."""
        if len(self._segments):
            end = self._segments[-1].end
            if position <= end:
                return
        elif position == 0:
            return
        else:
            end = 0
        raise StoreCorruptError(missing(end, position, what))

    @staticmethod
    def _clamp(queues: QueueTable) -> None:
        for queue in queues:
            queue.min_offset = min(queue.min_offset, queue.next_offset)

    # -- replay -------------------------------------------------------------------------------------------------

    async def _replay_covered(self, runs: RunStore, covered: int) -> None:
        """Give the views their records from the part of the log that is indexed, by way of the index."""
        if self._replay_from >= covered:
            return
        queues = self._tail.queues
        replayed = [
            queue for topic in queues.topics() if topic in self._replay_topics for queue in queues.of_topic(topic)
        ]
        for file in runs.files[runs.number_at(self._replay_from) :] if replayed else ():
            found = []
            for queue in replayed:
                found += [(position, queue) for position, _ in await self._units_from(runs, file, queue)]
            found.sort(key=lambda item: item[0])
            for position, queue in found:
                self._replay_one(position, queue)
            await self._clock.sleep(0)

    def _replay_one(self, position: int, queue: LogQueue) -> None:
        segment = self._segments.find(position)
        record = (
            check_record(segment, position) if segment is not None else ScanEnd(position, Stop.DAMAGE, "no segment")
        )
        if isinstance(record, ScanEnd):
            message = f"the record at position {position}, which the views need, is damaged: {record.reason}"
            if not self._accept_damage:
                raise StoreCorruptError(f"{message}. {HOW_TO_ACCEPT}")
            self.report.damages.append(Damage(position, position, record.reason))
            return
        self._replay(ReplayedRecord(queue.topic, position, record))

    # -- the tail -----------------------------------------------------------------------------------------------

    async def _scan(self, covered: int) -> int:
        """Read and index the log from `covered` on, and cut it where it ends."""
        tail = self._tail
        scanner = Scanner(
            tail.queues,
            tail.touched,
            tail.marks,
            replay=self._replay,
            replay_topics=self._replay_topics,
            replay_from=self._replay_from,
        )
        scanner.on_restart = self._index.runs.floors.__setitem__
        position = covered
        segment = self._segments.find(position)
        while segment is not None:
            end = await self._scan_segment(scanner, segment, position)
            position = end.position
            if end.stop is Stop.SEGMENT_END:
                position = segment.end
                self._advance(position, scanner)
                if self._segments.find(position) is not None:
                    await self._write_run()
            else:
                durable = max(self._replay_from, self._index.covered)
                resumed = await self._end_of_log.judge(segment, end, durable=durable)
                if resumed is None:
                    break
                position = resumed
                scanner.begin_block()
            segment = self._segments.find(position)
        self._advance(position, scanner)
        self.report.scanned_bytes += position - covered
        self.report.scanned_records += scanner.record_count
        self.report.notes += scanner.jumps
        return position

    async def _scan_segment(self, scanner: Scanner, segment: Segment, position: int) -> ScanEnd:
        yield_at = position + YIELD_BYTES
        while True:
            limit = segment.end if self._index_waits else self._index.covered + self._index.stretch_bytes
            end = scanner.scan(segment, position, min(limit, segment.end))
            position = end.position
            if end.stop is not Stop.LIMIT:
                return end
            if position >= yield_at:
                yield_at = position + YIELD_BYTES
                self._show("reading the log", position, self._segments[-1].end)
                await self._clock.sleep(0)
            if position >= limit:
                self._advance(position, scanner)
                await self._write_run()

    async def _write_run(self) -> None:
        """Move what was indexed out of memory; a disk without room must not keep the log from being read."""
        if not self._index_waits:
            try:
                await self._index.write_run()
            except OSError as error:
                self._index_waits = True
                self.report.notes.append(f"the index stays in memory for now: {error}")

    def _advance(self, position: int, scanner: Scanner) -> None:
        self._tail.written_position = self._tail.max_position = position
        self._tail.last_timestamp = max(self._tail.last_timestamp, scanner.timestamps.last)
        self._tail.stretch_timestamps.add_range(scanner.timestamps)
        scanner.timestamps = TimeRange()

    def _show(self, phase: str, done: int, total: int) -> None:
        if self._progress is not None:
            self._progress(Progress(phase, done, total))


def _apply(queue: LogQueue, first: int, count: int, run_start: int, runs: RunStore) -> None:
    """Bring a queue up to the end of a run that it is in; part of which it may know already."""
    if not first <= queue.next_offset <= first + count:
        if queue.last_run >= 0 or queue.next_offset:
            runs.floors[queue] = run_start
        queue.min_offset = first
    queue.next_offset = first + count
    queue.last_run = run_start
