"""What one file of a simulated disk holds: its content as programs see it, and what a power loss would leave of it.

Theory of operation: every change since the last sync is kept in order. A sync that was begun at some moment makes the
changes up to that moment durable when it ends. At a power loss each sector that has unsynced changes keeps some first
part of them (none, some, or all), independently of every other sector: that is how disks reorder, and how a record is
torn. Changes of the size are metadata, which a file system keeps in order, so a first part of those survives.
"""

import mmap
from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Literal, NamedTuple

SECTOR_BYTES = 512
"""What a disk writes whole or not at all."""

_MAP_FROM_BYTES = 256 * 1024

Buffer = bytearray | mmap.mmap

Mood = Literal["nothing", "everything", "first", "scattered"]
"""What survives of what was not synced: nothing, everything, the first part in the order of writing, or any of it."""

MOODS: tuple[Mood, ...] = ("nothing", "everything", "first", "scattered", "scattered")


class Change(NamedTuple):
    """One change that is not durable yet: `data` at `offset`, or a new `size`, or zeros in `sectors`."""

    number: int
    offset: int
    data: bytes
    size: int | None
    sectors: tuple[int, ...]

    def touched(self) -> Sequence[int]:
        """The sectors whose content it changes."""
        if self.data:
            return range(self.offset // SECTOR_BYTES, (self.offset + len(self.data) - 1) // SECTOR_BYTES + 1)
        return self.sectors


class Survival(NamedTuple):
    """How a power loss treats what was not synced."""

    random: Random
    mood: Mood
    kept: float
    """Chance of a sector with unsynced changes to keep any, in the mood `scattered`."""
    last_number: int
    """The last change (of the whole disk) that survives, in the mood `first`; it is torn."""


class Medium:
    """The content of one file, twice: as it is seen, and as it would be after a power loss."""

    def __init__(self, size: int = 0) -> None:
        self.size = size
        self.content = _make_buffer(size)
        self.allocated: set[int] = set()
        self._durable_size = 0
        self._durable = _make_buffer(0)
        self._durable_allocated: set[int] = set()
        self._changes: list[Change] = []

    def write(self, number: int, offset: int, data: bytes) -> None:
        """Put `data` at `offset`, extending the file when it ends beyond the end."""
        if offset + len(data) > self.size:
            self.resize(number, offset + len(data))
        self.content[offset : offset + len(data)] = data
        change = Change(number, offset, data, None, ())
        self.allocated.update(change.touched())
        self._changes.append(change)

    def resize(self, number: int, size: int) -> None:
        """Cut, or extend with zeros. Views taken earlier no longer follow."""
        self.allocated = {sector for sector in self.allocated if sector * SECTOR_BYTES < size}
        self.content = _resized(self.content, self.allocated, size)
        self.size = size
        self._changes.append(Change(number, 0, b"", size, ()))

    def clear_from(self, number: int, offset: int) -> None:
        """Make everything from `offset` read as zeros."""
        border = -(-offset // SECTOR_BYTES)
        if offset % SECTOR_BYTES and border - 1 in self.allocated:
            self.write(number, offset, bytes(min(border * SECTOR_BYTES, self.size) - offset))
        cleared = tuple(sorted(sector for sector in self.allocated if sector >= border))
        for sector in cleared:
            start, end = sector * SECTOR_BYTES, min((sector + 1) * SECTOR_BYTES, self.size)
            self.content[start:end] = bytes(end - start)
        self.allocated.difference_update(cleared)
        self._changes.append(Change(number, 0, b"", None, cleared))

    def make_durable(self, number: int) -> None:
        """Make every change up to the one of that number durable."""
        count = sum(change.number <= number for change in self._changes)
        for change in self._changes[:count]:
            if change.data:
                self._durable[change.offset : change.offset + len(change.data)] = change.data
                self._durable_allocated.update(change.touched())
            else:
                self._apply(change, change.sectors)
        del self._changes[:count]

    def forget_changes(self, number: int, survival: Survival) -> None:
        """What a sync that failed does: some of it is on the disk, and the system will not try again with the rest."""
        count = sum(change.number <= number for change in self._changes)
        later = self._changes[count:]
        del self._changes[count:]
        self._apply_survivors(survival)
        self._changes = later

    def pending(self) -> list[int]:
        """The numbers of the changes that wait for a sync."""
        return [change.number for change in self._changes]

    def flip(self, offset: int, mask: int) -> None:
        """Let a byte rot, as seen and as durable."""
        self.content[offset] ^= mask
        self.allocated.add(offset // SECTOR_BYTES)
        if offset < self._durable_size:
            self._durable[offset] ^= mask
            self._durable_allocated.add(offset // SECTOR_BYTES)

    def after_power_loss(self, survival: Survival) -> "Medium":
        """The file as a power loss leaves it, all durable. This one is of no use afterwards."""
        self._apply_survivors(survival)
        other = Medium()
        other.size, other.content, other.allocated = self._durable_size, self._durable, self._durable_allocated
        other._durable_size = other.size
        other._durable = _resized(other.content, other.allocated, other.size)
        other._durable_allocated = set(other.allocated)
        return other

    def _apply_survivors(self, survival: Survival) -> None:
        touches = Counter(sector for change in self._changes for sector in change.touched())
        kept = {sector: _kept(count, survival) for sector, count in touches.items()}
        resizes = _kept(sum(change.size is not None for change in self._changes), survival)
        seen: Counter[int] = Counter()
        for change in self._changes:
            if survival.mood == "first":
                self._apply_first(change, survival)
                continue
            if change.size is not None:
                if resizes > 0:
                    self._apply(change, ())
                resizes -= 1
                continue
            sectors = change.touched()
            seen.update(sectors)
            self._apply(change, [sector for sector in sectors if seen[sector] <= kept[sector]])
        self._changes.clear()

    def _apply_first(self, change: Change, survival: Survival) -> None:
        sectors = change.touched()
        if change.number == survival.last_number:
            sectors = sectors[: survival.random.randint(0, len(sectors))]
        if change.number <= survival.last_number:
            self._apply(change, sectors)

    def _apply(self, change: Change, sectors: Sequence[int]) -> None:
        if change.size is not None:
            self._durable_allocated = {
                sector for sector in self._durable_allocated if sector * SECTOR_BYTES < change.size
            }
            self._durable = _resized(self._durable, self._durable_allocated, change.size)
            self._durable_size = change.size
        for sector in sectors:
            # What was written behind the end, as the disk knows it, is not part of the file.
            start, end = sector * SECTOR_BYTES, min((sector + 1) * SECTOR_BYTES, self._durable_size)
            if change.data:
                start, end = max(start, change.offset), min(end, change.offset + len(change.data))
            if start >= end:
                continue
            if change.data:
                self._durable[start:end] = change.data[start - change.offset : end - change.offset]
                self._durable_allocated.add(sector)
            else:
                self._durable[start:end] = bytes(end - start)
                self._durable_allocated.discard(sector)


def _kept(count: int, survival: Survival) -> int:
    """How many of `count` successive changes of one sector are on the disk."""
    if survival.mood == "everything":
        return count
    if survival.mood == "nothing" or count == 0 or survival.random.random() >= survival.kept:
        return 0
    return survival.random.randint(1, count)


def _make_buffer(size: int) -> Buffer:
    """Zeros; large ones take no memory until they are written."""
    return bytearray(size) if size < _MAP_FROM_BYTES else mmap.mmap(-1, size)


def _resized(buffer: Buffer, allocated: set[int], size: int) -> Buffer:
    """A new buffer of `size` bytes with the allocated sectors of the old one, whatever views that one has."""
    other = _make_buffer(size)
    for sector in allocated:
        start, end = sector * SECTOR_BYTES, min((sector + 1) * SECTOR_BYTES, size, len(buffer))
        if start < end:
            other[start:end] = buffer[start:end]
    return other
