"""Delivering delayed messages: the one durable timer service.

Theory of operation. A delayed message is an ordinary record in one of two internal topics; the view `timers` knows its
due time and its position. When the time has come, its content is appended to the topic it was meant for, and a journal
entry says that the timer has fired; both go to the log in one write, the message first. So a crash can deliver twice,
and never loses. One timer of the clock is set for the next due time, nothing is polled.

Before the log deletes a segment, what still waits in it is carried forward: the record is appended again at the end,
with its due time, and the old timer is marked as fired.
"""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pocketmq.broker.delays import due_of_record
from pocketmq.model.errors import RecordError, StoreError, UsageError
from pocketmq.model.hashing import tag_code
from pocketmq.model.names import TIMER_TOPIC
from pocketmq.model.seams import Cancellable
from pocketmq.views.journal import TimersFired
from pocketmq.wire.properties import PropertyKey, find_property, with_property
from pocketmq.wire.record import Record, decode_record

if TYPE_CHECKING:
    from pocketmq.broker.journal import Journal
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock
    from pocketmq.views.timers import Timers

logger = logging.getLogger(__name__)

DELIVERIES_PER_WRITE_MAX = 256
RETRY_S = 1.0
"""How long after a full disk the delivery is tried again."""
SLEEP_S_MAX = 60.0
"""Due times are wall-clock times: looking again now and then catches up with a clock that was set forward."""

_REAL_TOPIC = PropertyKey.REAL_TOPIC.encode()
_REAL_QUEUE_ID = PropertyKey.REAL_QUEUE_ID.encode()
_TIMER_OUT_MS = PropertyKey.TIMER_OUT_MS.encode()
_TAGS = PropertyKey.TAGS.encode()


class TimerService:
    """Delivers what is due."""

    def __init__(self, clock: "Clock", log: "Log", journal: "Journal", view: "Timers", levels: Sequence[int]) -> None:
        self._clock = clock
        self._log = log
        self._journal = journal
        self._view = view
        self.levels = levels
        """Delay of each level in ms, from level 1."""
        self.delivered = 0
        self._staged: list[tuple[int, int]] = []
        self._timer: Cancellable | None = None
        self._timer_due = 0
        self._running = False

    def start(self) -> None:
        """Begin to deliver; what became due while the broker was down goes at once."""
        self._running = True
        self._sleep_until_next()

    def stop(self) -> None:
        """Deliver no more."""
        self._running = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # -- new timers --------------------------------------------------------------------------------------------------

    def stage(self, due_ms: int, position: int) -> None:
        """A delayed record was appended but is not written yet."""
        self._staged.append((due_ms, position))

    def commit_staged(self) -> None:
        """What was staged is written now."""
        if not self._staged:
            return
        for due_ms, position in self._staged:
            self._view.add(due_ms, position)
        earliest = min(self._staged)[0]
        self._staged.clear()
        if self._running and (self._timer is None or earliest < self._timer_due):
            self._sleep_until(earliest)

    def drop_staged(self) -> None:
        """What was staged could not be written and does not exist."""
        self._staged.clear()

    # -- delivery ----------------------------------------------------------------------------------------------------

    def deliver_due(self) -> int:
        """Deliver up to one write's worth of what is due now; returns how many. Raises StoreError."""
        due = self._view.take_due(self._clock.time_ms(), DELIVERIES_PER_WRITE_MAX)
        if not due:
            return 0
        try:
            for _, position in due:
                self._deliver(position)
            self._journal.write([TimersFired([position for _, position in due])])
        except BaseException:
            self._view.put_back(due)
            raise
        self.delivered += len(due)
        return len(due)

    def _deliver(self, position: int) -> None:
        record = self._record(position)
        if record is None:
            return
        topic = find_property(record.properties, _REAL_TOPIC)
        queue_id = find_property(record.properties, _REAL_QUEUE_ID)
        if topic is None or queue_id is None or not queue_id.isdigit():
            logger.error("the delayed message at %d does not say where it is meant for; it is dropped", position)
            return
        tag = find_property(record.properties, _TAGS)
        code = tag_code(tag.decode(errors="replace")) if tag else 0
        try:
            self._append(topic.decode(), int(queue_id), record, record.properties, code)
        except UsageError as error:
            logger.error("the delayed message at %d cannot be delivered and is dropped: %s", position, error)

    def _record(self, position: int) -> Record | None:
        data = self._log.written_record_at(position)
        try:
            if data is not None:
                return decode_record(data)
        except RecordError as error:
            logger.error("the delayed message at %d cannot be read and is lost: %s", position, error)
            return None
        logger.error("the delayed message at %d is not in the log any more and is lost", position)
        return None

    def _append(self, topic: str, queue_id: int, record: Record, properties: bytes, code: int) -> int:
        return self._log.append(
            self._log.ensure_queue(topic, queue_id),
            record.body,
            properties,
            record.flag,
            record.sys_flag,
            record.born_timestamp,
            record.born_host,
            record.store_host,
            record.reconsume_times,
            record.prepared_transaction_offset,
            code,
        )

    # -- carrying forward --------------------------------------------------------------------------------------------

    def carry_forward(self, start: int, end: int) -> int:
        """Move what waits in the log positions [start, end) to the end of the log; returns how many were moved.

        Raises StoreError when the log is full: the positions must not be deleted then.
        """
        timers = self._view.between(start, end)
        for first in range(0, len(timers), DELIVERIES_PER_WRITE_MAX):
            part = timers[first : first + DELIVERIES_PER_WRITE_MAX]
            moved: list[tuple[int, int]] = []
            for due_ms, position in part:
                record = self._record(position)
                if record is not None:
                    properties = with_property(record.properties, _TIMER_OUT_MS, str(due_ms).encode())
                    moved.append((due_ms, self._append(TIMER_TOPIC, 0, record, properties, 0)))
            self._journal.write([TimersFired([position for _, position in part])])
            for due_ms, position in moved:
                self._view.add(due_ms, position)
        return len(timers)

    # -- sleeping ----------------------------------------------------------------------------------------------------

    def _sleep_until_next(self) -> None:
        due_ms = self._view.next_due()
        if due_ms is not None and self._running:
            self._sleep_until(due_ms)

    def _sleep_until(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = due_ms
        delay = min(max(0.0, (due_ms - self._clock.time_ms()) / 1000), SLEEP_S_MAX)
        self._timer = self._clock.call_later(delay, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        try:
            delivered = self.deliver_due()
        except StoreError as error:
            logger.warning("delayed messages wait, since the log takes none now: %s", error)
            self._timer_due = 0
            self._timer = self._clock.call_later(RETRY_S, self._on_timer)
            return
        if delivered == DELIVERIES_PER_WRITE_MAX:
            # There may be more; requests get their turn in between.
            self._timer_due = 0
            self._timer = self._clock.call_later(0, self._on_timer)
        else:
            self._sleep_until_next()


def fold_record(
    view: "Timers",
    *,
    topic: str,
    queue_id: int,
    position: int,
    store_timestamp: int,
    properties: bytes,
    levels: Sequence[int],
) -> None:
    """Fold one replayed record of a delay topic into the view."""
    timer_out_ms = find_property(properties, _TIMER_OUT_MS)
    due_ms = due_of_record(
        topic, queue_id, store_timestamp, timer_out_ms.decode(errors="replace") if timer_out_ms else None, levels
    )
    if due_ms is None:
        logger.error("the delayed message at %d does not say when it is due; it is dropped", position)
        return
    view.add(due_ms, position)
