"""A whole broker at every crash point: what it answered is true after a power loss."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.gate import AnswerGate
from pocketmq.broker.journal import Journal
from pocketmq.model.settings import Settings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import BrokenPromiseError, explore
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.testing.raw import RawClient

GROUP = "billing"
Flush = Literal["async", "sync"]
LAG_S = 0.7
"""With asynchronous flush, messages of so many last seconds may be lost."""


@dataclass
class Promises:
    """What the broker has answered, and what it was asked for."""

    topics: dict[str, int] = field(default_factory=dict)
    sent: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    acknowledged: dict[tuple[str, int], list[float]] = field(default_factory=dict)
    """For each queue the times of its acknowledgements."""
    delayed: list[bytes] = field(default_factory=list)
    committed: dict[tuple[str, int], list[tuple[float, int]]] = field(default_factory=dict)
    """For each queue the times and positions of the commits that were answered."""
    asked_to_commit: dict[tuple[str, int], int] = field(default_factory=dict)
    now: Callable[[], float] = float


def broker_settings(flush: Flush) -> Settings:
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
async def running(disk: SimulatedDisk, clock: VirtualClock, flush: Flush) -> AsyncIterator[RawClient]:
    """A broker on the disk, and a client on another machine."""
    network = SimulatedNetwork(clock, seed=disk.seed)
    broker = Broker(broker_settings(flush), clock=clock, disk=disk, network=network.host("10.0.0.1"))
    await broker.start()
    client = await RawClient.connect(f"10.0.0.1:{broker.port}", network=network.host("10.0.0.9"), clock=clock)
    try:
        yield client
    finally:
        client.close()
        await broker.stop()


async def send(client: RawClient, promises: Promises, topic: str, queue_id: int, size: int) -> None:
    bodies = promises.sent.setdefault((topic, queue_id), [])
    bodies.append(b"%d " % len(bodies) + b"x" * size)
    await client.send(topic, queue_id, bodies[-1])
    promises.acknowledged.setdefault((topic, queue_id), []).append(promises.now())


async def commit(client: RawClient, promises: Promises, topic: str, queue_id: int, offset: int) -> None:
    promises.asked_to_commit[topic, queue_id] = offset
    await client.commit(GROUP, topic, queue_id, offset)
    promises.committed.setdefault((topic, queue_id), []).append((promises.now(), offset))


async def work(disk: SimulatedDisk, clock: VirtualClock, promises: Promises, *, flush: Flush = "sync") -> None:
    """Two lives of a broker: topics are made, messages sent, positions committed, state stored in between."""
    promises.now = clock.monotonic
    for life in range(2):
        async with running(disk, clock, flush) as client:
            await client.create_group(GROUP)
            for topic, queues in ((f"orders-{life}", 2), (f"bills-{life}", 1), ("later", 1)):
                await client.create_topic(topic, queues)
                promises.topics[topic] = queues
            for number in range(6):
                await send(client, promises, f"orders-{life}", number % 2, 700)
                await send(client, promises, "bills-0", 0, 100)
                await commit(client, promises, "bills-0", 0, life * 6 + number + 1)
                body = b"%d" % (life * 6 + number)
                await client.send("later", 0, body, properties={"DELAY": str(number % 3 + 1)})
                promises.delayed.append(body)
                if number == 3:
                    await clock.sleep(25)


async def start_and_wait(
    disk: SimulatedDisk, clock: VirtualClock, promises: Promises, *, flush: Flush = "sync"
) -> None:
    """What a start after a crash does by itself."""
    async with running(disk, clock, flush):
        await clock.sleep(40)


async def check(disk: SimulatedDisk, clock: VirtualClock, promises: Promises, *, flush: Flush = "sync") -> None:
    """Every promise is kept, and once more after another restart."""
    lag_s = LAG_S if flush == "async" else 0.0
    for _ in range(2):
        async with running(disk, clock, flush) as client:
            for topic, queues in promises.topics.items():
                assert (await client.topic_config(topic)).write_queue_nums == queues
            for topic, queue_id in promises.sent:
                await check_queue(client, promises, topic, queue_id, lag_s)
            await check_cursors(client, promises, lag_s)
            if flush == "sync":
                await clock.sleep(12)
                arrived = {record.body for record in await client.read("later", 0)} if promises.delayed else set()
                assert arrived.issuperset(promises.delayed), f"of {promises.delayed} only {arrived} arrived"


def was_promised(promises: Promises, answered_at: float, lag_s: float) -> bool:
    """Whether what was answered then must be there."""
    return lag_s == 0.0 or answered_at < promises.now() - lag_s


async def check_queue(client: RawClient, promises: Promises, topic: str, queue_id: int, lag_s: float) -> None:
    records = {record.queue_offset: record.body for record in await client.read(topic, queue_id)}
    assert list(records) == list(range(len(records)))
    # Nothing is sent twice here, so a queue is the beginning of what was sent.
    sent = promises.sent[topic, queue_id]
    assert list(records.values()) == sent[: len(records)], f"{topic}/{queue_id} is not what was sent"
    times = promises.acknowledged.get((topic, queue_id), [])
    promised = sum(was_promised(promises, time, lag_s) for time in times)
    assert len(records) >= promised, f"{topic}/{queue_id} has {len(records)} messages, {promised} were promised"


async def check_cursors(client: RawClient, promises: Promises, lag_s: float) -> None:
    for (topic, queue_id), commits in promises.committed.items():
        promised = max((offset for time, offset in commits if was_promised(promises, time, lag_s)), default=0)
        found = await client.committed(GROUP, topic, queue_id) or 0
        asked = promises.asked_to_commit[topic, queue_id]
        assert promised <= found <= asked, f"cursor at {found}, {promised} was promised"


@pytest.mark.parametrize("flush", ["sync", "async"])
def test_what_the_broker_answered_survives_every_crash_point(flush: Flush, crash_step: int) -> None:
    scenario, look = partial(work, flush=flush), partial(check, flush=flush)
    assert explore(scenario, look, history=Promises, seeds=range(2), step=crash_step) > 10


def test_the_first_start_after_a_power_loss_may_end_in_another_one(crash_step: int) -> None:
    tried = explore(work, check, history=Promises, recover=start_and_wait, seeds=range(2), step=crash_step)
    assert tried > 10


def answer_sends_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    def hasty(gate: AnswerGate, command: object, answer: bytes, *, wait: bool = True) -> bytes:
        gate.admitted.append(command)  # type: ignore[arg-type]
        return answer

    patch.setattr(AnswerGate, "admit", hasty)


def answer_settings_before_they_are_durable(patch: pytest.MonkeyPatch) -> None:
    async def hasty(journal: Journal, position: int) -> None:
        pass

    patch.setattr(Journal, "wait_durable", hasty)


@pytest.mark.parametrize("bug", [answer_sends_before_they_are_durable, answer_settings_before_they_are_durable])
def test_a_planted_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(BrokenPromiseError, match="power loss"):
        explore(work, check, history=Promises, seeds=range(5))
