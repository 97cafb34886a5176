"""Saying what goes wrong without filling the log of the process with it.

While the disk is full, every send and every pull meets the same trouble, and a line for each would take the room that
is missing, and bury what else there is to see.
"""

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pocketmq.model.seams import Clock

EVERY_S = 60.0


class Complaints:
    """One line per kind of trouble and minute, with how often it was met since the last one."""

    def __init__(self, clock: "Clock", logger: logging.Logger) -> None:
        self._clock = clock
        self._logger = logger
        self._last: dict[str, tuple[float, int]] = {}
        """Kind -> when it was said last, and how often it was met since. Kinds are few: literals of the callers."""

    def warn(self, kind: str, message: str) -> None:
        """Log `message`, unless something of this kind was said less than a minute ago."""
        now = self._clock.monotonic()
        said, unsaid = self._last.get(kind, (now - EVERY_S, 0))
        if now - said < EVERY_S:
            self._last[kind] = said, unsaid + 1
            return
        self._last[kind] = now, 0
        self._logger.warning("%s", f"{message} (and {unsaid} times more since it was last said)" if unsaid else message)
