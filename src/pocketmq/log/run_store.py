"""All runs of a log: which file covers which stretch, a bounded number of them open, and where a queue's units are.

Theory of operation. Runs follow each other without gaps from the first segment to the position where the memory
takes over. A queue knows the newest run it is in (`LogQueue.last_run`), and each entry knows the run before, so the
runs of one queue form a chain from new to old. A read goes to the place that the last read of that queue ended at, or
to the next run; only a jump has to search: first by halving (a busy queue is in every run), then along the chain (a
quiet one is in few).
"""

from bisect import bisect_right

from pocketmq.log.queues import NO_UNITS, LogQueue
from pocketmq.log.run_format import HEADER_BYTES, Run, RunEntry, RunHeader, parse_header
from pocketmq.log.segments import position_name
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.seams import Disk, DiskFile

SUFFIX = ".run"
TEMPORARY = ".new"


def run_name(start: int, end: int) -> str:
    """The file name of the run that covers `[start, end)`."""
    return f"{position_name(start)}-{position_name(end)}{SUFFIX}"


class RunFile:
    """One run on the disk, open or not."""

    __slots__ = ("end", "file", "first_timestamp", "gone", "last_timestamp", "path", "queue_count", "run", "start")

    def __init__(self, path: str, header: RunHeader) -> None:
        self.path = path
        self.start = header.start
        self.end = header.end
        self.first_timestamp = header.first_timestamp
        self.last_timestamp = header.last_timestamp
        self.queue_count = header.queue_count
        self.file: DiskFile | None = None
        self.run: Run | None = None
        self.gone = False
        """Merged into another, deleted, or found damaged."""


class Place:
    """Where the units of one queue are in one run: offsets `[first, end)` from unit number `index` on."""

    __slots__ = ("end", "file", "first", "index")

    def __init__(self, file: RunFile, entry: RunEntry) -> None:
        self.file = file
        self.first = entry.first
        self.end = entry.end
        self.index = entry.first_unit


class RunStore:
    """The runs in one folder."""

    def __init__(self, disk: Disk, folder: str, *, open_max: int) -> None:
        self.disk = disk
        self.folder = folder
        self.files: list[RunFile] = []
        """By rising position."""
        self.damaged: list[RunFile] = []
        """Runs that failed a checksum while in use; to be made again from the log."""
        self.floors: dict[LogQueue, int] = {}
        """Queues whose offsets began again: runs that end at or before the position belong to an earlier life."""
        self._starts: list[int] = []
        self._open_max = max(open_max, 1)
        self._open: dict[int, RunFile] = {}

    @property
    def end(self) -> int | None:
        """Where the last run ends; None when there is no run."""
        return self.files[-1].end if self.files else None

    def load(self) -> None:
        """Find the runs in the folder; drop what a crash left behind and what does not have a valid header."""
        found = []
        for name in self.disk.list_folder(self.folder):
            path = f"{self.folder}/{name}"
            if name.endswith(SUFFIX + TEMPORARY):
                self.disk.remove(path)
            elif name.endswith(SUFFIX):
                header = self._read_header(path, name)
                if header is None:
                    self.disk.remove(path)
                else:
                    found.append(RunFile(path, header))
        # A merged run is valid before the runs it was made of are gone, so the wider one wins.
        found.sort(key=lambda file: (file.start, -file.end))
        for file in found:
            if self.files and file.start < self.files[-1].end:
                self.disk.remove(file.path)
            else:
                self.files.append(file)
        self._starts = [file.start for file in self.files]

    def covering(self, position: int) -> RunFile | None:
        """The run whose stretch holds `position`."""
        number = bisect_right(self._starts, position) - 1
        if number < 0 or position >= self.files[number].end:
            return None
        return self.files[number]

    def number_at(self, position: int) -> int:
        """Index in `files` of the first run that ends behind `position`."""
        number = bisect_right(self._starts, position) - 1
        return number if number >= 0 and position < self.files[number].end else number + 1

    def add(self, start: int, end: int) -> RunFile:
        """A new run is in place: it takes the place of all runs inside its stretch, whose files go."""
        path = f"{self.folder}/{run_name(start, end)}"
        header = self._read_header(path, run_name(start, end))
        if header is None:
            raise StoreCorruptError(f"{path} was just written and cannot be read back")
        file = RunFile(path, header)
        replaced = [known for known in self.files if start <= known.start and known.end <= end]
        kept = [known for known in self.files if known not in replaced] if replaced else self.files
        self.files = [*kept, file]
        if len(self.files) > 1 and self.files[-2].start > start:
            self.files.sort(key=lambda known: known.start)
        self._starts = [known.start for known in self.files]
        for known in replaced:
            self._forget(known)
            if known.path != path:
                self.disk.remove(known.path)
        return file

    def remove(self, file: RunFile) -> None:
        """Delete a run."""
        self.files.remove(file)
        self._starts = [known.start for known in self.files]
        self._forget(file)
        self.disk.remove(file.path)

    def open(self, file: RunFile) -> Run:
        """The run, opened if need be. Raises StoreCorruptError, after noting it in `damaged`."""
        if file.run is not None:
            return file.run
        try:
            file.file = self.disk.open(file.path)
            file.run = Run(file.path, file.file.view())
        except (OSError, StoreCorruptError) as error:
            raise self.report(file, error) from error
        self._open[file.start] = file
        if len(self._open) > self._open_max:
            self._close(self._open[next(iter(self._open))])
        return file.run

    def report(self, file: RunFile, error: Exception) -> StoreCorruptError:
        """Take a damaged run out of use; returns the error for whoever wanted something from it."""
        if not file.gone:
            file.gone = True
            self._close(file)
            self.damaged.append(file)
        return StoreCorruptError(f"{error}; this part of the index is being made again", retryable=True)

    def close(self) -> None:
        """Release all files."""
        for file in list(self._open.values()):
            self._close(file)

    # -- looking up ---------------------------------------------------------------------------------------------

    def units(self, queue: LogQueue, offset: int, count: int) -> memoryview:
        """Units from `offset` on, at least one, up to `count`, from one run. Raises StoreCorruptError."""
        place = queue.hint
        if type(place) is not Place or place.file.gone or not place.first <= offset < place.end:
            place = self.locate(queue, offset)
        file = place.file
        run = file.run or self.open(file)
        try:
            return run.units(place.index + offset - place.first, min(count, place.end - offset))
        except StoreCorruptError as error:
            raise self.report(file, error) from error

    def locate(self, queue: LogQueue, offset: int) -> Place:
        """The run and the place in it that hold `offset`, and remember it for the next read."""
        hint = queue.hint
        place = None
        if type(hint) is Place and hint.end == offset and not hint.file.gone:
            place = self._place_in(self.number_at(hint.file.end), queue, offset)
        place = place or self._search(queue, offset)
        if place is None:
            raise StoreCorruptError(f"the index has no unit for {queue!r} at offset {offset}", retryable=True)
        queue.hint = place
        return place

    def _search(self, queue: LogQueue, offset: int) -> Place | None:
        floor = self.floors.get(queue, 0) if self.floors else 0
        low = self.number_at(floor)
        high = self.number_at(queue.last_run) if queue.last_run >= 0 else -1
        newest = high
        # A busy queue: halve.
        while low <= high:
            middle = (low + high) // 2
            entry = self._entry(middle, queue)
            if entry is None:
                break
            if entry.first <= offset < entry.end:
                return Place(self.files[middle], entry)
            if offset < entry.first:
                newest, high = middle, middle - 1
            else:
                low = middle + 1
        # A quiet one: follow the chain.
        number = newest
        while 0 <= number < len(self.files):
            entry = self._entry(number, queue)
            if entry is None or offset >= entry.end:
                return None
            if offset >= entry.first:
                return Place(self.files[number], entry)
            if entry.previous < 0 or entry.previous < self.files[0].start:
                return None
            number = self.number_at(entry.previous)
        return None

    def _place_in(self, number: int, queue: LogQueue, offset: int) -> Place | None:
        if number >= len(self.files):
            return None
        entry = self._entry(number, queue)
        return Place(self.files[number], entry) if entry and entry.first <= offset < entry.end else None

    def _entry(self, number: int, queue: LogQueue) -> RunEntry | None:
        file = self.files[number]
        if file.gone:
            raise StoreCorruptError(
                f"{file.path} is damaged; this part of the index is being made again", retryable=True
            )
        return (file.run or self.open(file)).find(queue.topic, queue.queue_id)

    # -- inside -------------------------------------------------------------------------------------------------

    def _read_header(self, path: str, name: str) -> RunHeader | None:
        try:
            file = self.disk.open(path)
        except OSError:
            return None
        try:
            header = parse_header(file.read_at(0, HEADER_BYTES), path)
            return header if file.size == header.file_bytes and run_name(header.start, header.end) == name else None
        except StoreCorruptError:
            return None
        finally:
            file.close()

    def _forget(self, file: RunFile) -> None:
        file.gone = True
        self._close(file)

    def _close(self, file: RunFile) -> None:
        self._open.pop(file.start, None)
        file.run = None
        if file.file is not None:
            file.file.close()
            file.file = None


def release_units(queue: LogQueue, count: int, unit_bytes: int) -> None:
    """Drop the oldest `count` units of a queue from memory: a run has them now."""
    del queue.units[: count * unit_bytes]
    if not queue.units:
        queue.units = NO_UNITS
