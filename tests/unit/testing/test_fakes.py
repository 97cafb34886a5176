"""Each fake obeys the contract of the part it stands for, remembers what it was asked, and fails when told to."""

import asyncio
from typing import Any

import pytest

from pocketmq.client import parts
from pocketmq.client.buffers import QueueBuffer
from pocketmq.model.errors import ConnectionClosedError, PocketMQError
from pocketmq.model.message import Message, MessageQueue
from pocketmq.testing.fakes import (
    FakeAllocator,
    FakeBuffer,
    FakeClock,
    FakeCursors,
    FakeQueue,
    FakeRouter,
    FakeSerializer,
    make_received,
)

MESSAGE = Message(topic="topic", body=b"hello")
QUEUES = [MessageQueue("topic", "broker-a", number) for number in range(3)]


@pytest.mark.parametrize(
    ("fake", "part"),
    [
        (FakeRouter(), parts.Router),
        (FakeQueue(), parts.WritableQueue),
        (FakeAllocator(), parts.Allocator),
        (FakeBuffer(), parts.MessageBuffer),
        (FakeCursors(), parts.Cursors),
        (FakeSerializer(), parts.Serializer),
    ],
)
def test_each_part_has_a_fake(fake: Any, part: type) -> None:
    assert isinstance(fake, part)


def test_the_fakes_have_the_types_that_the_sdk_asks_for() -> None:
    _parts: tuple[
        parts.Router,
        parts.WritableQueue,
        parts.Allocator,
        parts.MessageBuffer,
        parts.Cursors,
        parts.Serializer,
        parts.Clock,
    ]
    _parts = (FakeRouter(), FakeQueue(), FakeAllocator(), FakeBuffer(), FakeCursors(), FakeSerializer(), FakeClock())


async def test_a_queue_keeps_what_is_written_and_counts_offsets() -> None:
    queue = FakeQueue("topic", "broker-b", 2)
    receipts = [await queue.write(MESSAGE, 1.0) for _ in range(3)]
    assert [receipt.queue_offset for receipt in receipts] == [0, 1, 2]
    assert receipts[0].queue == MessageQueue("topic", "broker-b", 2)
    assert queue.written == [MESSAGE] * 3


async def test_a_queue_can_be_held_and_can_fail() -> None:
    queue = FakeQueue()
    queue.hold()
    writing = asyncio.ensure_future(queue.write(MESSAGE, 1.0))
    await asyncio.sleep(0)
    assert not writing.done()
    queue.release()
    await writing
    queue.fail(ConnectionClosedError("gone"), times=2)
    for _ in range(2):
        with pytest.raises(PocketMQError, match="gone"):
            await queue.write(MESSAGE, 1.0)
    assert (await queue.write(MESSAGE, 1.0)).queue_offset == 1


def test_a_router_chooses_what_it_was_told() -> None:
    queues = [FakeQueue(queue_id=number) for number in range(3)]
    assert FakeRouter(1).choose(MESSAGE, queues, ()) is queues[1]
    router = FakeRouter(choice=lambda message, queues: queues[len(message.body) % len(queues)])
    assert router.choose(MESSAGE, queues, {"broker-a"}) is queues[2]
    assert router.asked == [(MESSAGE, QUEUES, {"broker-a"})]


def test_an_allocator_gives_the_shares_it_was_told() -> None:
    allocator = FakeAllocator({"me": QUEUES[:1]})
    assert allocator.allocate("me", ["me", "you"], QUEUES) == QUEUES[:1]
    assert allocator.allocate("you", ["me", "you"], QUEUES) == QUEUES
    assert allocator.asked[0] == ("me", ["me", "you"], QUEUES)


@pytest.mark.parametrize("make_buffer", [FakeBuffer, QueueBuffer])
def test_a_buffer_behaves_as_the_real_one(make_buffer: Any) -> None:
    buffer = make_buffer(10)
    assert (buffer.position, buffer.waiting, buffer.unsettled, buffer.full) == (10, 0, 0, False)
    messages = [make_received(offset=offset) for offset in (10, 12, 13)]
    buffer.put(messages, 15)
    assert (buffer.position, buffer.waiting) == (10, 3)
    one, two = buffer.take(2)
    assert buffer.settle(two)
    assert not buffer.settle(two)
    assert (buffer.position, buffer.unsettled) == (10, 2)
    buffer.put_back(one)
    assert buffer.take(1) == [one]
    assert buffer.settle(one)
    assert buffer.position == 13
    assert buffer.drop_waiting() == 1
    assert (buffer.position, buffer.waiting) == (13, 0)
    buffer.clear(99)
    assert (buffer.position, buffer.unsettled) == (99, 0)


async def test_cursors_are_kept() -> None:
    cursors = FakeCursors({("group", QUEUES[0]): 7})
    assert await cursors.load("group", QUEUES[0]) == 7
    assert await cursors.load("group", QUEUES[1]) is None
    await cursors.store("group", {QUEUES[1]: 3}, final=True)
    assert await cursors.load("group", QUEUES[1]) == 3
    assert cursors.stored == [("group", {QUEUES[1]: 3}, True)]


def test_a_serializer_gives_the_same_object_back() -> None:
    serializer, value, properties = FakeSerializer(), object(), dict[str, str]()
    body = serializer.encode(value, properties)
    assert serializer.decode(body, properties) is value
    assert properties == {"fake": "0"}


async def test_a_clock_stands_still_until_it_is_advanced() -> None:
    clock = FakeClock()
    called: list[tuple[str, float]] = []
    clock.call_later(5, lambda: called.append(("late", clock.monotonic())))
    clock.call_later(1, lambda: called.append(("early", clock.monotonic())))
    clock.call_later(2, called.clear).cancel()
    sleeping = asyncio.ensure_future(clock.sleep(3))
    await asyncio.sleep(0)
    assert clock.pending == 3
    clock.advance(4)
    assert called == [("early", 1.0)]
    await sleeping
    clock.advance(1)
    assert called == [("early", 1.0), ("late", 5.0)]
    assert clock.monotonic() == 5.0
