"""The three seams through which PocketMQ touches the world: `Clock`, `Disk` and `Network`.

Everything that reads a time, waits, stores a byte or opens a connection does it through one of these, so that a
whole cluster can run on virtual time, on a disk that loses what was not synced, and on a network that drops and
delays. The real ones live in `pocketmq.net` (clock, network) and `pocketmq.log` (disk); the simulated ones in
`pocketmq.testing`.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol


class Cancellable(Protocol):
    """A scheduled call that has not run yet."""

    def cancel(self) -> None:
        """Forget the call; no effect when it already ran."""


class Clock(Protocol):
    """Time as the product sees it: wall time for stamps, monotonic time for time-outs."""

    def time_ms(self) -> int:
        """Wall-clock time in milliseconds since the Unix epoch."""

    def monotonic(self) -> float:
        """Seconds on a clock that never goes backwards; only differences mean something."""

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run `callback(*args)` on the event loop after `delay` seconds."""

    async def sleep(self, delay: float) -> None:
        """Wait `delay` seconds (0 gives other tasks one turn)."""


class DiskFile(Protocol):
    """One file of fixed capacity, written in place and read through a view.

    A write is visible to `view` and `read_at` as soon as `write_at` returns, and durable once a `Disk.sync` that
    was begun afterwards has returned.
    """

    @property
    def path(self) -> str:
        """The path the file was opened by."""

    @property
    def size(self) -> int:
        """Size in bytes as the file system sees it (sparse parts included)."""

    def write_at(self, offset: int, data: bytes | bytearray | memoryview) -> None:
        """Write all of `data` at `offset`. Raises OSError (ENOSPC when the disk is full); part may be written then."""

    def read_at(self, offset: int, length: int) -> bytes:
        """Read up to `length` bytes at `offset`; shorter only at the end of the file."""

    def view(self) -> memoryview:
        """A read-only view of the whole file as it was sized when opened or last resized. Never copies."""

    def resize(self, size: int) -> None:
        """Cut or extend to `size` bytes; what is added reads as zeros and takes no room until written."""

    def clear_from(self, offset: int) -> None:
        """Make everything from `offset` to the end read as zeros again, keeping the size."""

    def close(self) -> None:
        """Release the file; views handed out earlier stay readable until they are dropped."""


class DiskUsage(Protocol):
    """How full the disk is that holds a path."""

    @property
    def total_bytes(self) -> int: ...

    @property
    def free_bytes(self) -> int: ...


class DiskLock(Protocol):
    """An exclusive hold on a data directory."""

    def release(self) -> None: ...


class Disk(Protocol):
    """A file system, seen from above. Paths are plain strings with `/`."""

    def open(self, path: str, *, create_size: int | None = None) -> DiskFile:
        """Open a file. With `create_size`, create it (sparse, of that many bytes) if it does not exist.

        Raises FileNotFoundError, OSError.
        """

    async def sync(self, file: DiskFile) -> None:
        """Make every write to `file` that returned before this call durable. Runs beside the event loop."""

    def sync_now(self, file: DiskFile) -> None:
        """The same, at once and blocking: for start-up, shut-down and small files."""

    def sync_folder(self, path: str) -> None:
        """Make the names in folder `path` durable (files created, renamed or removed in it)."""

    def make_folder(self, path: str) -> None:
        """Create the folder and its parents; fine when it exists. Its name is durable when this returns."""

    def list_folder(self, path: str) -> Sequence[str]:
        """Names in the folder, sorted; empty when it does not exist."""

    def exists(self, path: str) -> bool: ...

    def rename(self, source: str, target: str) -> None:
        """Move atomically over `target`; durable only after `sync_folder`."""

    def remove(self, path: str) -> None:
        """Delete a file; fine when it does not exist."""

    def usage(self, path: str) -> DiskUsage: ...

    def lock(self, path: str) -> DiskLock:
        """Hold `path` exclusively. Raises BlockingIOError when somebody else holds it."""


class Listener(Protocol):
    """An open listening port."""

    @property
    def host(self) -> str: ...

    @property
    def port(self) -> int:
        """The port in use (the real one when 0 was asked for)."""

    def close(self) -> None:
        """Accept no more; connections already open stay."""


class Network(Protocol):
    """Opens ports and connections. Protocols and transports are asyncio's."""

    async def listen(self, host: str, port: int, protocol_factory: Callable[[], Any]) -> Listener:
        """Listen on host and port (0: any free one). Raises OSError when the port is taken."""

    async def connect(self, host: str, port: int, protocol_factory: Callable[[], Any], *, timeout: float) -> Any:
        """Connect and return the protocol, its `connection_made` called. Raises OSError or TimeoutError."""
