"""Counters that remember: how much was added in the last minute, hour and day. Pure: the time is an argument.

A counter is a plain int that the hot path adds to. Every ten seconds whoever owns it calls `sample`; values are kept
at three distances (10 s, 10 min, 1 h) for as long as the minute, the hour and the day need them, and only when they
differ from the one before, so that a counter that rests costs nothing. Sums and rates are those of the window that
ends now, not at a full step.
"""

from array import array
from typing import NamedTuple

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
_STEPS_MS = (10_000, 10 * MINUTE_MS, HOUR_MS)
_WINDOWS_MS = (MINUTE_MS, HOUR_MS, DAY_MS)
_WIDTH = 4
"""A sample: time in ms, messages, bytes, merged."""


class WindowStatistics(NamedTuple):
    """What was added within a window."""

    messages: int
    size_bytes: int
    calls: int
    elapsed_ms: int

    @property
    def messages_per_second(self) -> float:
        """Average over the window."""
        return self.messages * 1000 / self.elapsed_ms if self.elapsed_ms > 0 else 0.0

    @property
    def bytes_per_second(self) -> float:
        """Average over the window."""
        return self.size_bytes * 1000 / self.elapsed_ms if self.elapsed_ms > 0 else 0.0


class Series:
    """One counted thing: messages, their bytes, and the calls that brought them.

    The hot path adds to `messages` and `size_bytes`; a call that brings several messages also adds all but one of them
    to `merged`, so that the ordinary call has less to do.
    """

    __slots__ = ("_created_ms", "_samples", "_taken", "merged", "messages", "size_bytes")

    def __init__(self, now_ms: int) -> None:
        self.messages = 0
        self.size_bytes = 0
        self.merged = 0
        self._created_ms = now_ms
        self._samples: tuple[array[int], array[int], array[int]] | None = None
        self._taken = (0, 0, 0)

    @property
    def calls(self) -> int:
        """How many calls brought the messages."""
        return self.messages - self.merged

    def add(self, messages: int, size_bytes: int) -> None:
        """Count one call."""
        self.messages += messages
        self.size_bytes += size_bytes
        if messages > 1:
            self.merged += messages - 1

    def take_new(self) -> tuple[int, int, int]:
        """Messages, bytes and merged that were added since this was last called."""
        now = (self.messages, self.size_bytes, self.merged)
        before, self._taken = self._taken, now
        return now[0] - before[0], now[1] - before[1], now[2] - before[2]

    def sample(self, now_ms: int) -> None:
        """Remember the value as it is now, where a step has passed and something changed since."""
        if self._samples is None:
            if not self.messages:
                return
            self._samples = (array("q"), array("q"), array("q"))
        for samples, step_ms, window_ms in zip(self._samples, _STEPS_MS, _WINDOWS_MS, strict=True):
            if samples and (samples[1 - _WIDTH] == self.messages or now_ms - samples[-_WIDTH] < step_ms):
                continue
            samples.extend((now_ms, self.messages, self.size_bytes, self.merged))
            # One sample at or before the beginning of the window is kept: it is the value there.
            while len(samples) > _WIDTH and samples[_WIDTH] <= now_ms - window_ms:
                del samples[:_WIDTH]

    def minute(self, now_ms: int) -> WindowStatistics:
        """The last minute."""
        return self._window(0, now_ms)

    def hour(self, now_ms: int) -> WindowStatistics:
        """The last hour."""
        return self._window(1, now_ms)

    def day(self, now_ms: int) -> WindowStatistics:
        """The last 24 hours."""
        return self._window(2, now_ms)

    def _window(self, which: int, now_ms: int) -> WindowStatistics:
        start_ms = now_ms - _WINDOWS_MS[which]
        messages = size_bytes = merged = 0
        if self._samples is not None:
            samples = self._samples[which]
            for index in range(0, len(samples), _WIDTH):
                if samples[index] > start_ms:
                    break
                messages, size_bytes, merged = samples[index + 1 : index + _WIDTH]
        return WindowStatistics(
            self.messages - messages,
            self.size_bytes - size_bytes,
            self.calls - (messages - merged),
            max(now_ms - max(self._created_ms, start_ms), 1),
        )
