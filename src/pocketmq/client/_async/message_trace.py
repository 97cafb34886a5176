"""Message trace: writes what became of each message to a topic, as RocketMQ's own clients do, for operators to read.

Theory of operation. As middleware it sees every send, every handling and every decision about a transaction; each
becomes a record (`wire/traces.py`). Records wait in a bounded list, are put together and sent in the background, past
all middleware. Nobody waits for them: when the list is full the newest are dropped and counted, and when the trace
topic cannot be written they are lost, with a word in the log. A broker that wants no traces gets none about its
messages.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final

from pocketmq.client.middleware import (
    EndedTransaction,
    HandleForward,
    Host,
    Incoming,
    Middleware,
    Outgoing,
    SendForward,
)
from pocketmq.client.namespaces import without_namespace
from pocketmq.client.options import Duration, seconds
from pocketmq.model.errors import PocketMQError, UsageError
from pocketmq.model.message import Message, ReceivedMessage, SendReceipt
from pocketmq.model.names import TRACE_TOPIC, check_topic
from pocketmq.wire.properties import PropertyKey
from pocketmq.wire.traces import (
    ConsumeOutcome,
    EndTransactionTrace,
    PubTrace,
    SubAfterTrace,
    SubBeforeTrace,
    Trace,
    TraceType,
    trace_keys,
)

logger = logging.getLogger("pocketmq.client")

DEFAULT_REGION: Final = "DefaultRegion"
MESSAGE_BYTES_MAX: Final = 64_000
"""The body of one message of traces; its keys must find room in the properties, too."""
KEYS_BYTES_MAX: Final = 24_000
SENDS_MAX: Final = 8
"""Messages of traces that are on their way at the same time."""
LAST_SENDS_S: Final = 3.0
"""How long the last traces of a client may take."""

_DELAYS = (
    PropertyKey.DELAY,
    PropertyKey.TIMER_DELAY_MS,
    PropertyKey.TIMER_DELAY_SECONDS,
    PropertyKey.TIMER_DELIVER_MS,
)


class MessageTrace(Middleware):
    """Writes the traces of one client; give it to `connect(middleware=[...])`.

    `pocketmq message trace` and `mqadmin queryMsgTraceById` read them.
    """

    def __init__(
        self,
        topic: str = TRACE_TOPIC,
        *,
        wait: Duration = 1.0,
        batch: int = 100,
        pending: int = 10_000,
        region: str = DEFAULT_REGION,
    ) -> None:
        """Make it.

        Args:
            topic: where to; brokers have the default one (`broker.trace_topic`).
            wait: how long a trace may wait for others to share a message with.
            batch: most traces in a message; that many do not wait.
            pending: how many traces may wait; beyond it the newest are dropped.
            region: what is written as the region of messages that do not say theirs.

        Raises:
            UsageError: a name or a number that cannot be.
        """
        if batch < 1 or pending < 1:
            raise UsageError("batch and pending are at least 1")
        self.topic = check_topic(topic)
        self.dropped = 0
        """Traces that found no room, or could not be sent."""
        self._wait_s = seconds(wait, "wait")
        self._batch = batch
        self._pending_max = pending
        self._region = region
        self._pending: list[Trace] = []
        self._host: Host | None = None
        self._timer: Any = None
        self._sending: set[asyncio.Task[None]] = set()
        self._complained = False

    # -- what happens ------------------------------------------------------------------------------------------------

    def attach(self, host: Host) -> None:
        """A client was made with it. Raises UsageError: one for each client."""
        if self._host is not None:
            raise UsageError("a MessageTrace belongs to one client; make another one")
        self._host = host

    async def send(self, outgoing: Outgoing, forward: SendForward) -> list[SendReceipt]:
        """Note a send, when it is over."""
        if outgoing.topic == self.topic or outgoing.kind == "oneway":
            return await forward(outgoing)
        clock = self._client.clock
        began_ms, began = clock.time_ms(), clock.monotonic()
        try:
            receipts = await forward(outgoing)
        except PocketMQError:
            self._note_sends(outgoing, None, began_ms, clock.monotonic() - began)
            raise
        self._note_sends(outgoing, receipts, began_ms, clock.monotonic() - began)
        return receipts

    def _note_sends(
        self, outgoing: Outgoing, receipts: Sequence[SendReceipt] | None, began_ms: int, took_s: float
    ) -> None:
        count = len(outgoing.messages)
        cost_ms = round(took_s * 1000) // count
        group = without_namespace(outgoing.producer_group, outgoing.namespace)
        for index, message in enumerate(outgoing.messages):
            receipt = receipts[index] if receipts is not None else None
            if receipt is not None and not self._client.wants_traces(receipt.queue.broker_name):
                continue
            self._note(
                PubTrace(
                    time_ms=began_ms,
                    region=self._region,
                    group=group,
                    topic=outgoing.topic,
                    message_id=message.properties.get(PropertyKey.UNIQUE_KEY, ""),
                    message_tag=message.tag,
                    keys=" ".join(message.keys) or None,
                    store_host=(self._client.address_of(receipt.queue) or "") if receipt is not None else "",
                    body_bytes=len(message.body),
                    cost_ms=cost_ms,
                    type=_type_of(message, outgoing.kind),
                    offset_message_id=receipt.offset_message_id if receipt is not None else "",
                    success=receipt is not None,
                )
            )

    async def handle(self, incoming: Incoming, forward: HandleForward) -> Any:
        """Note the beginning and the end of a handling."""
        message = incoming.message
        if message.topic == self.topic or message.properties.get(PropertyKey.TRACE_ON) == "false":
            return await forward(incoming)
        clock = self._client.clock
        keys = message.properties.get(PropertyKey.KEYS)
        request_id = f"{message.message_id}-{message.queue_offset}-{message.reconsume_times}"
        self._note(
            SubBeforeTrace(
                time_ms=clock.time_ms(),
                region=message.properties.get(PropertyKey.MESSAGE_REGION, self._region),
                group=incoming.group,
                request_id=request_id,
                message_id=message.message_id,
                retry_times=message.reconsume_times,
                keys=keys,
            )
        )
        began, outcome = clock.monotonic(), ConsumeOutcome.EXCEPTION
        try:
            result = await forward(incoming)
            outcome = ConsumeOutcome.FAILED if incoming.given_back else ConsumeOutcome.SUCCESS
        finally:
            self._note(
                SubAfterTrace(
                    request_id=request_id,
                    message_id=message.message_id,
                    cost_ms=round((clock.monotonic() - began) * 1000),
                    success=outcome == ConsumeOutcome.SUCCESS,
                    keys=keys,
                    outcome=outcome,
                    time_ms=clock.time_ms(),
                    group=incoming.group,
                )
            )
        return result

    def transaction_ended(self, ended: EndedTransaction) -> None:
        """Note a decision."""
        message = ended.message
        keys = message.properties.get(PropertyKey.KEYS) if isinstance(message, ReceivedMessage) else None
        self._note(
            EndTransactionTrace(
                time_ms=self._client.clock.time_ms(),
                region=self._region,
                group=without_namespace(ended.producer_group, ended.namespace),
                topic=without_namespace(message.topic, ended.namespace),
                message_id=ended.message_id,
                message_tag=message.tag,
                keys=keys or " ".join(message.keys) or None,
                store_host=ended.address,
                transaction_id=ended.transaction_id,
                state="COMMIT_MESSAGE" if ended.committed else "ROLLBACK_MESSAGE",
                from_check=ended.asked,
            )
        )

    @property
    def _client(self) -> Host:
        if self._host is None:
            raise UsageError("this MessageTrace was given to no client")
        return self._host

    # -- writing -----------------------------------------------------------------------------------------------------

    def _note(self, trace: Trace) -> None:
        if len(self._pending) >= self._pending_max:
            self.dropped += 1
            return
        self._pending.append(trace)
        if len(self._pending) >= self._batch and len(self._sending) < SENDS_MAX:
            self._flush()
        elif self._timer is None:
            self._timer = self._client.clock.call_later(self._wait_s, self._flush)

    def _flush(self) -> None:
        """Send as much of what waits as may be on its way at once."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._pending and len(self._sending) < SENDS_MAX:
            message, count = self._next_message()
            task = asyncio.get_running_loop().create_task(self._send(message, count))
            self._sending.add(task)
            task.add_done_callback(self._sent)

    def _next_message(self) -> tuple[Message, int]:
        records: list[str] = []
        keys: dict[str, None] = {}
        size = keys_size = count = 0
        for trace in self._pending[: self._batch]:
            record = trace.encode()
            new_keys = [key for key in trace_keys(trace) if key not in keys]
            size += len(record.encode())
            keys_size += sum(len(key.encode()) + 1 for key in new_keys)
            if records and (size > MESSAGE_BYTES_MAX or keys_size > KEYS_BYTES_MAX):
                break
            records.append(record)
            keys.update(dict.fromkeys(new_keys))
            count += 1
        del self._pending[:count]
        return Message(topic=self.topic, body="".join(records).encode(), keys=tuple(keys), properties={}), count

    async def _send(self, message: Message, count: int) -> None:
        try:
            await self._client.send_beside(message)
        except PocketMQError as error:
            self.dropped += count
            level = logging.DEBUG if self._complained else logging.WARNING
            self._complained = True
            logger.log(level, "%d message traces are lost: %s", count, error)

    def _sent(self, task: "asyncio.Task[None]") -> None:
        self._sending.discard(task)
        if self._pending and self._timer is None:
            self._timer = self._client.clock.call_later(self._wait_s, self._flush)

    async def close(self) -> None:
        """Send what waits; not for long."""
        if self._host is None:
            return
        clock = self._host.clock
        deadline = clock.monotonic() + LAST_SENDS_S
        while (self._pending or self._sending) and clock.monotonic() < deadline:
            self._flush()
            over = clock.call_later(deadline - clock.monotonic(), _cancel_all, list(self._sending))
            await asyncio.gather(*self._sending, return_exceptions=True)
            over.cancel()
        self.dropped += len(self._pending)
        self._pending.clear()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _cancel_all(tasks: list["asyncio.Task[None]"]) -> None:
    for task in tasks:
        task.cancel()


def _type_of(message: Message, kind: str) -> TraceType:
    if kind == "transaction":
        return TraceType.TRANSACTION_HALF
    if message.delay_level > 0 or any(key in message.properties for key in _DELAYS):
        return TraceType.DELAY
    if PropertyKey.SHARDING_KEY in message.properties:
        return TraceType.ORDER
    return TraceType.NORMAL
