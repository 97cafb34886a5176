"""One queue that a member reads: the pull loop, the buffer, and giving the queue away in good order.

Theory of operation. A reader goes from *starting* (find the position; with order, get the broker's lock) to *reading*
(pull, put into the buffer, tell the member) to *leaving* (no more pulls, what nobody took is forgotten, what was
taken is waited for, the position is stored, the lock returned) to *gone*. Errors never end it: they are waited out.

What may live here: one queue. Which queues there are is the assignment's business, what an application does with a
message the member's.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from pocketmq.client._async.delivery import Delivery
from pocketmq.client._async.handling import HandleChain
from pocketmq.client._async.pulling import Puller, PullResult, PullStatus
from pocketmq.client.middleware import Fetched
from pocketmq.client.names import shown_topic
from pocketmq.client.namespaces import queue_without_namespace, without_namespace
from pocketmq.client.parts import MessageBuffer
from pocketmq.model.errors import ConnectError, PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core
    from pocketmq.client._async.member import Member

logger = logging.getLogger("pocketmq.client")

PAUSE_FIRST_S = 0.05
PAUSE_MAX_S = 3.0
QUICK_ANSWER_S = 0.05
"""An empty answer that comes sooner than this was not held: ask more slowly."""
BUSY_CODES = frozenset({ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL})
SUBSCRIPTION_CODES = frozenset({ResponseCode.SUBSCRIPTION_NOT_EXIST, ResponseCode.SUBSCRIPTION_NOT_LATEST})
MASTER_ID = 0


class QueueReader:
    """Reads one queue for one member. Settles what was read from it."""

    __slots__ = (
        "_broker_id",
        "_clock",
        "_drained",
        "_failures",
        "_member",
        "_next_offset",
        "_puller",
        "_room",
        "_shows_topic",
        "_stored",
        "_task",
        "buffer",
        "leaving",
        "listed",
        "locked_until",
        "out",
        "pulled_at_ms",
        "queue",
        "settled_at_ms",
    )

    def __init__(self, member: "Member", queue: MessageQueue, puller: Puller) -> None:
        self._member = member
        self._clock = member.core.clock
        self._puller = puller
        self.queue = queue
        self.buffer: MessageBuffer | None = None
        self.leaving = False
        self.listed = False
        """Whether the member has it in its list of readers with messages."""
        self.locked_until = 0.0
        """With order: how long the broker's lock counts, in monotonic seconds."""
        self.out = 0
        """Messages that somebody has and did not settle."""
        self.pulled_at_ms = 0
        self.settled_at_ms = 0
        self._shows_topic = queue.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) or bool(member.core.options.namespace)
        self._broker_id = MASTER_ID
        self._failures = 0
        self._stored: int | None = None
        self._next_offset = 0
        self._room: asyncio.Future[None] | None = None
        self._drained: asyncio.Future[None] | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def is_locked(self) -> bool:
        """With order: whether the broker's lock still counts."""
        return self.locked_until > self._clock.monotonic()

    def lock_renewed(self) -> None:
        """With order: the lock was renewed, and what waited for it may be handed out again; or it is lost."""
        if not self.is_locked:
            if self._room is not None and not self._room.done():
                self._room.set_result(None)
        elif self.buffer is not None and self.buffer.waiting:
            self._member.on_messages(self)

    def start(self) -> None:
        """Begin to read."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    # -- the loop ----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        while not self.leaving:
            try:
                if self.buffer is None:
                    await self._begin()
                await self._step()
            except PocketMQError as error:
                await self._after_failure(error)
            except Exception:
                logger.exception("reading %s failed; trying again", self.queue)
                await self._clock.sleep(PAUSE_MAX_S)

    async def _begin(self) -> None:
        member = self._member
        if member.orderly:
            await member.lock(self)
        position, is_stored = await member.start_position(self.queue)
        self.buffer = member.make_buffer(position)
        self._next_offset = position
        self._stored = position if is_stored else None
        logger.debug("%s reads %s from %d on", member.group, self.queue, position)
        # A group that was never here has its beginning stored at once: whoever comes next must not begin elsewhere.
        await self.store(final=False)

    async def _step(self) -> None:
        buffer = self.buffer
        assert buffer is not None
        orderly = self._member.orderly
        while buffer.full and (self.is_locked or not orderly):
            self._room = asyncio.get_running_loop().create_future()
            await self._room
            self._room = None
        if orderly and not self.is_locked:
            # Somebody else may have read on meanwhile: begin again from what is stored.
            self._clear(buffer, 0)
            self.buffer = None
            return
        asked_at = self._clock.monotonic()
        result = await self._pull(buffer)
        self._failures = 0
        self.pulled_at_ms = self._clock.time_ms()
        if not self.leaving:
            await self._take_in(buffer, result, self._clock.monotonic() - asked_at)

    async def _pull(self, buffer: MessageBuffer) -> PullResult:
        member = self._member
        route = await member.core.routes.get(self.queue.topic)
        address = route.address(self.queue.broker_name, self._broker_id)
        if address is None:
            member.core.routes.stale(self.queue.topic)
            raise ConnectError(f"no broker serves {self.queue} at the moment")
        position = buffer.position
        commit = position if member.commits_with_pulls and position > 0 and position != self._stored else None
        result = await self._puller.pull(
            address,
            self._next_offset,
            count_max=member.fetch_count,
            wait_s=member.wait_s,
            commit=commit,
        )
        if commit is not None:
            self._stored = commit
        self._broker_id = result.suggested_broker_id
        return result

    async def _take_in(self, buffer: MessageBuffer, result: PullResult, took_s: float) -> None:
        if result.status is PullStatus.OFFSET_MOVED:
            logger.warning(
                "%s: the position %d of %s is not stored (stored: %d to %d); reading goes on at %d",
                self._member.group,
                self._next_offset,
                self.queue,
                result.min_offset,
                result.max_offset,
                result.next_offset,
            )
            self._clear(buffer, result.next_offset)
            await self.store(final=False)
            return
        before, self._next_offset = self._next_offset, result.next_offset
        for message in result.messages:
            message.context = self
        if self._shows_topic:
            for message in result.messages:
                message.topic = shown_topic(message, self._member.core.options.namespace)
        buffer.put(result.messages, result.next_offset)
        if result.messages:
            if self.chain is not None and self.chain.listens:
                self._tell_fetched(self.chain, result, took_s)
            self._member.on_messages(self)
        elif took_s < QUICK_ANSWER_S and (result.status is PullStatus.NOTHING_NEW or result.next_offset == before):
            self._failures += 1
            await self._clock.sleep(min(1.0, 0.01 * 2 ** min(self._failures, 10)))

    def _tell_fetched(self, chain: HandleChain, result: PullResult, took_s: float) -> None:
        core = self._member.core
        route = core.routes.known(self.queue.topic)
        address = route.address(self.queue.broker_name, MASTER_ID) if route is not None else None
        chain.received(
            Fetched(
                messages=result.messages,
                queue=queue_without_namespace(self.queue, core.options.namespace),
                address=address or "",
                client_id=core.client_id,
                group=without_namespace(self._member.group, core.options.namespace),
                took_s=took_s,
            )
        )

    async def _after_failure(self, error: PocketMQError) -> None:
        if self.leaving:
            return
        self._failures += 1
        self._broker_id = MASTER_ID
        if error.code in BUSY_CODES:
            pause_s = 0.02
        else:
            pause_s = min(PAUSE_MAX_S, PAUSE_FIRST_S * 2 ** min(self._failures - 1, 10))
        level = logging.WARNING if self._failures == 3 else logging.DEBUG
        logger.log(
            level,
            "%s cannot read %s: %s (tried again every %g s)",
            self._member.group,
            self.queue,
            error,
            PAUSE_MAX_S,
        )
        if error.code in SUBSCRIPTION_CODES:
            self._member.core.heartbeats.soon()
        elif error.code != ResponseCode.SYSTEM_BUSY:
            self._member.core.routes.stale(self.queue.topic)
        await self._clock.sleep(pause_s)

    # -- settling ----------------------------------------------------------------------------------------------------

    @property
    def reraise(self) -> bool:
        """Whether exceptions of the application go on."""
        return self._member.reraise

    @property
    def core(self) -> "Core":
        """The inside of the client."""
        return self._member.core

    @property
    def chain(self) -> HandleChain | None:
        """The middleware around the handling of messages; None when there is none."""
        return self._member.chain

    def ack(self, message: Delivery) -> bool:
        """The message was dealt with."""
        buffer = self.buffer
        if buffer is None or not buffer.settle(message):
            return False
        self._settled(buffer)
        return True

    async def nack(self, message: Delivery, delay_s: float | None, dead: bool, reason: BaseException | None) -> bool:
        """The message was not dealt with."""
        return await self._member.give_back(self, message, delay_s, dead)

    def value_of(self, message: Delivery) -> Any:
        """What the serializer makes of the body."""
        return self._member.core.options.serializer.decode(message.body, message.properties)

    def put_back(self, message: Delivery) -> None:
        """The message waits again, unless it was settled; it is handed out from here, before all others."""
        buffer = self.buffer
        if buffer is None:
            return
        taken = buffer.unsettled - buffer.waiting
        buffer.put_back(message)
        if buffer.unsettled - buffer.waiting < taken:
            if self.leaving:
                buffer.drop_waiting()
            self._settled(buffer)

    def _settled(self, buffer: MessageBuffer) -> None:
        self._member.on_settled(self)
        if self._room is not None and not buffer.full and not self._room.done():
            self._room.set_result(None)
        if self._drained is not None and not self._drained.done() and buffer.unsettled == buffer.waiting:
            self._drained.set_result(None)

    # -- positions ---------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int | None:
        """The offset to store, or None before reading has begun."""
        return None if self.buffer is None else self.buffer.position

    def unstored(self) -> int | None:
        """The position, when it differs from what was stored last."""
        position = self.position
        return None if position == self._stored else position

    def was_stored(self, position: int) -> None:
        """The position has been stored."""
        self._stored = position
        self.settled_at_ms = self._clock.time_ms()

    async def store(self, *, final: bool) -> None:
        """Store the position now. Logs what fails: the next time will do."""
        position = self.position
        if position is None or (position == self._stored and not final):
            return
        try:
            await self._member.cursors.store(self._member.group, {self.queue: position}, final=final)
            self._stored = position
        except PocketMQError as error:
            logger.warning(
                "the position %d of %s in %s was not stored: %s", position, self._member.group, self.queue, error
            )

    def seek(self, offset: int) -> None:
        """Go on at `offset`; what was fetched is forgotten, and what is taken can no longer be settled."""
        if self.leaving:
            return
        if self._task is not None:
            # The pull under way is for another offset.
            self._task.cancel()
        if self.buffer is None:
            self.buffer = self._member.make_buffer(offset)
        self._clear(self.buffer, offset)
        self._stored = None
        self.start()

    def _clear(self, buffer: MessageBuffer, offset: int) -> None:
        self._member.forget_waiting(self)
        self._member.forget_out(self)
        buffer.clear(offset)
        self._next_offset = offset

    # -- leaving -----------------------------------------------------------------------------------------------------

    async def leave(self, drain_s: float) -> None:
        """Stop, wait for what was taken (at most `drain_s` seconds), store the position."""
        if self.leaving:
            return
        self.leaving = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        buffer = self.buffer
        if buffer is None:
            return
        self._member.forget_waiting(self)
        buffer.drop_waiting()
        if buffer.unsettled:
            await self.store(final=False)
            self._drained = asyncio.get_running_loop().create_future()
            timer = self._clock.call_later(drain_s, _settle, self._drained)
            try:
                await self._drained
            finally:
                timer.cancel()
            if buffer.unsettled:
                logger.info(
                    "%d messages of %s are not settled yet; whoever reads it next gets them again",
                    buffer.unsettled,
                    self.queue,
                )
        await self.store(final=True)


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
