"""Writing runs: from memory, and by merging those of one segment. In small steps, so that nobody waits for long.

A run is written beside under a temporary name, made durable, renamed, and the folder made durable. Nothing in it may
refer to a part of the log that is not durable yet; its writer's caller sees to that.
"""

import sys
from array import array
from binascii import crc32
from bisect import bisect_left
from collections.abc import AsyncIterator, Sequence

from pocketmq.log.disk import sync_folder
from pocketmq.log.queues import UNIT_BYTES
from pocketmq.log.run_format import (
    HEADER_BYTES,
    KEY_BYTES,
    PAGE_BYTES,
    DirectoryEntry,
    DirectoryPacker,
    Run,
    RunHeader,
    pack_header,
)
from pocketmq.log.run_store import TEMPORARY, run_name
from pocketmq.model.seams import Clock, Disk, DiskFile

STEP_BYTES = 256 * 1024
"""How much is written before other tasks get a turn."""

STEP_UNITS = STEP_BYTES // UNIT_BYTES
"""How many units are copied before other tasks get a turn."""

STEP_ENTRIES = 1000
"""How many queues are looked at before other tasks get a turn."""

STEP_KEYS = 8 * 1024
"""How many keys are sorted before other tasks get a turn."""

_NUMBERS = "Q"


class RunWriter:
    """One run on its way to the disk: `open`, `add_units` and `add_keys` in the announced amounts, `finish`."""

    def __init__(self, disk: Disk, clock: Clock, folder: str, start: int, end: int) -> None:
        self._disk = disk
        self._clock = clock
        self._folder = folder
        self._start = start
        self._end = end
        self._path = f"{folder}/{run_name(start, end)}"
        self._file: DiskFile
        self._at = HEADER_BYTES
        self._buffer = bytearray()
        self._page_crcs: list[int] = []
        self._unit_count = 0
        self._list_counts: list[int] = []

    def open(self, unit_count: int, key_count: int) -> None:
        """Make the file, with room for so many units and keys. Raises OSError."""
        size = HEADER_BYTES + unit_count * UNIT_BYTES + key_count * KEY_BYTES
        self._disk.remove(self._path + TEMPORARY)
        self._file = self._disk.open(self._path + TEMPORARY, create_size=size)

    async def add_units(self, units: bytes | bytearray | memoryview) -> None:
        """The next units, in the order of the directory."""
        await self._add(units)
        self._unit_count += len(units) // UNIT_BYTES

    def begin_list(self) -> None:
        """The keys that follow are sorted by themselves."""
        self._list_counts.append(0)

    async def add_keys(self, keys: "array[int]") -> None:
        """The next keys of the list that was begun."""
        self._list_counts[-1] += len(keys)
        await self._add(_little_endian(keys).tobytes())

    async def finish(
        self, entries: Sequence[DirectoryEntry], blocks: Sequence[int], first_timestamp: int, last_timestamp: int
    ) -> None:
        """Write the rest, make the file durable and put it in its place."""
        self._write(final=True)
        packer = DirectoryPacker()
        for number, entry in enumerate(entries):
            packer.add(entry)
            if number % STEP_ENTRIES == 0:
                await self._clock.sleep(0)
        directory = packer.finish(blocks, self._list_counts, self._page_crcs)
        await self._clock.sleep(0)
        header = RunHeader(
            self._start,
            self._end,
            first_timestamp,
            last_timestamp,
            queue_count=len(entries),
            topic_count=packer.topic_count,
            block_count=len(blocks),
            list_count=len(self._list_counts),
            unit_count=self._unit_count,
            key_count=sum(self._list_counts),
            directory_bytes=len(directory),
            directory_crc=crc32(directory),
        )
        assert self._at == HEADER_BYTES + header.data_bytes
        self._file.resize(header.file_bytes)
        for start in range(0, len(directory), STEP_BYTES):
            self._file.write_at(self._at + start, directory[start : start + STEP_BYTES])
            await self._clock.sleep(0)
        self._file.write_at(0, pack_header(header))
        await self._disk.sync(self._file)
        self._file.close()
        self._disk.rename(self._path + TEMPORARY, self._path)
        await sync_folder(self._disk, self._folder)

    def abandon(self) -> None:
        """Remove what was written."""
        self._file.close()
        self._disk.remove(self._path + TEMPORARY)

    async def _add(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer += data
        if len(self._buffer) >= STEP_BYTES:
            self._write()
            await self._clock.sleep(0)

    def _write(self, *, final: bool = False) -> None:
        whole = len(self._buffer) if final else len(self._buffer) // PAGE_BYTES * PAGE_BYTES
        data = bytes(self._buffer[:whole])
        del self._buffer[:whole]
        self._page_crcs += [crc32(data[start : start + PAGE_BYTES]) for start in range(0, whole, PAGE_BYTES)]
        self._file.write_at(self._at, data)
        self._at += whole


async def sorted_keys(lists: Sequence["array[int]"], clock: Clock) -> AsyncIterator["array[int]"]:
    """All keys of several sorted lists in one order, in pieces: one range of hashes after the other."""
    total = sum(len(keys) for keys in lists)
    pieces = max(1, -(-total // STEP_KEYS))
    starts = [0] * len(lists)
    for piece in range(1, pieces + 1):
        limit = (piece << 32) // pieces << 32
        found = array(_NUMBERS)
        for number, keys in enumerate(lists):
            stop = len(keys) if piece == pieces else bisect_left(keys, limit, starts[number])
            found += keys[starts[number] : stop]
            starts[number] = stop
        if len(lists) > 1:
            found = array(_NUMBERS, sorted(found))
        yield found
        await clock.sleep(0)


async def merge_runs(disk: Disk, clock: Clock, folder: str, runs: Sequence[Run]) -> None:
    """Write one run that stands for several, which follow each other in one segment. They are not removed."""
    parts: dict[tuple[int, str], list[tuple[Run, DirectoryEntry]]] = {}
    for run in runs:
        for start in range(0, run.header.queue_count, STEP_ENTRIES):
            for entry in run.directory(start, start + STEP_ENTRIES):
                known = parts.setdefault((entry.key, entry.topic), [])
                if known and known[-1][1].first + known[-1][1].unit_count != entry.first:
                    known.clear()  # the queue's offsets began again: only its present life can be read
                known.append((run, entry))
            await clock.sleep(0)
    names = await sorted_in_pieces(list(parts), clock)
    writer = RunWriter(disk, clock, folder, runs[0].header.start, runs[-1].header.end)
    unit_count = sum(entry.unit_count for known in parts.values() for _, entry in known)
    writer.open(unit_count, sum(run.header.key_count for run in runs))
    try:
        entries = []
        for name in names:
            count = 0
            for run, entry in parts[name]:
                for start in range(0, entry.unit_count, STEP_UNITS):
                    await writer.add_units(
                        run.units(entry.first_unit + start, min(STEP_UNITS, entry.unit_count - start))
                    )
                count += entry.unit_count
            oldest = parts[name][0][1]
            entries.append(oldest._replace(unit_count=count))
        blocks: list[int] = []
        for run in runs:
            await _copy_keys(run, writer, len(blocks), clock)
            blocks += run.blocks
        await writer.finish(
            entries,
            blocks,
            min(run.header.first_timestamp for run in runs),
            max(run.header.last_timestamp for run in runs),
        )
    except BaseException:
        writer.abandon()
        raise


async def _copy_keys(run: Run, writer: RunWriter, shift: int, clock: Clock) -> None:
    """Copy the key lists of a run whose blocks get numbers higher by `shift`."""
    at = 0
    for count in run.list_counts:
        writer.begin_list()
        for start in range(at, at + count, STEP_KEYS):
            keys = run.keys(start, min(start + STEP_KEYS, at + count))
            await writer.add_keys(array(_NUMBERS, [key + shift for key in keys]))
            await clock.sleep(0)
        at += count


async def sorted_in_pieces(items: list[tuple[int, str]], clock: Clock) -> list[tuple[int, str]]:
    """`sorted(items)` for items that begin with a 64-bit number, in steps when there are many."""
    if len(items) <= STEP_ENTRIES:
        return sorted(items)
    pieces: list[list[tuple[int, str]]] = [[] for _ in range(1024)]
    for start in range(0, len(items), STEP_ENTRIES * 10):
        for item in items[start : start + STEP_ENTRIES * 10]:
            pieces[item[0] >> 54].append(item)
        await clock.sleep(0)
    ordered: list[tuple[int, str]] = []
    for number, piece in enumerate(pieces):
        piece.sort()
        ordered += piece
        if number % 16 == 0:
            await clock.sleep(0)
    return ordered


def _little_endian(keys: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        keys = keys[:]
        keys.byteswap()
    return keys
