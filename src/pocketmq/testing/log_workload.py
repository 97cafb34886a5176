"""A workload for a log that writes down what it was promised, and the checks of what a crash left of it."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from pocketmq.log.log import Log
from pocketmq.log.queues import LogQueue
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import Record, decode_records

HOST = pack_host("10.0.0.1", 50000)
QUEUES = [("orders", 0), ("orders", 1), ("bills", 0), ("%RETRY%billing", 0)]

Place = tuple[str, int, int]
"""Topic, queue id, queue offset."""


@dataclass
class History:
    """What the workload did and what it was promised."""

    sent: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    """Every body that was ever appended, per queue, in order."""
    acknowledged: dict[Place, bytes] = field(default_factory=dict)
    positions: dict[Place, int] = field(default_factory=dict)
    kept_from: int = 0
    """Retention may have removed what is below this position."""

    def place_in_order(self, topic: str, queue_id: int, body: bytes) -> int:
        """Which body of its queue it was; raises ValueError for one that nobody sent."""
        return self.sent[topic, queue_id].index(body)


class Workload:
    """Appends to several queues, as a broker does: many records, one write, answers when they are durable."""

    def __init__(self, history: History, *, seed: int = 1) -> None:
        self.history = history
        self.random = Random(seed)
        self.numbers = itertools.count()

    def append(self, log: Log, *, durable_is_promised: bool = True) -> None:
        """Append one record to some queue; the write comes later."""
        topic, queue_id = self.random.choice(QUEUES)
        queue = log.ensure_queue(topic, queue_id)
        number = next(self.numbers)
        body = b"%d " % number + b"x" * self.random.choice((5, 40, 200, 700))
        properties = b"KEYS\x01key-%d\x02" % number
        self.history.sent.setdefault((topic, queue_id), []).append(body)
        position = log.append(queue, body, properties, 0, 0, 1_700_000_000_000, HOST, HOST)
        place = (topic, queue_id, queue.next_offset - 1)
        self.history.positions[place] = position

        def acknowledge(fine: bool) -> None:
            if fine:
                self.history.acknowledged[place] = body

        if durable_is_promised:
            log.when_durable(log.max_position, acknowledge)

    def burst(self, log: Log, count: int) -> None:
        """Append some records and write them with one call."""
        for _ in range(count):
            self.append(log)
        log.write()


@asynccontextmanager
async def opened(disk: SimulatedDisk, clock: VirtualClock, settings: StoreSettings) -> AsyncIterator[Log]:
    """The log of the data directory, closed at the end."""
    log = await Log.open(disk, clock, settings, replay=lambda record: None, replay_from=0, replay_topics=())
    try:
        yield log
    finally:
        await log.close()


def records_of(log: Log, queue: LogQueue) -> dict[int, Record]:
    """All that a consumer of the queue gets, by queue offset."""
    found: dict[int, Record] = {}
    offset = log.min_offset(queue)
    while offset < log.max_offset(queue):
        part = log.read(queue, offset, 32, 1 << 20)
        assert part.next_offset > offset, f"a read of {queue!r} at {offset} goes on at {part.next_offset}"
        for record in (record for view in part.records for record in decode_records(view, check_crc=True)):
            found[record.queue_offset] = record
        offset = part.next_offset
    return found


def content_of(log: Log) -> dict[Place, bytes]:
    """Every message of the log by its place; checks on the way that queues are whole and records where they say."""
    content: dict[Place, bytes] = {}
    for topic in sorted(log.topics()):
        for queue in log.queues_of(topic):
            records = records_of(log, queue)
            offsets = list(range(log.min_offset(queue), log.max_offset(queue)))
            assert sorted(records) == offsets, f"{topic}/{queue.queue_id} has {sorted(records)}, not {offsets}"
            for offset, record in records.items():
                assert (record.topic, record.queue_id) == (topic, queue.queue_id)
                view = log.record_at(record.physical_offset)
                assert view is not None
                assert decode_records(view)[0].body == record.body
                content[topic, queue.queue_id, offset] = record.body
    return content


def check_promises(content: dict[Place, bytes], history: History) -> None:
    """Every acknowledged message is there, nothing is invented, and every queue is in the order of sending."""
    for place, body in history.acknowledged.items():
        if history.positions[place] >= history.kept_from:
            found = content.get(place, b"nothing")
            assert found == body, f"{place} should hold {body[:20]!r}, not {found[:20]!r}"
    order: dict[tuple[str, int], int] = {}
    for place in sorted(content):
        topic, queue_id, _ = place
        number = history.place_in_order(topic, queue_id, content[place])
        assert number > order.get((topic, queue_id), -1), f"{place} is out of order"
        order[topic, queue_id] = number
