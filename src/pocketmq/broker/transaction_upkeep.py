"""What keeps open transactions right beside the decisions of producers: after a crash, a take-over, before a deletion.

Theory of operation. Three things happen to halves that no producer asks for:
- when the log is opened: copies whose mark a power failure took are found and marked;
- on a directory that a RocketMQ broker wrote: halves that it had dealt with are ended;
- before a segment is deleted: its open halves are stored again at the end of the log.
And an operator may want a transaction to be asked about anew.
"""

import logging
from typing import TYPE_CHECKING

from pocketmq.broker.halves import half_tag_code
from pocketmq.log.copies import find_copies
from pocketmq.model.errors import PocketMQError
from pocketmq.model.names import CHECK_MAX_TOPIC, HALF_TOPIC
from pocketmq.views.journal import HalfRenewed, HalvesEnded
from pocketmq.views.transactions import KNOWN_POSITION, Half
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.properties import PropertyKey, property_finder, with_property, without_property
from pocketmq.wire.record import Record

if TYPE_CHECKING:
    from pocketmq.broker.journal import Journal
    from pocketmq.broker.transactions import TransactionService
    from pocketmq.log.log import Log
    from pocketmq.log.queues import LogQueue
    from pocketmq.model.seams import Clock
    from pocketmq.views.transactions import Transactions

logger = logging.getLogger(__name__)

CARRIED_PER_WRITE_MAX = 256

_KNOWN_OFFSET = PropertyKey.TRANSACTION_PREPARED_QUEUE_OFFSET.encode()
_KNOWN_POSITION = KNOWN_POSITION.encode()
_CHECK_TIMES = PropertyKey.TRANSACTION_CHECK_TIMES.encode()
_find_unique_key = property_finder(PropertyKey.UNIQUE_KEY.encode())


class TransactionUpkeep:
    """Looks after the open halves."""

    def __init__(
        self, clock: "Clock", log: "Log", journal: "Journal", view: "Transactions", service: "TransactionService"
    ) -> None:
        self._clock = clock
        self._log = log
        self._journal = journal
        self._view = view
        self._service = service

    # -- after the log was opened ------------------------------------------------------------------------------------

    async def mark_copies(self, replayed_from: int) -> None:
        """Find the copies whose mark a power failure took, and write it. The first thing that is written to the log.

        `replayed_from`: from here on records were folded into the view. Raises StoreError.
        """
        view = self._view
        first = view.first_position()
        if first is not None:
            # Another broker writes its marks later than its copies, so the last mark says nothing about its log.
            start = max(replayed_from, first, view.mark_position) if replayed_from else first
            await find_copies(self._log, self._clock, start, view.fold_copy)
        offsets = view.unmarked()
        if offsets:
            logger.warning("%d transactions were ended by the last thing that the broker wrote before", len(offsets))
            position = self._service.append_mark(offsets)
            self._log.write()
            view.marked(offsets, position)

    def outdated(self, cursor: int) -> list[int]:
        """Positions of the halves that a RocketMQ broker had dealt with.

        It goes through the half queue with a cursor, and stores a half again whenever it asks about it: so a half
        counts only when it is the last of its transaction and the cursor has not passed it.
        """
        newest: dict[bytes, int] = {}
        ended: list[int] = []
        for position in self._view.positions():
            half = self._view.find(position)
            record = self._service.read(half) if half is not None else None
            if half is None or record is None:
                continue
            if half.queue_offset < cursor:
                ended.append(position)
                continue
            key = _find_unique_key(record.properties)
            if key is not None:
                if key in newest:
                    ended.append(newest[key])
                newest[key] = position
        return ended

    # -- carrying forward --------------------------------------------------------------------------------------------

    def carry_forward(self, start: int, end: int) -> int:
        """Move the open halves in the log positions [start, end) to its end; returns how many there were.

        Raises StoreError when the log is full: the positions must not be deleted then.
        """
        halves = self._view.between(start, end)
        queue = self._log.ensure_queue(HALF_TOPIC, 0)
        for first in range(0, len(halves), CARRIED_PER_WRITE_MAX):
            moved: list[tuple[Half, int, int]] = []
            lost: list[int] = []
            for half in halves[first : first + CARRIED_PER_WRITE_MAX]:
                record = self._service.read(half)
                if record is None:
                    lost.append(half.position)
                    continue
                properties = with_property(record.properties, _KNOWN_OFFSET, b"%d" % half.known_offset)
                properties = with_property(properties, _KNOWN_POSITION, b"%d" % half.known_position)
                position = self._append_half(queue, record, properties)
                moved.append((half, position, queue.next_offset - 1))
            self._log.write()
            if lost:
                self._journal.write([HalvesEnded(lost)])
            for half, position, queue_offset in moved:
                self._view.move(half, position, queue_offset)
        return len(halves)

    def _append_half(self, queue: "LogQueue", record: Record, properties: bytes) -> int:
        return self._log.append(
            queue,
            record.body,
            properties,
            record.flag,
            record.sys_flag,
            record.born_timestamp,
            record.born_host,
            record.store_host,
            record.reconsume_times,
            0,
            half_tag_code(properties),
        )

    # -- operators ---------------------------------------------------------------------------------------------------

    async def resume(self, record: Record) -> None:
        """Ask about a transaction anew: an open one, or one that was given up. Durable on return.

        Raises PocketMQError 1 when it has ended otherwise.
        """
        position = record.physical_offset
        half = self._view.find(position)
        if half is not None and record.topic == HALF_TOPIC:
            await self._journal.write_durable([HalfRenewed(half.position)])
            return
        if record.topic != CHECK_MAX_TOPIC or half is not None:
            raise PocketMQError(
                f"the message at {position} is not one of a transaction that was given up, or is asked about again "
                "already",
                code=ResponseCode.SYSTEM_ERROR,
            )
        properties = with_property(without_property(record.properties, _CHECK_TIMES), _KNOWN_POSITION, b"%d" % position)
        queue = self._log.ensure_queue(HALF_TOPIC, 0)
        new_position = self._append_half(queue, record, properties)
        self._log.write()
        self._view.fold_half(new_position, queue.next_offset - 1, self._log.last_timestamp, properties)
        await self._journal.wait_durable(self._log.written_position)
