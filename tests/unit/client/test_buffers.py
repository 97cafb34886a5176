"""The message buffer: order, the position, water marks."""

import pytest

from pocketmq.client.buffers import QueueBuffer
from pocketmq.client.parts import MessageBuffer
from pocketmq.testing.fakes import make_received


def some(*offsets, body=b""):
    return [make_received(offset=offset, body=body) for offset in offsets]


def test_it_is_a_message_buffer():
    assert isinstance(QueueBuffer(), MessageBuffer)


def test_messages_come_out_in_order_and_the_position_follows_what_is_settled():
    buffer = QueueBuffer(5)
    assert buffer.position == 5
    buffer.put(some(5, 6, 7), 8)
    assert (buffer.waiting, buffer.unsettled, buffer.position) == (3, 3, 5)
    first, second, third = buffer.take(10)
    assert [first.queue_offset, second.queue_offset, third.queue_offset] == [5, 6, 7]
    assert buffer.settle(second)
    assert buffer.position == 5
    assert buffer.settle(first)
    assert buffer.position == 7
    assert buffer.settle(third)
    assert (buffer.position, buffer.unsettled) == (8, 0)


def test_what_a_filter_left_out_counts_as_settled():
    buffer = QueueBuffer(0)
    buffer.put([], 10)
    assert buffer.position == 10
    buffer.put(some(12, 17), 20)
    assert buffer.position == 12
    one, other = buffer.take(2)
    buffer.settle(one)
    assert buffer.position == 17
    buffer.settle(other)
    assert buffer.position == 20


def test_a_message_is_settled_once_and_only_when_it_was_taken():
    buffer = QueueBuffer()
    buffer.put(some(0, 1), 2)
    waiting = make_received(offset=1)
    assert not buffer.settle(waiting)
    [taken] = buffer.take(1)
    assert buffer.settle(taken)
    assert not buffer.settle(taken)


def test_a_message_put_back_comes_before_all_others():
    buffer = QueueBuffer()
    buffer.put(some(0, 1, 2), 3)
    first, second = buffer.take(2)
    buffer.put_back(first)
    assert [message.queue_offset for message in buffer.take(5)] == [0, 2]
    buffer.settle(second)
    assert buffer.position == 0


def test_forgetting_what_waits_goes_back_to_the_lowest_of_it():
    buffer = QueueBuffer()
    buffer.put(some(0, 1, 2, 3), 4)
    first, second = buffer.take(2)
    buffer.put_back(first)
    assert buffer.drop_waiting() == 3
    assert (buffer.position, buffer.waiting, buffer.unsettled) == (0, 0, 1)
    buffer.settle(second)
    assert buffer.position == 0


def test_clearing_makes_late_settling_void():
    buffer = QueueBuffer()
    buffer.put(some(0, 1), 2)
    [taken] = buffer.take(1)
    buffer.clear(100)
    assert not buffer.settle(taken)
    assert (buffer.position, buffer.unsettled, buffer.bytes) == (100, 0, 0)


@pytest.mark.parametrize(
    ("limits", "messages"),
    [
        ({"count_max": 8}, some(*range(8))),
        ({"bytes_max": 800}, some(*range(8), body=b"x" * 100)),
        ({"span_max": 100}, some(0, 100)),
    ],
)
def test_fetching_stops_at_a_high_mark_and_goes_on_below_the_low_one(limits, messages):
    buffer = QueueBuffer(**limits)
    buffer.put(messages, 200)
    assert buffer.full
    taken = buffer.take(100)
    for message in taken[:-1]:
        buffer.settle(message)
        if buffer.full:
            assert buffer.unsettled >= 1
    buffer.settle(taken[-1])
    assert not buffer.full


def test_between_the_marks_it_stays_as_it_was():
    buffer = QueueBuffer(count_max=8)
    buffer.put(some(*range(7)), 7)
    assert not buffer.full
    buffer.put(some(7), 8)
    taken = buffer.take(8)
    buffer.settle(taken[0])
    assert buffer.full
    buffer.settle(taken[1])
    assert not buffer.full


def test_a_long_run_keeps_nothing():
    buffer = QueueBuffer()
    for start in range(0, 4000, 4):
        buffer.put(some(*range(start, start + 4)), start + 4)
        for message in buffer.take(4):
            buffer.settle(message)
    assert len(buffer._offsets) == len(buffer._waiting) == 0
    assert buffer.position == 4000
