"""How far consumer groups have come: positions and lag, queue by queue."""

from collections.abc import Mapping

import msgspec

from pocketmq.admin.reach import Reach
from pocketmq.wire.bodies import ConsumeStats
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.groups import GetConsumeStatsRequestHeader


class QueueProgress(msgspec.Struct, frozen=True, kw_only=True):
    """Where a group stands in one queue."""

    topic: str
    broker: str
    queue: int
    end_offset: int
    position: int
    """The first message that it has not consumed."""
    lag: int
    """Messages that it has not consumed."""
    in_flight: int
    """Messages among those that it has been given."""
    last_consumed_timestamp: int | None
    """When the last message that it consumed was stored, in ms."""


class GroupProgress(msgspec.Struct, frozen=True, kw_only=True):
    """All of it, and messages consumed in a second."""

    queues: list[QueueProgress]
    lag: int
    out_per_second: float


async def progress_of(
    reach: Reach, group: str, masters: Mapping[str, str], *, topic: str | None = None
) -> GroupProgress:
    """How far a group has come on these brokers, in one topic or in all that it has a position in."""
    header = GetConsumeStatsRequestHeader(consumer_group=group, topic=topic)

    async def ask(broker: str, address: str) -> ConsumeStats:
        what = f"progress of {group}"
        return await reach.fetch(address, RequestCode.GET_CONSUME_STATS, ConsumeStats, header, what=what)

    tables = await reach.of_all(masters, ask)
    queues = [
        QueueProgress(
            topic=queue.topic,
            broker=queue.broker_name,
            queue=queue.queue_id,
            end_offset=offsets.broker_offset,
            position=max(offsets.consumer_offset, 0),
            lag=max(offsets.broker_offset - max(offsets.consumer_offset, 0), 0),
            in_flight=max(offsets.pull_offset - max(offsets.consumer_offset, 0), 0),
            last_consumed_timestamp=offsets.last_timestamp if offsets.last_timestamp > 0 else None,
        )
        for table in tables.values()
        for queue, offsets in table.offset_table.items()
    ]
    queues.sort(key=lambda each: (each.topic, each.broker, each.queue))
    return GroupProgress(
        queues=queues,
        lag=sum(queue.lag for queue in queues),
        out_per_second=round(sum(table.consume_tps for table in tables.values()), 3),
    )
