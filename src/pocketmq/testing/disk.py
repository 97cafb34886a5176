"""A disk in memory that loses what was not synced, tears what was half written, fills up, fails and rots.

Names and contents are kept twice: as programs see them, and as a power loss would leave them. Contents become durable
by a sync of the file, names (of files and folders alike) only by a sync of the folder that holds them. What survives
beyond that is decided by the seed; see `pocketmq.testing.medium` for what survives of a file, and
`pocketmq.testing.crash` for trying every crash point of a run.
"""

import asyncio
import errno
import itertools
import os
import posixpath
from collections import deque
from collections.abc import Callable, Sequence
from random import Random
from typing import NamedTuple

from pocketmq.model.seams import Clock, Disk, DiskFile
from pocketmq.testing.folders import Folders, NameChange, normal_path
from pocketmq.testing.medium import MOODS, SECTOR_BYTES, Medium, Survival

OPERATIONS_KEPT_MAX = 100_000
"""How many of the last operations `SimulatedDisk.operations` remembers."""

_UNLIMITED_BYTES = 1 << 40


class PowerLoss(BaseException):
    """The power is gone: raised by the operation at which it went, and by every later one.

    Not an `Exception`, since no program survives it to handle it.
    """


class Operation(NamedTuple):
    """One thing that was done to the disk and that a power loss could undo or cut."""

    number: int
    kind: str
    path: str
    offset: int = 0
    length: int = 0


class _Usage(NamedTuple):
    total_bytes: int
    free_bytes: int


class SimulatedDisk(Disk):
    """A `Disk` in memory, deterministic by its seed.

    Args:
        seed: decides what survives a power loss, which bytes rot, and how long a sync takes.
        clock: what a slow sync waits on; without one, a sync gives other tasks one turn.
        capacity_bytes: how much may be written before ENOSPC, counted in sectors; None for as much as you like.
    """

    def __init__(self, seed: int = 0, *, clock: Clock | None = None, capacity_bytes: int | None = None) -> None:
        self.seed = seed
        self.clock = clock
        self.capacity_bytes = capacity_bytes
        """May be changed at any time, as when somebody makes room."""
        self.sync_seconds_max = 0.0
        """With a clock: each `sync` takes up to this many seconds."""
        self.operations: deque[Operation] = deque(maxlen=OPERATIONS_KEPT_MAX)
        self.operation_count = 0
        self.stop_at: int | None = None
        """The number of the operation (from 0) at which the power goes, before it has any effect."""
        self.on_power_loss: Callable[[PowerLoss], object] | None = None
        """Called once when that happens, for instance with `VirtualLoop.halt`."""
        self._random = Random(f"disk {seed}")
        self._numbers = itertools.count()
        self._folders = Folders()
        self._locks: set[str] = set()
        self._failures: list[tuple[str, str, int]] = []
        self._power_loss: PowerLoss | None = None

    # The seam.

    def open(self, path: str, *, create_size: int | None = None) -> DiskFile:
        path = self._check(path)
        if self._folders.is_folder(path):
            raise _error(errno.EISDIR, path)
        medium = self._folders.names.get(path)
        if medium is None:
            if create_size is None or not self._folders.is_folder(posixpath.dirname(path)):
                raise _error(errno.ENOENT, path)
            self._begin("create", path, 0, create_size)
            medium = Medium()
            self._folders.change(NameChange(next(self._numbers), path, medium))
        # A file of no bytes is what a crash between creating and sizing leaves behind.
        if create_size and not medium.size:
            self._begin("resize", path, 0, create_size)
            medium.resize(next(self._numbers), create_size)
        return SimulatedFile(self, path, medium)

    async def sync(self, file: DiskFile) -> None:
        medium = self._medium_of(file)
        number = self._begin_sync(file)
        await self._take_time()
        self._end_sync(file, medium, number)

    def sync_now(self, file: DiskFile) -> None:
        medium = self._medium_of(file)
        number = self._begin_sync(file)
        self._end_sync(file, medium, number)

    def sync_folder(self, path: str) -> None:
        self._end_folder_sync(*self._begin_folder_sync(path))

    async def sync_folder_beside(self, path: str) -> None:
        """The same, while other tasks go on."""
        folder, number = self._begin_folder_sync(path)
        await self._take_time()
        self._end_folder_sync(folder, number)

    def make_folder(self, path: str) -> None:
        path = self._check(path)
        if path in {"", "/"}:
            return
        parent = posixpath.dirname(path)
        if not self._folders.is_folder(path):
            if path in self._folders.names:
                raise _error(errno.EEXIST, path)
            self.make_folder(parent)
            self._begin("make_folder", path)
            self._folders.change(NameChange(next(self._numbers), path, None))
        self.sync_folder(parent)

    def list_folder(self, path: str) -> Sequence[str]:
        return self._folders.inside(self._check(path))

    def exists(self, path: str) -> bool:
        return self._check(path) in self._folders.names

    def rename(self, source: str, target: str) -> None:
        source, target = self._check(source), self._check(target)
        medium = self._folders.names.get(source)
        if medium is None or not self._folders.is_folder(posixpath.dirname(target)):
            raise _error(errno.ENOENT, source)
        self._begin("rename", f"{source} -> {target}")
        if source != target:
            self._folders.change(NameChange(next(self._numbers), target, medium, source=source))

    def remove(self, path: str) -> None:
        path = self._check(path)
        if self._folders.is_folder(path):
            raise _error(errno.EISDIR, path)
        if path in self._folders.names:
            self._begin("remove", path)
            self._folders.change(NameChange(next(self._numbers), path, None, gone=True))

    def usage(self, path: str) -> _Usage:
        self._check(path)
        total = _UNLIMITED_BYTES if self.capacity_bytes is None else self.capacity_bytes
        return _Usage(total, max(0, total - self.used_bytes))

    def lock(self, path: str) -> "_Lock":
        path = self._check(path)
        if not self._folders.is_folder(posixpath.dirname(path)):
            raise _error(errno.ENOENT, path)
        if path in self._locks:
            raise _error(errno.EWOULDBLOCK, path)
        self._locks.add(path)
        return _Lock(self._locks, path)

    # What a test does to it.

    @property
    def used_bytes(self) -> int:
        """Sectors that were written and are still part of a file, in bytes."""
        return SECTOR_BYTES * sum(len(medium.allocated) for medium in self._folders.media())

    def unsynced(self) -> list[str]:
        """Paths of files and names that a power loss could change now, sorted."""
        return self._folders.pending_paths()

    def fail(self, kind: str, *, path: str = "", times: int = 1, error: int = errno.EIO) -> None:
        """Let the next `times` operations of a kind (`write`, `sync`, `sync_folder`) on paths with `path` in them fail.

        After a sync that failed, some of what it covered is on the disk and some is not, and no later sync covers it:
        that is what Linux does.
        """
        self._failures += [(kind, path, error)] * times

    def rot(self, path: str, offset: int | None = None, mask: int | None = None) -> int:
        """Flip bits of one byte of a file, as a disk does that lies still for years; returns its offset.

        By default a random byte among those that were written, and a random bit.
        """
        medium = self._folders.names.get(normal_path(path))
        if medium is None:
            raise _error(errno.ENOENT, path)
        if offset is None:
            sector = self._random.choice(sorted(medium.allocated))
            offset = min(sector * SECTOR_BYTES + self._random.randrange(SECTOR_BYTES), medium.size - 1)
        medium.flip(offset, 1 << self._random.randrange(8) if mask is None else mask)
        return offset

    def crash(self) -> "SimulatedDisk":
        """The disk after a power loss at this moment. This one is dead afterwards.

        What survives of the unsynced names and contents is decided by the seed: nothing, everything, the first part in
        the order of the operations, or each sector and name by itself. A sync in flight may or may not have happened.
        """
        self._die(PowerLoss("the disk crashed"))
        random = self._random
        survival = Survival(
            random=random,
            mood=random.choice(MOODS),
            kept=random.choice((0.1, 0.5, 0.9)),
            last_number=random.choice([-1, *sorted(self._folders.pending())]),
        )
        return self._successor(self._folders.after_power_loss(survival))

    def kill(self) -> "SimulatedDisk":
        """The disk after the process was killed: every write that returned is seen, though not yet durable.

        This one is dead afterwards.
        """
        self._die(PowerLoss("the process was killed"))
        return self._successor(self._folders)

    # Inside.

    def _successor(self, folders: Folders) -> "SimulatedDisk":
        disk = SimulatedDisk(self._random.getrandbits(32), clock=self.clock, capacity_bytes=self.capacity_bytes)
        disk.sync_seconds_max = self.sync_seconds_max
        disk._folders = folders
        disk._numbers = self._numbers
        return disk

    def _check(self, path: str) -> str:
        if self._power_loss is not None:
            raise self._power_loss
        return normal_path(path)

    def _die(self, loss: PowerLoss) -> None:
        if self._power_loss is None:
            self._power_loss = loss

    def _begin(self, kind: str, path: str, offset: int = 0, length: int = 0) -> None:
        """Every operation that could be lost or cut starts here, and the power may go here."""
        if self._power_loss is not None:
            raise self._power_loss
        operation = Operation(self.operation_count, kind, path, offset, length)
        if operation.number == self.stop_at:
            self._power_loss = PowerLoss(f"the power went at {operation}")
            if self.on_power_loss is not None:
                self.on_power_loss(self._power_loss)
            raise self._power_loss
        self.operation_count += 1
        self.operations.append(operation)

    def _fail_if_asked(self, kind: str, path: str) -> None:
        for failure in self._failures:
            if failure[0] == kind and failure[1] in path:
                self._failures.remove(failure)
                raise _error(failure[2], path)

    def _medium_of(self, file: DiskFile) -> Medium:
        if not isinstance(file, SimulatedFile) or file.disk is not self:
            raise ValueError(f"{file.path} is not a file of this disk")
        return file.medium

    async def _take_time(self) -> None:
        if self.clock is not None and self.sync_seconds_max > 0:
            await self.clock.sleep(self._random.uniform(0, self.sync_seconds_max))
        else:
            await asyncio.sleep(0)

    def _begin_folder_sync(self, path: str) -> tuple[str, int]:
        folder = self._check(path)
        if not self._folders.is_folder(folder):
            raise _error(errno.ENOENT, folder)
        self._begin("sync_folder", folder)
        return folder, next(self._numbers)

    def _end_folder_sync(self, folder: str, number: int) -> None:
        self._begin("synced_folder", folder)
        self._fail_if_asked("sync_folder", folder)
        self._folders.make_durable(folder, number)

    def _begin_sync(self, file: DiskFile) -> int:
        self._begin("sync", file.path)
        return next(self._numbers)

    def _end_sync(self, file: DiskFile, medium: Medium, number: int) -> None:
        self._begin("synced", file.path)
        try:
            self._fail_if_asked("sync", file.path)
        except OSError:
            medium.forget_changes(number, Survival(self._random, "scattered", 0.5, number))
            raise
        medium.make_durable(number)

    def _write(self, path: str, medium: Medium, offset: int, data: bytes) -> None:
        self._begin("write", path, offset, len(data))
        self._fail_if_asked("write", path)
        fitting = self._fitting(medium, offset, len(data))
        if fitting:
            medium.write(next(self._numbers), offset, data[:fitting])
        if fitting < len(data):
            raise _error(errno.ENOSPC, path)

    def _fitting(self, medium: Medium, offset: int, length: int) -> int:
        """How many of the bytes can be written before the disk is full."""
        if self.capacity_bytes is None or not length:
            return length
        room = (self.capacity_bytes - self.used_bytes) // SECTOR_BYTES
        for sector in range(offset // SECTOR_BYTES, (offset + length - 1) // SECTOR_BYTES + 1):
            if sector not in medium.allocated:
                room -= 1
                if room < 0:
                    return max(0, sector * SECTOR_BYTES - offset)
        return length

    def _resize(self, path: str, medium: Medium, size: int) -> None:
        self._begin("resize", path, 0, size)
        medium.resize(next(self._numbers), size)

    def _clear_from(self, path: str, medium: Medium, offset: int) -> None:
        self._begin("clear", path, offset)
        medium.clear_from(next(self._numbers), offset)


class SimulatedFile(DiskFile):
    """A file of a `SimulatedDisk`; several may show the same one."""

    def __init__(self, disk: SimulatedDisk, path: str, medium: Medium) -> None:
        self.disk = disk
        self.medium = medium
        self._path = path
        self._closed = False

    @property
    def path(self) -> str:
        return self._path

    @property
    def size(self) -> int:
        return self.medium.size

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        self._check()
        self.disk._write(self._path, self.medium, offset, bytes(data))

    def read_at(self, offset: int, length: int) -> bytes:
        self._check()
        return bytes(self.medium.content[offset : min(offset + length, self.medium.size)])

    def view(self) -> memoryview:
        self._check()
        return memoryview(self.medium.content).toreadonly()[: self.medium.size]

    def resize(self, size: int) -> None:
        self._check()
        self.disk._resize(self._path, self.medium, size)

    def clear_from(self, offset: int) -> None:
        self._check()
        self.disk._clear_from(self._path, self.medium, offset)

    def close(self) -> None:
        self._closed = True

    def _check(self) -> None:
        self.disk._check(self._path)
        if self._closed:
            raise _error(errno.EBADF, self._path)


class _Lock:
    """A lock on a path of a simulated disk."""

    def __init__(self, locks: set[str], path: str) -> None:
        self._locks = locks
        self._path = path

    def release(self) -> None:
        self._locks.discard(self._path)


def _error(number: int, path: str) -> OSError:
    return OSError(number, os.strerror(number), path)
