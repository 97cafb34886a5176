"""Sending: receipts, merging, retries, bounds."""

import asyncio
from datetime import timedelta

import pytest

from pocketmq import (
    BackPressureError,
    BrokerError,
    ConnectError,
    Message,
    MessageQueue,
    MessageTooLargeError,
    RequestTimeoutError,
    RouteNotFoundError,
    SendBatchError,
    UsageError,
)
from pocketmq.client import HashRouter
from pocketmq.testing.fakes import FakeQueue, FakeRouter, FakeSerializer
from pocketmq.wire.codes import RequestCode as Code


def test_a_message_is_stored_with_what_the_sender_said(simulate):
    async def story(cluster):
        client = cluster.connect()
        receipt = await client.send(
            "orders", b"hello", tag="new", keys=["k1", "k2"], properties={"colour": "red"}, message_group="g"
        )
        assert receipt.status == "SEND_OK"
        assert cluster.broker.bodies("orders") == [b"hello"]
        [properties] = cluster.broker.properties("orders")
        assert properties == {
            "TAGS": "new",
            "KEYS": "k1 k2",
            "colour": "red",
            "__SHARDINGKEY": "g",
            "UNIQ_KEY": receipt.message_id,
        }
        [command] = cluster.broker.asked(Code.SEND_MESSAGE_V2)
        assert command.ext()["a"] == "pocketmq-producer"
        assert int(command.ext()["g"]) == cluster.clock.time_ms() or int(command.ext()["g"]) > 0

    simulate(story)


def test_messages_sent_at_the_same_time_share_requests_and_keep_their_own_receipts(simulate):
    async def story(cluster):
        client = cluster.connect(router=FakeRouter())
        await client.send("orders", b"first")
        receipts = await asyncio.gather(*(client.send("orders", b"%d" % n) for n in range(100)))
        assert len(cluster.broker.asked(Code.SEND_BATCH_MESSAGE)) == 1
        assert [receipt.queue_offset for receipt in receipts] == list(range(1, 101))
        assert len({receipt.message_id for receipt in receipts}) == 100
        assert len({receipt.offset_message_id for receipt in receipts}) == 100
        assert cluster.broker.bodies("orders") == [b"first", *(b"%d" % n for n in range(100))]

    simulate(story)


def test_a_lone_message_goes_at_once_and_alone(simulate):
    async def story(cluster):
        client = cluster.connect()
        await client.send("orders", b"first")
        before = cluster.clock.monotonic()
        await client.send("orders", b"second")
        assert cluster.clock.monotonic() - before < 0.003
        assert len(cluster.broker.asked(Code.SEND_MESSAGE_V2)) == 2

    simulate(story)


def test_what_a_batch_cannot_carry_goes_alone(simulate):
    async def story(cluster):
        client = cluster.connect(router=FakeRouter())
        await client.send("orders", b"first")
        await asyncio.gather(
            client.send("orders", b"a"),
            client.send("orders", b"b"),
            client.send("orders", b"delayed", delay=timedelta(seconds=10)),
            client.send("orders", b"z" * 5000),
            client.send("orders", b"unwaited", wait_stored=False),
            client.send("orders", b"c"),
            client.send("orders", b"d"),
        )
        singles = [command.body for command in cluster.broker.asked(Code.SEND_MESSAGE_V2)]
        assert len(cluster.broker.asked(Code.SEND_BATCH_MESSAGE)) == 2
        assert len(singles) == 4
        assert {"delayed", "unwaited"} <= {body.decode("latin1") for body in singles}

    simulate(story)


def test_one_bad_message_does_not_spoil_its_neighbours(simulate):
    async def story(cluster):
        client = cluster.connect(router=FakeRouter())
        await client.send("orders", b"first")

        def poison(_, command):
            from pocketmq.wire.command import encode_response

            return encode_response(command.opaque, 13, "poison")

        bodies = [b"a", b"poison", b"b"]

        def check(connection, command):
            return poison(connection, command) if command.body == b"poison" else broker_send(connection, command)

        broker = cluster.broker

        def broker_send(connection, command):
            return broker._send(connection, command, command.ext())

        for _ in bodies:
            broker.do(Code.SEND_MESSAGE_V2, check)
        results = await asyncio.gather(*(client.send("orders", body) for body in bodies), return_exceptions=True)
        assert isinstance(results[1], BrokerError)
        assert results[1].code == 13
        assert [results[0].queue_offset, results[2].queue_offset] == [1, 2]

    simulate(story)


def test_a_busy_broker_is_left_for_another(simulate):
    async def story(cluster):
        client = cluster.connect()
        cluster.topics["orders"] = 2
        for broker in cluster.brokers.values():
            broker.refuse(Code.SEND_MESSAGE_V2, 2, "busy")
        first = await client.send("orders", b"hello")
        asked = {name: len(broker.asked(Code.SEND_MESSAGE_V2)) for name, broker in cluster.brokers.items()}
        assert asked in ({"broker-a": 2, "broker-b": 1}, {"broker-a": 1, "broker-b": 2})
        assert first.queue_offset == 0

    simulate(story, brokers=2)


def test_retries_end(simulate):
    async def story(cluster):
        client = cluster.connect()
        cluster.broker.refuse(Code.SEND_MESSAGE_V2, 2, "busy", times=10)
        with pytest.raises(BrokerError, match="busy") as failure:
            await client.send("orders", b"hello")
        assert failure.value.retryable
        assert failure.value.code == 2
        assert len(cluster.broker.asked(Code.SEND_MESSAGE_V2)) == 3

    simulate(story)


def test_what_can_never_succeed_is_not_tried_again(simulate):
    async def story(cluster):
        client = cluster.connect()
        cluster.broker.refuse(Code.SEND_MESSAGE_V2, 13, "too large")
        with pytest.raises(BrokerError):
            await client.send("orders", b"hello")
        assert len(cluster.broker.asked(Code.SEND_MESSAGE_V2)) == 1

    simulate(story)


def test_a_broker_that_is_silent_costs_the_time_out(simulate):
    async def story(cluster):
        client = cluster.connect(send_timeout=2.0)
        cluster.broker.ignore(Code.SEND_MESSAGE_V2, times=5)
        before = cluster.clock.monotonic()
        with pytest.raises(RequestTimeoutError):
            await client.send("orders", b"hello")
        assert 1.9 < cluster.clock.monotonic() - before < 2.6

    simulate(story)


def test_a_send_waits_for_a_broker_that_restarts(simulate):
    async def story(cluster):
        client = cluster.connect()
        await client.send("orders", b"one")
        cluster.broker.crash()
        cluster.clock.call_later(1.0, lambda: cluster.clock.loop.create_task(cluster.broker.start()))
        await client.send("orders", b"two")
        assert sorted(cluster.broker.bodies("orders")) == [b"one", b"two"]

    simulate(story)


def test_a_name_server_that_is_down_is_passed_over(simulate):
    async def story(cluster):
        client = cluster.connect("10.0.0.77:9876;10.0.0.2:9876", connect_timeout=0.5)
        await client.send("orders", b"one")
        assert cluster.broker.bodies("orders") == [b"one"]

    simulate(story)


def test_without_any_name_server_the_error_names_them(simulate):
    async def story(cluster):
        client = cluster.connect("10.0.0.2:1;10.0.0.2:2")
        with pytest.raises(ConnectError, match=r"10\.0\.0\.2:1, 10\.0\.0\.2:2"):
            await client.send("orders", b"one")

    simulate(story)


def test_an_unknown_topic_that_nobody_makes_is_an_error_that_says_what_to_do(simulate):
    async def story(cluster):
        del cluster.topics["TBW102"]
        client = cluster.connect()
        with pytest.raises(RouteNotFoundError, match="pocketmq topic create orders"):
            await client.send("orders", b"one")

    simulate(story)


def test_a_message_group_keeps_its_queue_and_its_order(simulate):
    async def story(cluster):
        client = cluster.connect()
        receipts = [await client.send("orders", b"%d" % n, message_group="user-7") for n in range(10)]
        assert len({receipt.queue for receipt in receipts}) == 1
        assert cluster.broker.bodies("orders") == [b"%d" % n for n in range(10)]

    simulate(story)


def test_large_bodies_are_compressed(simulate):
    async def story(cluster):
        client = cluster.connect()
        receipt = await client.send("orders", b"z" * 5000)
        [command] = cluster.broker.asked(Code.SEND_MESSAGE_V2)
        assert len(command.body) < 100
        assert int(command.ext()["f"]) & 1
        result = await client.pull(receipt.queue, 0, group="g")
        assert result.messages[0].body == b"z" * 5000

    simulate(story)


def test_a_delay_that_is_a_level_goes_as_that_level_and_any_other_as_a_timer(simulate):
    async def story(cluster):
        client = cluster.connect(router=FakeRouter())
        await client.send("orders", b"", delay=30)
        await client.send("orders", b"", delay=timedelta(seconds=42))
        await client.send("orders", b"", deliver_at=2_000_000_000)
        await client.send("orders", b"", delay_level=3)
        found = [
            {key: value for key, value in properties.items() if key != "UNIQ_KEY"}
            for properties in cluster.broker.properties("orders")
        ]
        assert found == [
            {"DELAY": "4"},
            {"TIMER_DELAY_MS": "42000"},
            {"TIMER_DELIVER_MS": "2000000000000"},
            {"DELAY": "3"},
        ]
        with pytest.raises(UsageError):
            await client.send("orders", b"", delay=1, delay_level=1)

    simulate(story)


def test_a_batch_gives_one_receipt_for_each_message(simulate):
    async def story(cluster):
        client = cluster.connect(merge_messages=4)
        receipts = await client.send_batch("orders", [b"%d" % n for n in range(10)])
        assert [receipt.queue_offset for receipt in receipts] == list(range(10))
        assert len(cluster.broker.asked(Code.SEND_BATCH_MESSAGE)) == 3
        assert await client.send_batch("orders", []) == []
        with pytest.raises(UsageError, match="same topic"):
            await client.send_batch([Message(topic="a", body=b""), Message(topic="b", body=b"")])

    simulate(story)


def test_a_batch_that_fails_in_part_says_which_were_stored(simulate):
    async def story(cluster):
        client = cluster.connect(router=FakeRouter(), send_retries=0, merge_messages=2)
        await client.send("orders", b"first")
        cluster.broker.refuse(Code.SEND_BATCH_MESSAGE, 2, "busy")
        with pytest.raises(SendBatchError, match="2 of 4") as failure:
            await client.send_batch("orders", [b"0", b"1", b"2", b"3"])
        kinds = [type(result).__name__ for result in failure.value.results]
        assert kinds == ["BrokerError", "BrokerError", "SendReceipt", "SendReceipt"]

    simulate(story)


def test_a_oneway_message_asks_for_no_answer(simulate, until):
    async def story(cluster):
        client = cluster.connect()
        await client.send_oneway("orders", b"hello", tag="x")
        await until(lambda: cluster.broker.bodies("orders") == [b"hello"], cluster.clock)
        assert cluster.broker.asked(Code.SEND_MESSAGE_V2)[0].is_oneway

    simulate(story)


def test_what_can_never_be_sent_is_refused_here(simulate):
    async def story(cluster):
        client = cluster.connect(message_bytes_max=100)
        with pytest.raises(MessageTooLargeError):
            await client.send("orders", b"x" * 101)
        with pytest.raises(UsageError, match="bytes"):
            await client.send("orders", "text")
        with pytest.raises(UsageError):
            await client.send("orders topic", b"")
        with pytest.raises(UsageError):
            await client.send("SCHEDULE_TOPIC_XXXX", b"")
        with pytest.raises(UsageError, match="protocol"):
            await client.send("orders", b"", properties={"TAGS": "x"})
        with pytest.raises(UsageError):
            await client.send("orders", b"", keys="two words")
        with pytest.raises(UsageError):
            await client.send("orders", b"", tag="a\x02b")
        with pytest.raises(UsageError, match="text"):
            await client.send("orders", b"", tag="\ud800")
        assert not cluster.broker.asked(Code.SEND_MESSAGE_V2)

    simulate(story)


def test_senders_wait_for_room_and_in_the_end_give_up(simulate):
    async def story(cluster):
        queue = FakeQueue("orders")
        queue.hold()
        client = cluster.connect(pending_messages=2, writable_queues=lambda topic: [queue])
        sends = [asyncio.ensure_future(client.send("orders", b"%d" % n, timeout=1.0)) for n in range(4)]
        await cluster.clock.sleep(1.5)
        assert isinstance(sends[2].exception(), BackPressureError)
        assert isinstance(sends[3].exception(), BackPressureError)
        queue.release()
        await asyncio.gather(*sends[:2])
        assert len(queue.written) == 2

    simulate(story)


def test_room_is_counted_in_bytes_too_and_a_cancelled_sender_frees_it(simulate):
    async def story(cluster):
        queue = FakeQueue("orders")
        queue.hold()
        client = cluster.connect(pending_bytes=2000, writable_queues=lambda topic: [queue])
        first = asyncio.ensure_future(client.send("orders", b"x" * 1500))
        second = asyncio.ensure_future(client.send("orders", b"x" * 1500))
        third = asyncio.ensure_future(client.send("orders", b"third"))
        await cluster.clock.sleep(0.1)
        second.cancel()
        await cluster.clock.sleep(0.1)
        queue.release()
        await asyncio.gather(first, third)
        assert len(queue.written) == 2

    simulate(story)


def test_queues_router_and_serializer_can_be_replaced_and_nothing_touches_the_network(simulate):
    async def story(cluster):
        queues = [FakeQueue("orders", queue_id=n) for n in range(3)]
        router, serializer = FakeRouter(2), FakeSerializer()
        client = cluster.connect(writable_queues=lambda topic: queues, router=router, serializer=serializer)
        await client.send("orders", {"a": 1})
        [message] = queues[2].written
        assert message.body == b"value 0"
        assert message.properties["fake"] == "0"
        assert router.asked[0][1] == [queue.queue for queue in queues]
        assert not cluster.route_requests

    simulate(story)


def test_a_message_for_one_queue_goes_nowhere_else(simulate):
    async def story(cluster):
        client = cluster.connect()
        queue = MessageQueue("orders", "broker-a", 3)
        receipt = await client.send("orders", b"x", queue=queue)
        assert receipt.queue == queue
        with pytest.raises(UsageError):
            await client.send("orders", b"x", queue=MessageQueue("orders", "broker-a", 99))

    simulate(story)


def test_a_router_of_ones_own_decides(simulate):
    async def story(cluster):
        client = cluster.connect(router=HashRouter(key=lambda message: message.body.decode()))
        first = await client.send("orders", b"a")
        again = await client.send("orders", b"a")
        assert first.queue == again.queue

    simulate(story)


def test_closing_waits_for_what_is_on_its_way(simulate):
    async def story(cluster):
        client = cluster.connect()
        await client.send("orders", b"first")
        sends = [asyncio.ensure_future(client.send("orders", b"%d" % n)) for n in range(50)]
        await cluster.clock.sleep(0)
        await client.close()
        await asyncio.gather(*sends)
        assert len(cluster.broker.bodies("orders")) == 51
        with pytest.raises(pocketmq_closed()):
            await client.send("orders", b"late")

    simulate(story)


def test_closing_before_the_route_is_known_is_an_error_and_no_cancellation(simulate):
    async def story(cluster):
        client = cluster.connect()
        sends = [asyncio.ensure_future(client.send("orders", b"x")) for _ in range(3)]
        await asyncio.sleep(0)
        await client.close()
        results = await asyncio.gather(*sends, return_exceptions=True)
        assert all(isinstance(result, pocketmq_closed()) for result in results), results

    simulate(story)


def pocketmq_closed():
    from pocketmq import ClientClosedError

    return ClientClosedError


def test_a_message_of_the_caller_is_not_changed(simulate):
    async def story(cluster):
        client = cluster.connect()
        message = Message(topic="orders", body=b"x", properties={"a": "b"})
        first, second = await client.send(message), await client.send(message)
        assert message.properties == {"a": "b"}
        assert first.message_id != second.message_id

    simulate(story)


def test_clients_begin_with_different_queues(simulate):
    async def story(cluster):
        receipts = [await cluster.connect().send("orders", b"") for _ in range(10)]
        assert len({receipt.queue for receipt in receipts}) > 1

    simulate(story)
