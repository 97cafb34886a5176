"""The pull consumer: polling, positions, pausing, naming queues, sharing them, and what operators do to it."""

import asyncio
import logging

import pytest

import pocketmq
from pocketmq import ClientClosedError, MessageQueue, RouteNotFoundError, Sql, Tag, UsageError
from pocketmq.testing.fakes import FakeBuffer, FakeCursors, FakeSerializer
from pocketmq.wire.bodies import HeartbeatData, ResetOffsetBody, decode_body, encode_body
from pocketmq.wire.codes import RequestCode as Code
from pocketmq.wire.command import encode_request


def queue(queue_id=0, topic="orders"):
    return MessageQueue(topic, "broker-a", queue_id)


async def polled(puller, count, *, max=32, timeout=30.0):
    """The bodies of `count` messages."""
    bodies = []
    while len(bodies) < count:
        messages = await puller.poll(max=max, timeout=timeout)
        assert messages, f"only {bodies} came"
        bodies += [message.body for message in messages]
    return bodies


def numbered(count, first=0):
    return [b"%d" % n for n in range(first, first + count)]


@pytest.fixture
def with_orders(simulate):
    """A story with one topic of one queue that holds the messages 0 to 39."""

    def play(story, count=40, queues=1):
        async def begin(cluster):
            cluster.topics["orders"] = queues
            client = cluster.connect()
            for number in range(queues):
                for body in numbered(count):
                    cluster.broker.store("orders", number, body, "TAGS\x01t\x02UNIQ_KEY\x01k\x02")
            await story(cluster, client)

        simulate(begin)

    return play


def stored(cluster, queue_id=0, group="billing"):
    return cluster.broker.positions.get((group, "orders", queue_id))


# -- polling -----------------------------------------------------------------------------------------------------------


def test_polls_give_the_messages_in_order_and_at_most_as_many_as_asked_for(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            first = await puller.poll(max=7)
            assert [message.body for message in first] == numbered(7)
            assert (first[0].topic, first[0].tag, first[0].value) == ("orders", "t", b"0")
            assert await polled(puller, 33, max=100) == numbered(33, 7)
            assert await puller.poll(timeout=0) == []
            await client.send("orders", b"later")
            assert await polled(puller, 1) == [b"later"]
            assert puller.assignment == [queue()]
            assert puller.group == "billing"

    with_orders(story)


def test_an_empty_poll_ends_after_its_timeout_and_a_new_message_ends_it_at_once(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="last") as puller:
            before = cluster.clock.monotonic()
            assert await puller.poll(timeout=3) == []
            assert 3 <= cluster.clock.monotonic() - before < 3.1
            waiting = asyncio.ensure_future(puller.poll(timeout=None))
            await cluster.clock.sleep(20)
            before = cluster.clock.monotonic()
            await client.send("orders", b"x")
            assert [message.body for message in await waiting] == [b"x"]
            assert cluster.clock.monotonic() - before < 0.01

    with_orders(story)


def test_a_poll_takes_from_all_queues_in_turn(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            await cluster.clock.sleep(1)
            messages = await puller.poll(max=64)
            assert {message.queue_id for message in messages} == {0, 1, 2, 3}
            for number in range(4):
                offsets = [message.queue_offset for message in messages if message.queue_id == number]
                assert offsets == list(range(16))

    with_orders(story, queues=4)


def test_iterating_polls_one_by_one(with_orders):
    async def story(cluster, client):
        seen = []
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            async for message in puller:
                seen.append(message.body)
                if len(seen) == 40:
                    break
        assert seen == numbered(40)
        assert stored(cluster) == 40
        with pytest.raises(StopAsyncIteration):
            await anext(puller)

    with_orders(story)


def test_only_one_task_polls_and_a_closed_consumer_says_so(with_orders):
    async def story(cluster, client):
        puller = client.pull_consumer("orders", group="billing")
        waiting = asyncio.ensure_future(puller.poll(timeout=None))
        await cluster.clock.sleep(1)
        with pytest.raises(UsageError, match="one task"):
            await puller.poll()
        await puller.close()
        assert await waiting == []
        assert puller.closed
        with pytest.raises(ClientClosedError):
            await puller.poll()

    with_orders(story)


def test_a_cancelled_poll_loses_nothing(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing") as puller:
            waiting = asyncio.ensure_future(puller.poll(timeout=None))
            await cluster.clock.sleep(1)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await client.send("orders", b"x")
            await cluster.clock.sleep(1)
            assert await polled(puller, 1) == [b"x"]

    with_orders(story)


def test_what_is_polled_for_must_be_said(with_orders):
    async def story(cluster, client):
        puller = client.pull_consumer(group="billing")
        with pytest.raises(UsageError, match="subscribe"):
            await puller.poll()
        await puller.subscribe("orders")
        with pytest.raises(UsageError, match="at least one"):
            await puller.poll(max=0)

    with_orders(story)


@pytest.mark.parametrize(
    "options",
    [{"group": "no group!"}, {"mode": "both"}, {"fetch": 0}, {"from_where": "middle"}, {"buffer_messages": 0}],
)
def test_what_cannot_be_is_refused(with_orders, options):
    async def story(cluster, client):
        with pytest.raises(UsageError):
            client.pull_consumer("orders", **{"group": "billing", **options})

    with_orders(story)


def test_a_serializer_gives_the_values(simulate):
    async def story(cluster):
        client = cluster.connect(serializer=FakeSerializer())
        await client.send("orders", {"a": 1})
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            [message] = await puller.poll()
            assert message.value == {"a": 1}

    simulate(story)


# -- committing --------------------------------------------------------------------------------------------------------


def test_what_earlier_polls_handed_out_is_committed_every_few_seconds(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            await puller.poll(max=10)
            await cluster.clock.sleep(20)
            assert stored(cluster) == 0
            await puller.poll(max=10)
            await cluster.clock.sleep(6)
            assert stored(cluster) == 10
            assert puller.position(queue()) == 20
            assert puller.positions() == {queue(): 20}
        assert stored(cluster) == 20

    with_orders(story)


def test_leaving_by_an_exception_does_not_count_the_last_poll(with_orders):
    async def story(cluster, client):
        with pytest.raises(RuntimeError):
            async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
                await puller.poll(max=10)
                await puller.poll(max=10)
                raise RuntimeError
        assert stored(cluster) == 10
        puller = client.pull_consumer("orders", group="billing")
        before = cluster.clock.monotonic()
        assert await polled(puller, 10, max=10) == numbered(10, 10)
        await puller.close()
        assert stored(cluster) == 10
        assert cluster.clock.monotonic() - before < 1

    with_orders(story)


def test_without_auto_commit_only_a_commit_stores(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first", auto_commit=False) as puller:
            await puller.poll(max=10)
            await puller.poll(max=10)
            await cluster.clock.sleep(20)
            assert stored(cluster) is None
            assert await puller.committed(queue()) is None
            await puller.commit()
            assert stored(cluster) == 20
            await puller.commit({queue(): 15})
            assert (stored(cluster), await puller.committed(queue())) == (15, 15)
            await puller.poll(max=10)
            await cluster.clock.sleep(20)
        assert stored(cluster) == 15
        [*_, last] = cluster.broker.asked(Code.UPDATE_CONSUMER_OFFSET)
        assert not last.is_oneway

    with_orders(story)


def test_a_commit_is_only_for_queues_that_are_read_here(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing") as puller:
            with pytest.raises(UsageError, match="does not read"):
                await puller.commit({queue(9): 1})
            with pytest.raises(UsageError, match="-1"):
                await puller.commit({queue(): -1})

    with_orders(story)


def test_a_commit_that_fails_is_raised(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            await puller.poll()
            cluster.broker.refuse(Code.UPDATE_CONSUMER_OFFSET, 1)
            with pytest.raises(pocketmq.BrokerError):
                await puller.commit()

    with_orders(story)


def test_messages_that_a_filter_left_out_count_as_handed_out(with_orders):
    async def story(cluster, client):
        options = {"from_where": "first", "auto_commit": False}
        async with client.pull_consumer("orders", group="billing", filter="other", **options) as puller:
            assert await puller.poll(timeout=2) == []
            assert puller.position(queue()) == 40
            await client.send("orders", b"x", tag="other")
            assert await polled(puller, 1) == [b"x"]
            await puller.commit()
        assert stored(cluster) == 41

    with_orders(story)


def test_cursors_and_buffers_of_ones_own(with_orders):
    async def story(cluster, client):
        cursors = FakeCursors({("billing", queue()): 30})
        options = {"cursors": cursors, "buffer": FakeBuffer}
        async with client.pull_consumer("orders", group="billing", **options) as puller:
            assert await polled(puller, 10) == numbered(10, 30)
        assert cursors.positions["billing", queue()] == 40
        assert not cluster.broker.asked(Code.UPDATE_CONSUMER_OFFSET)

    with_orders(story)


def test_fetching_stops_at_the_high_water_mark_until_messages_are_dealt_with(with_orders):
    async def story(cluster, client):
        options = {"fetch": 5, "buffer_messages": 10, "from_where": "first"}
        async with client.pull_consumer("orders", group="billing", **options) as puller:
            await cluster.clock.sleep(5)
            assert len(cluster.broker.asked(Code.LITE_PULL_MESSAGE)) == 2
            assert await polled(puller, 10, max=10) == numbered(10)
            await cluster.clock.sleep(5)
            assert len(cluster.broker.asked(Code.LITE_PULL_MESSAGE)) == 2
            assert await polled(puller, 30) == numbered(30, 10)

    with_orders(story)


# -- seeking -----------------------------------------------------------------------------------------------------------


def test_seeking_moves_the_next_poll_and_the_next_commit(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            assert await polled(puller, 40) == numbered(40)
            await puller.commit()
            await puller.seek(queue(), 35)
            assert puller.position(queue()) == 35
            await cluster.clock.sleep(6)
            assert stored(cluster) == 35
            # A step back must not be taken for a commit that came late.
            assert not cluster.broker.asked(Code.UPDATE_CONSUMER_OFFSET)[-1].is_oneway
            assert await polled(puller, 5) == numbered(5, 35)
            await puller.seek_to_begin()
            assert await polled(puller, 2, max=2) == numbered(2)
            await puller.seek_to_end(queue())
            assert await puller.poll(timeout=1) == []
            await puller.seek_to_time(cluster.clock.time_ms() / 1000, queue())
            assert cluster.broker.asked(Code.SEARCH_OFFSET_BY_TIMESTAMP)
            assert await puller.poll(timeout=1) == []
        assert stored(cluster) == 40

    with_orders(story)


def test_a_seek_beside_the_queue_or_in_one_that_is_not_read_is_refused(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            with pytest.raises(UsageError, match="0 to 40"):
                await puller.seek(queue(), 41)
            for refused in (
                puller.seek(queue(7), 0),
                puller.seek_to_begin(queue(7)),
                puller.seek_to_end(queue(7)),
                puller.seek_to_time(0, queue(7)),
            ):
                with pytest.raises(UsageError, match="does not read"):
                    await refused
            with pytest.raises(UsageError, match="does not read"):
                puller.position(queue(7))
            assert await polled(puller, 40) == numbered(40)

    with_orders(story)


def test_messages_handed_out_before_a_seek_do_not_move_the_position_afterwards(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            await puller.poll(max=10)
            await puller.seek(queue(), 5)
            await puller.poll(max=1)
            await cluster.clock.sleep(6)
            assert stored(cluster) == 5
            await puller.poll(max=1)
            await cluster.clock.sleep(6)
            assert stored(cluster) == 6

    with_orders(story)


# -- pausing -----------------------------------------------------------------------------------------------------------


def test_a_paused_queue_gives_nothing_and_goes_on_where_it_was(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            await puller.poll(max=2)
            await cluster.clock.sleep(1)
            puller.pause(queue(0))
            assert puller.paused == [queue(0)]
            bodies = [(m.queue_id, m.body) for m in await puller.poll(max=100)]
            bodies += [(m.queue_id, m.body) for m in await puller.poll(max=100, timeout=1)]
            assert {number for number, _ in bodies} == {1}
            pulls = len(cluster.broker.asked(Code.LITE_PULL_MESSAGE))
            puller.pause()
            assert await puller.poll(timeout=40) == []
            assert len(cluster.broker.asked(Code.LITE_PULL_MESSAGE)) <= pulls + 1
            puller.resume()
            assert puller.paused == []
            rest = [m.queue_offset for m in await puller.poll(max=100) if m.queue_id == 0]
            assert rest[0] == puller.positions()[queue(0)] - len(rest)

    with_orders(story, queues=2)


def test_a_resumed_queue_ends_a_poll_that_waits(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            puller.pause(queue())
            waiting = asyncio.ensure_future(puller.poll(timeout=None))
            await cluster.clock.sleep(30)
            assert not waiting.done()
            puller.resume(queue())
            assert [message.body for message in await waiting][:1] == [b"0"]
            with pytest.raises(UsageError, match="does not read"):
                puller.pause(queue(7))

    with_orders(story)


# -- subscribing -------------------------------------------------------------------------------------------------------


def test_topics_come_and_go_while_it_runs(with_orders):
    async def story(cluster, client):
        await client.send("bills", b"bill")
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            assert await polled(puller, 40) == numbered(40)
            await puller.subscribe("bills")
            assert await polled(puller, 1) == [b"bill"]
            assert {queue.topic for queue in puller.assignment} == {"orders", "bills"}
            await puller.unsubscribe("orders")
            await puller.unsubscribe("orders")
            await puller.poll(timeout=0)
            await cluster.clock.sleep(1)
            assert {queue.topic for queue in puller.assignment} == {"bills"}
            assert stored(cluster) == 40
            heartbeat = decode_body(cluster.broker.asked(Code.HEART_BEAT)[-1].body, HeartbeatData)
            [consumer] = heartbeat.consumer_data_set
            assert [each.topic for each in consumer.subscription_data_set] == ["bills"]
            await client.send("orders", b"not wanted")
            assert await puller.poll(timeout=30) == []

    with_orders(story)


def test_a_filter_can_be_changed_and_holds_for_all_that_was_not_handed_out(with_orders):
    async def story(cluster, client):
        await client.send("orders", b"other", tag="other")
        async with client.pull_consumer("orders", group="billing", filter=Tag("t"), from_where="first") as puller:
            await puller.poll(max=5)
            await cluster.clock.sleep(1)
            await puller.subscribe("orders", Tag("other"))
            assert await polled(puller, 1) == [b"other"]
            await puller.poll(timeout=0)
            await cluster.clock.sleep(6)
            assert stored(cluster) == 41
            versions = [
                decode_body(each.body, HeartbeatData).consumer_data_set[0].subscription_data_set[0].sub_version
                for each in cluster.broker.asked(Code.HEART_BEAT)
            ]
            assert versions == sorted(versions)
            assert versions[-1] > versions[0]

    with_orders(story)


def test_a_filter_that_brokers_refuse_leaves_the_old_one(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            cluster.broker.refuse(Code.CHECK_CLIENT_CONFIG, 23, "broken")
            with pytest.raises(UsageError, match="broken"):
                await puller.subscribe("orders", Sql("a >"))
            assert await polled(puller, 40) == numbered(40)

    with_orders(story)


def test_it_is_announced_as_a_consumer_that_pulls_and_has_no_retry_topic(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first"):
            heartbeat = decode_body(cluster.broker.asked(Code.HEART_BEAT)[-1].body, HeartbeatData)
            [consumer] = heartbeat.consumer_data_set
            assert consumer.consume_type == "CONSUME_ACTIVELY"
            assert consumer.consume_from_where == "CONSUME_FROM_FIRST_OFFSET"
            assert [each.topic for each in consumer.subscription_data_set] == ["orders"]
            await cluster.clock.sleep(1)
        for request in cluster.broker.asked(Code.LITE_PULL_MESSAGE):
            assert int(request.ext()["sysFlag"]) == 4 | 16 | 2
        assert not cluster.broker.asked(Code.PULL_MESSAGE)

    with_orders(story)


def test_a_broker_that_does_not_know_the_code_of_pull_consumers_is_asked_by_the_common_one(with_orders):
    async def story(cluster, client):
        cluster.broker.refuse(Code.LITE_PULL_MESSAGE, 3, times=10)
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            assert await polled(puller, 40) == numbered(40)
        assert len(cluster.broker.asked(Code.LITE_PULL_MESSAGE)) == 1
        for request in cluster.broker.asked(Code.PULL_MESSAGE):
            assert int(request.ext()["sysFlag"]) & 4
            assert not int(request.ext()["sysFlag"]) & 16

    with_orders(story)


# -- sharing -----------------------------------------------------------------------------------------------------------


def test_consumers_of_a_group_share_and_what_was_handed_out_is_dealt_with_before_a_queue_goes(with_orders, until):
    async def story(cluster, client):
        one = await client.pull_consumer("orders", group="billing", from_where="first").start()
        first = await one.poll(max=100)
        while len(first) < 80:
            first += await one.poll(max=100)
        two = await cluster.connect(host="10.0.0.51").pull_consumer("orders", group="billing").start()
        await until(lambda: len(one.assignment) == 1, cluster.clock)
        [kept] = one.assignment
        await cluster.clock.sleep(3)
        assert stored(cluster, 1 - kept.queue_id) < 40
        await one.poll(timeout=0)
        await until(lambda: stored(cluster, 1 - kept.queue_id) == 40, cluster.clock)
        await until(lambda: len(two.assignment) == 1, cluster.clock)
        await two.close()
        await until(lambda: len(one.assignment) == 2, cluster.clock)
        await one.close()

    with_orders(story, queues=2)


def test_the_program_is_told_of_changes_and_can_seek_and_commit(with_orders, until):
    async def story(cluster, client):
        changes = []

        async def on_rebalance(change):
            changes.append(change)
            if change.assigned:
                await one.seek(change.assigned[0], 30)
            await cluster.clock.sleep(1)
            if change.revoked:
                await one.commit()

        one = client.pull_consumer(
            "orders", group="billing", from_where="first", auto_commit=False, on_rebalance=on_rebalance
        )
        await one.start()
        messages = await one.poll(max=100)
        while len(messages) < 50:
            messages += await one.poll(max=100)
        assert changes[0].assigned == (queue(0), queue(1))
        assert {m.queue_id: min(o.queue_offset for o in messages if o.queue_id == m.queue_id) for m in messages} == {
            0: 30,
            1: 0,
        }
        two = await cluster.connect(host="10.0.0.51").pull_consumer("orders", group="billing").start()
        await until(lambda: len(changes) == 2, cluster.clock)
        assert await one.poll(timeout=1) == []
        [gone] = changes[1].revoked
        assert changes[1].assigned == ()
        await until(lambda: stored(cluster, gone.queue_id) == 40, cluster.clock)
        await two.close()
        await one.close()
        assert changes[-1].revoked

    with_orders(story, queues=2)


def test_a_failing_or_endless_on_rebalance_holds_nothing_up_for_long(with_orders, caplog):
    async def story(cluster, client):
        async def fail(change):
            if change.assigned:
                raise RuntimeError("no")
            await cluster.clock.sleep(1e6)

        with caplog.at_level(logging.CRITICAL, logger="pocketmq.client"):
            puller = client.pull_consumer("orders", group="billing", from_where="first", on_rebalance=fail, drain=5)
            assert await polled(puller, 40) == numbered(40)
            await puller.poll(timeout=0)
            before = cluster.clock.monotonic()
            await puller.close()
            assert cluster.clock.monotonic() - before < 6
        assert stored(cluster) == 40

    with_orders(story)


def test_broadcasting_gives_everything_to_everyone(with_orders):
    async def story(cluster, client):
        options = {"group": "billing", "mode": "broadcasting", "from_where": "first"}
        async with client.pull_consumer("orders", cursors=FakeCursors(), **options) as one:
            other = cluster.connect(host="10.0.0.51")
            async with other.pull_consumer("orders", cursors=FakeCursors(), **options) as two:
                assert await polled(one, 40) == await polled(two, 40) == numbered(40)

    with_orders(story)


# -- naming queues -----------------------------------------------------------------------------------------------------


def test_named_queues_are_read_whatever_others_do(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer(group="billing", from_where="first") as puller:
            await puller.assign([queue(1)])
            assert puller.assignment == [queue(1)]
            assert await polled(puller, 40) == numbered(40)
            heartbeat = decode_body(cluster.broker.asked(Code.HEART_BEAT)[-1].body, HeartbeatData)
            assert heartbeat.consumer_data_set[0].subscription_data_set == []
            await puller.assign([queue(0)])
            await cluster.clock.sleep(1)
            assert stored(cluster, 1) == 40
            assert await polled(puller, 40) == numbered(40)
            await cluster.clock.sleep(60)
            assert puller.assignment == [queue(0)]
            assert not cluster.broker.asked(Code.GET_CONSUMER_LIST_BY_GROUP)
            await puller.assign([])
            assert await puller.poll(timeout=1) == []
        assert stored(cluster, 0) == 40

    with_orders(story, queues=2)


def test_queues_can_be_named_before_it_starts_and_with_a_filter(with_orders):
    async def story(cluster, client):
        await client.send("orders", b"other", tag="other", queue=queue(0))
        puller = client.pull_consumer(group="billing", from_where="first")
        await puller.assign([queue(0), queue(1)], filter={"orders": "other"})
        assert await polled(puller, 1) == [b"other"]
        await puller.assign([queue(1)], filter=Tag("t"))
        await puller.seek_to_begin(queue(1))
        assert await polled(puller, 40) == numbered(40)
        await puller.close()
        with pytest.raises(ClientClosedError):
            await puller.assign([])

    with_orders(story, queues=2)


def test_a_queue_that_is_named_again_goes_on_behind_what_was_handed_out(with_orders):
    async def story(cluster, client):
        async with client.pull_consumer(group="billing", from_where="first") as puller:
            await puller.assign([queue(0)])
            assert await polled(puller, 10, max=10) == numbered(10)
            await puller.assign([queue(1)])
            await puller.assign([queue(0)])
            assert await polled(puller, 30) == numbered(30, 10)

    with_orders(story, queues=2)


def test_naming_and_subscribing_exclude_each_other(with_orders):
    async def story(cluster, client):
        puller = client.pull_consumer("orders", group="billing")
        with pytest.raises(UsageError, match="subscribed"):
            await puller.assign([queue()])
        named = client.pull_consumer(group="other")
        await named.assign([queue()])
        with pytest.raises(UsageError, match="by hand"):
            await named.subscribe("orders")
        with pytest.raises(UsageError, match="by hand"):
            await named.unsubscribe("orders")
        with pytest.raises(UsageError, match="no queue 7"):
            await named.assign([queue(7)])
        with pytest.raises(RouteNotFoundError):
            await named.assign([queue(0, "nothing")])

    with_orders(story)


# -- what operators and brokers do -------------------------------------------------------------------------------------


def reset(cluster, offset, group="billing", topic="orders"):
    body = encode_body(ResetOffsetBody(offset_table={queue(0): offset}))
    fields = {"topic": topic, "group": group, "timestamp": "-1", "isForce": "true"}
    request = encode_request(Code.RESET_CONSUMER_CLIENT_OFFSET, 9, fields, body, oneway=True)
    for connection in cluster.broker.connections:
        connection.write(request)


@pytest.mark.parametrize("auto_commit", [True, False])
@pytest.mark.parametrize("by_hand", [True, False])
def test_an_operators_reset_reaches_it(with_orders, auto_commit, by_hand):
    async def story(cluster, client):
        options = {"group": "billing", "from_where": "first", "auto_commit": auto_commit}
        puller = client.pull_consumer(None if by_hand else "orders", **options)
        if by_hand:
            await puller.assign([queue()])
        async with puller:
            await polled(puller, 40)
            reset(cluster, 35)
            await cluster.clock.sleep(1)
            assert stored(cluster) == 35
            assert await polled(puller, 5) == numbered(5, 35)
            await puller.commit()
            assert stored(cluster) == 40

    with_orders(story)


def test_a_position_that_is_not_stored_any_more_is_corrected(with_orders):
    async def story(cluster, client):
        cluster.broker.positions["billing", "orders", 0] = 1000
        async with client.pull_consumer("orders", group="billing") as puller:
            assert await puller.poll(timeout=1) == []
            assert puller.position(queue()) == 40
            await client.send("orders", b"x")
            assert await polled(puller, 1) == [b"x"]

    with_orders(story)


def test_it_goes_on_after_the_broker_was_restarted(with_orders, until):
    async def story(cluster, client):
        async with client.pull_consumer("orders", group="billing", from_where="first") as puller:
            assert await polled(puller, 40) == numbered(40)
            cluster.broker.crash()
            await cluster.clock.sleep(7)
            await cluster.broker.start()
            await until(lambda: bool(cluster.broker.members["billing"]), cluster.clock, 10)
            await client.send("orders", b"after")
            assert await polled(puller, 1) == [b"after"]

    with_orders(story)


def test_closing_the_client_closes_it_and_counts_only_earlier_polls(with_orders):
    async def story(cluster, client):
        puller = client.pull_consumer("orders", group="billing", from_where="first")
        await puller.poll(max=10)
        await puller.poll(max=10)
        before = cluster.clock.monotonic()
        await client.close()
        assert cluster.clock.monotonic() - before < 1
        assert puller.closed
        assert stored(cluster) == 10

    with_orders(story)
