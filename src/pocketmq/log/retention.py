"""Deleting the oldest segments: by age, and earlier when the disk fills up.

One segment at a time, the oldest first, never the one that is written, and only when its index is in a run. Before it
goes, `before_delete` may carry forward what still lives in it. Then the first offsets of the queues move on, the table
that says so is stored, the file goes, and its run goes. A crash in between leaves a file too many, never one too few.

Disk use has three marks. Above `disk_used_max` the oldest segments go early, one per check. Above `disk_used_clean`
they go at once, and an alarm is raised. Above `disk_used_refuse` the log takes no records (code 14) until there is
room again.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from pocketmq.log.disk import sync_folder
from pocketmq.log.index import Index
from pocketmq.log.run_writer import STEP_ENTRIES
from pocketmq.log.segments import Segment
from pocketmq.log.tail import LogTail
from pocketmq.model.errors import StoreFullError
from pocketmq.model.seams import Clock, Disk
from pocketmq.model.settings import StoreSettings

CHECK_S = 10.0
REASON = "disk use"

BeforeDelete = Callable[[int, int], Awaitable[None]]


class AlarmKind(Enum):
    """What an alarm is about."""

    DISK_FILLING = "disk filling"
    DISK_FULL = "disk full"
    DISK_FINE = "disk fine"


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something an operator should know; `message` is a sentence for him."""

    kind: AlarmKind
    message: str


class Retention:
    """Deletes what is too old or too much."""

    def __init__(self, disk: Disk, clock: Clock, tail: LogTail, index: Index, settings: StoreSettings) -> None:
        self.before_delete: BeforeDelete | None = None
        """Called with the start and end of a segment, before it goes; an error keeps the segment."""
        self.on_alarm: Callable[[Alarm], None] | None = None
        self.used_percent = 0.0
        self.deleted_segments = 0
        self.last_error: Exception | None = None
        self._disk = disk
        self._clock = clock
        self._tail = tail
        self._index = index
        self._settings = settings
        self._state = AlarmKind.DISK_FINE
        self._refusal: StoreFullError | None = None
        self._busy = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to check now and then."""
        self._task = asyncio.create_task(self._run(), name="pocketmq retention")

    async def close(self) -> None:
        """Stop; a deletion that has begun is finished."""
        if self._task is not None:
            async with self._busy:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            await self.check()
            await self._clock.sleep(CHECK_S)

    async def check(self) -> None:
        """Look at the disk and at the oldest segment, and do what is due."""
        async with self._busy:
            try:
                self.measure()
                while await self._delete_if_due():
                    self.measure()
                    if self._state is AlarmKind.DISK_FINE:
                        break
                    await self._clock.sleep(0)
            except Exception as error:
                self.last_error = error

    def measure(self) -> None:
        """Look how full the disk is; refuse or take records again, and raise the alarm when that changes."""
        usage = self._disk.usage(self._settings.data_dir)
        self.used_percent = 100.0 * (usage.total_bytes - usage.free_bytes) / max(usage.total_bytes, 1)
        settings = self._settings
        if self.used_percent >= settings.disk_used_refuse:
            state = AlarmKind.DISK_FULL
        elif self.used_percent >= settings.disk_used_clean:
            state = AlarmKind.DISK_FILLING
        else:
            state = AlarmKind.DISK_FINE
        if state is self._state:
            return
        self._state = state
        where = f"the disk of {settings.data_dir} is {self.used_percent:.1f} % full"
        if state is AlarmKind.DISK_FULL:
            message = (
                f"{where}: no messages are taken above {settings.disk_used_refuse:g} % (store.disk_used_refuse); "
                f"free some room, or lower store.retention_hours"
            )
            self._refusal = StoreFullError(message)
        else:
            self._refusal = None
            message = where
            if state is AlarmKind.DISK_FILLING:
                message += (
                    f": the oldest segments are deleted whatever their age; above "
                    f"{settings.disk_used_refuse:g} % messages will be refused"
                )
        self._tail.refuse(REASON, self._refusal)
        if self.on_alarm is not None:
            self.on_alarm(Alarm(state, message))

    @contextmanager
    def upkeep(self) -> Iterator[None]:
        """What is appended in this block is taken even when the disk is too full for messages.

        For `before_delete`: what it carries forward must not keep a full disk full for ever. Not across an await.
        """
        self._tail.refuse(REASON, None)
        try:
            yield
        finally:
            self._tail.refuse(REASON, self._refusal)

    def oldest(self) -> Segment | None:
        """The segment that may go next; None when there is only the one being written, or its index is not stored."""
        segments = self._tail.segments
        if len(segments) < 2 or segments[0].end > self._index.covered:
            return None
        return segments[0]

    async def delete_oldest(self) -> bool:
        """Delete the oldest segment now, if there is one that may go.

        Raises StoreError, OSError, and whatever the hook raises.
        """
        async with self._busy:
            segment = self.oldest()
            if segment is None:
                return False
            await self._delete(segment)
            return True

    async def _delete_if_due(self) -> bool:
        segment = self.oldest()
        if segment is None or not (self._is_full_enough() or self._is_too_old()):
            return False
        await self._delete(segment)
        return True

    def _is_full_enough(self) -> bool:
        # A Java broker.conf may set the lower mark above the other; then that one counts, as in Java.
        return self.used_percent >= min(self._settings.disk_used_max, self._settings.disk_used_clean)

    def _is_too_old(self) -> bool:
        """Whether the newest record of the oldest segment is older than the limit, and this is an hour to delete in."""
        now = self._clock.time_ms()
        following = self._tail.segments.find(self._tail.segments[1].start)
        newest = following.first_timestamp() if following is not None else None
        if newest is None or now - newest < self._settings.retention_hours * 3_600_000:
            return False
        hours = self._settings.delete_when.replace(",", ";").split(";")
        return "*" in hours or datetime.fromtimestamp(now / 1000).hour in {
            int(hour) for hour in hours if hour.strip().isdigit()
        }

    async def _delete(self, segment: Segment) -> None:
        if self.before_delete is not None:
            await self.before_delete(segment.start, segment.end)
        async with self._index.lock:
            await self._delete_files(segment)
        self.deleted_segments += 1
        self.last_error = None

    async def _delete_files(self, segment: Segment) -> None:
        runs = self._index.runs
        files = [file for file in runs.files if file.end <= segment.end]
        for file in files:
            run = runs.open(file)
            for start in range(0, file.queue_count, STEP_ENTRIES):
                for entry in run.directory(start, start + STEP_ENTRIES):
                    queue = self._tail.queues.get(entry.topic, entry.queue_id)
                    if queue is not None and runs.floors.get(queue, 0) < file.end:
                        queue.min_offset = max(queue.min_offset, entry.first + entry.unit_count)
                await self._clock.sleep(0)
        await self._index.save_table()
        self._tail.segments.remove(segment)
        # Before the next one may go: a log with a hole at its beginning would look like a log that lost its end.
        await sync_folder(self._disk, self._tail.segments.folder)
        for file in files:
            runs.remove(file)
