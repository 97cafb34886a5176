"""Request and reply: the client with the broker of the house on virtual time, and with a scripted one."""

import asyncio

import pytest

import pocketmq
from pocketmq import BackPressureError, BrokerError, ClientClosedError, RequestTimeoutError, UsageError


async def answering(client, group="answerers", topic="questions", **options):
    """A consumer that answers every request with its body in capitals; returns the task."""

    async def handle(message):
        if message.body == b"be silent":
            return None
        if message.body == b"be slow":
            await client.core.clock.sleep(30)
        return message.body.upper()

    consumer = client.consume(topic, group=group, from_where="first", **options)
    await consumer.start()
    return asyncio.get_running_loop().create_task(consumer.run(handle, concurrency=4))


async def ended(task):
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_a_request_is_answered(live):
    async def story(house):
        worker = await answering(house.connect())
        client = house.connect()
        reply = await client.request("questions", b"what", tag="t", keys=["k"], timeout=10)
        assert reply.body == b"WHAT"
        assert reply.value == b"WHAT"
        assert reply.topic == "DefaultCluster_REPLY_TOPIC"
        assert reply.properties["MSG_TYPE"] == "reply"
        assert client.core.requests.waiting == 0
        await ended(worker)

    live(story)


def test_many_requests_at_the_same_time_get_their_own_replies(live):
    async def story(house):
        worker = await answering(house.connect())
        clients = [house.connect(), house.connect()]
        replies = await asyncio.gather(
            *(client.request("questions", b"q%d" % n, timeout=20) for n in range(50) for client in clients)
        )
        assert [reply.body for reply in replies] == [b"Q%d" % n for n in range(50) for _ in clients]
        await ended(worker)

    live(story)


def test_a_reply_by_hand_with_properties_and_a_large_body(live):
    async def story(house):
        replier, client = house.connect(compression="zlib"), house.connect()
        asking = asyncio.get_running_loop().create_task(client.request("questions", b"x" * 10_000, timeout=20))
        async with replier.consume("questions", group="answerers", from_where="first") as consumer:
            message = await consumer.next(timeout=20)
            async with message:
                assert message.is_request
                assert message.properties["TTL"] == "20000"
                receipt = await message.reply(message.body * 2, properties={"colour": "green"})
                assert receipt.queue.topic == "DefaultCluster_REPLY_TOPIC"
                assert receipt.status == "SEND_OK"
        reply = await asking
        assert reply.body == b"x" * 20_000
        assert reply.properties["colour"] == "green"
        assert reply.message_id == receipt.message_id

    live(story)


def test_replies_are_stored(live):
    async def story(house):
        worker = await answering(house.connect())
        client = house.connect()
        await client.request("questions", b"what", timeout=10)
        [queue] = await client.queues("DefaultCluster_REPLY_TOPIC")
        result = await client.pull(queue, 0, group="readers", wait=5)
        assert [message.body for message in result.messages] == [b"WHAT"]
        await ended(worker)

    live(story)


def test_no_reply_in_time_and_one_that_is_too_late(live):
    async def story(house):
        worker = await answering(house.connect())
        client = house.connect()
        before = house.clock.monotonic()
        with pytest.raises(RequestTimeoutError, match="questions"):
            await client.request("questions", b"be silent", timeout=5)
        assert house.clock.monotonic() - before == pytest.approx(5, abs=0.2)
        with pytest.raises(RequestTimeoutError):
            await client.request("questions", b"be slow", timeout=5)
        await house.clock.sleep(40)
        assert client.core.requests.waiting == 0
        assert (await client.request("questions", b"again", timeout=5)).body == b"AGAIN"
        await ended(worker)

    live(story)


def test_a_cancelled_request_is_forgotten(live):
    async def story(house):
        client = house.connect()
        await client.send("questions", b"be silent")
        asking = asyncio.get_running_loop().create_task(client.request("questions", b"what", timeout=50))
        await house.clock.sleep(1)
        assert client.core.requests.waiting == 1
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert client.core.requests.waiting == 0

    live(story)


def test_requests_that_wait_are_bounded(live):
    async def story(house):
        client = house.connect(pending_requests=2)
        asking = [
            asyncio.get_running_loop().create_task(client.request("questions", b"%d" % n, timeout=5)) for n in range(2)
        ]
        await house.clock.sleep(1)
        with pytest.raises(BackPressureError):
            await client.request("questions", b"one too many")
        results = await asyncio.gather(*asking, return_exceptions=True)
        assert all(isinstance(result, RequestTimeoutError) for result in results)

    live(story)


def test_closing_ends_requests(live):
    async def story(house):
        client = house.connect()
        asking = asyncio.get_running_loop().create_task(client.request("questions", b"what", timeout=50))
        await house.clock.sleep(1)
        await client.close()
        with pytest.raises(ClientClosedError):
            await asking

    live(story)


def test_a_reply_to_somebody_who_has_gone(live):
    async def story(house):
        client, replier = house.connect(), house.connect()
        asking = asyncio.get_running_loop().create_task(client.request("questions", b"what", timeout=50))
        async with replier.consume("questions", group="answerers", from_where="first") as consumer:
            message = await consumer.next(timeout=20)
            await client.close()
            await asyncio.gather(asking, return_exceptions=True)
            with pytest.raises(BrokerError) as caught:
                await message.reply(b"too late")
            assert caught.value.code == 1
            await message.ack()

    live(story)


def test_the_broker_is_restarted_between_request_and_reply(live):
    async def story(house):
        client, replier = house.connect(), house.connect()
        asking = asyncio.get_running_loop().create_task(client.request("questions", b"what", timeout=60))
        async with replier.consume("questions", group="answerers", from_where="first") as consumer:
            message = await consumer.next(timeout=20)
            await house.restart()
            async with message:
                await message.reply(b"here it is", timeout=30)
        assert (await asking).body == b"here it is"

    live(story)


def test_a_message_that_is_no_request_cannot_be_replied_to(live):
    async def story(house):
        client = house.connect()
        await client.send("questions", b"a statement")
        async with client.consume("questions", group="answerers", from_where="first") as consumer:
            message = await consumer.next(timeout=20)
            async with message:
                assert not message.is_request
                with pytest.raises(UsageError):
                    await message.reply(b"?")

    live(story)


def test_a_handler_that_returns_something_for_a_plain_message_replies_nothing(live):
    async def story(house):
        client = house.connect()
        worker = await answering(house.connect())
        await client.send("questions", b"a statement")
        await house.clock.sleep(5)
        assert house.broker.log.queue("DefaultCluster_REPLY_TOPIC", 0) is None
        await ended(worker)

    live(story)


def test_values_go_both_ways_through_the_serializer(live):
    class Text:
        def encode(self, value, properties):
            properties["kind"] = "text"
            return value.encode()

        def decode(self, body, properties):
            return body.decode()

    async def story(house):
        client, replier = house.connect(serializer=Text()), house.connect(serializer=Text())
        consumer = await replier.consume("questions", group="answerers", from_where="first").start()

        async def handle(message):
            return message.value * 2

        worker = asyncio.get_running_loop().create_task(consumer.run(handle))
        reply = await client.request("questions", "ab", timeout=10)
        assert reply.value == "abab"
        assert reply.properties["kind"] == "text"
        await ended(worker)

    live(story)


def test_a_request_with_a_delay_makes_no_sense():
    async def main():
        async with pocketmq.connect("127.0.0.1:1") as client:
            with pytest.raises(UsageError):
                await client.request(pocketmq.Message(topic="questions", body=b"x", delay_level=3))

    asyncio.run(main())
