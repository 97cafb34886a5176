"""The tail of the log: what is staged is written at its end with one call.

In between lies one batch of requests, so a thousand sends from one socket read cost one system call.
"""

import errno
import os

from pocketmq.log.queues import LogQueue
from pocketmq.log.staging import MARK_BYTES, NOWHERE, PIECES, Staging
from pocketmq.model.errors import StoreError, StoreFullError


class LogTail(Staging):
    """What is being written. `Log` adds reading and everything that runs beside it."""

    def write(self) -> None:
        """Write everything that is staged; it can be read afterwards.

        Raises StoreFullError when the disk did not take it, now or in a write that a read had to begin; nothing that
        was staged is in the log then, `write_failures` was raised by one, and the next write may succeed again.
        """
        if self._unreported is not None:
            raise self._report_failure()
        if not self._staged:
            return
        self._now = 0
        position = self._staged_from
        try:
            if self._sealed or self._unclean_from != NOWHERE:
                self._prepare_write()
            segment = self._segment
            segment.file.write_at(position - segment.start, b"".join(self._staged))  # type: ignore[union-attr]
        except OSError as error:
            raise self._undo(error) from error
        self.appended_records += len(self._staged) // PIECES
        self._staged.clear()
        if position - self._last_mark >= MARK_BYTES:
            self._add_mark(position)
        if self._sealed:
            self._finish_sealed()
        self._staged_from = self.written_position = self.max_position
        if self._woken and self.on_written is not None:
            woken, self._woken = self._woken, {}
            self._show(woken)
        if self.max_position >= self._notice_at:
            self._notice_progress()

    def _show(self, woken: dict[LogQueue, None]) -> None:
        """Tell those who wait for a message in one of these queues that one is there."""
        if self.on_written is not None:
            self.on_written(woken)

    def write_for_reader(self) -> None:
        """Write what is staged, because somebody wants to read; he is not told when that fails.

        Those who staged it are: no append succeeds until `write` has raised the error.
        """
        if self._unreported is None:
            try:
                self.write()
            except StoreError as error:
                self._unreported = error
                self._limit_appends()

    def _report_failure(self) -> StoreError:
        """What the writer of the next batch is told about a write that failed in a reader's hands."""
        error, self._unreported = self._unreported, None
        assert error is not None
        self._limit_appends()
        return error

    def _notice_progress(self) -> None:
        """The log grew to `_notice_at`: for those who work beside it."""

    def plan_notice(self) -> None:
        """One of those who work beside the log changed what it waits for."""

    def _prepare_write(self) -> None:
        """Write what goes into segments that are sealed now, each with its end record, and open the next one."""
        if self._unclean_from != NOWHERE:
            self._clear_from(self._unclean_from)
        for position, segment_end, pieces, end_record in self._sealed:
            segment = self._segment
            assert segment.file is not None and segment.end == segment_end
            segment.file.write_at(position - segment.start, b"".join(pieces) + end_record)
            self._segment = self.segments.create(segment_end, self.segment_bytes)

    def _finish_sealed(self) -> None:
        for position, segment_end, pieces, _ in self._sealed:
            self.appended_records += len(pieces) // PIECES
            if position > self._last_mark:
                self._add_mark(position)
            self._add_mark(segment_end)
        self._sealed.clear()

    def _add_mark(self, position: int) -> None:
        self.marks.append(position)
        self._last_mark = position

    def _undo(self, error: OSError) -> StoreError:
        """Take back all staged records and what of them is in the files. Returns the error to raise."""
        self.write_failures += 1
        first = self.written_position
        count = self._take_back()
        while self.segments[-1].start > first:
            self.segments.remove(self.segments[-1])
        self._segment = self.segments[-1]
        self._segment_end = self._segment.end
        self._limit_appends()
        self._unclean_from = first
        try:
            self._clear_from(first)
        except OSError:
            pass  # tried again before the next write
        what = os.strerror(error.errno) if error.errno else str(error)
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return StoreFullError(f"the disk is full: {count} messages were not stored; free some room", cause=error)
        return StoreFullError(f"the disk does not take writes ({what}): {count} messages were not stored", cause=error)

    def _clear_from(self, position: int) -> None:
        segment = self._segment
        assert segment.file is not None
        segment.file.clear_from(position - segment.start)
        self._unclean_from = NOWHERE

    def start_at(self, position: int) -> None:
        """Go on at `position`, in the last segment; makes the first one when there is none. Raises OSError."""
        if not len(self.segments) or position == self.segments[-1].end:
            self.segments.create(position, self.segment_bytes)
        self._segment = self.segments[-1]
        self.max_position = self.written_position = self._staged_from = position
        self._segment_end = self._segment.end
        self._last_mark = self.marks[-1] if self.marks else position - MARK_BYTES
        self._limit_appends()
