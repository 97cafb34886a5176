"""Consuming: delivery, acknowledgement, retry, sharing, cursors, reconnecting."""

import asyncio
import logging

import pytest

from pocketmq import ClientClosedError, ConnectError, Delivery, MessageQueue, Tag, UsageError
from pocketmq.testing.fakes import FakeAllocator, FakeBuffer, FakeCursors, FakeSerializer
from pocketmq.wire.codes import RequestCode as Code


async def take(consumer, count, timeout=30.0):
    """Settle `count` messages and return their bodies."""
    bodies = []
    while len(bodies) < count:
        message = await consumer.next(timeout=timeout)
        assert message is not None, f"only {bodies} came"
        async with message:
            bodies.append(message.body)
    return bodies


def test_a_consumer_gets_every_message_once_and_its_position_is_stored(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 4
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(40)])
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            assert await take(consumer, 40) == [b"%d" % n for n in range(40)]
            await client.send("orders", b"later")
            assert await take(consumer, 1) == [b"later"]
        stored = {key: value for key, value in cluster.broker.positions.items() if key[1] == "orders"}
        assert sum(stored.values()) == 41
        async with client.consume("orders", group="billing") as consumer:
            assert await consumer.next(timeout=5) is None

    simulate(story)


def test_iterating_starts_the_consumer_and_closing_the_client_ends_it(simulate):
    async def story(cluster):
        client = cluster.connect()
        await client.send("orders", b"x")
        seen = []

        async def consume():
            async for message in client.consume("orders", group="billing", from_where="first"):
                async with message:
                    seen.append(message.body)

        task = asyncio.ensure_future(consume())
        await cluster.clock.sleep(2)
        await client.close()
        await task
        assert seen == [b"x"]
        assert cluster.broker.asked(Code.UNREGISTER_CLIENT)

    simulate(story)


def test_a_new_message_arrives_at_once_through_the_held_pull(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        async with client.consume("orders", group="billing") as consumer:
            await cluster.clock.sleep(3)
            before = cluster.clock.monotonic()
            await client.send("orders", b"x")
            await take(consumer, 1)
            assert cluster.clock.monotonic() - before < 0.01

    simulate(story)


def test_a_failed_message_is_given_back_and_comes_again_with_its_topic(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        async with client.consume("orders", group="billing") as consumer:
            await cluster.clock.sleep(1)
            await client.send("orders", b"x", tag="t")
            message = await consumer.next(timeout=5)
            with caplog.at_level(logging.CRITICAL):
                async with message:
                    raise ValueError("no")
            [request] = cluster.broker.asked(Code.CONSUMER_SEND_MSG_BACK)
            assert request.ext()["delayLevel"] == "0"
            assert int(request.ext()["offset"]) == message.physical_offset
            assert consumer.positions()[MessageQueue("orders", "broker-a", 0)] == 1
            again = await consumer.next(timeout=30)
            assert (again.topic, again.body, again.delivery_attempt, again.tag) == ("orders", b"x", 2, "t")
            await again.reject()
            assert not await again.ack()
        assert cluster.broker.bodies("%DLQ%billing") == [b"x"]

    simulate(story)


def test_an_exception_can_be_let_out_after_the_message_was_given_back(simulate):
    async def story(cluster):
        client = cluster.connect()
        async with client.consume("orders", group="billing", reraise=True) as consumer:
            await client.send("orders", b"x")
            message = await consumer.next(timeout=5)
            with pytest.raises(ValueError, match="no"):
                async with message:
                    raise ValueError("no")
            assert cluster.broker.asked(Code.CONSUMER_SEND_MSG_BACK)

    simulate(story)


def test_a_delay_of_ones_own_becomes_the_nearest_level(simulate):
    async def story(cluster):
        client = cluster.connect()
        async with client.consume("orders", group="billing") as consumer:
            await client.send("orders", b"x")
            message = await consumer.next(timeout=5)
            assert await message.nack(delay=45)
            [request] = cluster.broker.asked(Code.CONSUMER_SEND_MSG_BACK)
            assert request.ext()["delayLevel"] == "5"

    simulate(story)


def test_when_giving_back_fails_the_message_goes_to_the_retry_topic_another_way(simulate):
    async def story(cluster):
        client = cluster.connect()
        async with client.consume("orders", group="billing") as consumer:
            await client.send("orders", b"x", tag="t", properties={"a": "b"})
            message = await consumer.next(timeout=5)
            cluster.broker.refuse(Code.CONSUMER_SEND_MSG_BACK, 1, "look message by offset failed")
            await message.nack()
            [properties] = cluster.broker.properties("%RETRY%billing")
            assert properties["RETRY_TOPIC"] == "orders"
            assert properties["ORIGIN_MESSAGE_ID"] == message.offset_message_id
            assert properties["DELAY"] == "3"
            assert (properties["TAGS"], properties["a"]) == ("t", "b")
            sent = cluster.broker.asked(Code.SEND_MESSAGE_V2)[-1].ext()
            assert (sent["j"], sent["l"]) == ("1", "16")
            again = await consumer.next(timeout=5)
            assert (again.topic, again.delivery_attempt) == ("orders", 2)

    simulate(story)


def test_a_message_that_cannot_be_given_back_at_all_is_tried_again_from_here(simulate, caplog):
    async def story(cluster):
        client = cluster.connect(send_retries=0)
        async with client.consume("orders", group="billing") as consumer:
            await client.send("orders", b"x")
            message = await consumer.next(timeout=5)
            cluster.broker.refuse(Code.CONSUMER_SEND_MSG_BACK, 1)
            cluster.broker.refuse(Code.SEND_MESSAGE_V2, 13)
            with caplog.at_level(logging.CRITICAL):
                await message.nack()
            again = await consumer.next(timeout=10)
            assert (again.body, again.delivery_attempt) == (b"x", 2)
            assert consumer.positions()[message_queue(message)] == message.queue_offset

    simulate(story)


def message_queue(message):
    return MessageQueue(message.topic, message.broker_name, message.queue_id)


def test_the_stored_position_never_passes_an_unsettled_message(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(10)])
        consumer = client.consume("orders", group="billing", from_where="first", drain=1.0)
        await consumer.start()
        messages = [await consumer.next(timeout=5) for _ in range(10)]
        for message in messages[:3] + messages[4:]:
            await message.ack()
        await cluster.clock.sleep(12)
        assert cluster.broker.positions["billing", "orders", 0] == 3
        await messages[3].ack()
        await cluster.clock.sleep(12)
        assert cluster.broker.positions["billing", "orders", 0] == 10
        await consumer.close()

    simulate(story)


def test_two_consumers_share_the_queues_and_a_leaving_one_hands_its_own_over(simulate, until):
    async def story(cluster):
        cluster.topics["orders"] = 8
        first, second = cluster.connect(host="10.0.0.50"), cluster.connect(host="10.0.0.51")
        one = await first.consume("orders", group="billing").start()
        assert len(orders(one)) == 8
        two = await second.consume("orders", group="billing").start()
        await until(lambda: len(orders(one)) == 4 and len(orders(two)) == 4, cluster.clock)
        assert not set(orders(one)) & set(orders(two))
        await two.close()
        await until(lambda: len(orders(one)) == 8, cluster.clock, 3)

    simulate(story)


def orders(consumer):
    return [queue for queue in consumer.queues if queue.topic == "orders"]


def test_a_queue_that_moves_away_is_drained_before_its_position_is_stored_for_good(simulate, until):
    async def story(cluster):
        cluster.topics["orders"] = 2
        client = cluster.connect(host="10.0.0.50")
        for queue_id in (0, 1):
            for n in range(20):
                cluster.broker.store("orders", queue_id, b"%d" % n, "UNIQ_KEY\x01k\x02")
        one = await client.consume("orders", group="billing", from_where="first").start()
        taken = [await one.next(timeout=5) for _ in range(34)]
        other = cluster.connect(host="10.0.0.51")
        two = await other.consume("orders", group="billing", from_where="first").start()
        await until(lambda: len(orders(one)) == 1, cluster.clock)
        [kept] = orders(one)
        gone = 1 - kept.queue_id
        for message in taken:
            await message.ack()
        await until(lambda: cluster.broker.positions.get(("billing", "orders", gone)), cluster.clock)
        out = [message.queue_offset for message in taken if message.queue_id == gone]
        assert cluster.broker.positions["billing", "orders", gone] >= len(out)
        await two.close()

    simulate(story)


def test_tags_are_compared_exactly_here(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        for tag in ("new", "old", "paid", "new"):
            await client.send("orders", tag.encode(), tag=tag)
        await client.send("orders", b"untagged")
        wanted = Tag("new || paid")
        async with client.consume("orders", group="billing", filter=wanted, from_where="first") as consumer:
            assert await take(consumer, 3) == [b"new", b"paid", b"new"]
            assert consumer.positions()[MessageQueue("orders", "broker-a", 0)] == 5
        pull = cluster.broker.asked(Code.PULL_MESSAGE)[-1].ext()
        assert int(pull["sysFlag"]) & 4

    simulate(story)


def test_several_topics_with_a_filter_each(simulate):
    async def story(cluster):
        client = cluster.connect()
        await client.send("orders", b"o", tag="new")
        await client.send("bills", b"b", tag="new")
        await client.send("bills", b"c", tag="old")
        topics = {"orders": None, "bills": Tag("old")}
        async with client.consume(topics, group="g", from_where="first") as consumer:
            assert sorted(await take(consumer, 2)) == [b"c", b"o"]

    simulate(story)


def test_a_consumer_goes_on_after_the_broker_was_restarted(simulate, until):
    async def story(cluster):
        cluster.topics["orders"] = 2
        client = cluster.connect()
        async with client.consume("orders", group="billing") as consumer:
            await client.send("orders", b"before")
            assert await take(consumer, 1) == [b"before"]
            cluster.broker.crash()
            await cluster.clock.sleep(7)
            await cluster.broker.start()
            await until(lambda: bool(cluster.broker.members["billing"]), cluster.clock, 10)
            await client.send("orders", b"after")
            assert await take(consumer, 1) == [b"after"]
            assert len(orders(consumer)) == 2

    simulate(story)


def test_a_topic_that_does_not_exist_yet_is_found_when_it_does(simulate):
    async def story(cluster):
        client = cluster.connect()
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            await cluster.clock.sleep(5)
            await client.send("orders", b"x")
            assert await take(consumer, 1, timeout=5) == [b"x"]

    simulate(story)


def test_a_new_group_begins_where_it_was_told(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send("orders", b"old")
        async with client.consume("orders", group="a", from_where="last") as consumer:
            await cluster.clock.sleep(1)
            await client.send("orders", b"new")
            assert await take(consumer, 1) == [b"new"]
        async with client.consume("orders", group="b", from_where=cluster.clock.time_ms() / 1000) as consumer:
            await consumer.next(timeout=1)
        [request] = cluster.broker.asked(Code.SEARCH_OFFSET_BY_TIMESTAMP)
        assert abs(int(request.ext()["timestamp"]) - cluster.clock.time_ms()) < 5000

    simulate(story)


def test_an_offset_that_is_not_stored_any_more_is_corrected(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send("orders", b"x")
        cluster.broker.positions["billing", "orders", 0] = 500
        with caplog.at_level(logging.CRITICAL):
            async with client.consume("orders", group="billing") as consumer:
                await cluster.clock.sleep(1)
                await client.send("orders", b"y")
                assert await take(consumer, 1) == [b"y"]

    simulate(story)


def test_with_order_a_failed_message_is_tried_again_before_its_successors(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b", b"c"])
        seen = []
        async with client.consume("orders", group="g", orderly=True, from_where="first") as consumer:
            with caplog.at_level(logging.CRITICAL):
                while len(seen) < 5:
                    message = await consumer.next(timeout=10)
                    assert await consumer.next(timeout=0.5) is None
                    async with message:
                        seen.append((message.body, message.delivery_attempt))
                        if message.body == b"b" and message.delivery_attempt < 3:
                            raise ValueError("not yet")
            assert seen == [(b"a", 1), (b"b", 1), (b"b", 2), (b"b", 3), (b"c", 1)]
            assert cluster.broker.locks
        assert not cluster.broker.locks

    simulate(story)


def test_with_order_a_message_that_used_up_its_attempts_goes_to_the_dead_letters(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b"])
        async with client.consume("orders", group="g", orderly=True, attempts=2, from_where="first") as consumer:
            with caplog.at_level(logging.CRITICAL):
                for _ in range(2):
                    async with await consumer.next(timeout=10):
                        raise ValueError("never")
            assert await take(consumer, 1) == [b"b"]
        await cluster.clock.sleep(1)
        assert cluster.broker.bodies("%DLQ%g") == [b"a"]

    simulate(story)


def test_with_order_a_queue_is_read_by_one_consumer_alone(simulate, until):
    async def story(cluster):
        cluster.topics["orders"] = 1
        cluster.broker.locks["g", "orders", 0] = "somebody else"
        client = cluster.connect()
        await client.send("orders", b"a")
        async with client.consume("orders", group="g", orderly=True, from_where="first") as consumer:
            assert await consumer.next(timeout=5) is None
            cluster.broker.locks.clear()
            assert await take(consumer, 1, timeout=5) == [b"a"]

    simulate(story)


def test_broadcasting_gives_everybody_everything_and_keeps_positions_here(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 2
        one, two = cluster.connect(host="10.0.0.50"), cluster.connect(host="10.0.0.51")
        cursors = FakeCursors(), FakeCursors()
        consumers = [
            await client.consume("orders", group="g", mode="broadcasting", cursors=kept).start()
            for client, kept in zip((one, two), cursors, strict=True)
        ]
        await cluster.clock.sleep(1)
        await one.send("orders", b"x")
        for consumer in consumers:
            assert await take(consumer, 1) == [b"x"]
            await consumer.close()
        assert all(kept.stored for kept in cursors)
        assert not cluster.broker.positions
        assert not cluster.broker.asked(Code.CONSUMER_SEND_MSG_BACK)

    simulate(story)


def test_a_queue_can_be_read_again_from_elsewhere(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b", b"c"])
        queue = MessageQueue("orders", "broker-a", 0)
        async with client.consume("orders", group="g", from_where="first") as consumer:
            assert await take(consumer, 3) == [b"a", b"b", b"c"]
            late = None
            await consumer.seek(queue, 1)
            assert await take(consumer, 1) == [b"b"]
            late = await consumer.next(timeout=5)
            await consumer.seek(queue, 2)
            assert not await late.ack()
            assert await take(consumer, 1) == [b"c"]
            await consumer.commit()
            assert cluster.broker.positions["g", "orders", 0] == 3
            with pytest.raises(UsageError):
                await consumer.seek(MessageQueue("orders", "broker-a", 7), 0)

    simulate(story)


def test_what_is_out_is_bounded_and_settling_makes_room(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(10)])
        async with client.consume("orders", group="g", concurrency=3, from_where="first") as consumer:
            out = [await consumer.next(timeout=1) for _ in range(4)]
            assert out[3] is None
            await out[0].ack()
            last = await consumer.next(timeout=1)
            assert last.body == b"3"
            for message in (out[1], out[2], last):
                await message.ack()

    simulate(story)


def test_fetching_stops_at_the_high_water_mark_and_goes_on_below_the_low_one(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(200)])
        options = {"buffer_messages": 50, "from_where": "first"}
        async with client.consume("orders", group="g", **options) as consumer:
            await cluster.clock.sleep(5)
            pulls = [int(pull.ext()["queueOffset"]) for pull in cluster.broker.asked(Code.PULL_MESSAGE)]
            assert max(pulls) == 32
            assert await take(consumer, 200) == [b"%d" % n for n in range(200)]

    simulate(story)


def test_a_message_that_was_pulled_by_hand_cannot_be_settled(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send("orders", b"x")
        result = await client.pull(MessageQueue("orders", "broker-a", 0), 0, group="g")
        with pytest.raises(UsageError, match="settle"):
            await result.messages[0].ack()

    simulate(story)


def test_a_client_is_in_a_group_once(simulate):
    async def story(cluster):
        client = cluster.connect()
        async with client.consume("orders", group="g") as consumer:
            with pytest.raises(UsageError, match="already"):
                await client.consume("orders", group="g").start()
        with pytest.raises(ClientClosedError):
            await consumer.start()
        async with client.consume("orders", group="g"):
            pass

    simulate(story)


def test_an_allocator_of_ones_own_decides(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 4
        client = cluster.connect(client_id="me")
        allocator = FakeAllocator({"me": [MessageQueue("orders", "broker-a", 2)]})
        async with client.consume("orders", group="g", allocator=allocator) as consumer:
            assert orders(consumer) == [MessageQueue("orders", "broker-a", 2)]

    simulate(story)


def test_a_handler_consumes_several_messages_at_once_until_cancelled(simulate, until):
    async def story(cluster):
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(30)])
        running, most, done = 0, 0, []

        async def handle(message: Delivery):
            nonlocal running, most
            running += 1
            most = max(most, running)
            await cluster.clock.sleep(0.1)
            running -= 1
            done.append(message.body)

        consumer = client.consume("orders", group="g", from_where="first")
        task = asyncio.ensure_future(consumer.run(handle, concurrency=5))
        await until(lambda: len(done) == 30, cluster.clock)
        assert most == 5
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sum(cluster.broker.positions.values()) == 30

    simulate(story)


def test_a_message_whose_task_was_cancelled_is_given_to_the_next(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b"])
        async with client.consume("orders", group="g", from_where="first") as consumer:

            async def work():
                async with await consumer.next():
                    await cluster.clock.sleep(1000)

            task = asyncio.ensure_future(work())
            await cluster.clock.sleep(1)
            task.cancel()
            for body in (b"a", b"b"):
                async with await consumer.next(timeout=5) as message:
                    assert message.body == body
        assert cluster.broker.positions["g", "orders", 0] == 2

    simulate(story)


def test_a_consumer_whose_tasks_were_cancelled_closes_at_once(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b"])

        async def handle(message: Delivery):
            if message.body == b"b":
                await cluster.clock.sleep(1000)

        task = asyncio.ensure_future(client.consume("orders", group="g", from_where="first").run(handle))
        await cluster.clock.sleep(1)
        task.cancel()
        before = cluster.clock.monotonic()
        await asyncio.gather(task, return_exceptions=True)
        assert cluster.clock.monotonic() - before < 1
        assert cluster.broker.positions["g", "orders", 0] == 1

    simulate(story)


def test_a_message_that_was_settled_before_its_task_was_cancelled_stays_settled(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send("orders", b"a")
        async with client.consume("orders", group="g", from_where="first", concurrency=1) as consumer:
            with pytest.raises(asyncio.CancelledError):
                async with await consumer.next() as message:
                    await message.ack()
                    raise asyncio.CancelledError
            assert await consumer.next(timeout=5) is None
            await client.send("orders", b"b")
            async with await consumer.next(timeout=5) as message:
                assert message.body == b"b"
                assert await consumer.next(timeout=1) is None
        assert cluster.broker.positions["g", "orders", 0] == 2

    simulate(story)


def test_several_tasks_may_iterate_over_one_consumer(simulate, until):
    async def story(cluster):
        client = cluster.connect()
        await client.send_batch("orders", [b"%d" % n for n in range(50)])
        consumer = client.consume("orders", group="g", from_where="first")
        seen = []

        async def work():
            async for message in consumer:
                async with message:
                    seen.append(message.body)
                    await cluster.clock.sleep(0.01)

        tasks = [asyncio.ensure_future(work()) for _ in range(4)]
        await until(lambda: len(seen) == 50, cluster.clock)
        await consumer.close()
        await asyncio.gather(*tasks)
        assert sorted(seen) == sorted(b"%d" % n for n in range(50))

    simulate(story)


def test_with_order_a_lost_lock_means_beginning_again_from_what_is_stored(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        await client.send_batch("orders", [b"a", b"b", b"c"])
        async with client.consume("orders", group="g", orderly=True, from_where="first") as consumer:
            assert await take(consumer, 1) == [b"a"]
            key = ("g", "orders", 0)
            cluster.broker.locks[key] = "somebody else"
            with caplog.at_level(logging.CRITICAL):
                await cluster.clock.sleep(25)
                assert await consumer.next(timeout=1) is None
                cluster.broker.positions[key] = 2
                cluster.broker.locks.clear()
                assert await take(consumer, 1) == [b"c"]

    simulate(story)


def test_a_broker_that_went_silent_is_connected_anew(simulate, caplog):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect(host="10.0.0.50")
        async with client.consume("orders", group="g") as consumer:
            await cluster.clock.sleep(1)
            with caplog.at_level(logging.CRITICAL):
                cluster.network.partition({"10.0.0.50"}, {"10.0.0.3"})
                await cluster.clock.sleep(200)
                cluster.network.heal()
                await cluster.clock.sleep(10)
            await client.send("orders", b"x")
            assert await take(consumer, 1) == [b"x"]

    simulate(story)


def test_after_a_restart_nobody_takes_what_others_will_claim_again(simulate, until):
    async def story(cluster):
        cluster.topics["orders"] = 4
        one, two = cluster.connect(host="10.0.0.50"), cluster.connect(host="10.0.0.51")
        first = await one.consume("orders", group="g").start()
        second = await two.consume("orders", group="g").start()
        await until(lambda: len(orders(first)) == len(orders(second)) == 2, cluster.clock)
        mine = orders(first)
        cluster.broker.crash()
        await cluster.clock.sleep(3)
        await cluster.broker.start()
        for _ in range(1500):
            await cluster.clock.sleep(0.01)
            assert orders(first) == mine
        assert len(cluster.broker.members["g"]) == 2

    simulate(story)


def test_a_start_without_any_server_says_so_and_can_be_tried_again(simulate):
    async def story(cluster):
        cluster.name_servers[0].close()
        client = cluster.connect()
        consumer = client.consume("orders", group="g")
        with pytest.raises(ConnectError):
            await consumer.start()
        cluster.name_servers.append(
            await cluster.network.host("10.0.0.2").listen("10.0.0.2", 9876, cluster._name_server)
        )
        await consumer.start()
        await consumer.close()

    simulate(story)


def test_buffer_cursors_and_serializer_can_be_replaced(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        serializer, cursors, buffers = FakeSerializer(), FakeCursors(), []

        def make(position):
            buffers.append(FakeBuffer(position))
            return buffers[-1]

        client = cluster.connect(serializer=serializer)
        value = {"a": 1}
        await client.send("orders", value)
        options = {"cursors": cursors, "buffer": make, "from_where": "first"}
        async with (
            client.consume("orders", group="g", **options) as consumer,
            await consumer.next(timeout=5) as message,
        ):
            assert message.value is value
        assert [m.queue_offset for buffer in buffers for m in buffer.settled] == [0]
        assert cursors.positions["g", MessageQueue("orders", "broker-a", 0)] == 1
        assert not cluster.broker.positions

    simulate(story)


def test_cancelling_a_receiver_loses_no_message(simulate):
    async def story(cluster):
        cluster.topics["orders"] = 1
        client = cluster.connect()
        async with client.consume("orders", group="g") as consumer:
            await cluster.clock.sleep(1)
            receivers = [asyncio.ensure_future(consumer.next()) for _ in range(3)]
            await cluster.clock.sleep(1)
            receivers[0].cancel()
            await client.send_batch("orders", [b"a", b"b"])
            messages = await asyncio.gather(*receivers[1:])
            assert sorted(message.body for message in messages) == [b"a", b"b"]
            for message in messages:
                await message.ack()

    simulate(story)
