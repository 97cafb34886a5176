"""Long polling: a pull that finds nothing waits for what it wants, and for nothing else."""

import asyncio

from pocketmq.wire.record import decode_records

COMMIT, SUSPEND, SUBSCRIPTION = 1, 2, 4
WAIT = SUSPEND | SUBSCRIPTION


async def held(world, count: int) -> None:
    """Until so many pulls are held."""
    while len(world.broker.holds) != count:
        await world.clock.sleep(0.001)


async def test_a_held_pull_is_answered_as_soon_as_a_message_arrives(world, peer) -> None:
    await peer.send(queue_id=1)
    other = await world.connect()
    pull = asyncio.create_task(other.pull(flags=WAIT))
    await held(world, 1)
    await world.clock.sleep(5)
    before = world.clock.monotonic()
    await peer.send(body=b"now")
    answer = await pull
    assert world.clock.monotonic() - before < 0.001
    assert answer.code == 0
    assert [record.body for record in decode_records(answer.body)] == [b"now"]
    assert len(world.broker.holds) == 0


async def test_a_pull_of_a_queue_that_never_had_a_message_is_held_too(world, peer) -> None:
    await peer.send(queue_id=1)
    pull = asyncio.create_task((await world.connect()).pull(queue_id=2, flags=WAIT))
    await held(world, 1)
    await peer.send(queue_id=2)
    assert (await pull).code == 0


async def test_a_held_pull_is_answered_empty_when_its_time_is_over(world, peer) -> None:
    await peer.send()
    before = world.clock.monotonic()
    answer = await peer.pull(offset=1, flags=WAIT, suspend_ms=15_000)
    assert 15 <= world.clock.monotonic() - before < 15.05
    assert (answer.code, answer.remark) == (19, "OFFSET_OVERFLOW_ONE")
    assert len(world.broker.holds) == 0


async def test_time_outs_come_in_the_order_of_their_times(world, peer) -> None:
    await peer.send()
    order: list[int] = []

    async def wait(suspend_ms: int) -> None:
        await (await world.connect()).pull(offset=1, flags=WAIT, suspend_ms=suspend_ms)
        order.append(suspend_ms)

    await asyncio.gather(*(wait(milliseconds) for milliseconds in (3000, 1000, 2000, 100)))
    assert order == [100, 1000, 2000, 3000]


async def test_without_the_flag_nothing_is_held(world, peer) -> None:
    await peer.send()
    before = world.clock.monotonic()
    assert (await peer.pull(offset=1, flags=SUBSCRIPTION)).code == 19
    assert world.clock.monotonic() - before < 1


async def test_only_pulls_at_the_end_of_the_queue_are_held(world, peer) -> None:
    await peer.send(properties={"UNIQ_KEY": "k", "TAGS": "a"})
    before = world.clock.monotonic()
    assert (await peer.pull(offset=0, flags=WAIT, subscription="b")).code == 20
    assert (await peer.pull(offset=9, flags=WAIT)).code == 21
    assert world.clock.monotonic() - before < 1


async def test_with_long_polling_off_a_pull_is_held_for_a_second(world) -> None:
    await world.start(broker__long_polling=False)
    peer = await world.connect()
    await peer.send()
    before = world.clock.monotonic()
    await peer.pull(offset=1, flags=WAIT, suspend_ms=15_000)
    assert 1 <= world.clock.monotonic() - before < 1.1


async def test_a_message_that_the_consumer_does_not_want_leaves_it_waiting(world, peer) -> None:
    await peer.send()
    pull = asyncio.create_task((await world.connect()).pull(offset=1, flags=WAIT, subscription="a"))
    await held(world, 1)
    await peer.send(properties={"UNIQ_KEY": "k", "TAGS": "b"})
    assert len(world.broker.holds) == 1
    await peer.send(properties={"UNIQ_KEY": "k", "TAGS": "a"})
    answer = await pull
    assert [record.queue_offset for record in decode_records(answer.body)] == [2]
    assert answer.ext()["nextBeginOffset"] == "3"


async def test_after_unwanted_messages_the_consumer_goes_on_behind_them(world, peer) -> None:
    await peer.send()
    pull = asyncio.create_task((await world.connect()).pull(offset=1, flags=WAIT, subscription="a", suspend_ms=3000))
    await held(world, 1)
    await peer.send(properties={"UNIQ_KEY": "k", "TAGS": "b"})
    answer = await pull
    assert answer.code == 19
    assert answer.ext()["nextBeginOffset"] == "2"


async def test_all_consumers_of_a_queue_are_woken(world, peer) -> None:
    await peer.send()
    pulls = [
        asyncio.create_task((await world.connect()).pull(offset=1, group=f"group-{number}", flags=WAIT))
        for number in range(5)
    ]
    await held(world, 5)
    await peer.send()
    assert [(await pull).code for pull in pulls] == [0] * 5


async def test_one_connection_may_hold_many_pulls(world, peer) -> None:
    await peer.send()
    other = await world.connect()
    pulls = [asyncio.create_task(other.pull(queue_id=number, offset=0, flags=WAIT)) for number in (1, 2, 3)]
    await held(world, 3)
    await peer.send(queue_id=2)
    assert (await pulls[1]).code == 0
    assert len(world.broker.holds) == 2


async def test_a_closed_connection_waits_for_nothing(world, peer) -> None:
    await peer.send()
    other = await world.connect()
    pull = asyncio.create_task(other.pull(offset=1, flags=WAIT))
    await held(world, 1)
    other.connection.close()
    await held(world, 0)
    assert world.broker.log.queue("orders", 0).waiters is None
    assert (await asyncio.gather(pull, return_exceptions=True))[0] is not None


async def test_when_too_many_are_held_further_ones_are_answered_at_once(world) -> None:
    await world.start(broker__held_pulls_max=2)
    peer = await world.connect()
    await peer.send()
    other = await world.connect()
    pulls = [asyncio.create_task(other.pull(queue_id=number, flags=WAIT)) for number in (1, 2)]
    await held(world, 2)
    before = world.clock.monotonic()
    assert (await peer.pull(queue_id=3, flags=WAIT)).code == 19
    assert world.clock.monotonic() - before < 1
    await peer.send(queue_id=1)
    await peer.send(queue_id=2)
    assert [(await pull).code for pull in pulls] == [0, 0]


async def test_a_broker_that_stops_answers_what_it_holds(world, peer) -> None:
    await peer.send()
    pull = asyncio.create_task((await world.connect()).pull(offset=1, flags=WAIT))
    await held(world, 1)
    before = world.clock.monotonic()
    await world.stop()
    assert (await pull).code == 19
    assert world.clock.monotonic() - before < 5


async def test_a_deleted_topic_is_waited_for_no_longer(world, peer) -> None:
    await peer.send()
    pull = asyncio.create_task((await world.connect()).pull(offset=1, flags=WAIT))
    await held(world, 1)
    await world.broker.topic_service.delete("orders")
    answer = await pull
    assert answer.code in (19, 21)


async def test_who_waits_learns_of_an_announced_reset_at_once(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    pull = asyncio.create_task(peer.pull(offset=5, flags=WAIT))
    await held(world, 1)
    before = world.clock.monotonic()
    await world.broker.offsets.reset("consumers", "orders", queue_id=0, offset=2)
    assert (await pull).code == 19
    assert (await peer.pull(offset=5, flags=WAIT)).remark == "OFFSET_RESET"
    assert world.clock.monotonic() - before < 1


async def test_a_commit_that_came_with_a_held_pull_is_taken_when_it_comes(world, peer) -> None:
    await peer.send()
    pull = asyncio.create_task(peer.pull(offset=1, flags=WAIT | COMMIT, commit_offset=1, suspend_ms=1000))
    await held(world, 1)
    assert world.broker.cursors.get("consumers", "orders", 0) == 1
    await pull
