"""What the client writes about its messages, and what operators read of it."""

import asyncio
import logging

import pytest

import pocketmq
from pocketmq import MessageTrace, UsageError
from pocketmq.admin import connect_admin
from pocketmq.testing.fakes import FakeQueue
from pocketmq.wire.traces import PubTrace, decode_traces


async def events(house, **wanted):
    async with connect_admin("10.0.0.2:9876", clock=house.clock, network=house.network.host()) as admin:
        return await admin.traces.find(**wanted)


async def consume_one(client, group="billing", **options):
    async with client.consume("orders", group=group, from_where="first", **options) as consumer:
        message = await consumer.next(timeout=30)
        async with message:
            pass


def test_the_life_of_a_message(live):
    async def story(house):
        sender, consumer = house.connect(middleware=[MessageTrace()]), house.connect(middleware=[MessageTrace()])
        receipt = await sender.send("orders", b"hello", tag="new", keys=["o-1", "o-2"])
        await consume_one(consumer)
        await house.clock.sleep(5)
        sent, consumed = await events(house, message_id=receipt.message_id)
        assert (sent.what, sent.success, sent.topic, sent.message_tag) == ("sent", True, "orders", "new")
        assert (sent.group, sent.body_bytes, sent.broker) == ("pocketmq-producer", 5, "10.0.0.2:10911")
        assert sent.offset_message_id == receipt.offset_message_id
        assert sent.client.startswith("10.")
        assert (consumed.what, consumed.success, consumed.group, consumed.attempt) == ("consumed", True, "billing", 1)
        assert consumed.keys == "o-1 o-2"
        assert await events(house, key="o-2") == [sent, consumed]
        assert await events(house, message_id="nothing") == []

    live(story)


def test_retries_failures_and_delays_are_told_apart(live, caplog):
    async def story(house):
        client = house.connect(middleware=[MessageTrace()])
        receipt = await client.send("orders", b"hello", delay=1)
        with caplog.at_level(logging.CRITICAL):
            async with client.consume("orders", group="billing", from_where="first") as consumer:
                message = await consumer.next(timeout=30)
                async with message:
                    raise ValueError
                message = await consumer.next(timeout=60)
                async with message:
                    await message.nack(delay=1)
                message = await consumer.next(timeout=60)
                async with message:
                    pass
        await house.clock.sleep(5)
        found = await events(house, message_id=receipt.message_id)
        assert [(event.what, event.attempt) for event in found] == [
            ("sent with a delay", None),
            ("failed", 1),
            ("given back", 2),
            ("consumed", 3),
        ]

    live(story)


def test_transactions(live):
    async def story(house):
        client = house.connect(middleware=[MessageTrace()])
        async with client.transaction("orders", b"a", keys="k") as kept:
            pass
        with pytest.raises(KeyError):
            async with client.transaction("orders", b"b") as dropped:
                raise KeyError
        await house.clock.sleep(5)
        found = await events(house, message_id=kept.message_id)
        assert [event.what for event in found] == ["sent in a transaction", "committed"]
        found = await events(house, message_id=dropped.message_id)
        assert [event.what for event in found] == ["sent in a transaction", "rolled back"]

    live(story)


def test_a_send_that_failed(live):
    async def story(house):
        client = house.connect(middleware=[MessageTrace()], send_timeout=2)
        await client.send("orders", b"warm")
        house.broker.settings.store.message_bytes_max = 10
        with pytest.raises(pocketmq.PocketMQError):
            await client.send("orders", b"too large for it", keys="k")
        house.broker.settings.store.message_bytes_max = 10_000
        await house.clock.sleep(5)
        [event] = await events(house, key="k")
        assert (event.what, event.success) == ("send failed", False)

    live(story)


def test_the_last_traces_are_written_at_close(live):
    async def story(house):
        client = house.connect(middleware=[MessageTrace(wait=60)])
        receipt = await client.send("orders", b"hello")
        await client.close()
        await house.clock.sleep(1)
        assert len(await events(house, message_id=receipt.message_id)) == 1

    live(story)


def test_a_broker_that_wants_no_traces(live):
    async def story(house):
        house.settings.broker.trace_on = False
        await house.restart()
        trace = MessageTrace()
        client = house.connect(middleware=[trace])
        await client.send("orders", b"hello")
        await consume_one(client)
        await house.clock.sleep(5)
        assert trace._pending == []
        assert house.broker.log.queue("RMQ_SYS_TRACE_TOPIC", 0) is None

    live(story)


def test_no_more_traces_wait_than_were_agreed_and_sends_never_fail_for_them(caplog):
    class Stuck(FakeQueue):
        def write(self, message, timeout_s):
            if self.queue.topic == "orders":
                return super().write(message, timeout_s)
            raise pocketmq.PocketMQError("the trace topic is down")

    async def main():
        trace = MessageTrace(batch=1000, pending=10, wait=0.01)
        queues = {name: Stuck(name) for name in ("orders", "RMQ_SYS_TRACE_TOPIC")}
        options = {"writable_queues": lambda topic: [queues[topic]], "middleware": [trace]}
        async with pocketmq.connect("127.0.0.1:1", **options) as client:
            for _ in range(15):
                await client.send("orders", b"x")
            assert trace.dropped == 5
        assert trace.dropped == 15
        assert len(queues["orders"].written) == 15
        assert "traces are lost" in caplog.text

    asyncio.run(main())


def test_traces_share_messages_of_bounded_size():
    async def main():
        queues = {name: FakeQueue(name) for name in ("orders", "traces")}
        options = {"writable_queues": lambda topic: [queues[topic]]}
        async with pocketmq.connect(
            "127.0.0.1:1", middleware=[MessageTrace("traces", wait=60, batch=500)], **options
        ) as client:
            for number in range(1200):
                await client.send("orders", b"x", keys=[f"key-of-a-message-{number}"])
        bodies = [message.body for message in queues["traces"].written]
        assert sum(len(list(decode_traces(body))) for body in bodies) == 1200
        assert max(map(len, bodies)) < 70_000
        assert max(sum(map(len, message.keys)) for message in queues["traces"].written) < 25_000
        assert all(isinstance(trace, PubTrace) for body in bodies for trace in decode_traces(body))

    asyncio.run(main())


def test_it_belongs_to_one_client():
    trace = MessageTrace()
    pocketmq.connect("127.0.0.1:1", middleware=[trace])
    with pytest.raises(UsageError, match="one client"):
        pocketmq.connect("127.0.0.1:1", middleware=[trace])
    with pytest.raises(UsageError):
        MessageTrace(batch=0)
