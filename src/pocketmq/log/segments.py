"""The files of the commit log: `commitlog/<20-digit start position>`, each of a fixed size, sparse until written.

A position is a byte in the whole log; the segment that starts at 1,073,741,824 holds the positions from there on.
Sealed segments never change, so they are opened when somebody reads them and only so many are kept open.
"""

from bisect import bisect_right
from collections.abc import Iterator

from pocketmq.model.seams import Disk, DiskFile
from pocketmq.wire.record import (
    MAGIC_V1,
    MAGIC_V2,
    RECORD_BYTES_MIN,
    RECORD_FRONT,
    STORE_TIMESTAMP_AT,
    SysFlag,
)

NAME_DIGITS = 20
OPEN_SEGMENTS_MAX = 256


def position_name(position: int) -> str:
    """How a position is written in a file name."""
    return f"{position:0{NAME_DIGITS}d}"


class Segment:
    """One file of the log; it covers the positions `[start, end)`."""

    __slots__ = ("_first_timestamp", "file", "path", "size", "start", "view")

    def __init__(self, path: str, start: int, file: DiskFile) -> None:
        self.path = path
        self.start = start
        self.size = file.size
        self.file: DiskFile | None = file
        self.view: memoryview | None = file.view()
        self._first_timestamp: int | None = None

    @property
    def end(self) -> int:
        """The position after its last byte; the start of the next segment."""
        return self.start + self.size

    def first_timestamp(self) -> int | None:
        """Store timestamp (ms) of its first record; None while there is none, or the segment is not open."""
        if self._first_timestamp is None:
            self._first_timestamp = self.timestamp_at(self.start)
        return self._first_timestamp

    def timestamp_at(self, position: int) -> int | None:
        """Store timestamp (ms) of the record at `position`; None when none begins there."""
        offset = position - self.start
        if self.file is None or not 0 <= offset <= self.size - RECORD_BYTES_MIN:
            return None
        head = self.read(offset, RECORD_BYTES_MIN)
        _, magic, _, _, _, _, _, sys_flag, _ = RECORD_FRONT.unpack_from(head)
        if magic not in (MAGIC_V1, MAGIC_V2):
            return None
        at = STORE_TIMESTAMP_AT + (12 if sys_flag & SysFlag.BORN_HOST_V6 else 0)
        return int.from_bytes(head[at : at + 8], "big")

    def read(self, offset: int, length: int) -> bytes:
        """Bytes of the open file, a copy: for places that were perhaps never written.

        A page that was never written may not be touched through the mapping: a file system in memory gives it room
        then, and when it has none it ends the process (SIGBUS).
        """
        assert self.file is not None
        return self.file.read_at(offset, length)


class Segments:
    """All segments by rising position, without gaps."""

    def __init__(self, disk: Disk, folder: str, *, open_max: int = OPEN_SEGMENTS_MAX) -> None:
        self.disk = disk
        self.folder = folder
        self._open_max = open_max
        self._items: list[Segment] = []
        self._starts: list[int] = []
        self._recent: dict[int, Segment] = {}
        self._last: Segment | None = None
        self.stranded: list[int] = []
        """Starts of files that do not follow the last segment: something between is missing."""

    def load(self, default_size: int, *, fill_gaps: bool = False) -> None:
        """Find the segments in the folder.

        Segments behind a missing one become `stranded`; with `fill_gaps`, an empty file takes its place instead.
        """
        names = [name for name in self.disk.list_folder(self.folder) if len(name) == NAME_DIGITS and name.isdigit()]
        for name in names:
            start = int(name)
            if self._items and self._items[-1].end != start:
                expected = self._items[-1].end
                if not fill_gaps or start < expected:
                    self.stranded = [int(other) for other in names if int(other) >= start]
                    return
                self._open_new(expected, start - expected)
            self._open_new(start, default_size)

    def read_stranded(self, start: int) -> Segment:
        """One of the `stranded` segments, for looking at it."""
        path = f"{self.folder}/{position_name(start)}"
        return Segment(path, start, self.disk.open(path))

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._items)

    def __getitem__(self, index: int) -> Segment:
        return self._items[index]

    def find(self, position: int) -> Segment | None:
        """The open segment that holds `position`, or None when no segment does."""
        segment = self._last
        if (
            segment is not None
            and segment.start <= position < segment.start + segment.size
            and segment.view is not None
        ):
            return segment
        index = bisect_right(self._starts, position) - 1
        if index < 0 or position >= self._items[index].end:
            return None
        segment = self._items[index]
        self._use(segment)
        self._last = segment
        return segment

    def after(self, segment: Segment) -> Segment | None:
        """The segment that follows."""
        index = bisect_right(self._starts, segment.start)
        return self._items[index] if index < len(self._items) else None

    def create(self, start: int, size: int) -> Segment:
        """Add the segment that starts where the last one ends. Raises OSError."""
        assert not self._items or self._items[-1].end == start
        return self._open_new(start, size)

    def remove(self, segment: Segment) -> None:
        """Delete the first or the last segment's file. Views of it stay readable until they are dropped."""
        index = 0 if segment is self._items[0] else len(self._items) - 1
        assert self._items[index] is segment
        del self._items[index], self._starts[index]
        if self._last is segment:
            self._last = None
        self._recent.pop(segment.start, None)
        self._close(segment)
        self.disk.remove(segment.path)

    def close(self) -> None:
        """Release all files."""
        for segment in self._items:
            self._close(segment)
        self._last = None

    def _open_new(self, start: int, size: int) -> Segment:
        path = f"{self.folder}/{position_name(start)}"
        segment = Segment(path, start, self.disk.open(path, create_size=size))
        self._items.append(segment)
        self._starts.append(start)
        self._use(segment)
        return segment

    def _use(self, segment: Segment) -> None:
        """Open it if need be, and close the one that was not used for longest when too many are open."""
        if segment.file is None:
            segment.file = self.disk.open(segment.path)
        if segment.view is None:
            segment.view = segment.file.view()
        self._recent.pop(segment.start, None)
        self._recent[segment.start] = segment
        if len(self._recent) > self._open_max:
            for start in self._recent:
                if start != self._starts[-1] and start != segment.start:
                    self._close(self._recent.pop(start))
                    break

    @staticmethod
    def _close(segment: Segment) -> None:
        if segment.file is not None:
            segment.file.close()
        segment.file = segment.view = None
