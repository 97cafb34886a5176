"""A whole broker at every crash point: what it answered is true after a power loss."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Literal

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.model.settings import Settings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import explore
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.testing.raw import RawClient

GROUP = "billing"


@dataclass
class Promises:
    """What the broker has answered, and what it was asked for."""

    topics: dict[str, int] = field(default_factory=dict)
    messages: dict[tuple[str, int, int], bytes] = field(default_factory=dict)
    sent: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    committed: dict[tuple[str, int], int] = field(default_factory=dict)
    asked_to_commit: dict[tuple[str, int], int] = field(default_factory=dict)


def broker_settings(flush: Literal["async", "sync"] = "sync") -> Settings:
    settings = Settings()
    settings.broker.host = "0.0.0.0"
    settings.broker.advertise = "10.0.0.1"
    settings.broker.auto_create_topic = False
    settings.store.data_dir = "data"
    settings.store.flush = flush
    settings.store.segment_bytes = 16 * 1024
    settings.store.index_stretch_bytes = 8 * 1024
    settings.store.snapshot_interval_s = 20.0
    return settings


@asynccontextmanager
async def running(disk: SimulatedDisk, clock: VirtualClock) -> AsyncIterator[RawClient]:
    """A broker on the disk, and a client on another machine."""
    network = SimulatedNetwork(clock, seed=disk.seed)
    broker = Broker(broker_settings(), clock=clock, disk=disk, network=network.host("10.0.0.1"))
    await broker.start()
    client = await RawClient.connect(f"10.0.0.1:{broker.port}", network=network.host("10.0.0.9"), clock=clock)
    try:
        yield client
    finally:
        client.close()
        await broker.stop()


async def send(client: RawClient, promises: Promises, topic: str, queue_id: int, size: int) -> None:
    bodies = promises.sent.setdefault((topic, queue_id), [])
    body = b"%d " % len(bodies) + b"x" * size
    bodies.append(body)
    receipt = await client.send(topic, queue_id, body)
    promises.messages[topic, queue_id, receipt.queue_offset] = body


async def commit(client: RawClient, promises: Promises, topic: str, queue_id: int, offset: int) -> None:
    promises.asked_to_commit[topic, queue_id] = offset
    await client.commit(GROUP, topic, queue_id, offset)
    promises.committed[topic, queue_id] = offset


async def work(disk: SimulatedDisk, clock: VirtualClock, promises: Promises) -> None:
    """Two lives of a broker: topics are made, messages sent, positions committed, state stored in between."""
    for life in range(2):
        async with running(disk, clock) as client:
            await client.create_group(GROUP)
            for topic, queues in ((f"orders-{life}", 2), (f"bills-{life}", 1)):
                await client.create_topic(topic, queues)
                promises.topics[topic] = queues
            for number in range(6):
                await send(client, promises, f"orders-{life}", number % 2, 700)
                await send(client, promises, "bills-0", 0, 100)
                await commit(client, promises, "bills-0", 0, life * 6 + number + 1)
                if number == 3:
                    await clock.sleep(25)


async def check(disk: SimulatedDisk, clock: VirtualClock, promises: Promises) -> None:
    """Every promise is kept, and once more after another restart."""
    for _ in range(2):
        async with running(disk, clock) as client:
            for topic, queues in promises.topics.items():
                for queue_id in range(queues):
                    assert await client.min_offset(topic, queue_id) == 0
            await check_messages(client, promises)
            for (topic, queue_id), offset in promises.committed.items():
                found = await client.committed(GROUP, topic, queue_id)
                asked = promises.asked_to_commit[topic, queue_id]
                assert found is not None and offset <= found <= asked, f"cursor at {found}, {offset} was promised"


async def check_messages(client: RawClient, promises: Promises) -> None:
    for (topic, queue_id), bodies in promises.sent.items():
        records = {record.queue_offset: record.body for record in await client.read(topic, queue_id)}
        assert list(records) == list(range(len(records)))
        # Nothing is sent twice here, so a queue is the beginning of what was sent.
        assert list(records.values()) == bodies[: len(records)], f"{topic}/{queue_id} is not what was sent"
        promised = sum(place[:2] == (topic, queue_id) for place in promises.messages)
        assert len(records) >= promised, f"{topic}/{queue_id} has {len(records)} messages, {promised} were promised"


@pytest.mark.slow
def test_what_the_broker_answered_survives_every_crash_point() -> None:
    assert explore(work, check, history=Promises, seeds=range(2)) > 100
