"""The names of a simulated disk: as programs see them, and as a power loss would leave them.

A name that was created, renamed or removed is durable once its folder was synced. At a power loss each change that was
not may have happened or not.
"""

import posixpath
from collections.abc import Iterator
from typing import NamedTuple

from pocketmq.testing.medium import Medium, Survival

Names = dict[str, Medium | None]
"""Path -> content; None for a folder."""


class NameChange(NamedTuple):
    """A change that is not durable yet: `path` is now `medium` (None: a folder) or gone; `source` is gone with it."""

    number: int
    path: str
    medium: Medium | None
    gone: bool = False
    source: str | None = None

    def apply(self, names: Names) -> None:
        """Make the change in `names`."""
        if self.gone:
            names.pop(self.path, None)
            return
        names[self.path] = self.medium
        if self.source is not None:
            names.pop(self.source, None)

    def survives(self, survival: Survival) -> bool:
        """Whether a power loss leaves it."""
        if survival.mood == "first":
            return self.number <= survival.last_number
        if survival.mood == "scattered":
            return survival.random.random() < survival.kept
        return survival.mood == "everything"


class Folders:
    """All names of a disk. Paths are normal (`normal_path`)."""

    def __init__(self, names: Names | None = None) -> None:
        self.names: Names = {"": None, "/": None}
        for path in sorted(names or ()):
            if posixpath.dirname(path) in self.names:
                self.names[path] = (names or {})[path]
        self._durable: Names = dict(self.names)
        self._changes: list[NameChange] = []

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder of that path."""
        return path in self.names and self.names[path] is None

    def inside(self, folder: str) -> list[str]:
        """The names in a folder, sorted."""
        return sorted(
            posixpath.basename(path) for path in self.names if posixpath.dirname(path) == folder and path != folder
        )

    def change(self, change: NameChange) -> None:
        """Make a change, not durable yet."""
        change.apply(self.names)
        self._changes.append(change)

    def make_durable(self, folder: str, number: int) -> None:
        """Make every change of the names in a folder durable, up to the one of that number."""
        later = []
        for change in self._changes:
            if change.number <= number and posixpath.dirname(change.path) == folder:
                change.apply(self._durable)
            else:
                later.append(change)
        self._changes = later

    def media(self) -> Iterator[Medium]:
        """The content of every file that programs see."""
        return (medium for medium in self.names.values() if medium is not None)

    def pending(self) -> set[int]:
        """The numbers of all changes, of names and of contents, that a power loss could undo."""
        numbers = {change.number for change in self._changes}
        media = {*self._durable.values(), *(change.medium for change in self._changes)}
        return numbers.union(*(medium.pending() for medium in media if medium is not None))

    def pending_paths(self) -> list[str]:
        """The paths whose name or content a power loss could change, sorted."""
        paths = {change.path for change in self._changes}
        paths.update(path for path, medium in self.names.items() if medium is not None and medium.pending())
        return sorted(paths)

    def after_power_loss(self, survival: Survival) -> "Folders":
        """What is left, all durable. This one is of no use afterwards."""
        names = dict(self._durable)
        for change in self._changes:
            if change.survives(survival):
                change.apply(names)
        left: Names = {}
        for path, medium in names.items():
            left[path] = None if medium is None else medium.after_power_loss(survival)
        return Folders(left)


def normal_path(path: str) -> str:
    """The one spelling of a path; the root of relative paths is the empty string."""
    path = posixpath.normpath(path)
    return "" if path == "." else path
