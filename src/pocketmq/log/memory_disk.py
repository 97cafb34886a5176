"""A `Disk` in memory, for `--ephemeral` and for tests: the same code above it, nothing below.

Files are anonymous mappings, so a sparse file of 1 GiB takes memory only for the pages that were written.
"""

import errno
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass

from pocketmq.model.seams import DiskFile, DiskLock

_PAGE_BYTES = mmap.PAGESIZE
CAPACITY_BYTES = 1024 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class MemorySpace:
    """How full the disk in memory is."""

    total_bytes: int
    free_bytes: int


class MemoryFile:
    """One file in memory; opening its path again gives this same object."""

    def __init__(self, disk: "MemoryDisk", path: str, size: int) -> None:
        self.path = path
        self.size = size
        self._disk = disk
        self._map = _new_map(size)
        self._view = memoryview(self._map)[:size]
        self.used_bytes = 0

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `offset`. Raises OSError (ENOSPC) when the disk in memory is full."""
        end = offset + len(data)
        if end > self.size:
            self.resize(end)
        if end > self.used_bytes:
            self._disk.take(self.path, end - self.used_bytes)
            self.used_bytes = end
        self._view[offset:end] = data

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes at `offset`; shorter only at the end of the file."""
        return bytes(self._view[offset : offset + length])

    def view(self) -> memoryview:
        """A read-only view of the whole file. Never copies."""
        return self._view.toreadonly()

    def resize(self, size: int) -> None:
        """Cut or extend to `size` bytes. Views handed out earlier keep what they show."""
        kept = min(size, self.used_bytes)
        new_map = _new_map(size)
        new_view = memoryview(new_map)[:size]
        new_view[:kept] = self._view[:kept]
        self._disk.take(self.path, kept - self.used_bytes)
        self._map, self._view, self.size, self.used_bytes = new_map, new_view, size, kept

    def clear_from(self, offset: int) -> None:
        """Make everything from `offset` to the end read as zeros again, and give its memory back."""
        if offset >= self.used_bytes:
            return
        page_start = min(-(-offset // _PAGE_BYTES) * _PAGE_BYTES, self.size)
        self._view[offset:page_start] = bytes(page_start - offset)
        if page_start < self.used_bytes:
            # Private anonymous pages that are given back read as zeros when they are next touched.
            self._map.madvise(mmap.MADV_DONTNEED, page_start, self.used_bytes - page_start)
        self._disk.take(self.path, offset - self.used_bytes)
        self.used_bytes = offset

    def close(self) -> None:
        """Nothing to release: the file lives as long as its name or a view of it does."""


class MemoryLock:
    """An exclusive hold on a path."""

    def __init__(self, held: set[str], path: str) -> None:
        self._held = held
        self._path = path

    def release(self) -> None:
        """Give the path free."""
        self._held.discard(self._path)


class MemoryDisk:
    """A file system of `capacity_bytes` in memory."""

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self.capacity_bytes = capacity_bytes
        self.used_bytes = 0
        self._files: dict[str, MemoryFile] = {}
        self._folders: set[str] = set()
        self._locked: set[str] = set()

    def open(self, path: str, *, create_size: int | None = None) -> MemoryFile:
        """Open a file; with `create_size`, create it if it does not exist."""
        file = self._files.get(path)
        if file is None:
            if create_size is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            file = self._files[path] = MemoryFile(self, path, create_size)
        return file

    async def sync(self, file: DiskFile) -> None:
        """Memory is as durable as it gets at once."""

    def sync_now(self, file: DiskFile) -> None:
        """Nothing to do."""

    def sync_folder(self, path: str) -> None:
        """Nothing to do."""

    def make_folder(self, path: str) -> None:
        """Create the folder and its parents."""
        while path and path != "/":
            self._folders.add(path)
            path = path.rpartition("/")[0]

    def list_folder(self, path: str) -> Sequence[str]:
        """Names in the folder, sorted; empty when it does not exist."""
        prefix = path.rstrip("/") + "/"
        paths = [*self._files, *self._folders]
        return sorted({name[len(prefix) :].partition("/")[0] for name in paths if name.startswith(prefix)})

    def exists(self, path: str) -> bool:
        return path in self._files or path in self._folders

    def rename(self, source: str, target: str) -> None:
        """Move atomically over `target`."""
        if source not in self._files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), source)
        self.remove(target)
        file = self._files.pop(source)
        file.path = target
        self._files[target] = file

    def remove(self, path: str) -> None:
        """Delete a file; fine when it does not exist. Its memory goes when the last view of it goes."""
        file = self._files.pop(path, None)
        if file is not None:
            self.used_bytes -= file.used_bytes

    def usage(self, path: str) -> MemorySpace:
        """How full the disk in memory is."""
        return MemorySpace(self.capacity_bytes, max(0, self.capacity_bytes - self.used_bytes))

    def lock(self, path: str) -> DiskLock:
        """Hold `path` exclusively. Raises BlockingIOError when it is held."""
        if path in self._locked:
            raise BlockingIOError(f"{path} is locked")
        self._locked.add(path)
        return MemoryLock(self._locked, path)

    def take(self, path: str, count: int) -> None:
        """Account for `count` more bytes (fewer when negative). Raises OSError (ENOSPC)."""
        if path not in self._files:
            return  # removed while still open: no longer part of the disk
        if count > 0 and self.used_bytes + count > self.capacity_bytes:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        self.used_bytes += count


def _new_map(size: int) -> mmap.mmap:
    return mmap.mmap(-1, max(size, 1), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
