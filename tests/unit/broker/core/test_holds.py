"""Holding requests: one timer for all, a bound, and no trace left of what is gone."""

from pocketmq.broker.holds import SLOT_S, Held, Holds
from pocketmq.log.queues import LogQueue, layout_of
from pocketmq.testing.clock import VirtualClock


class Waiter(Held):
    def __init__(self, connection: object, queue: LogQueue, *, wants: bool = True) -> None:
        super().__init__(connection, queue)
        self.wants = wants
        self.answers: list[str] = []

    def try_answer(self) -> bool:
        if self.wants:
            self.answers.append("message")
        return self.wants

    def answer_empty(self) -> None:
        self.answers.append("empty")


def make_queue() -> LogQueue:
    return LogQueue("orders", 0, layout_of("orders"))


async def test_a_request_is_answered_once_whatever_comes_after() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 10), make_queue()
    waiter = Waiter("client", queue)
    assert holds.hold(waiter, 5)
    holds.wake([queue])
    holds.wake([queue])
    holds.drop_connection("client")
    await clock.sleep(10)
    holds.close()
    assert waiter.answers == ["message"]


async def test_a_time_out_comes_at_most_one_slot_late_and_never_early() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 10), make_queue()
    await clock.sleep(0.0137)
    waiter = Waiter("client", queue)
    holds.hold(waiter, 5)
    await clock.sleep(4.999)
    assert waiter.answers == []
    await clock.sleep(0.001 + SLOT_S)
    assert waiter.answers == ["empty"]


async def test_a_shorter_time_out_that_comes_later_is_answered_first() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 10), make_queue()
    slow, quick = Waiter("a", queue), Waiter("b", queue)
    holds.hold(slow, 10)
    holds.hold(quick, 1)
    await clock.sleep(1.1)
    assert (slow.answers, quick.answers) == ([], ["empty"])
    await clock.sleep(9)
    assert slow.answers == ["empty"]


async def test_what_is_not_wanted_leaves_a_request_held() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 10), make_queue()
    choosy, any_will_do = Waiter("a", queue, wants=False), Waiter("a", queue)
    holds.hold(choosy, 10)
    holds.hold(any_will_do, 10)
    holds.wake([queue])
    assert (choosy.answers, any_will_do.answers, len(holds)) == ([], ["message"], 1)


async def test_the_bound_holds_and_frees_with_every_way_out() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 2), make_queue()
    first, second, third = (Waiter(name, queue) for name in "abc")
    assert holds.hold(first, 5)
    assert holds.hold(second, 5)
    assert not holds.hold(third, 5)
    holds.drop_connection("a")
    assert holds.hold(third, 5)
    assert len(holds) == 2


async def test_nothing_is_left_of_many_requests_that_were_answered() -> None:
    clock = VirtualClock()
    holds, queue = Holds(clock, 100_000), make_queue()
    for number in range(10_000):
        holds.hold(Waiter(number % 10, queue), 15)
        holds.wake([queue])
        if number % 100 == 0:
            await clock.sleep(0.1)
    assert len(holds) == 0
    assert queue.waiters is None
    assert not holds._by_connection
    # Slots of the wheel stay until their time, empty: never more than the longest time-out has.
    assert len(holds._wheel) <= 15 / SLOT_S + 1
    await clock.sleep(16)
    assert not holds._wheel
    assert holds._timer is None
