"""A whole cluster on virtual time: whatever breaks, each acknowledged message reaches its consumers in the end."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random

import pytest

import pocketmq
from pocketmq.broker.broker import Broker
from pocketmq.model.errors import PocketMQError
from pocketmq.model.settings import Settings
from pocketmq.namesrv.server import NameServer
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import run
from pocketmq.testing.machine import Machine
from pocketmq.testing.network import SimulatedNetwork

TOPIC = "orders"
FAULTS = 25
FAILURE_RATE = 0.01
DRAIN_S = 300.0


@dataclass
class Trace:
    """What happened, in order."""

    acknowledged: list[bytes] = field(default_factory=list)
    consumed: list[bytes] = field(default_factory=list)
    """By the group whose members take messages as they come."""
    in_order: list[tuple[int, int, bytes]] = field(default_factory=list)
    """By the group that takes them in order: queue id, offset, body."""
    events: list[tuple[float, str]] = field(default_factory=list)


class World:
    """A name server, a broker, a producer, two consumers, and what goes wrong between them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = Random(seed)
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=seed, cut_rate=0.05, loss_rate=0.002)
        self.name_server, self.broker, self.producer, *self.consumers = (
            Machine(self.network, f"10.0.0.{number}", seed=seed * 100 + number) for number in range(1, 6)
        )
        self.trace = Trace()
        self.producing = True

    def settings(self) -> Settings:
        settings = Settings()
        settings.namesrv.host = settings.broker.host = "0.0.0.0"
        settings.broker.namesrv = "10.0.0.1:9876"
        settings.broker.advertise = "10.0.0.2"
        settings.store.data_dir = "data"
        settings.store.flush = "sync"
        settings.store.segment_bytes = 64 * 1024
        settings.store.index_stretch_bytes = 16 * 1024
        return settings

    async def run_name_server(self, machine: Machine) -> None:
        server = NameServer(self.settings(), clock=machine.clock, network=machine.network, disk=machine.disk)
        await server.start()

    async def run_broker(self, machine: Machine) -> None:
        broker = Broker(self.settings(), clock=machine.clock, disk=machine.disk, network=machine.network)
        await broker.start()
        self.note(f"broker serves, log from {broker.log.min_position} to {broker.log.max_position}")

    def connect(self, machine: Machine) -> pocketmq.Client:
        return pocketmq.connect(
            "10.0.0.1:9876",
            clock=machine.clock,
            network=machine.network,
            random_source=Random(f"{self.seed} {machine.address}"),
        )

    async def produce(self, machine: Machine) -> None:
        client = self.connect(machine)
        number = 0
        while self.producing:
            number += 1
            body = b"%d" % number
            try:
                await client.send(TOPIC, body, keys=[str(number)])
            except PocketMQError as error:
                self.note(f"send of {number} failed: {type(error).__name__}")
            else:
                self.trace.acknowledged.append(body)
            await machine.clock.sleep(0.1)

    async def consume(self, machine: Machine) -> None:
        client = self.connect(machine)
        await asyncio.gather(self.consume_freely(client), self.consume_in_order(client))

    async def consume_freely(self, client: pocketmq.Client) -> None:
        async for message in client.consume(TOPIC, group="billing", from_where="first"):
            async with message:
                self.fail_now_and_then()
                self.trace.consumed.append(message.body)

    async def consume_in_order(self, client: pocketmq.Client) -> None:
        async for message in client.consume(TOPIC, group="ledger", from_where="first", orderly=True):
            async with message:
                self.fail_now_and_then()
                self.trace.in_order.append((message.queue_id, message.queue_offset, message.body))

    def fail_now_and_then(self) -> None:
        if self.random.random() < FAILURE_RATE:
            raise ValueError("this message could not be dealt with")

    def note(self, event: str) -> None:
        self.trace.events.append((round(self.clock.monotonic(), 6), event))

    async def play(self) -> None:
        self.name_server.start(self.run_name_server)
        self.broker.start(self.run_broker)
        await self.clock.sleep(1)
        self.producer.start(self.produce)
        for consumer in self.consumers:
            consumer.start(self.consume)
        for _ in range(FAULTS):
            await self.clock.sleep(self.random.uniform(1, 20))
            fault = self.random.choice(
                [self.break_connections, self.partition, self.crash_broker, self.crash_others, self.pause]
            )
            await fault()
        self.producing = False
        await self.drain()

    async def break_connections(self) -> None:
        self.note(f"{self.network.break_connections()} connections broken")

    async def partition(self) -> None:
        machines = [self.name_server, self.broker, self.producer, *self.consumers]
        one, other = self.random.sample([machine.address for machine in machines], 2)
        one_way = self.random.random() < 0.5
        self.note(f"partition between {one} and {other}{', one way' if one_way else ''}")
        self.network.partition([one], [other], one_way=one_way)
        await self.clock.sleep(self.random.uniform(0.1, 40))
        self.network.heal()
        self.note("healed")

    async def crash_broker(self) -> None:
        await self.crash(self.broker, self.random.choice(["kill", "power_off"]))
        self.broker.start(self.run_broker)

    async def crash_others(self) -> None:
        if self.random.random() < 0.5:
            await self.crash(self.name_server, "power_off")
            self.name_server.start(self.run_name_server)
        else:
            consumer = self.random.choice(self.consumers)
            await self.crash(consumer, self.random.choice(["kill", "power_off"]))
            consumer.start(self.consume)

    async def crash(self, machine: Machine, how: str) -> None:
        done = asyncio.get_running_loop().create_future()

        def strike() -> None:
            self.note(f"{how} of {machine.address}")
            getattr(machine, how)()
            done.set_result(None)

        # At some step of the program, and not only when it waits for something in particular.
        machine.crash_at(self.random.randrange(300), strike)
        timer = self.clock.call_later(30, strike)
        await done
        timer.cancel()
        await self.clock.sleep(self.random.uniform(0, 10))
        machine.power_on()

    async def pause(self) -> None:
        machine = self.random.choice([self.broker, self.name_server, *self.consumers])
        self.note(f"{machine.address} stands still")
        machine.pause()
        await self.clock.sleep(self.random.uniform(0.1, 60))
        machine.resume()
        self.note(f"{machine.address} goes on")

    async def drain(self) -> None:
        """All that was acknowledged comes to both groups."""
        deadline = self.clock.monotonic() + DRAIN_S
        while missing := self.missing():
            assert self.clock.monotonic() < deadline, f"never consumed: {sorted(missing, key=int)[:10]}"
            await self.clock.sleep(1)

    def missing(self) -> set[bytes]:
        everything = set(self.trace.acknowledged)
        return (everything - set(self.trace.consumed)) | (everything - {body for _, _, body in self.trace.in_order})


def check_order(trace: Trace) -> None:
    """Messages may come twice, but none comes for the first time after a later one of its queue."""
    reached: dict[int, int] = {}
    for queue_id, offset, body in trace.in_order:
        if offset > reached.get(queue_id, -1):
            assert offset == reached.get(queue_id, -1) + 1, f"{body!r} of queue {queue_id} overtook another"
            reached[queue_id] = offset


def played(seed: int) -> Trace:
    async def main() -> Trace:
        world = World(seed)
        await world.play()
        return world.trace

    return run(main())


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What the parts of the cluster have to say about all that goes wrong would fill a book."""
    logger = logging.getLogger("pocketmq")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(level)


@pytest.mark.parametrize("seed", range(3))
def test_every_acknowledged_message_is_consumed_whatever_breaks(seed: int) -> None:
    trace = played(seed)
    check_order(trace)
    assert len(trace.acknowledged) > 500


def test_the_same_seed_plays_the_same_story() -> None:
    assert played(7) == played(7)
