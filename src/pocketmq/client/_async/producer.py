"""Sending: complete the message, find room, pick a queue, try again where it may help."""

import asyncio
import logging
import os
import time
from collections.abc import Sequence

from pocketmq.client._async.admission import Admission
from pocketmq.client._async.lane import LaneOptions, QueueLane
from pocketmq.client._async.remoting import Remoting
from pocketmq.client._async.routes import RouteCache
from pocketmq.client._async.shipping import Departures
from pocketmq.client.broker_errors import ROUTE_IS_STALE, too_large
from pocketmq.client.health import BrokerHealth
from pocketmq.client.options import ClientOptions
from pocketmq.client.outgoing import MESSAGE_OVERHEAD_BYTES, Compressor, check_sendable
from pocketmq.client.parts import WritableQueue
from pocketmq.client.routing import TopicRoute
from pocketmq.model.errors import (
    ClientClosedError,
    ConnectError,
    PocketMQError,
    RouteNotFoundError,
    SendBatchError,
    UsageError,
)
from pocketmq.model.message import Message, MessageQueue, SendReceipt
from pocketmq.model.seams import Clock
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.ids import UniqueKeys
from pocketmq.wire.properties import PropertyKey

logger = logging.getLogger("pocketmq.client")

PAUSE_FIRST_S = 0.02
PAUSE_MAX_S = 1.0


class Producer:
    """Sends messages for one client."""

    def __init__(self, remoting: Remoting, routes: RouteCache, clock: Clock, options: ClientOptions) -> None:
        self._remoting = remoting
        self._routes = routes
        self._clock = clock
        self._options = options
        self._router = options.router
        self._admission = Admission(clock, options.pending_messages_max, options.pending_bytes_max)
        self._health = BrokerHealth()
        self._queues: dict[str, Sequence[WritableQueue]] = {}
        self._lanes: dict[MessageQueue, QueueLane] = {}
        self._departures: Departures | None = None
        self._unique_keys: UniqueKeys | None = None
        self._closed = False
        self.without_traces: set[str] = set()
        """Names of brokers that want no traces of messages."""
        self._lane_options = LaneOptions(
            producer_group=options.producer_group,
            compressor=Compressor(options.compress_above_bytes, options.compression, options.compression_level),
            merge=options.merge,
            merge_messages_max=options.merge_messages_max,
            merge_bytes_max=options.merge_bytes_max,
            in_flight_max=options.in_flight_max,
            namespace=options.namespace,
            without_traces=self.without_traces,
        )

    @property
    def used(self) -> bool:
        """Whether anything was sent yet: only then do brokers hear of the producer group."""
        return bool(self._queues)

    # -- queues ------------------------------------------------------------------------------------------------------

    async def queues_of(self, topic: str) -> Sequence[WritableQueue]:
        """The queues of a topic that can be written. Raises RouteNotFoundError, ConnectError."""
        queues = self._queues.get(topic)
        return queues if queues is not None else await self._find_queues(topic)

    async def _find_queues(self, topic: str) -> Sequence[WritableQueue]:
        check_sendable(topic)
        queues: Sequence[WritableQueue]
        if self._options.writable_queues is not None:
            queues = tuple(self._options.writable_queues(topic))
        else:
            route = await self._routes.get(topic, create=True)
            queues = self._lanes_of(route)
        if not queues:
            raise RouteNotFoundError(
                f"the topic {topic} has no queue that can be written: no master is up, or it is read-only",
                retryable=True,
            )
        self._queues[topic] = queues
        return queues

    def _lanes_of(self, route: TopicRoute) -> Sequence[WritableQueue]:
        return tuple(self.lane(queue) for queue in route.writable)

    def lane(self, queue: MessageQueue) -> QueueLane:
        """The lane of one queue."""
        lane = self._lanes.get(queue)
        if lane is None:
            departures = self._departures = self._departures or Departures()
            lane = QueueLane(
                queue, self._remoting, self._clock, self._lane_options, departures, self._routes.address_of
            )
            self._lanes[queue] = lane
        return lane

    def route_changed(self, route: TopicRoute) -> None:
        """A route is new or different: later messages use it; what waits in lanes of before still leaves."""
        if self._queues.pop(route.topic, None) is not None and route.writable:
            self._queues[route.topic] = self._lanes_of(route)

    # -- sending -----------------------------------------------------------------------------------------------------

    def complete(self, message: Message) -> Message:
        """Give a message its unique key, unless it has one. The message is the client's own copy."""
        if PropertyKey.UNIQUE_KEY not in message.properties:
            keys = self._unique_keys or self._make_unique_keys()
            message.properties[PropertyKey.UNIQUE_KEY] = keys.next(self._clock.time_ms())
        return message

    def _make_unique_keys(self) -> UniqueKeys:
        address, seed = pack_host(self._remoting.local_host or "127.0.0.1", 0)[:-4], self._options.random_source
        zone_s = time.localtime(self._clock.time_ms() // 1000).tm_gmtoff
        self._unique_keys = UniqueKeys(address, os.getpid(), seed.getrandbits(32), utc_offset_s=zone_s)
        return self._unique_keys

    async def send(
        self, message: Message, timeout_s: float | None, retries: int | None, only: MessageQueue | None
    ) -> SendReceipt:
        """Send one message and wait until it is stored. `only`: in this queue, wherever else there would be room."""
        if timeout_s is None:
            timeout_s = self._options.send_timeout_s
        deadline = self._clock.monotonic() + timeout_s
        size = len(message.body) + MESSAGE_OVERHEAD_BYTES
        queues = self._queues.get(message.topic)
        if queues is None:
            queues = await self._find_queues(message.topic)
        if self._closed:
            raise ClientClosedError("the client is closed")
        if size > self._options.message_bytes_max + MESSAGE_OVERHEAD_BYTES:
            raise too_large(len(message.body), self._options.message_bytes_max)
        if PropertyKey.UNIQUE_KEY not in message.properties:
            keys = self._unique_keys or self._make_unique_keys()
            message.properties[PropertyKey.UNIQUE_KEY] = keys.next(self._clock.time_ms())
        admission, health = self._admission, self._health
        if not admission.try_enter(size):
            await admission.enter(size, timeout_s)
        try:
            if only is not None:
                queue = self._chosen(only, queues)
            else:
                avoid = () if health.all_well else health.avoid(self._clock.monotonic())
                queue = self._router.choose(message, queues, avoid)
            try:
                receipt = await queue.write(message, timeout_s)
            except PocketMQError as error:
                return await self._try_again(message, queue, error, deadline, retries, only)
            if not health.all_well:
                health.succeeded(queue.queue.broker_name)
            return receipt
        finally:
            admission.leave(size)

    def _chosen(self, only: MessageQueue, queues: Sequence[WritableQueue]) -> WritableQueue:
        for queue in queues:
            if queue.queue == only:
                return queue
        raise UsageError(f"{only} is not among the queues of {only.topic} that can be written")

    async def _try_again(
        self,
        message: Message,
        queue: WritableQueue,
        error: PocketMQError,
        deadline: float,
        retries: int | None,
        only: MessageQueue | None,
    ) -> SendReceipt:
        """After a failure: other queues, other brokers, until it is stored, the retries are used up or time is.

        An attempt that never reached a broker is no attempt: it costs time only.
        """
        left = self._options.send_retries if retries is None else retries
        pause_s = PAUSE_FIRST_S
        tried = {queue.queue.broker_name}
        while True:
            self._note_failure(message.topic, queue, error)
            if not isinstance(error, ConnectError):
                left -= 1
            now = self._clock.monotonic()
            if not error.retryable or left < 0 or now >= deadline or self._closed:
                raise error
            queues = await self.queues_of(message.topic)
            if only is not None or all(other.queue.broker_name in tried for other in queues):
                await self._clock.sleep(min(pause_s, max(0.0, deadline - now)))
                pause_s = min(PAUSE_MAX_S, pause_s * 2)
                tried.clear()
                queues = await self.queues_of(message.topic)
            avoid = {*tried, *self._health.avoid(self._clock.monotonic())}
            queue = self._router.choose(message, queues, avoid) if only is None else self._chosen(only, queues)
            tried.add(queue.queue.broker_name)
            try:
                receipt = await queue.write(message, max(0.001, deadline - self._clock.monotonic()))
            except PocketMQError as again:
                error = again
                continue
            self._health.succeeded(queue.queue.broker_name)
            return receipt

    def _note_failure(self, topic: str, queue: WritableQueue, error: PocketMQError) -> None:
        if error.retryable:
            self._health.failed(queue.queue.broker_name, self._clock.monotonic())
            if self._options.writable_queues is None and (
                error.code in ROUTE_IS_STALE or isinstance(error, ConnectError)
            ):
                self._routes.stale(topic)
            logger.debug("a send to %s failed: %s", queue.queue, error)

    async def send_batch(
        self, messages: Sequence[Message], timeout_s: float | None, retries: int | None
    ) -> list[SendReceipt]:
        """Send messages of one topic to one queue, in as few requests as they fit into; receipts in their order.

        Raises SendBatchError, which knows the receipts of those that were stored, when any was not.
        """
        if not messages:
            return []
        topic = messages[0].topic
        if any(message.topic != topic for message in messages):
            raise UsageError("all messages of a batch must have the same topic")
        queues = await self.queues_of(topic)
        queue = self._router.choose(messages[0], queues, self._health.avoid(self._clock.monotonic()))
        results = await asyncio.gather(
            *(self._send_to(message, queue, timeout_s, retries) for message in messages), return_exceptions=True
        )
        receipts: list[SendReceipt] = []
        failures: list[PocketMQError] = []
        for result in results:
            if isinstance(result, SendReceipt):
                receipts.append(result)
            elif isinstance(result, PocketMQError):
                failures.append(result)
            else:
                raise result
        if failures:
            text = f"{len(failures)} of {len(messages)} messages to {topic} were not stored: {failures[0]}"
            raise SendBatchError(text, results=results, cause=failures[0])
        return receipts

    async def _send_to(
        self, message: Message, queue: WritableQueue, timeout_s: float | None, retries: int | None
    ) -> SendReceipt:
        timeout_s = self._options.send_timeout_s if timeout_s is None else timeout_s
        deadline = self._clock.monotonic() + timeout_s
        size = len(message.body) + MESSAGE_OVERHEAD_BYTES
        if len(message.body) > self._options.message_bytes_max:
            raise too_large(len(message.body), self._options.message_bytes_max)
        await self._admission.enter(size, timeout_s)
        try:
            try:
                return await queue.write(self.complete(message), timeout_s)
            except PocketMQError as error:
                return await self._try_again(message, queue, error, deadline, retries, None)
        finally:
            self._admission.leave(size)

    async def send_oneway(self, message: Message, only: MessageQueue | None) -> None:
        """Send one message and ask for no answer. Raises what can be known at once."""
        queues = await self.queues_of(message.topic)
        if len(message.body) > self._options.message_bytes_max:
            raise too_large(len(message.body), self._options.message_bytes_max)
        self.complete(message)
        avoid = self._health.avoid(self._clock.monotonic())
        queue = self._router.choose(message, queues, avoid) if only is None else self._chosen(only, queues)
        if isinstance(queue, QueueLane):
            await queue.write_oneway(message)
        else:
            await queue.write(message, self._options.send_timeout_s)

    async def close(self, timeout_s: float) -> None:
        """Accept no more, wait for what is on its way, at most `timeout_s` seconds, and fail the rest."""
        self._closed = True
        await self._admission.emptied(timeout_s)
        for lane in self._lanes.values():
            lane.close(ClientClosedError("the client was closed before the message could be sent"))
