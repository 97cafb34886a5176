"""A real broker, killed at random moments under load, keeps what it acknowledged."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from pocketmq.model.errors import PocketMQError
from pocketmq.testing.process import ServerProcess
from pocketmq.testing.raw import RawClient

pytestmark = [pytest.mark.process, pytest.mark.slow]

TOPIC = "load"
GROUP = "readers"
QUEUES = 4
PRODUCERS = 4


@dataclass
class Promises:
    """All that was asked for and all that was answered, over all lives of the broker."""

    tried: dict[int, set[bytes]] = field(default_factory=lambda: {queue_id: set() for queue_id in range(QUEUES)})
    acknowledged: dict[tuple[int, int], bytes] = field(default_factory=dict)
    """(queue id, offset) -> body"""
    committed: dict[int, int] = field(default_factory=dict)
    tried_to_commit: dict[int, int] = field(default_factory=dict)


@dataclass
class Stored:
    """What was found in the queues so far."""

    bodies: dict[tuple[int, int], bytes] = field(default_factory=dict)
    next_offsets: dict[int, int] = field(default_factory=lambda: dict.fromkeys(range(QUEUES), 0))


class Load:
    """Producers that send one message after the other, and a consumer that commits; until the broker is gone."""

    def __init__(self, address: str, promises: Promises, life: int) -> None:
        self.address = address
        self.promises = promises
        self.life = life
        self.answers = 0

    async def produce(self, producer: int) -> None:
        random = Random(f"{self.life} {producer}")
        async with await RawClient.connect(self.address) as client:
            for number in range(1_000_000):
                queue_id = random.choice((producer % QUEUES, QUEUES - 1))
                body = b"%d:%d:%d " % (self.life, producer, number) + b"x" * random.choice((10, 100, 1000, 9000))
                self.promises.tried[queue_id].add(body)
                answer = await client.send(TOPIC, queue_id, body)
                self.promises.acknowledged[queue_id, answer.queue_offset] = body
                self.answers += 1

    async def consume(self) -> None:
        async with await RawClient.connect(self.address) as client:
            while True:
                for queue_id in range(QUEUES):
                    offset = self.promises.tried_to_commit.get(queue_id, 0) + 1
                    self.promises.tried_to_commit[queue_id] = offset
                    await client.commit(GROUP, TOPIC, queue_id, offset)
                    self.promises.committed[queue_id] = offset

    async def run(self, server: ServerProcess, seconds: float) -> None:
        """Load the broker, kill it after `seconds` of answers, and wait until all have noticed."""
        loop = asyncio.get_running_loop()
        work = [loop.create_task(self.produce(producer)) for producer in range(PRODUCERS)]
        work.append(loop.create_task(self.consume()))
        kill = loop.call_later(seconds, server.kill)
        try:
            for result in await asyncio.gather(*work, return_exceptions=True):
                assert isinstance(result, (PocketMQError, OSError)), f"a client ended with {result!r}"
        finally:
            kill.cancel()


async def read_on(client: RawClient, stored: Stored) -> None:
    """Read what the queues have beyond what was found before."""
    for queue_id in range(QUEUES):
        for record in await client.read(TOPIC, queue_id, stored.next_offsets[queue_id]):
            assert record.queue_offset == stored.next_offsets[queue_id]
            stored.bodies[queue_id, record.queue_offset] = record.body
            stored.next_offsets[queue_id] += 1


def check(promises: Promises, stored: Stored) -> None:
    for place, body in promises.acknowledged.items():
        found = stored.bodies.get(place, b"nothing")
        assert found == body, f"queue {place[0]} offset {place[1]} holds {found[:20]!r}, not {body[:20]!r}"
    last: dict[tuple[int, bytes], tuple[int, int]] = {}
    for queue_id, offset in sorted(stored.bodies):
        body = stored.bodies[queue_id, offset]
        assert body in promises.tried[queue_id], f"nobody sent {body[:20]!r} to queue {queue_id}"
        life, producer, number = body.split()[0].split(b":")
        order = (int(life), int(number))
        assert last.get((queue_id, producer), (-1, -1)) < order, f"queue {queue_id} offset {offset} is out of order"
        last[queue_id, producer] = order


async def check_cursors(client: RawClient, promises: Promises) -> None:
    for queue_id, offset in promises.committed.items():
        found = await client.committed(GROUP, TOPIC, queue_id)
        assert found is not None
        assert offset <= found <= promises.tried_to_commit[queue_id], f"cursor of queue {queue_id}: {offset}, {found}"


@pytest.fixture
def killings(pytestconfig: pytest.Config) -> Iterator[Iterator[float]]:
    """The seconds of load before each kill."""
    random = Random(pytestconfig.getoption("--crash-seed"))
    yield (random.uniform(0.02, 0.4) for _ in range(pytestconfig.getoption("--crashes")))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("flush", ["sync", "async"])
async def test_nothing_acknowledged_is_lost_when_the_broker_is_killed(
    tmp_path: Path, killings: Iterator[float], flush: str
) -> None:
    promises, stored = Promises(), Stored()
    settings = {"store.flush": flush, "store.segment_bytes": 4 << 20, "store.snapshot_interval_s": 0.5}
    with ServerProcess(tmp_path / "data", settings=settings) as server:
        async with await RawClient.connect(server.broker) as client:
            await client.create_topic(TOPIC, QUEUES)
            await client.create_group(GROUP)
        for life, seconds in enumerate(killings):
            load = Load(server.broker, promises, life)
            await load.run(server, seconds)
            server.start()
            async with await RawClient.connect(server.broker) as client:
                await read_on(client, stored)
                await check_cursors(client, promises)
            check(promises, stored)
        again = Stored()
        async with await RawClient.connect(server.broker) as client:
            await read_on(client, again)
        assert again == stored
        assert len(promises.acknowledged) > 0
