"""Making a run again from the log, because it is missing or fails its checksum."""

import re

from pocketmq.log.index import Index
from pocketmq.log.queues import LogQueue, QueueTable
from pocketmq.log.run_store import RunStore
from pocketmq.log.scanner import ScanEnd, Scanner, Stop, check_record
from pocketmq.log.segments import Segment, Segments
from pocketmq.log.tail import LogTail
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.seams import Clock, Disk

YIELD_BYTES = 512 * 1024
"""How much is read before other tasks get a turn."""

ZEROS_MAX = 8 * 1024 * 1024
"""So many bytes of zeros end a search for valid records."""

_SEARCH_BYTES = 256 * 1024
_ZEROS = bytes(_SEARCH_BYTES)
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")


async def rebuild_run(disk: Disk, clock: Clock, segments: Segments, runs: RunStore, start: int, end: int) -> list[str]:
    """Read the log in `[start, end)`, inside one segment, and write its run in the place of all that were there.

    Returns a sentence for each damaged part of the log: its records are not in the run. Raises OSError.
    """
    tail = LogTail(clock, segments, QueueTable(), segment_bytes=end - start)
    index = Index(disk, clock, tail, runs, None, stretch_bytes=end - start, wait_durable=_is_durable)
    index.start_at(start)
    scanner = Scanner(tail.queues, tail.touched, tail.marks)
    damages: list[str] = []
    position = start
    yield_at = start + YIELD_BYTES
    while position < end:
        segment = segments.find(position)
        if segment is None:
            raise StoreCorruptError(f"no segment of the log holds position {position}")
        found = scanner.scan(segment, position, end)
        position = found.position
        if found.stop is Stop.SEGMENT_END:
            position = segment.end
        elif found.stop is not Stop.LIMIT:
            position = next_valid(segment, position + 1) or end
            scanner.begin_block()
            damages.append(f"position {found.position}: {found.reason or 'zeros'}; it goes on at {position}")
        if position >= yield_at:
            yield_at = position + YIELD_BYTES
            await clock.sleep(0)
    tail.written_position = end
    tail.stretch_timestamps = scanner.timestamps
    await _link(runs, list(tail.touched), runs.number_at(start) - 1, clock)
    await index.write_run()
    return damages


async def _is_durable(_: int) -> bool:
    return True


async def _link(runs: RunStore, queues: list[LogQueue], number: int, clock: Clock) -> None:
    """Tell each queue which run before holds its earlier units."""
    missing = queues
    while number >= 0 and missing:
        run = runs.open(runs.files[number])
        still_missing = []
        for queue in missing:
            entry = run.find(queue.topic, queue.queue_id)
            if entry is None:
                still_missing.append(queue)
            else:
                queue.last_run = run.header.start
        missing = still_missing
        number -= 1
        await clock.sleep(0)


def next_valid(segment: Segment, position: int) -> int | None:
    """The first valid record at or behind `position` in a segment; gives up after a long stretch of zeros."""
    offset = position - segment.start
    zeros = 0
    while offset < segment.size and zeros < ZEROS_MAX:
        part = segment.read(offset, _SEARCH_BYTES + 3)
        if part.startswith(_ZEROS):
            zeros += _SEARCH_BYTES
        else:
            zeros = 0
            for match in _MAGIC.finditer(part):
                start = segment.start + offset + match.start() - 4
                if start >= position and not isinstance(check_record(segment, start), ScanEnd):
                    return start
        offset += _SEARCH_BYTES
    return None
