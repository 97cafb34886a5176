"""The default writable queue: sends what came together in one request, and gives each message its own receipt.

Theory of operation. `write` puts a message into the queue's lane and returns a future. The lane departs at the end of
the loop turn: neighbouring messages that a batch can carry become one batch request, others go alone, in order. While
`in_flight_max` requests are on their way, what comes waits and leaves together with the next answer. So a lone
message never waits, and the fuller the lane the larger the batches.

The answer is taken by the shipment itself, in the midst of reading from the socket, and not by a future: that saves a
turn of the loop for every request.

A batch that is refused for what is in it (and not for the state of the broker) is sent again message by message, so
that one bad message fails alone. An error that may pass is given to all: whoever wrote the messages decides about
another try.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable

import msgspec

from pocketmq.client._async.remoting import Remoting, read_header
from pocketmq.client._async.shipping import Departures, Entry, ReadyHeader, Shipment
from pocketmq.client.broker_errors import error_of
from pocketmq.client.namespaces import queue_without_namespace
from pocketmq.client.outgoing import Compressor, can_be_merged, properties_text
from pocketmq.model.errors import ConnectError, PocketMQError, RequestTimeoutError, UsageError
from pocketmq.model.message import Message, MessageQueue, SendReceipt
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.seams import Clock
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.batch import encode_batch
from pocketmq.wire.codes import STORED_CODES, RequestCode, ResponseCode, response_name
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import to_json
from pocketmq.wire.headers.send import SendMessageResponseHeader
from pocketmq.wire.properties import PropertyKey

logger = logging.getLogger("pocketmq.client")

AUTO_CREATE_QUEUES_TEXT = "4"
ENTRY_BYTES = 24
"""What a batch adds to each message."""
_SEND_OK = "SEND_OK"

NOT_THE_BATCH = frozenset(
    {
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.FLOW_CONTROL,
        ResponseCode.NOT_LEADER_FOR_QUEUE,
        ResponseCode.GO_AWAY,
    }
)
"""Refusals that say nothing about what is in a batch: its messages would fare no better alone."""


class LaneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What all lanes of a client share."""

    producer_group: str
    compressor: Compressor
    merge: bool
    merge_messages_max: int
    merge_bytes_max: int
    in_flight_max: int
    namespace: str
    without_traces: set[str]
    """Filled with the names of brokers that say that they want no traces."""


class QueueLane:
    """Writes to one queue over the remoting protocol."""

    __slots__ = (
        "_address_of",
        "_batch_head",
        "_clock",
        "_departing",
        "_departures",
        "_in_flight",
        "_loop",
        "_options",
        "_remoting",
        "_shown_queue",
        "_single_head",
        "_tasks",
        "_waiting",
        "_what",
        "queue",
    )

    def __init__(
        self,
        queue: MessageQueue,
        remoting: Remoting,
        clock: Clock,
        options: LaneOptions,
        departures: Departures,
        address_of: Callable[[str], str | None],
    ) -> None:
        self.queue = queue
        self._shown_queue = queue_without_namespace(queue, options.namespace)
        self._what = f"send to {queue.topic}"
        self._remoting = remoting
        self._clock = clock
        self._options = options
        self._departures = departures
        self._address_of = address_of
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[Entry] = deque()
        self._departing = False
        self._in_flight = 0
        self._tasks: set[asyncio.Task[None]] = set()
        # The header fields that are the same for all messages of the queue; the closing brace comes later.
        fields = {
            "a": options.producer_group,
            "b": queue.topic,
            "c": AUTO_CREATE_TOPIC,
            "d": AUTO_CREATE_QUEUES_TEXT,
            "e": str(queue.queue_id),
            "k": "false",
            "n": queue.broker_name,
        }
        self._single_head = to_json({**fields, "m": "false"})[:-1]
        self._batch_head = to_json({**fields, "f": "0", "h": "0", "j": "0", "m": "true"})[:-1]

    def write(self, message: Message, timeout_s: float) -> "asyncio.Future[SendReceipt]":
        """Store the message in the queue. Raises UsageError at once for what can never be sent."""
        options = self._options
        properties = properties_text(message)
        try:
            properties_bytes = properties.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"a property, tag or key is not text that can be sent: {error}", cause=error) from error
        body, sys_flag = message.body, 0
        if len(body) > options.compressor.above_bytes:
            body, sys_flag = options.compressor(body)
        receipt: asyncio.Future[SendReceipt] = self._loop.create_future()
        mergeable = options.merge and sys_flag == 0 and can_be_merged(message)
        deadline = self._clock.monotonic() + timeout_s
        self._waiting.append(Entry(message, body, properties, properties_bytes, sys_flag, mergeable, deadline, receipt))
        if not self._departing and self._in_flight < options.in_flight_max:
            self._departing = True
            self._departures.add(self)
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

    def depart(self) -> RemotingConnection | None:
        """Queue as much of what waits as may be on its way at once; the connection that must be flushed then."""
        self._departing = False
        if not self._waiting:
            return None
        try:
            address = self._address()
        except PocketMQError as error:
            self._fail(self._take_all(), error)
            return None
        connection = self._remoting.connections.peek(address)
        if connection is None:
            self._departing = True
            task = self._loop.create_task(self._connect(address))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return None
        in_flight_max = self._options.in_flight_max
        while self._waiting and self._in_flight < in_flight_max:
            entries = self._take()
            if entries:
                self._send(connection, address, entries)
        return connection

    async def _connect(self, address: str) -> None:
        try:
            await self._remoting.connect(address)
        except PocketMQError as error:
            self._departing = False
            self._fail(self._take_all(), error)
        else:
            self._departures.add(self)

    def _take(self) -> list[Entry]:
        """The next message that can go alone only, or as many of the next ones as one batch can carry."""
        options, waiting, now = self._options, self._waiting, self._clock.monotonic()
        entries: list[Entry] = []
        bytes_left = options.merge_bytes_max
        while waiting:
            entry = waiting[0]
            if entry.receipt.done():
                waiting.popleft()
                continue
            if entry.deadline <= now:
                waiting.popleft()
                self._fail([entry], RequestTimeoutError(f"the send to {self.queue.topic} waited too long"))
                continue
            bytes_left -= len(entry.body) + len(entry.properties_bytes) + ENTRY_BYTES
            if entries and (not entry.mergeable or bytes_left < 0):
                break
            waiting.popleft()
            entries.append(entry)
            if not entry.mergeable or len(entries) >= options.merge_messages_max:
                break
        return entries

    def _take_all(self) -> list[Entry]:
        entries = list(self._waiting)
        self._waiting.clear()
        return entries

    def _send(self, connection: RemotingConnection, address: str, entries: list[Entry]) -> None:
        self._in_flight += 1
        try:
            first = entries[0]
            if len(entries) == 1:
                code, body = RequestCode.SEND_MESSAGE_V2, first.body
                fields = self._single_fields(first.message, first.properties, first.sys_flag)
            else:
                code = RequestCode.SEND_BATCH_MESSAGE
                fields = ReadyHeader(f'{self._batch_head},"g":"{self._clock.time_ms()}"}}')
                body = encode_batch([(entry.message.flag, entry.body, entry.properties_bytes) for entry in entries])
            timeout_s = first.deadline - self._clock.monotonic()
            shipment = Shipment(self, entries, address)
            connection.send_request(code, fields, body, timeout_s=timeout_s, receiver=shipment, queued=True)
        except Exception as error:
            self._in_flight -= 1
            if not isinstance(error, PocketMQError):
                error = PocketMQError(f"{self._what} failed: {error!r}", cause=error)
            self._fail(entries, error)

    def _single_fields(self, message: Message, properties: str, sys_flag: int) -> ReadyHeader:
        retry = '"j":"0"'
        if PropertyKey.MAX_RECONSUME_TIMES in message.properties:
            times = message.properties.get(PropertyKey.RECONSUME_TIME, "0")
            retry = f'"j":{to_json(times)},"l":{to_json(message.properties[PropertyKey.MAX_RECONSUME_TIMES])}'
        return ReadyHeader(
            f'{self._single_head},"f":"{sys_flag}","g":"{self._clock.time_ms()}","h":"{message.flag}",'
            f'"i":{to_json(properties)},{retry}}}'
        )

    # -- answers -----------------------------------------------------------------------------------------------------

    def arrived(self, shipment: Shipment, answer: Command) -> None:
        """A request was answered."""
        self._in_flight -= 1
        if answer.code in STORED_CODES:
            self._stored(shipment, answer)
        else:
            self._refused(shipment, answer)
        if self._waiting and not self._departing:
            connection = self.depart()
            if connection is not None:
                connection.flush()

    def lost(self, shipment: Shipment, error: BaseException) -> None:
        """A request will not be answered."""
        self._in_flight -= 1
        if isinstance(error, RequestTimeoutError):
            self._remoting.was_silent(shipment.address)
        self._fail(shipment.entries, error)
        if self._waiting and not self._departing:
            self._departing = True
            self._departures.add(self)

    def _refused(self, shipment: Shipment, answer: Command) -> None:
        entries = shipment.entries
        error = error_of(answer, self._what, shipment.address)
        if len(entries) == 1 or answer.code in NOT_THE_BATCH:
            self._fail(entries, error)
            return
        logger.info("a batch of %d was refused, its messages go alone: %s", len(entries), error)
        for entry in reversed(entries):
            entry.mergeable = False
            self._waiting.appendleft(entry)

    def _stored(self, shipment: Shipment, answer: Command) -> None:
        entries = shipment.entries
        try:
            header = read_header(answer, SendMessageResponseHeader, self._what, shipment.address)
        except PocketMQError as error:
            self._fail(entries, error)
            return
        status = _SEND_OK if answer.code == 0 else response_name(answer.code)
        queue = self._shown_queue
        if header.trace_on == "false":
            self._options.without_traces.add(queue.broker_name)
        if header.queue_id != queue.queue_id:
            queue = MessageQueue(queue.topic, queue.broker_name, header.queue_id)
        offset = header.queue_offset
        if len(entries) == 1:
            _give(entries[0], header.msg_id, queue, offset, status, header.transaction_id, header.recall_handle)
            return
        offset_ids = header.msg_id.split(",")
        if len(offset_ids) != len(entries):
            offset_ids = [""] * len(entries)
        for entry, offset_id in zip(entries, offset_ids, strict=True):
            _give(entry, offset_id, queue, offset, status, None, None)
            offset += 1

    def _fail(self, entries: list[Entry], error: BaseException) -> None:
        for entry in entries:
            if not entry.receipt.done():
                entry.receipt.set_exception(error)

    def abandon(self, error: Exception) -> None:
        """Departing failed for a reason that nobody thought of: nothing may wait for ever."""
        logger.error("messages to %s cannot depart", self.queue, exc_info=error)
        self._fail(self._take_all(), PocketMQError(f"{self._what} failed: {error!r}", cause=error))

    def close(self, error: PocketMQError) -> None:
        """Fail what waits; what is on its way still gets its answer."""
        for task in self._tasks:
            task.cancel()
        self._fail(self._take_all(), error)


def _give(
    entry: Entry,
    offset_id: str,
    queue: MessageQueue,
    offset: int,
    status: str,
    transaction_id: str | None,
    recall_handle: str | None,
) -> None:
    receipt = entry.receipt
    if not receipt.done():
        receipt.set_result(
            SendReceipt(
                message_id=entry.message.properties.get(PropertyKey.UNIQUE_KEY) or offset_id,
                offset_message_id=offset_id,
                queue=queue,
                queue_offset=offset,
                transaction_id=transaction_id,
                recall_handle=recall_handle,
                status=status,
            )
        )
