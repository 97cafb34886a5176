"""The default writable queue: sends what came together in one request, and gives each message its own receipt.

Theory of operation. `write` puts a message into the queue's lane and returns a future. The lane departs at the end of
the loop turn: neighbouring messages that a batch can carry become one batch request, others go alone, in order. While
`in_flight_max` requests are on their way, what comes waits and leaves together with the next answer. So a lone
message never waits, and the fuller the lane the larger the batches.

A batch that is refused for what is in it (and not for the state of the broker) is sent again message by message, so
that one bad message fails alone. An error that may pass is given to all: whoever wrote the messages decides about
another try.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial

import msgspec

from pocketmq.client._async.remoting import Remoting, read_header
from pocketmq.client.broker_errors import error_of
from pocketmq.client.outgoing import Compressor, can_be_merged, properties_text
from pocketmq.model.errors import ConnectError, PocketMQError, RequestTimeoutError
from pocketmq.model.message import Message, MessageQueue, SendReceipt
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.seams import Clock
from pocketmq.wire.batch import encode_batch
from pocketmq.wire.codes import STORED_CODES, RequestCode, response_name
from pocketmq.wire.command import Command
from pocketmq.wire.headers.send import SendMessageResponseHeader
from pocketmq.wire.properties import PropertyKey

logger = logging.getLogger("pocketmq.client")

AUTO_CREATE_QUEUES_TEXT = "4"
_SEND_OK = "SEND_OK"


class LaneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What all lanes of a client share."""

    producer_group: str
    compressor: Compressor
    merge: bool
    merge_messages_max: int
    merge_bytes_max: int
    in_flight_max: int


class _Entry(msgspec.Struct, gc=True):
    """One message in a lane."""

    message: Message
    body: bytes
    properties: str
    sys_flag: int
    mergeable: bool
    size: int
    deadline: float
    receipt: "asyncio.Future[SendReceipt]"


class QueueLane:
    """Writes to one queue over the remoting protocol."""

    __slots__ = (
        "_address_of",
        "_clock",
        "_departing",
        "_fields",
        "_in_flight",
        "_loop",
        "_options",
        "_remoting",
        "_tasks",
        "_waiting",
        "queue",
    )

    def __init__(
        self,
        queue: MessageQueue,
        remoting: Remoting,
        clock: Clock,
        options: LaneOptions,
        address_of: Callable[[str], str | None],
    ) -> None:
        self.queue = queue
        self._remoting = remoting
        self._clock = clock
        self._options = options
        self._address_of = address_of
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[_Entry] = deque()
        self._departing = False
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._fields = {
            "a": options.producer_group,
            "b": queue.topic,
            "c": AUTO_CREATE_TOPIC,
            "d": AUTO_CREATE_QUEUES_TEXT,
            "e": str(queue.queue_id),
            "j": "0",
            "k": "false",
            "n": queue.broker_name,
        }

    def write(self, message: Message, timeout_s: float) -> "asyncio.Future[SendReceipt]":
        """Store the message in the queue. Raises UsageError at once for what can never be sent."""
        properties = properties_text(message)
        body, sys_flag = self._options.compressor(message.body)
        receipt: asyncio.Future[SendReceipt] = self._loop.create_future()
        self._waiting.append(
            _Entry(
                message,
                body,
                properties,
                sys_flag,
                sys_flag == 0 and can_be_merged(message),
                len(body) + len(properties),
                self._clock.monotonic() + timeout_s,
                receipt,
            )
        )
        if not self._departing and self._in_flight < self._options.in_flight_max:
            self._departing = True
            self._loop.call_soon(self._depart)
        return receipt

    async def write_oneway(self, message: Message) -> None:
        """Send the message and ask for no answer. Raises UsageError, ConnectError, ConnectionClosedError."""
        properties = properties_text(message)
        body, sys_flag = self._options.compressor(message.body)
        fields = self._single_fields(message, properties, sys_flag)
        await self._remoting.oneway(self._address(), RequestCode.SEND_MESSAGE_V2, fields, body)

    def _address(self) -> str:
        address = self._address_of(self.queue.broker_name)
        if address is None:
            raise ConnectError(f"the broker {self.queue.broker_name} has no master at the moment")
        return address

    # -- departing ---------------------------------------------------------------------------------------------------

    def _depart(self) -> None:
        """Send as much of what waits as may be on its way at once."""
        self._departing = False
        while self._waiting and self._in_flight < self._options.in_flight_max:
            try:
                connection = self._remoting.connections.peek(self._address())
            except PocketMQError as error:
                self._fail(self._take_all(), error)
                return
            if connection is None:
                self._dial()
                return
            entries = self._take()
            if entries:
                self._send(entries)

    def _dial(self) -> None:
        self._departing = True
        task = self._loop.create_task(self._connect())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _connect(self) -> None:
        try:
            await self._remoting.connect(self._address())
        except PocketMQError as error:
            self._departing = False
            self._fail(self._take_all(), error)
        else:
            self._depart()

    def _take(self) -> list[_Entry]:
        """The next message that can go alone only, or as many of the next ones as one batch can carry."""
        options, waiting, now = self._options, self._waiting, self._clock.monotonic()
        entries: list[_Entry] = []
        size = 0
        while waiting:
            entry = waiting[0]
            if entry.receipt.done():
                waiting.popleft()
                continue
            if entry.deadline <= now:
                waiting.popleft()
                self._fail([entry], RequestTimeoutError(f"the send to {self.queue.topic} waited too long"))
                continue
            alone = not (entry.mergeable and options.merge)
            if entries and (
                alone or len(entries) >= options.merge_messages_max or size + entry.size > options.merge_bytes_max
            ):
                break
            waiting.popleft()
            entries.append(entry)
            size += entry.size
            if alone:
                break
        return entries

    def _take_all(self) -> list[_Entry]:
        entries = list(self._waiting)
        self._waiting.clear()
        return entries

    def _send(self, entries: list[_Entry]) -> None:
        address = self._address()
        connection = self._remoting.connections.peek(address)
        timeout_s = max(0.001, entries[0].deadline - self._clock.monotonic())
        try:
            if connection is None:
                raise ConnectError(f"the connection to {address} was lost")
            if len(entries) == 1:
                entry = entries[0]
                fields = self._single_fields(entry.message, entry.properties, entry.sys_flag)
                answer = connection.start_request(RequestCode.SEND_MESSAGE_V2, fields, entry.body, timeout_s=timeout_s)
            else:
                fields = {**self._fields, "f": "0", "g": str(self._clock.time_ms()), "h": "0", "m": "true"}
                body = encode_batch([(entry.message.flag, entry.body, entry.properties.encode()) for entry in entries])
                answer = connection.start_request(RequestCode.SEND_BATCH_MESSAGE, fields, body, timeout_s=timeout_s)
        except PocketMQError as error:
            self._fail(entries, error)
            return
        self._in_flight += 1
        answer.add_done_callback(partial(self._answered, entries, address))

    def _single_fields(self, message: Message, properties: str, sys_flag: int) -> dict[str, str]:
        fields = {
            **self._fields,
            "f": str(sys_flag),
            "g": str(self._clock.time_ms()),
            "h": str(message.flag),
            "i": properties,
            "m": "false",
        }
        if PropertyKey.MAX_RECONSUME_TIMES in message.properties:
            fields["l"] = message.properties[PropertyKey.MAX_RECONSUME_TIMES]
            fields["j"] = message.properties.get(PropertyKey.RECONSUME_TIME, "0")
        return fields

    # -- answers -----------------------------------------------------------------------------------------------------

    def _answered(self, entries: list[_Entry], address: str, future: "asyncio.Future[Command]") -> None:
        self._in_flight -= 1
        error = asyncio.CancelledError() if future.cancelled() else future.exception()
        if error is not None:
            self._fail(entries, error)
        else:
            self._settle(entries, address, future.result())
        if self._waiting and not self._departing:
            self._depart()

    def _settle(self, entries: list[_Entry], address: str, answer: Command) -> None:
        what = f"send to {self.queue.topic}"
        if answer.code not in STORED_CODES:
            error = error_of(answer, what, address)
            if len(entries) > 1 and not error.retryable:
                logger.info("a batch of %d was refused, its messages go alone: %s", len(entries), error)
                for entry in reversed(entries):
                    entry.mergeable = False
                    self._waiting.appendleft(entry)
                return
            self._fail(entries, error)
            return
        try:
            header = read_header(answer, SendMessageResponseHeader, what, address)
        except PocketMQError as error:
            self._fail(entries, error)
            return
        status = _SEND_OK if answer.code == 0 else response_name(answer.code)
        queue = self.queue
        if header.queue_id != queue.queue_id:
            queue = MessageQueue(queue.topic, queue.broker_name, header.queue_id)
        if len(entries) == 1:
            _give(entries[0], header.msg_id, queue, header.queue_offset, status, header)
            return
        offset_ids = header.msg_id.split(",")
        if len(offset_ids) != len(entries):
            offset_ids = [""] * len(entries)
        for index, entry in enumerate(entries):
            _give(entry, offset_ids[index], queue, header.queue_offset + index, status, None)

    def _fail(self, entries: list[_Entry], error: BaseException) -> None:
        for entry in entries:
            if not entry.receipt.done():
                entry.receipt.set_exception(error)

    def close(self, error: PocketMQError) -> None:
        """Fail what waits; what is on its way still gets its answer."""
        for task in self._tasks:
            task.cancel()
        self._fail(self._take_all(), error)


def _give(
    entry: _Entry,
    offset_id: str,
    queue: MessageQueue,
    offset: int,
    status: str,
    header: SendMessageResponseHeader | None,
) -> None:
    if entry.receipt.done():
        return
    unique_key = entry.message.properties.get(PropertyKey.UNIQUE_KEY)
    entry.receipt.set_result(
        SendReceipt(
            message_id=unique_key or offset_id,
            offset_message_id=offset_id,
            queue=queue,
            queue_offset=offset,
            transaction_id=header.transaction_id if header else None,
            recall_handle=header.recall_handle if header else None,
            status=status,
        )
    )
