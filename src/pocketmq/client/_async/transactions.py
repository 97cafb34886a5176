"""Transactional messages: delivered when what belongs to them has been done, and not at all when it has not.

Theory of operation. Entering a `Transaction` sends the message as a *half*, which no consumer sees. Leaving it tells
the broker the decision. When that does not reach the broker, because a connection breaks or the process dies, the
broker asks: any client of the producer group, by its check function. A client that remembers its own decision answers
by itself and does not ask the check function.

The half is sent once. A second attempt after a time-out could leave two halves of one message behind, and both would be
committed; so an attempt whose outcome is unknown is an error, and whatever is left of it is rolled back when the broker
asks about it. For the same reason a decision is told once, unless the request surely did not arrive or was put off.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Self

from pocketmq.client.middleware import EndedTransaction
from pocketmq.client.namespaces import with_namespace, without_namespace
from pocketmq.model.errors import (
    BrokerError,
    CompressionError,
    ConnectError,
    DecodeError,
    PocketMQError,
    UsageError,
)
from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.transactions import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.properties import PropertyKey
from pocketmq.wire.received import to_received
from pocketmq.wire.record import SysFlag, decode_record

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

Decision = bool | None
"""True: commit. False: roll back. None: not known yet; the broker asks again later."""
Check = Callable[[ReceivedMessage], Awaitable[Decision]]

REMEMBERED_MAX = 100_000
"""Decisions that no broker has confirmed; the oldest are forgotten, and the check function is asked about them."""
CHECKS_MAX = 1000
"""Questions that are being answered; for others the broker has to ask again."""
PAUSE_S = 0.05
_PUT_OFF = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.SERVICE_NOT_AVAILABLE})


class Transaction:
    """One message that is delivered when its transaction is committed. Made by `Client.transaction`.

    Use it as an async context manager: the message is committed at the end of the block, and rolled back when the block
    raises. Inside, `commit`, `rollback` and `leave_open` decide earlier.
    """

    def __init__(
        self, core: "Core", message: Message, check: Check | None, timeout_s: float | None, queue: MessageQueue | None
    ) -> None:
        self._core = core
        self._message = message
        self._check = check
        self._timeout_s = core.options.send_timeout_s if timeout_s is None else timeout_s
        self._queue = queue
        self._receipt: SendReceipt | None = None
        self._state = "new"

    @property
    def receipt(self) -> SendReceipt:
        """What the broker said to the half. Raises UsageError before the transaction has begun."""
        if self._receipt is None:
            raise UsageError("the transaction has not begun; use it as `async with client.transaction(...) as tx`")
        return self._receipt

    @property
    def message_id(self) -> str:
        """The id that the message has, and will have when it is delivered."""
        return self.receipt.message_id

    @property
    def state(self) -> str:
        """`new`, `open`, `committed`, `rolled back`, or `left open`."""
        return self._state

    async def __aenter__(self) -> Self:
        """Send the half. Raises what `send` does; with RequestTimeoutError and ConnectionClosedError too nothing will
        be delivered.
        """
        if self._state != "new":
            raise UsageError("a transaction is used once; make another one")
        core = self._core
        core.begin()
        if self._check is not None:
            core.decisions.register(self._message.topic, self._check)
        key = core.producer.complete(self._message).properties[PropertyKey.UNIQUE_KEY]
        core.decisions.remember(key, None)
        try:
            self._receipt = await core.send_as("transaction", self._message, self._timeout_s, 0, self._queue)
        except BaseException:
            core.decisions.remember(key, False)
            self._state = "rolled back"
            raise
        self._state = "open"
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Commit, or roll back when the block has raised; nothing when it was decided inside."""
        if self._state != "open":
            return
        if exc[0] is None:
            await self.commit()
            return
        try:
            await self.rollback()
        except PocketMQError as error:
            logger.warning("the roll-back of %s was refused: %s", self.message_id, error)

    async def commit(self) -> None:
        """Have the message delivered.

        Returns too when the broker cannot be reached now: it will ask, and this client answers.

        Raises:
            BrokerError: the broker refused it and will not deliver the message: it had given the transaction up.
            UsageError: it was decided already.
        """
        await self._decide(True)

    async def rollback(self) -> None:
        """Have the message forgotten. Raises as `commit` does."""
        await self._decide(False)

    def leave_open(self) -> None:
        """Decide nothing here: the broker will ask, and the check function answers. Raises UsageError."""
        self._check_open()
        self._state = "left open"
        self._core.decisions.forget(self.message_id)

    async def _decide(self, decision: bool) -> None:
        self._check_open()
        self._state = "committed" if decision else "rolled back"
        await self._core.decisions.tell(self._message, self.receipt, decision, self._timeout_s)

    def _check_open(self) -> None:
        if self._state != "open":
            raise UsageError(f"the transaction is {self._state}: it cannot be decided now")


class Decisions:
    """What one client decided, and who answers for what it does not know."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._checks: dict[str, Check] = {}
        self._remembered: dict[str, Decision] = {}
        """Unique key of each half that this client sent and no broker has confirmed the end of -> what was decided."""
        self._tasks: set[asyncio.Task[None]] = set()

    def register(self, topic: str, check: Check) -> None:
        """From now on `check` answers questions about messages of `topic`."""
        self._checks[without_namespace(topic, self._core.options.namespace)] = check

    def remember(self, key: str, decision: Decision) -> None:
        """A decision about an own half, or that there is none yet."""
        if len(self._remembered) >= REMEMBERED_MAX and key not in self._remembered:
            del self._remembered[next(iter(self._remembered))]
        self._remembered[key] = decision

    def forget(self, key: str) -> None:
        """The broker knows the decision, or the check function is to be asked for it."""
        self._remembered.pop(key, None)

    # -- telling -----------------------------------------------------------------------------------------------------

    async def tell(self, message: Message, receipt: SendReceipt, decision: bool, timeout_s: float) -> None:
        """Tell the broker a decision. Raises BrokerError when it refuses; otherwise it is told now or when it asks."""
        core, key = self._core, receipt.message_id
        self.remember(key, decision)
        header = EndTransactionRequestHeader(
            producer_group=core.options.producer_group,
            tran_state_table_offset=receipt.queue_offset,
            commit_log_offset=decode_offset_id(receipt.offset_message_id)[2],
            commit_or_rollback=_code_of(decision),
            msg_id=key,
            topic=message.topic,
            transaction_id=receipt.transaction_id or key,
            target_broker=receipt.queue.broker_name,
        )
        core.transaction_ended(
            EndedTransaction(
                message=message,
                message_id=key,
                transaction_id=receipt.transaction_id or key,
                client_id=core.client_id,
                producer_group=core.options.producer_group,
                namespace=core.options.namespace,
                committed=decision,
                address=core.address_of(receipt.queue) or "",
            )
        )
        deadline = core.clock.monotonic() + timeout_s
        while True:
            left_s = max(0.001, deadline - core.clock.monotonic())
            try:
                address = core.address_of(receipt.queue)
                if address is None:
                    raise ConnectError(f"the broker {receipt.queue.broker_name} has no master at the moment")
                what = f"{'commit' if decision else 'rollback'} of {key}"
                await core.remoting.call(address, RequestCode.END_TRANSACTION, header, what=what, timeout_s=left_s)
            except PocketMQError as error:
                waits = isinstance(error, ConnectError) or error.code in _PUT_OFF
                if waits and core.clock.monotonic() + PAUSE_S < deadline:
                    await core.clock.sleep(PAUSE_S)
                    continue
                if isinstance(error, BrokerError) and not waits:
                    self.forget(key)
                    raise
                logger.warning("the broker was not told, it has to ask: %s", error)
            else:
                self.forget(key)
            return

    # -- being asked -------------------------------------------------------------------------------------------------

    def asked(self, connection: RemotingConnection, command: Command) -> None:
        """A broker asks about a half (39). It is answered with a decision, or later, or never."""
        if len(self._tasks) >= CHECKS_MAX:
            return
        header = command.header(CheckTransactionStateRequestHeader)
        try:
            message = to_received(decode_record(command.body), header.target_broker or "")
            message.topic = without_namespace(message.topic, self._core.options.namespace)
        except (DecodeError, CompressionError) as error:
            logger.error("a broker asks about a message that cannot be read: %s", error)
            return
        work = self._answer(connection, header, message)
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(
        self, connection: RemotingConnection, header: CheckTransactionStateRequestHeader, message: ReceivedMessage
    ) -> None:
        key = message.message_id
        decision = self._remembered[key] if key in self._remembered else await self._ask(message)
        if decision is None:
            return
        core = self._core
        core.transaction_ended(
            EndedTransaction(
                message=message,
                message_id=key,
                transaction_id=header.transaction_id or key,
                client_id=core.client_id,
                producer_group=core.options.producer_group,
                namespace=core.options.namespace,
                committed=decision,
                asked=True,
                address=connection.context if isinstance(connection.context, str) else "",
            )
        )
        answer = EndTransactionRequestHeader(
            producer_group=message.properties.get(PropertyKey.PRODUCER_GROUP, self._core.options.producer_group),
            tran_state_table_offset=header.tran_state_table_offset,
            commit_log_offset=header.commit_log_offset,
            commit_or_rollback=_code_of(decision),
            msg_id=key,
            topic=with_namespace(message.topic, core.options.namespace),
            from_transaction_check=True,
            transaction_id=header.transaction_id or key,
            target_broker=header.target_broker,
        )
        try:
            done = await connection.request(
                RequestCode.END_TRANSACTION, answer, timeout_s=self._core.options.request_timeout_s
            )
        except PocketMQError as error:
            logger.info("the broker has to ask again about %s: %s", key, error)
            return
        if done.code == ResponseCode.SUCCESS:
            self.forget(key)
        else:
            logger.warning("the decision about %s was refused: %s", key, done.remark)

    async def _ask(self, message: ReceivedMessage) -> Decision:
        check = self._checks.get(message.topic)
        if check is None:
            logger.warning(
                "a broker asks about a transaction of %s, and this client has no check function for that topic",
                message.topic,
            )
            return None
        try:
            return await check(message)
        except Exception:
            logger.exception("the check function failed for %s; the broker will ask again", message.message_id)
            return None

    async def close(self) -> None:
        """Answer no more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _code_of(decision: bool) -> int:
    return SysFlag.TRANSACTION_COMMIT if decision else SysFlag.TRANSACTION_ROLLBACK
