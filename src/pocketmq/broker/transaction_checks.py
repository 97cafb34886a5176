"""Asking producers about transactions that they left open.

Theory of operation. Every `transaction_check_interval_s` the open halves are gone through, oldest first. One that is
older than its immunity is asked about: a producer of its group, another one each time, gets the message and answers
with its decision like any other. Asking is journaled first and counts only when there is somebody to ask: a producer
that is down for a day costs none of its checks. After `transaction_checks_max` checks, and one more interval for the
last answer, or after `transaction_age_max_s`, the message goes to the topic of those that were given up.

A producer that does not read is not sent more; its halves wait for the next round, as do those of a group of which
nobody is there.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from pocketmq.model.errors import StoreError
from pocketmq.views.journal import HalvesChecked
from pocketmq.views.transactions import NO_IMMUNITY, Half
from pocketmq.wire.record import Record

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.journal import Journal
    from pocketmq.broker.membership import ProducerMember
    from pocketmq.broker.transactions import TransactionService
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import BrokerSettings
    from pocketmq.views.transactions import Transactions

logger = logging.getLogger(__name__)

LOOKED_AT_PER_STEP = 1000
ASKED_PER_STEP = 256
ASKED_BYTES_PER_STEP = 4 * 1024 * 1024
PAUSE_S = 0.05
"""How long producers that do not read get to catch up before they are sent more."""
PAUSES_MAX = 20


class Check(NamedTuple):
    """What a producer is asked: about `half`, whose message is `record`, for the `number`th time."""

    half: Half
    record: Record
    number: int


Send = Callable[["ProducerMember", Check], object]
"""Asks one producer; must not raise for a connection that is closing."""
Ready = Callable[["ProducerMember"], bool | None]
"""Whether a producer can be asked now (True), when it has read what it was sent (None), or not at all (False)."""


@runtime_checkable
class CanBeAsked(Protocol):
    """A producer's connection that knows itself how to ask, whatever the protocol."""

    def ready_for_check(self) -> bool | None:
        """As `Ready`."""

    def send_check(self, check: Check) -> object:
        """As `Send`."""


class TransactionChecks:
    """Goes through the open transactions, again and again."""

    def __init__(
        self,
        settings: "BrokerSettings",
        clock: "Clock",
        journal: "Journal",
        view: "Transactions",
        service: "TransactionService",
        clients: "ClientRegistry",
        *,
        ready: Ready,
        send: Send,
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._journal = journal
        self._view = view
        self._service = service
        self._clients = clients
        self._ready = ready
        self._send = send
        self.sent = 0
        self.given_up = 0

    async def check_regularly(self) -> None:
        """Wait for the next round, and make it."""
        await self._clock.sleep(self._settings.transaction_check_interval_s)
        await self.check()

    async def check(self) -> None:
        """One round."""
        positions = self._view.positions()
        congested: set[str] = set()
        try:
            for start in range(0, len(positions), LOOKED_AT_PER_STEP):
                old, due = self._sort_out(positions[start : start + LOOKED_AT_PER_STEP])
                if old:
                    self._give_up(old)
                pauses = 0
                while due:
                    due, asked = self._ask(due, congested)
                    if due and not asked:
                        pauses += 1
                        if pauses > PAUSES_MAX:
                            congested.update(map(self._service.group_of, due))
                    await self._clock.sleep(PAUSE_S if due and not asked else 0)
                await self._clock.sleep(0)
        except StoreError as error:
            logger.warning("nobody is asked about open transactions, since the log takes nothing now: %s", error)

    def _sort_out(self, positions: list[int]) -> tuple[list[Half], list[Half]]:
        """Of the halves at these positions those to give up, and those to ask about."""
        settings, now = self._settings, self._clock.time_ms()
        timeout_ms = settings.transaction_timeout_s * 1000
        age_max_ms = settings.transaction_age_max_s * 1000
        old, due = [], []
        for position in positions:
            half = self._view.find(position)
            if half is None:
                continue
            age_ms = now - half.stored_ms
            if half.checks >= settings.transaction_checks_max or age_ms > age_max_ms:
                old.append(half)
            elif age_ms > (timeout_ms if half.immunity_ms == NO_IMMUNITY else half.immunity_ms):
                due.append(half)
        return old, due

    def _give_up(self, halves: list[Half]) -> None:
        self._service.give_up(halves)
        self.given_up += len(halves)
        logger.warning(
            "%d transactions were given up after %d checks without an answer, or for their age; their messages are in "
            "TRANS_CHECK_MAX_TIME_TOPIC",
            len(halves),
            self._settings.transaction_checks_max,
        )

    def _ask(self, halves: list[Half], congested: set[str]) -> tuple[list[Half], int]:
        """Ask about some of `halves`; returns those that are left for later, and how many were asked about."""
        checks: list[tuple[ProducerMember, Check]] = []
        later: list[Half] = []
        size = 0
        for index, half in enumerate(halves):
            if len(checks) >= ASKED_PER_STEP or size > ASKED_BYTES_PER_STEP:
                later += halves[index:]
                break
            if self._view.find(half.position) is not half:
                continue
            group = self._service.group_of(half)
            if group in congested:
                continue
            producer, wait = self._producer(group, half)
            if producer is None:
                if wait:
                    later.append(half)
                continue
            record = self._service.read(half)
            if record is not None:
                checks.append((producer, Check(half, record, half.checks + 1)))
                size += record.size
        if checks:
            # First written, then asked: after a crash in between a check was counted and not sent, never the reverse.
            self._journal.write([HalvesChecked([check.half.position for _, check in checks])])
            self.sent += len(checks)
            for producer, check in checks:
                if isinstance(producer.connection, CanBeAsked):
                    producer.connection.send_check(check)
                else:
                    self._send(producer, check)
        return later, len(checks)

    def _producer(self, group: str, half: Half) -> tuple["ProducerMember | None", bool]:
        """Whom to ask about a half; when there is nobody now, whether there will be soon.

        Neighbours go to different producers, and so do the checks of one half: one that does not answer holds up none.
        """
        members = self._clients.producers(group)
        turn = half.queue_offset + half.checks
        wait = False
        for step in range(len(members)):
            member = members[(turn + step) % len(members)]
            connection = member.connection
            ready = connection.ready_for_check() if isinstance(connection, CanBeAsked) else self._ready(member)
            if ready:
                return member, False
            wait = wait or ready is None
        return None, wait
