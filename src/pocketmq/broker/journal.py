"""The one door for state changes that are not messages: into the log, then into the views.

A change is written as a journal record and folded into the views by the same code that replays it after a restart, so
what a view shows is always what the log says. Two kinds of callers:

- settings (topics, groups, resets) are durable before they are answered: `write_durable`;
- cursor commits that nobody waits for are visible at once and are gathered into one record at most `cursor_lag_s`
  later: `commit_later`. Losing them costs a redelivery, never a message.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from pocketmq.model.errors import StoreError
from pocketmq.model.names import JOURNAL_TOPIC
from pocketmq.model.seams import Cancellable
from pocketmq.views.cursors import Cursors
from pocketmq.views.groups import GroupTable
from pocketmq.views.journal import Cursor, CursorsCommitted, Entry, decode_entries, encode_entries
from pocketmq.views.timers import Timers
from pocketmq.views.topics import TopicTable
from pocketmq.views.transactions import Transactions
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock

_NO_HOST = bytes(8)
ENTRIES_PER_RECORD_MAX = 10_000
"""Keeps a record well below the largest body."""


class Journal:
    """Writes entries to the log and folds them into the views."""

    def __init__(
        self,
        clock: "Clock",
        *,
        topics: TopicTable,
        groups: GroupTable,
        cursors: Cursors,
        timers: Timers,
        transactions: Transactions,
        cursor_lag_s: float,
    ) -> None:
        self._clock = clock
        self._views = (topics, groups, cursors, timers, transactions)
        self._cursors = cursors
        self._cursor_lag_s = cursor_lag_s
        self._log: Log | None = None
        self._dirty: dict[tuple[str, str, int], None] = {}
        self._timer: Cancellable | None = None
        self.on_failed_write: Callable[[StoreError], object] = lambda error: None
        """Called when the log took neither the entries nor what others had staged before them."""
        self.listeners: list[Callable[[Entry], None]] = []
        """Called after each entry that was written (not replayed) is in the views."""

    def attach(self, log: "Log") -> None:
        """Begin to write to `log`."""
        self._log = log

    def apply(self, entries: Iterable[Entry]) -> None:
        """Fold entries into every view; the one place where that happens."""
        for entry in entries:
            for view in self._views:
                view.apply(entry)

    def replay(self, body: bytes | memoryview) -> None:
        """Fold one journal record that was read back from the log."""
        self.apply(decode_entries(body))

    def write(self, entries: Sequence[Entry]) -> int:
        """Write entries to the log and fold them in; returns the log position after them.

        Raises StoreFullError, and then nothing has changed.
        """
        log = self._log
        assert log is not None
        now = self._clock.time_ms()
        queue = log.ensure_queue(JOURNAL_TOPIC, 0)
        for start in range(0, len(entries), ENTRIES_PER_RECORD_MAX):
            part = entries[start : start + ENTRIES_PER_RECORD_MAX]
            log.append(queue, encode_entries(part), b"", 0, 0, now, _NO_HOST, _NO_HOST)
            try:
                log.write()
            except StoreError as error:
                self.on_failed_write(error)
                raise
            self.apply(part)
            for listener in self.listeners:
                for entry in part:
                    listener(entry)
        return log.written_position

    async def write_durable(self, entries: Sequence[Entry]) -> None:
        """The same, and wait until the entries are on the disk whatever the flush mode is.

        Raises StoreError when they are written, but the disk does not make them durable.
        """
        await self.wait_durable(self.write(entries))

    async def wait_durable(self, position: int) -> None:
        """Wait until the log is on the disk up to `position`. Raises StoreError when that does not happen."""
        assert self._log is not None
        if not await self._log.wait_durable(position, force=True):
            raise StoreError(
                "the change was made, but the disk did not confirm it in time; it may be lost in a power failure",
                code=ResponseCode.FLUSH_DISK_TIMEOUT,
            )

    def commit_later(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Move a cursor forwards, visible at once and in the log soon; False when it was not moved."""
        if not self._cursors.commit(group, topic, queue_id, offset):
            return False
        self._dirty[group, topic, queue_id] = None
        if self._timer is None:
            self._timer = self._clock.call_later(self._cursor_lag_s, self._write_dirty)
        return True

    def flush_cursors(self) -> None:
        """Write the commits that are not in the log yet. Raises StoreFullError, and then they wait on."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        cursors = []
        for group, topic, queue_id in self._dirty:
            offset = self._cursors.get(group, topic, queue_id)
            if offset is not None:
                cursors.append(Cursor(group, topic, queue_id, offset))
        entries = [
            CursorsCommitted(cursors[start : start + ENTRIES_PER_RECORD_MAX])
            for start in range(0, len(cursors), ENTRIES_PER_RECORD_MAX)
        ]
        for entry in entries:
            self.write([entry])
        self._dirty.clear()

    def _write_dirty(self) -> None:
        self._timer = None
        try:
            self.flush_cursors()
        except StoreError:
            # The disk is full, which whoever sends is told: what is dirty stays so, and is tried again.
            self._timer = self._clock.call_later(self._cursor_lag_s, self._write_dirty)

    def close(self) -> None:
        """Stop the timer; what is dirty was written by `flush_cursors` or is lost."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
