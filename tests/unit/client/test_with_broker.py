"""The client with the broker of the house, in one process on virtual time: the whole way of a message."""

import asyncio
import logging
import random

import pytest

import pocketmq
from pocketmq import MessageQueue, Tag, UsageError
from pocketmq.broker.broker import Broker
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.namesrv.server import NameServer
from pocketmq.testing import SimulatedNetwork, VirtualClock, run
from pocketmq.testing.embedded import embedded_settings


class House:
    """A name server and a broker on virtual time."""

    def __init__(self):
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=3)
        self.settings = embedded_settings()
        self.settings.namesrv.host = self.settings.broker.host = "10.0.0.2"
        self.settings.namesrv.port, self.settings.broker.port = 9876, 10911
        self.settings.broker.namesrv = "10.0.0.2:9876"
        self.disk = MemoryDisk()
        self.clients = []

    async def start(self):
        machine = self.network.host("10.0.0.2")
        self.name_server = NameServer(self.settings, clock=self.clock, network=machine, disk=self.disk)
        await self.name_server.start()
        self.broker = Broker(self.settings, clock=self.clock, disk=self.disk, network=machine)
        await self.broker.start()
        return self

    async def restart(self):
        await self.broker.stop()
        await self.clock.sleep(2)
        machine = self.network.host("10.0.0.2")
        self.broker = Broker(self.settings, clock=self.clock, disk=self.disk, network=machine)
        await self.broker.start()

    def connect(self, address="10.0.0.2:9876", **options):
        client = pocketmq.connect(
            address,
            clock=self.clock,
            network=self.network.host(),
            random_source=random.Random(len(self.clients)),
            **options,
        )
        self.clients.append(client)
        return client


@pytest.fixture
def live():
    def live(story):
        async def main():
            house = await House().start()
            await story(house)
            for client in house.clients:
                await client.close()
            await house.broker.stop()
            await house.name_server.stop()

        run(main())

    return live


async def drain(consumer, count, timeout=30.0):
    bodies = []
    while len(bodies) < count:
        message = await consumer.next(timeout=timeout)
        assert message is not None, f"only {len(bodies)} of {count} came"
        async with message:
            bodies.append(message.body)
    return bodies


def test_what_is_sent_is_consumed_once(live):
    async def story(house):
        client = house.connect()
        receipts = await asyncio.gather(
            *(client.send("orders", b"%d" % n, tag="t", keys=[f"k{n}"]) for n in range(300))
        )
        assert len({(receipt.queue, receipt.queue_offset) for receipt in receipts}) == 300
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            bodies = await drain(consumer, 300)
            assert sorted(bodies) == sorted(b"%d" % n for n in range(300))
        async with client.consume("orders", group="billing") as consumer:
            assert await consumer.next(timeout=3) is None

    live(story)


def test_receipts_of_merged_messages_name_the_right_places(live):
    async def story(house):
        client = house.connect()
        receipts = await asyncio.gather(*(client.send("orders", b"%d" % n) for n in range(100)))
        for n, receipt in enumerate(receipts):
            result = await client.pull(receipt.queue, receipt.queue_offset, group="g", max=1)
            [message] = result.messages
            assert message.body == b"%d" % n
            assert message.message_id == receipt.message_id
            assert message.offset_message_id == receipt.offset_message_id

    live(story)


def test_a_failing_message_comes_again_and_ends_with_the_dead_letters(live, caplog):
    async def story(house):
        client = house.connect()
        await client.send("orders", b"bad")
        attempts = []
        with caplog.at_level(logging.CRITICAL):
            async with client.consume("orders", group="billing", attempts=3, from_where="first") as consumer:
                while (message := await consumer.next(timeout=120)) is not None:
                    async with message:
                        attempts.append((message.delivery_attempt, message.topic))
                        raise ValueError("always")
        assert attempts == [(1, "orders"), (2, "orders"), (3, "orders")]
        async with client.consume("%DLQ%billing", group="undertaker", from_where="first") as consumer:
            message = await consumer.next(timeout=30)
            assert (message.body, message.topic) == (b"bad", "orders")
            await message.ack()

    live(story)


def test_delays_hold_a_message_back(live):
    async def story(house):
        client = house.connect()
        await client.send("orders", b"now")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            await drain(consumer, 1)
            before = house.clock.monotonic()
            await client.send("orders", b"later", delay=30)
            assert await drain(consumer, 1, timeout=60) == [b"later"]
            assert 29.5 < house.clock.monotonic() - before < 31.5

    live(story)


def test_tags_are_filtered_by_the_broker(live):
    async def story(house):
        client = house.connect()
        for n in range(20):
            await client.send("orders", b"%d" % n, tag="even" if n % 2 == 0 else "odd")
        async with client.consume("orders", group="billing", filter=Tag("even"), from_where="first") as consumer:
            assert sorted(await drain(consumer, 10), key=int) == [b"%d" % n for n in range(0, 20, 2)]
            assert await consumer.next(timeout=2) is None

    live(story)


def test_two_consumers_share_and_nothing_is_lost_when_one_leaves(live):
    async def story(house):
        first, second = house.connect(), house.connect()
        await first.send("orders", b"0")
        one = await first.consume("orders", group="billing", from_where="first").start()
        two = await second.consume("orders", group="billing", from_where="first").start()
        await house.clock.sleep(3)
        assert len([q for q in one.queues if q.topic == "orders"]) == 2
        assert len([q for q in two.queues if q.topic == "orders"]) == 2
        seen = []

        async def work(consumer):
            async for message in consumer:
                async with message:
                    seen.append(message.body)
                    await house.clock.sleep(0.05)

        tasks = [asyncio.ensure_future(work(consumer)) for consumer in (one, two)]
        for n in range(1, 200):
            await first.send("orders", b"%d" % n)
            if n == 100:
                await two.close()
        await house.clock.sleep(30)
        await one.close()
        await asyncio.gather(*tasks)
        assert sorted(set(seen)) == sorted(b"%d" % n for n in range(200))
        assert len(seen) == 200

    live(story)


def test_order_is_kept_within_a_message_group_while_messages_fail(live, caplog):
    async def story(house):
        client = house.connect()
        for n in range(10):
            for group in "ab":
                await client.send("orders", b"%d" % n, message_group=group, properties={"who": group})
        seen = {"a": [], "b": []}
        failed = set()
        with caplog.at_level(logging.CRITICAL):
            async with client.consume("orders", group="g", orderly=True, from_where="first") as consumer:
                while len(seen["a"]) + len(seen["b"]) < 20:
                    message = await consumer.next(timeout=10)
                    async with message:
                        key = (message.properties["who"], message.body)
                        if int(message.body) % 4 == 3 and key not in failed:
                            failed.add(key)
                            raise ValueError("once")
                        seen[message.properties["who"]].append(int(message.body))
        assert seen == {"a": list(range(10)), "b": list(range(10))}

    live(story)


def test_both_sides_go_on_after_the_broker_was_restarted(live):
    async def story(house):
        client = house.connect()
        await client.send("orders", b"before")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            assert await drain(consumer, 1) == [b"before"]
            restart = asyncio.ensure_future(house.restart())
            await house.clock.sleep(0.5)
            await client.send("orders", b"during", timeout=10)
            await restart
            assert await drain(consumer, 1) == [b"during"]
            await client.send("orders", b"after")
            assert await drain(consumer, 1) == [b"after"]

    live(story)


def test_positions_can_be_asked_and_set(live):
    async def story(house):
        client = house.connect()
        for n in range(8):
            await client.send("orders", b"%d" % n, queue=None)
        queue = (await client.queues("orders"))[0]
        assert await client.first_offset(queue) == 0
        assert await client.end_offset(queue) == 2
        assert await client.offset_at(queue, 0.0) == 0
        assert await client.offset_at(queue, house.clock.time_ms() / 1000 + 60) == 2
        async with client.consume("orders", group="g"):
            pass
        await client.commit_offset(queue, 1, group="g")
        assert await client.committed_offset(queue, group="g") == 1
        assert isinstance(queue, MessageQueue)

    live(story)


def test_a_broker_that_is_taken_for_a_name_server_is_named(live):
    async def story(house):
        client = house.connect("10.0.0.2:10911")
        with pytest.raises(UsageError, match=r"10\.0\.0\.2:10911 is not a name server"):
            await client.send("orders", b"")

    live(story)
