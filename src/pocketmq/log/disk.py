"""The real `Disk`: files written with pwrite, read through a read-only mapping.

Why not write through the mapping: a full disk would then be a SIGBUS in the middle of a store instruction, and not an
OSError that can be answered with "disk full". Why read through it: a record goes from the page cache to the socket
without being copied into Python first.
"""

import asyncio
import fcntl
import mmap
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.seams import Disk, DiskFile, DiskLock

__all__ = ["DiskSpace", "MemoryDisk", "RealDisk", "sync_folder"]

_SYNC_THREADS = 2
_LARGE_BYTES = 16 * 1024 * 1024
_sync_data = getattr(os, "fdatasync", os.fsync)


@runtime_checkable
class SyncsFoldersBeside(Protocol):
    """A disk that can make the names in a folder durable without holding up the event loop."""

    async def sync_folder_beside(self, path: str) -> None: ...


async def sync_folder(disk: Disk, path: str) -> None:
    """Make the names in `path` durable; beside the event loop when the disk can do that.

    On a journaling file system this may have to wait for all data written so far, hence for much longer than a small
    file would.
    """
    if isinstance(disk, SyncsFoldersBeside):
        await disk.sync_folder_beside(path)
    else:
        disk.sync_folder(path)


@dataclass(frozen=True, slots=True)
class DiskSpace:
    """How full a disk is; `total_bytes` leaves out what only the superuser may take, as `df` does."""

    total_bytes: int
    free_bytes: int


class RealFile:
    """One file on a real disk."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.size = os.fstat(descriptor).st_size
        self._descriptor = descriptor
        self._view: memoryview | None = None
        self._syncs_running = 0
        self._closing = False

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `offset`. Raises OSError; part may be written then."""
        written = os.pwrite(self._descriptor, data, offset)
        while written < len(data):
            written += os.pwrite(self._descriptor, memoryview(data)[written:], offset + written)
        if offset + written > self.size:
            self.size = offset + written
            self._view = None

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes at `offset`; shorter only at the end of the file."""
        data = os.pread(self._descriptor, length, offset)
        while len(data) < length:
            more = os.pread(self._descriptor, length - len(data), offset + len(data))
            if not more:
                break
            data += more
        return data

    def view(self) -> memoryview:
        """A read-only view of the whole file. Never copies."""
        if self._view is None:
            if self.size == 0:
                return memoryview(b"")
            self._view = memoryview(mmap.mmap(self._descriptor, self.size, prot=mmap.PROT_READ))
        return self._view

    def resize(self, size: int) -> None:
        """Cut or extend to `size` bytes; what is added reads as zeros and takes no room until written."""
        os.ftruncate(self._descriptor, size)
        self.size = size
        self._view = None

    def clear_from(self, offset: int) -> None:
        """Make everything from `offset` to the end read as zeros again, keeping the size."""
        os.ftruncate(self._descriptor, offset)
        os.ftruncate(self._descriptor, self.size)

    def close(self) -> None:
        """Release the file once no sync of it is running; views handed out earlier stay readable."""
        self._closing = True
        self._view = None
        self._close_when_idle()

    def sync(self) -> None:
        """Block until everything written so far is durable."""
        _sync_data(self._descriptor)

    def begin_sync(self) -> None:
        """Keep the descriptor open until `end_sync`."""
        self._syncs_running += 1

    def end_sync(self) -> None:
        """A sync that was begun is over."""
        self._syncs_running -= 1
        if self._closing:
            self._close_when_idle()

    def _close_when_idle(self) -> None:
        if self._syncs_running == 0 and self._descriptor >= 0:
            descriptor, self._descriptor = self._descriptor, -1
            os.close(descriptor)


class RealLock:
    """An exclusive hold on a path, ended by `release` or by the end of the process, however it comes."""

    def __init__(self, disk: "RealDisk", path: str, descriptor: int) -> None:
        self._disk = disk
        self._path = path
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the path free; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
            self._disk.forget_lock(self._path)


class RealDisk:
    """The file system of this machine."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._locked: set[str] = set()

    def open(self, path: str, *, create_size: int | None = None) -> RealFile:
        """Open a file; with `create_size`, create it (sparse, of that many bytes) if it does not exist."""
        flags = os.O_RDWR if create_size is None else os.O_RDWR | os.O_CREAT
        descriptor = os.open(path, flags, 0o644)
        try:
            # A file of no bytes is what a crash between creating and sizing leaves behind.
            if create_size and os.fstat(descriptor).st_size == 0:
                os.ftruncate(descriptor, create_size)
            return RealFile(path, descriptor)
        except BaseException:
            os.close(descriptor)
            raise

    async def sync(self, file: DiskFile) -> None:
        """Make every write to `file` that returned before this call durable, in a thread."""
        assert isinstance(file, RealFile)
        file.begin_sync()
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads(), file.sync)
        finally:
            file.end_sync()

    def sync_now(self, file: DiskFile) -> None:
        """The same, at once and blocking."""
        assert isinstance(file, RealFile)
        file.sync()

    def sync_folder(self, path: str) -> None:
        """Make the names in folder `path` durable."""
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    async def sync_folder_beside(self, path: str) -> None:
        """The same, in a thread."""
        await asyncio.get_running_loop().run_in_executor(self._threads(), self.sync_folder, path)

    def make_folder(self, path: str) -> None:
        """Create the folder and its parents; fine when it exists. Its name is durable when this returns."""
        # An existing one may be what a process left that was killed before it could sync the name.
        unsure = [Path(path)]
        while not unsure[-1].exists():
            unsure.append(unsure[-1].parent)
        Path(path).mkdir(parents=True, exist_ok=True)
        for folder in unsure:
            try:
                self.sync_folder(str(folder.parent))
            except PermissionError:
                break  # a folder that we may not read has names that we did not make

    def list_folder(self, path: str) -> Sequence[str]:
        """Names in the folder, sorted; empty when it does not exist."""
        try:
            return sorted(os.listdir(path))  # noqa: PTH208 - names only, and there may be many
        except FileNotFoundError:
            return []

    def exists(self, path: str) -> bool:
        return Path(path).exists()

    def rename(self, source: str, target: str) -> None:
        """Move atomically over `target`; durable only after `sync_folder`."""
        Path(source).replace(target)

    def remove(self, path: str) -> None:
        """Delete a file; fine when it does not exist. The room of a large one is given back in a thread."""
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return
        large = os.fstat(descriptor).st_size >= _LARGE_BYTES
        Path(path).unlink()
        # A file system takes long to free a large file, and does it for whoever closes it last.
        if large:
            self._threads().submit(os.close, descriptor)
        else:
            os.close(descriptor)

    def usage(self, path: str) -> DiskSpace:
        """How full the disk is that holds `path`."""
        status = os.statvfs(path)
        free = status.f_bavail * status.f_frsize
        used = (status.f_blocks - status.f_bfree) * status.f_frsize
        return DiskSpace(used + free, free)

    def lock(self, path: str) -> DiskLock:
        """Hold `path` exclusively. Raises BlockingIOError when somebody else holds it."""
        real_path = str(Path(path).resolve())
        if real_path in self._locked:
            raise BlockingIOError(f"{path} is locked by this process")
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Java takes the other kind of lock, so both are held.
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(descriptor)
            raise BlockingIOError(f"{path} is locked by another process") from error
        self._locked.add(real_path)
        return RealLock(self, real_path, descriptor)

    def forget_lock(self, real_path: str) -> None:
        """Called by a lock that was released."""
        self._locked.discard(real_path)

    def _threads(self) -> ThreadPoolExecutor:
        if self._executor is None:
            self._executor = ThreadPoolExecutor(_SYNC_THREADS, thread_name_prefix="pocketmq-sync")
        return self._executor
