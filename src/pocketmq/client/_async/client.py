"""The client: the one object of the SDK that a program holds."""

import math
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Self

from pocketmq.client._async.consumer import Consumer
from pocketmq.client._async.core import Core
from pocketmq.client._async.member import ConsumerOptions, FromWhere, Member, Mode
from pocketmq.client._async.pull_consumer import PullConsumer, open_pull_consumer
from pocketmq.client._async.pulling import Puller, PullResult
from pocketmq.client._async.transactions import Decision, Transaction
from pocketmq.client.allocators import AverageAllocator
from pocketmq.client.filters import Filter, Tag, as_filter
from pocketmq.client.names import shown_topic
from pocketmq.client.namespaces import queue_with_namespace, queue_without_namespace, with_namespace
from pocketmq.client.options import ClientOptions, Duration, seconds, timestamp_ms
from pocketmq.client.outgoing import has_delay, key_tuple, own_copy, set_delay, user_properties
from pocketmq.client.parts import Allocator, Cursors, MessageBuffer
from pocketmq.client.pulled import Rebalance
from pocketmq.client.replies import Reply
from pocketmq.model.errors import UsageError
from pocketmq.model.message import Message, MessageQueue, ReceivedMessage, SendReceipt
from pocketmq.model.names import check_group, check_topic
from pocketmq.model.seams import Clock, Network
from pocketmq.wire.properties import PropertyKey

Topics = str | Sequence[str] | Mapping[str, Filter | str | None]
"""One topic, several, or several with a filter for each."""


class Client:
    """Sends and consumes. Made by `pocketmq.connect`; connects when it is first used.

    Use it as an async context manager, or call `close` at the end: what is on its way is waited for, positions are
    stored, brokers are told.
    """

    def __init__(self, name_servers: Sequence[str], options: ClientOptions, clock: Clock, network: Network) -> None:
        self._options = options
        self._namespace = options.namespace
        self._clock = clock
        self.core = Core(name_servers, options, clock, network)
        """The inside, for the admin library; not for programs."""

    async def __aenter__(self) -> Self:
        """The client itself; nothing is connected yet."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """End everything in good order; a second call does nothing."""
        await self.core.close()

    @property
    def client_id(self) -> str:
        """What brokers know this client by."""
        return self.core.client_id

    # -- sending -----------------------------------------------------------------------------------------------------

    async def send(
        self,
        topic: str | Message,
        body: Any = b"",
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        message_group: str | None = None,
        delay: Duration | None = None,
        deliver_at: datetime | float | None = None,
        delay_level: int = 0,
        wait_stored: bool = True,
        queue: MessageQueue | None = None,
        timeout: Duration | None = None,
        retries: int | None = None,
    ) -> SendReceipt:
        """Send a message and wait until the broker has stored it.

        Messages that are sent at the same time share requests; each gets its own receipt. To keep order, wait for one
        before sending the next, in one `message_group` or one `queue`.

        Args:
            topic: where to; or a whole Message, then only `queue`, `timeout` and `retries` may be given.
            body: bytes, or what the client's serializer takes.
            tag: what consumers can filter by.
            keys: what operators can find the message by.
            properties: names and values of your own.
            flag: a number of your own.
            message_group: messages of one group go to one queue and keep their order.
            delay: deliver it so much later. A delay that is one of the 18 levels is sent as that level, which all
                brokers know; any other as a timer.
            deliver_at: deliver it then; a datetime, or seconds since the epoch.
            delay_level: deliver it after the broker's delay level, 1 to 18.
            wait_stored: False: answer without waiting for disk or replicas, whatever the broker is set to.
            queue: this queue and no other.
            timeout: for all attempts together; seconds or a timedelta. Default: `send_timeout` of `connect`.
            retries: further attempts after the first. Default: `send_retries` of `connect`.

        Raises:
            UsageError: the message can never be sent (its name, its size, its properties).
            RouteNotFoundError: no broker has the topic, and none makes it.
            BackPressureError: too much waits to be sent already.
            PocketMQError: the last failure, when the attempts or the time are used up. With RequestTimeoutError and
                ConnectionClosedError the message may have been stored.
        """
        message = self._message(
            topic, body, tag, keys, properties, flag, message_group, delay, deliver_at, delay_level, wait_stored
        )
        timeout_s = None if timeout is None else seconds(timeout, "timeout")
        if queue is not None:
            queue = self._wire_queue(queue)
        self.core.begin()
        return await self.core.sender.send(message, timeout_s, retries, queue)

    async def send_batch(
        self,
        topic: str | Sequence[Message],
        bodies: Sequence[Any] = (),
        *,
        timeout: Duration | None = None,
        retries: int | None = None,
    ) -> list[SendReceipt]:
        """Send messages of one topic to one of its queues, in order, in as few requests as they fit into.

        Either a topic and bodies, or whole messages. One receipt each, in their order.

        Raises:
            SendBatchError: some were not stored; it knows the receipts of the others.
        """
        if isinstance(topic, str):
            check_topic(topic)
            messages = [self._simple_message(topic, body) for body in bodies]
        else:
            messages = [self._own(message) for message in topic]
        timeout_s = None if timeout is None else seconds(timeout, "timeout")
        self.core.begin()
        return await self.core.sender.send_batch(messages, timeout_s, retries)

    async def send_oneway(
        self,
        topic: str | Message,
        body: Any = b"",
        *,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        message_group: str | None = None,
        queue: MessageQueue | None = None,
    ) -> None:
        """Send a message and ask for no answer: quick, and nobody knows whether it was stored.

        Raises PocketMQError for what is known at once: no route, no connection, a message that can never be sent.
        """
        message = self._message(topic, body, tag, keys, properties, flag, message_group, None, None, 0, True)
        if queue is not None:
            queue = self._wire_queue(queue)
        self.core.begin()
        await self.core.sender.send_oneway(message, queue)

    async def request(
        self,
        topic: str | Message,
        body: Any = b"",
        *,
        timeout: Duration | None = None,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        message_group: str | None = None,
        queue: MessageQueue | None = None,
        retries: int | None = None,
    ) -> Reply:
        """Send a message and wait until somebody who consumes it replies; returns the reply.

        Whoever consumes it answers with `message.reply(...)`, or by what the handler of `run` returns.

        Args:
            topic: where to; or a whole Message. A request has no delay.
            body: bytes, or what the client's serializer takes.
            timeout: for everything together. Default: `send_timeout` of `connect`.
            tag: what consumers can filter by.
            keys: what operators can find the message by.
            properties: names and values of your own.
            flag: a number of your own.
            message_group: messages of one group go to one queue.
            queue: this queue and no other.
            retries: further attempts to send it after the first.

        Raises:
            UsageError: a message that can never be sent as a request.
            BackPressureError: too many requests wait for their replies (`pending_requests` of `connect`).
            RequestTimeoutError: no reply in time; whether somebody dealt with the request is not known.
            PocketMQError: it could not be sent.
        """
        message = self._message(topic, body, tag, keys, properties, flag, message_group, None, None, 0, True)
        if has_delay(message):
            raise UsageError("a request has no delay: somebody waits for the reply")
        timeout_s = self._options.send_timeout_s if timeout is None else seconds(timeout, "timeout")
        if queue is not None:
            queue = self._wire_queue(queue)
        self.core.begin()
        return await self.core.requests.request(message, timeout_s, retries, queue)

    def transaction(
        self,
        topic: str | Message,
        body: Any = b"",
        *,
        check: Callable[[ReceivedMessage], Awaitable[Decision]] | None = None,
        tag: str | None = None,
        keys: str | Iterable[str] = (),
        properties: Mapping[str, str] | None = None,
        flag: int = 0,
        message_group: str | None = None,
        immunity: Duration | None = None,
        queue: MessageQueue | None = None,
        timeout: Duration | None = None,
    ) -> Transaction:
        """A message that is delivered when the block ends well, and not at all when it raises.

            async with client.transaction("orders", b"...", check=check) as tx:
                await database.insert(order, tx.message_id)

        When the process dies in between, or the broker cannot be told, the broker asks a client of the producer group:
        that client's `check` decides. Give programs that use transactions a `producer_group` each, so that none is
        asked about another's messages.

        Args:
            topic: where to; or a whole Message. A transactional message has no delay.
            body: bytes, or what the client's serializer takes.
            check: is given the message, and returns True (commit), False (roll back), or None (not known yet). It
                answers for all messages of `topic` of the producer group, whoever sent them; the last one given counts.
            tag: what consumers can filter by.
            keys: what operators can find the message by.
            properties: names and values of your own.
            flag: a number of your own.
            message_group: messages of one group go to one queue.
            immunity: nobody is asked about it before it is so old. Default: the broker's, 6 s.
            queue: this queue and no other.
            timeout: for sending the half, and again for telling the decision. Default: `send_timeout` of `connect`.

        Raises:
            UsageError: a message that can never be sent in a transaction.
        """
        message = self._message(topic, body, tag, keys, properties, flag, message_group, None, None, 0, True)
        if has_delay(message):
            raise UsageError("a transactional message has no delay")
        message.properties[PropertyKey.TRANSACTION_PREPARED] = "true"
        message.properties[PropertyKey.PRODUCER_GROUP] = self._options.producer_group
        if immunity is not None:
            immunity_s = math.ceil(seconds(immunity, "immunity"))
            message.properties[PropertyKey.CHECK_IMMUNITY_TIME] = str(immunity_s)
        timeout_s = None if timeout is None else seconds(timeout, "timeout")
        wire_queue = None if queue is None else self._wire_queue(queue)
        return Transaction(self.core, message, check, timeout_s, wire_queue)

    async def watch_transactions(
        self, topic: str | Sequence[str], check: Callable[[ReceivedMessage], Awaitable[Decision]]
    ) -> None:
        """Answer brokers that ask about transactions of the producer group, without beginning one.

        For a program that was started again: what its last run left open is asked about as soon as a client of the
        group is there. `check` is as in `transaction`.

        Raises:
            RouteNotFoundError: no broker has the topic, and none makes it.
        """
        self.core.begin()
        for name in [topic] if isinstance(topic, str) else topic:
            self.core.decisions.register(name, check)
            await self.core.producer.queues_of(with_namespace(name, self._namespace))
        await self.core.heartbeats.send_all()

    def _message(
        self,
        topic: str | Message,
        body: Any,
        tag: str | None,
        keys: str | Iterable[str],
        properties: Mapping[str, str] | None,
        flag: int,
        message_group: str | None,
        delay: Duration | None,
        deliver_at: datetime | float | None,
        delay_level: int,
        wait_stored: bool,
    ) -> Message:
        if not isinstance(topic, str):
            return self._own(topic)
        found = user_properties(properties) if properties else {}
        if type(body) is not bytes:
            body = self._options.serializer.encode(body, found)
        if message_group is not None:
            if not message_group:
                raise UsageError("the message group is empty")
            found[PropertyKey.SHARDING_KEY] = message_group
        if not wait_stored:
            found[PropertyKey.WAIT] = "false"
        if delay is not None or deliver_at is not None or delay_level:
            delay_level = set_delay(found, delay, deliver_at, delay_level)
        if self._namespace:
            topic = with_namespace(topic, self._namespace)
        return Message(
            topic=topic,
            body=body,
            tag=tag,
            keys=key_tuple(keys) if keys else (),
            properties=found,
            flag=flag,
            delay_level=delay_level,
        )

    def _simple_message(self, topic: str, body: Any) -> Message:
        properties: dict[str, str] = {}
        if type(body) is not bytes:
            body = self._options.serializer.encode(body, properties)
        return Message(topic=with_namespace(topic, self._namespace), body=body, properties=properties)

    def _own(self, message: Message) -> Message:
        copy = own_copy(message)
        copy.topic = with_namespace(copy.topic, self._namespace)
        return copy

    def _wire_queue(self, queue: MessageQueue) -> MessageQueue:
        return queue_with_namespace(queue, self._namespace)

    def _wire_group(self, group: str) -> str:
        return check_group(with_namespace(group, self._namespace))

    # -- consuming ---------------------------------------------------------------------------------------------------

    def consume(
        self,
        topic: Topics,
        *,
        group: str,
        filter: Filter | str | None = None,
        mode: Mode = "clustering",
        orderly: bool = False,
        from_where: FromWhere = "last",
        concurrency: int = 1024,
        attempts: int | None = None,
        fetch: int = 32,
        wait: Duration = 15.0,
        buffer_messages: int = 1000,
        buffer_bytes: int = 100 * 1024 * 1024,
        buffer_span: int = 2000,
        drain: Duration = 30.0,
        suspend: Duration = 1.0,
        reraise: bool = False,
        allocator: Allocator | None = None,
        cursors: Cursors | None = None,
        buffer: Callable[[int], MessageBuffer] | None = None,
    ) -> Consumer:
        """A consumer of one group; iterate over it.

            async for message in client.consume("orders", group="billing", filter=Tag("new || paid")):
                async with message:
                    ...

        It starts with the first iteration (or `start()`, or `async with`). Any number of tasks may iterate over it;
        `run` does so for a handler.

        Args:
            topic: one topic, several, or a mapping from topic to filter.
            group: consumers of one group share the messages; each group gets all of them.
            filter: `Tag("a || b")`, `Sql("x > 5")`, or nothing for everything.
            mode: "broadcasting" gives every consumer all messages; positions are kept in local files, nothing is
                retried.
            orderly: one message of a queue at a time, in order; a failed one is tried again before its successors.
            from_where: where a group begins that was never here: "last", "first", a datetime or seconds since the
                epoch.
            concurrency: how many messages may be handed out and not settled; the iterator waits at that number.
            attempts: deliveries before a message goes to the dead letters. Default: as the group is set.
            fetch: messages asked for at once, at most 32 on most brokers.
            wait: how long a broker holds a request for messages when it has none.
            buffer_messages: messages of one queue fetched and not settled; fetching stops there.
            buffer_bytes: the same in bytes.
            buffer_span: the same as distance between the first and the last offset.
            drain: how long messages that are out are waited for when a queue goes to another consumer.
            suspend: with `orderly`, how long a failed message waits before it is tried again.
            reraise: an exception in `async with message` goes on after the message was given back.
            allocator: how the group shares the queues; all of its consumers must use the same.
            cursors: where positions are kept.
            buffer: makes the buffer of a queue from its first position.

        Raises:
            UsageError: a name, a filter or a number that cannot be.
        """
        group = self._wire_group(group)
        if mode not in ("clustering", "broadcasting"):
            raise UsageError(f"mode is 'clustering' or 'broadcasting', not {mode!r}")
        if from_where not in ("first", "last"):
            timestamp_ms(from_where, "from_where")  # type: ignore[arg-type]
        if concurrency < 1 or fetch < 1 or buffer_messages < 1:
            raise UsageError("concurrency, fetch and buffer_messages are at least 1")
        options = ConsumerOptions(
            mode=mode,
            orderly=orderly,
            from_where=from_where,
            concurrency=concurrency,
            fetch_count=fetch,
            wait_s=seconds(wait, "wait"),
            buffer_messages_max=buffer_messages,
            buffer_bytes_max=buffer_bytes,
            buffer_span_max=buffer_span,
            attempts_max=attempts,
            drain_s=seconds(drain, "drain"),
            suspend_s=seconds(suspend, "suspend"),
            reraise=reraise,
            cursors=cursors,
            buffer=buffer,
        )
        if allocator is not None:
            options.allocator = allocator
        subscriptions = {
            with_namespace(name, self._namespace): wanted for name, wanted in _subscriptions(topic, filter).items()
        }
        return Consumer(Member(self.core, group, subscriptions, options))

    def pull_consumer(
        self,
        topic: Topics | None = None,
        *,
        group: str,
        filter: Filter | str | None = None,
        mode: Mode = "clustering",
        from_where: FromWhere = "last",
        auto_commit: bool = True,
        fetch: int = 32,
        wait: Duration = 15.0,
        buffer_messages: int = 1000,
        buffer_bytes: int = 100 * 1024 * 1024,
        buffer_span: int = 2000,
        drain: Duration = 30.0,
        allocator: Allocator | None = None,
        cursors: Cursors | None = None,
        buffer: Callable[[int], MessageBuffer] | None = None,
        on_rebalance: Callable[[Rebalance], Awaitable[object]] | None = None,
    ) -> PullConsumer:
        """A consumer that is polled, and says itself where it reads.

            async with client.pull_consumer("orders", group="billing") as puller:
                for message in await puller.poll(max=100, timeout=5):
                    ...

        Args:
            topic: one topic, several, or a mapping from topic to filter, shared out in the group; none when you
                `subscribe` or `assign` later.
            group: whose positions are read and stored.
            filter: `Tag("a || b")`, `Sql("x > 5")`, or nothing for everything.
            mode: "broadcasting" gives every consumer all messages; positions are kept in local files.
            from_where: where a group begins that was never here: "last", "first", a datetime or seconds since the
                epoch.
            auto_commit: every few seconds store what earlier polls handed out. False: only `commit` stores.
            fetch: messages asked for at once, at most 32 on most brokers.
            wait: how long a broker holds a request for messages when it has none.
            buffer_messages: messages of one queue fetched and not dealt with; fetching stops there.
            buffer_bytes: the same in bytes.
            buffer_span: the same as distance between the first and the last offset.
            drain: how long the next poll is waited for when a queue with messages that were handed out goes to another
                consumer.
            allocator: how the group shares the queues; all of its consumers must use the same.
            cursors: where positions are kept.
            buffer: makes the buffer of a queue from its first position.
            on_rebalance: is told which queues have come, before they are read, and which will go, before they are let
                go, so that it can seek and commit.

        Raises:
            UsageError: a name, a filter or a number that cannot be.
        """
        options = ConsumerOptions(
            mode=mode,
            from_where=from_where,
            fetch_count=fetch,
            wait_s=seconds(wait, "wait"),
            buffer_messages_max=buffer_messages,
            buffer_bytes_max=buffer_bytes,
            buffer_span_max=buffer_span,
            drain_s=seconds(drain, "drain"),
            allocator=allocator or AverageAllocator(),
            cursors=cursors,
            buffer=buffer,
        )
        subscriptions = {} if topic is None else _subscriptions(topic, filter)
        return open_pull_consumer(self.core, group, subscriptions, options, auto_commit, on_rebalance)

    # -- queues and positions ----------------------------------------------------------------------------------------

    async def queues(self, topic: str) -> list[MessageQueue]:
        """The queues of a topic that can be read. Raises RouteNotFoundError."""
        check_topic(topic)
        self.core.begin()
        readable = (await self.core.routes.get(with_namespace(topic, self._namespace))).readable
        return [queue_without_namespace(queue, self._namespace) for queue in readable]

    async def pull(
        self,
        queue: MessageQueue,
        offset: int,
        *,
        group: str,
        max: int = 32,
        wait: Duration = 0.0,
        filter: Filter | str | None = None,
    ) -> PullResult:
        """Ask once for messages of one queue from `offset` on; nothing is settled or stored.

        With `wait` the broker may hold the request that long when there is nothing. Raises PocketMQError.
        """
        group, queue = self._wire_group(group), self._wire_queue(queue)
        self.core.begin()
        address = await self.core.offsets.master(queue)
        puller = Puller(self.core.remoting, queue, group, as_filter(filter), self._clock.time_ms())
        result = await puller.pull(address, offset, count_max=max, wait_s=seconds(wait, "wait"))
        for message in result.messages:
            message.topic = shown_topic(message, self._namespace)
        return result

    async def first_offset(self, queue: MessageQueue) -> int:
        """The offset of the first message that is still stored. Raises PocketMQError."""
        self.core.begin()
        return await self.core.offsets.first(self._wire_queue(queue))

    async def end_offset(self, queue: MessageQueue) -> int:
        """The offset that the next message will get. Raises PocketMQError."""
        self.core.begin()
        return await self.core.offsets.end(self._wire_queue(queue))

    async def offset_at(self, queue: MessageQueue, when: datetime | float) -> int:
        """The offset of the first message stored at `when` or later; the end when there is none.

        Raises PocketMQError.
        """
        self.core.begin()
        return await self.core.offsets.at(self._wire_queue(queue), timestamp_ms(when, "when"))

    async def committed_offset(self, queue: MessageQueue, *, group: str) -> int | None:
        """A group's stored position in a queue, or None. Raises PocketMQError."""
        self.core.begin()
        return await self.core.offsets.stored(self._wire_group(group), self._wire_queue(queue))

    async def commit_offset(self, queue: MessageQueue, offset: int, *, group: str) -> None:
        """Store a group's position in a queue. Raises PocketMQError."""
        self.core.begin()
        await self.core.offsets.store(self._wire_group(group), self._wire_queue(queue), offset, certain=True)


def _subscriptions(topic: Topics, wanted: Filter | str | None) -> dict[str, Filter]:
    if isinstance(topic, Mapping):
        if wanted is not None:
            raise UsageError("with a filter for each topic there is no other one")
        found = {name: as_filter(each) for name, each in topic.items()}
    else:
        names = [topic] if isinstance(topic, str) else list(topic)
        found = {name: as_filter(wanted) for name in names}
    if not found:
        raise UsageError("there is no topic to consume")
    for name in found:
        check_topic(name)
    return found


__all__ = ["Client", "Tag", "Topics"]
