"""What a program sees of a pull consumer."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Self

from pocketmq.client._async.member import ConsumerOptions
from pocketmq.client._async.pull_assignment import OnRebalance
from pocketmq.client._async.pull_member import PullMember
from pocketmq.client.filters import Filter, as_filter
from pocketmq.client.namespaces import queue_with_namespace, queue_without_namespace, with_namespace, without_namespace
from pocketmq.client.options import Duration, seconds, timestamp_ms
from pocketmq.client.pulled import PulledMessage, Rebalance
from pocketmq.model.errors import UsageError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import check_group, check_topic

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core


def open_pull_consumer(
    core: "Core",
    group: str,
    subscriptions: Mapping[str, Filter],
    options: ConsumerOptions,
    auto_commit: bool,
    on_rebalance: OnRebalance | None,
) -> "PullConsumer":
    """A pull consumer, not started. Raises UsageError for what cannot be."""
    namespace = core.options.namespace
    group = check_group(with_namespace(group, namespace))
    if options.mode not in ("clustering", "broadcasting"):
        raise UsageError(f"mode is 'clustering' or 'broadcasting', not {options.mode!r}")
    if options.from_where not in ("first", "last"):
        timestamp_ms(options.from_where, "from_where")  # type: ignore[arg-type]
    if options.fetch_count < 1 or options.buffer_messages_max < 1:
        raise UsageError("fetch and buffer_messages are at least 1")
    if namespace and on_rebalance is not None:
        told = on_rebalance

        async def on_rebalance(change: Rebalance) -> None:
            await told(change.without_namespace(namespace))

    wanted = {with_namespace(topic, namespace): each for topic, each in subscriptions.items()}
    return PullConsumer(PullMember(core, group, wanted, options, auto_commit, on_rebalance))


class PullConsumer:
    """Messages of one group, taken by the handful, from wherever the program wants to read.

    async with client.pull_consumer("orders", group="billing") as puller:
        while True:
            for message in await puller.poll(max=100, timeout=5):
                ...

    One task polls. A poll says that what the poll before it handed out has been dealt with; positions are committed
    accordingly every few seconds, or, with `auto_commit=False`, by `commit` alone. Leaving the block in good order says
    the same of the last poll; leaving it by an exception does not. Iterating is polling one by one.
    """

    def __init__(self, member: PullMember) -> None:
        self._member = member
        self._namespace = member.core.options.namespace

    def _wire(self, *queues: MessageQueue) -> tuple[MessageQueue, ...]:
        return tuple(queue_with_namespace(queue, self._namespace) for queue in queues)

    def _shown(self, queues: Iterable[MessageQueue]) -> list[MessageQueue]:
        return [queue_without_namespace(queue, self._namespace) for queue in queues]

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Join the group and begin to read; polling does it, too. Raises PocketMQError when no server answers."""
        await self._member.start()
        return self

    async def close(self) -> None:
        """Leave the group: positions are stored, then goodbye. What the last poll handed out will come again, unless
        it was committed.
        """
        await self._member.close()

    async def __aenter__(self) -> Self:
        """Start."""
        await self._member.start()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close; without an exception, what was handed out has been dealt with."""
        if exc[0] is None:
            await self._member.finish()
        else:
            await self._member.close()

    @property
    def group(self) -> str:
        """The group's name."""
        return without_namespace(self._member.group, self._namespace)

    @property
    def closed(self) -> bool:
        """Whether the consumer was closed."""
        return self._member.closed

    # -- what is read ------------------------------------------------------------------------------------------------

    async def subscribe(self, topic: str, filter: Filter | str | None = None) -> None:
        """Share a topic with the group, besides those subscribed to before; or change its filter.

        Raises UsageError for a filter that cannot be understood, and when queues were assigned by hand.
        """
        check_topic(topic)
        await self._member.subscribe(with_namespace(topic, self._namespace), as_filter(filter))

    async def unsubscribe(self, topic: str) -> None:
        """Read a topic no more. What is out of its queues is waited for (as long as `drain` says)."""
        await self._member.unsubscribe(with_namespace(topic, self._namespace))

    async def assign(
        self,
        queues: Iterable[MessageQueue],
        filter: Filter | str | Mapping[str, Filter | str | None] | None = None,
    ) -> None:
        """Read exactly these queues, whatever others of the group do; none are shared out to this consumer.

        Like a poll it says that what was handed out has been dealt with.

        Args:
            queues: all of them, instead of those assigned before; see `client.queues`.
            filter: one for all, or one for each topic.

        Raises:
            UsageError: this consumer has subscribed to a topic, or there is no such queue.
            RouteNotFoundError: no broker has the topic.
        """
        wanted = list(queues)
        topics = sorted({queue.topic for queue in wanted})
        if isinstance(filter, Mapping):
            filters = {topic: as_filter(filter.get(topic)) for topic in topics}
        else:
            filters = {topic: as_filter(filter) for topic in topics}
        for topic in topics:
            check_topic(topic)
        wire_filters = {with_namespace(topic, self._namespace): each for topic, each in filters.items()}
        await self._member.assign(self._wire(*wanted), wire_filters)

    @property
    def assignment(self) -> list[MessageQueue]:
        """The queues that this consumer reads now."""
        return self._shown(self._member.queues)

    # -- polling -----------------------------------------------------------------------------------------------------

    async def poll(self, *, max: int = 32, timeout: Duration | None = 5.0) -> list[PulledMessage]:
        """The messages that are there, at most `max`; those of one queue in their order.

        Waits for the first one, at most `timeout` (None: as long as it takes); an empty list when there was none.

        Raises:
            UsageError: nothing was subscribed to or assigned, or another task is polling.
            ClientClosedError: the consumer was closed before.
        """
        if max < 1:
            raise UsageError("a poll asks for at least one message")
        return await self._member.poll(max, None if timeout is None else seconds(timeout, "timeout"))

    def __aiter__(self) -> Self:
        """The consumer itself."""
        return self

    async def __anext__(self) -> PulledMessage:
        """The next message; waits for it. Ends when the consumer is closed."""
        if self._member.closed:
            raise StopAsyncIteration
        messages = await self._member.poll(1, None)
        if not messages:
            raise StopAsyncIteration
        return messages[0]

    def pause(self, *queues: MessageQueue) -> None:
        """Hand out nothing of these queues (none named: of all that are read now) until `resume`.

        What was fetched waits; nothing more is fetched. A queue that is let go and comes again is not paused.
        """
        for reader in self._member.readers_of(self._wire(*queues)):
            reader.pause()

    def resume(self, *queues: MessageQueue) -> None:
        """Go on with these queues (none named: with all)."""
        for reader in self._member.readers_of(self._wire(*queues)):
            reader.resume()

    @property
    def paused(self) -> list[MessageQueue]:
        """The queues that are paused."""
        readers = self._member.assignment.pull_readers()
        return self._shown(sorted(reader.queue for reader in readers if reader.paused))

    # -- positions ---------------------------------------------------------------------------------------------------

    def position(self, queue: MessageQueue) -> int | None:
        """The offset from which the next poll takes messages of a queue; None until it is known where to begin.

        Raises UsageError when this consumer does not read the queue.
        """
        return self._member.reader_of(*self._wire(queue)).next_to_hand_out

    def positions(self) -> dict[MessageQueue, int]:
        """The same for all queues that are read and where it is known."""
        positions = self._member.positions()
        return {queue_without_namespace(queue, self._namespace): at for queue, at in positions.items()}

    async def seek(self, queue: MessageQueue, offset: int) -> None:
        """Go on reading a queue at `offset`. The next commit stores it, even when that is a step back.

        Raises UsageError when this consumer does not read the queue, or the queue has no such offset.
        """
        member = self._member
        (queue,) = self._wire(queue)
        member.reader_of(queue)
        first, end = await member.core.offsets.first(queue), await member.core.offsets.end(queue)
        if not first <= offset <= end:
            raise UsageError(f"{queue} has the offsets {first} to {end}: it cannot be read at {offset}")
        member.reader_of(queue).seek(offset)

    async def seek_to_begin(self, *queues: MessageQueue) -> None:
        """Go on reading these queues (none named: all) at their first message."""
        member = self._member
        for reader in member.readers_of(self._wire(*queues)):
            reader.seek(await member.core.offsets.first(reader.queue))

    async def seek_to_end(self, *queues: MessageQueue) -> None:
        """Go on reading these queues (none named: all) behind their last message."""
        member = self._member
        for reader in member.readers_of(self._wire(*queues)):
            reader.seek(await member.core.offsets.end(reader.queue))

    async def seek_to_time(self, when: datetime | float, *queues: MessageQueue) -> None:
        """Go on reading these queues (none named: all) at the first message stored at `when` or later."""
        member = self._member
        time_ms = timestamp_ms(when, "when")
        for reader in member.readers_of(self._wire(*queues)):
            reader.seek(await member.core.offsets.at(reader.queue, time_ms))

    async def commit(self, positions: Mapping[MessageQueue, int] | None = None) -> None:
        """Store positions and wait until that is done: those given, else behind all that was handed out.

        Raises:
            UsageError: a position in a queue that this consumer does not read.
            PocketMQError: not stored.
        """
        if positions is not None:
            positions = {queue_with_namespace(queue, self._namespace): at for queue, at in positions.items()}
        await self._member.commit_at(positions)

    async def committed(self, queue: MessageQueue) -> int | None:
        """The group's stored position in a queue, or None. Raises PocketMQError."""
        return await self._member.cursors.load(self._member.group, *self._wire(queue))
