"""Storing and restoring the views, so that a start replays a little and not everything.

A snapshot holds all views at one log position, so that they always agree with each other. It is written only when the
log is on the disk up to that position: after a crash the log is never shorter than what the views know.
"""

import logging
from typing import TYPE_CHECKING

import msgspec

from pocketmq.views.cursors import Cursors
from pocketmq.views.groups import GroupTable
from pocketmq.views.timers import Timers
from pocketmq.views.topics import TopicTable
from pocketmq.views.transactions import Transactions

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.log.snapshots import SnapshotStore

logger = logging.getLogger(__name__)

NAME = "broker"


class _State(msgspec.Struct, array_like=True):
    topics: bytes
    groups: bytes
    cursors: bytes
    timers: bytes
    transactions: bytes = b""
    """Empty in what was stored by a version that knew no transactions."""


_decoder = msgspec.msgpack.Decoder(_State)


class Snapshots:
    """All views of a broker, as one file."""

    def __init__(
        self,
        store: "SnapshotStore",
        *,
        topics: TopicTable,
        groups: GroupTable,
        cursors: Cursors,
        timers: Timers,
        transactions: Transactions,
    ) -> None:
        self._store = store
        self._topics = topics
        self._groups = groups
        self._cursors = cursors
        self._timers = timers
        self._transactions = transactions
        self.position = 0
        """The log position that the newest stored snapshot covers."""

    def restore(self) -> int:
        """Load the newest snapshot that can be read; returns the position to replay from, 0 when there is none."""
        found = self._store.load(NAME)
        if found is None:
            return 0
        position, payload = found
        try:
            state = _decoder.decode(payload)
            self._topics.restore(state.topics)
            self._groups.restore(state.groups)
            self._cursors.restore(state.cursors)
            self._timers.restore(state.timers)
            if state.transactions:
                self._transactions.restore(state.transactions)
        except (msgspec.MsgspecError, ValueError) as error:
            logger.error("the stored views cannot be read (%s); they are rebuilt from the whole log", error)
            self.clear()
            return 0
        self.position = position
        return position

    def clear(self) -> None:
        """Make all views empty again."""
        self._topics.restore(TopicTable().snapshot())
        self._groups.restore(GroupTable().snapshot())
        self._cursors.restore(Cursors().snapshot())
        self._timers.restore(Timers().snapshot())
        self._transactions.restore(Transactions().snapshot())
        self.position = 0

    async def save(self, log: "Log") -> None:
        """Store the views as they are now, when the log has grown since the last time. Raises OSError."""
        position = log.written_position
        if position == self.position:
            return
        state = _State(
            self._topics.snapshot(),
            self._groups.snapshot(),
            self._cursors.snapshot(),
            self._timers.snapshot(),
            self._transactions.snapshot(),
        )
        payload = msgspec.msgpack.encode(state)
        if not await log.wait_durable(position, force=True):
            logger.warning("the views are not stored: the disk does not confirm the log they belong to")
            return
        await self._store.save_beside(NAME, position, payload)
        self.position = position
