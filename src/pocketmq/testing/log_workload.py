"""A workload for a log that writes down what it was promised, and the checks of what a crash left of it."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from random import Random

from pocketmq.log.log import Log
from pocketmq.log.queues import LogQueue
from pocketmq.model.errors import StoreError
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
class Written:
    """One record that was appended."""

    body: bytes
    position: int
    acknowledged_at: float | None = None
    """When its durability was promised, by the virtual clock; None when it was not."""


@dataclass
class History:
    """What the workload did and what it was promised."""

    records: dict[Place, Written] = field(default_factory=dict)
    """Every record that was ever appended, in order."""
    sent: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    """Every body, per queue, in order; those of appends that failed, too."""
    seen: dict[Place, bytes] = field(default_factory=dict)
    """What a consumer was given: its place must not be given to another message."""
    kept_from: int = 0
    """Retention may have removed what is below this position, and nothing else."""
    now: Callable[[], float] = float
    """The virtual time; at the moment of the crash when asked later."""

    def acknowledged(self) -> dict[Place, Written]:
        """The records that were promised to be durable."""
        return {place: written for place, written in self.records.items() if written.acknowledged_at is not None}

    def forget_lost(self, content: Mapping[Place, bytes]) -> None:
        """A crash has lost what is not in `content`, rightly; its places are free for other records."""
        self.records = {place: written for place, written in self.records.items() if place in content}


class Workload:
    """Appends to several queues, as a broker does: many records, one write, answers when they are durable.

    With `uniform`, all records have one size and go to one queue, so that what a crash left of old ones could be taken
    for new ones.
    """

    def __init__(self, history: History, clock: VirtualClock, *, seed: int = 1, uniform: bool = False) -> None:
        self.history = history
        self.clock = clock
        self.random = Random(seed)
        self.queues = QUEUES[:1] if uniform else QUEUES
        self.paddings = (500,) if uniform else (5, 40, 200, 700)
        self.number = sum(len(bodies) for bodies in history.sent.values())
        history.now = clock.monotonic

    def append(self, log: Log) -> None:
        """Append one record to some queue; the write comes later."""
        topic, queue_id = self.random.choice(self.queues)
        queue = log.ensure_queue(topic, queue_id)
        number = self.number = self.number + 1
        body = b"%05d " % number + b"x" * self.random.choice(self.paddings)
        self.history.sent.setdefault((topic, queue_id), []).append(body)
        position = log.append(queue, body, b"KEYS\x01key-%05d\x02" % number, 0, 0, 1_700_000_000_000, HOST, HOST)
        written = Written(body, position)
        self.history.records[topic, queue_id, queue.next_offset - 1] = written
        log.when_durable(log.max_position, lambda fine: self._answer(written, fine))

    def burst(self, log: Log, count: int) -> None:
        """Append some records and write them with one call. Raises StoreError when the log does not take them."""
        before = dict(self.history.records)
        try:
            for _ in range(count):
                self.append(log)
            log.write()
        except StoreError:
            self.history.records = before
            raise

    def _answer(self, written: Written, fine: bool) -> None:
        if fine:
            written.acknowledged_at = self.clock.monotonic()


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


def check_promises(content: dict[Place, bytes], history: History, *, lag_s: float = 0.0) -> None:
    """Every acknowledged message is there, nothing is invented, and every queue is in the order of sending.

    With `lag_s`, what was acknowledged in the last so many seconds may be missing, from some position on: a tail.
    """
    crashed_at = history.now()
    lost_from = min((written.position for place, written in _missing(content, history)), default=1 << 62)
    for place, written in history.acknowledged().items():
        if written.position < history.kept_from:
            continue
        found = content.get(place, b"nothing")
        if lag_s and found == b"nothing" and (written.acknowledged_at or 0) >= crashed_at - lag_s:
            continue
        assert found == written.body, f"{place} should hold {written.body[:20]!r}, not {found[:20]!r}"
        assert written.position < lost_from, f"{place} is there, although something before it is lost"
    for place, body in history.seen.items():
        found = content.get(place, b"nothing")
        assert found == body, f"{place} was given to a consumer as {body[:20]!r}, and is {found[:20]!r} now"
    order: dict[tuple[str, int], int] = {}
    for place in sorted(content):
        topic, queue_id, _ = place
        number = history.sent[topic, queue_id].index(content[place])
        assert number > order.get((topic, queue_id), -1), f"{place} is out of order"
        order[topic, queue_id] = number


def _missing(content: dict[Place, bytes], history: History) -> list[tuple[Place, Written]]:
    return [
        (place, written)
        for place, written in history.records.items()
        if written.position >= history.kept_from and place not in content
    ]
