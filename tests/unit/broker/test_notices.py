"""Notices to consumer groups: everybody is told, once per burst, and large groups not too often."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.broker.membership import ConsumerGroup, ConsumerMember
from pocketmq.broker.notices import MEMBER_COST_S, ConsumerNotices


class ManualClock:
    def __init__(self) -> None:
        self.now = 0.0
        self.waiting: list[tuple[float, Callable[..., object], tuple[Any, ...]]] = []

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def call_later(self, delay: float, callback: Callable[..., object], *args: Any) -> Any:
        entry = (self.now + delay, callback, args)
        self.waiting.append(entry)
        clock = self

        class Call:
            def cancel(self) -> None:
                clock.waiting.remove(entry)

        return Call()

    async def sleep(self, delay: float) -> None:
        raise AssertionError("notices never sleep")

    def advance(self, seconds: float) -> None:
        self.now += seconds
        due = [entry for entry in self.waiting if entry[0] <= self.now]
        self.waiting = [entry for entry in self.waiting if entry[0] > self.now]
        for _, callback, args in due:
            callback(*args)


class FakeConnection:
    peer_address = ("10.0.0.1", 1)

    def close(self) -> None: ...


def group_of(size: int, name: str = "g") -> ConsumerGroup:
    group = ConsumerGroup(name)
    for number in range(size):
        group.add(ConsumerMember(FakeConnection(), f"c{number}", "JAVA", 399))
    return group


class Setup:
    def __init__(self, wanted: Callable[[str], bool] = lambda group: True) -> None:
        self.clock = ManualClock()
        self.sent: list[tuple[str, str]] = []
        self.notices = ConsumerNotices(self.clock, wanted=wanted, send=self._send)

    def _send(self, member: ConsumerMember, group: str) -> None:
        self.sent.append((member.client_id, group))


async def one_turn() -> None:
    await asyncio.sleep(0)


@pytest.fixture
def setup() -> Setup:
    return Setup()


async def test_all_members_are_told_once_per_burst(setup: Setup) -> None:
    group = group_of(2)
    for _ in range(5):
        setup.notices.group_changed(group, True)
    assert setup.sent == []
    await one_turn()
    assert setup.sent == [("c0", "g"), ("c1", "g")]


async def test_each_group_is_told_of_its_own_change(setup: Setup) -> None:
    setup.notices.group_changed(group_of(1, "g"), True)
    setup.notices.group_changed(group_of(1, "h"), True)
    await one_turn()
    assert setup.sent == [("c0", "g"), ("c0", "h")]


async def test_a_broadcasting_group_does_not_care_about_subscriptions(setup: Setup) -> None:
    group = group_of(1)
    group.message_model = "BROADCASTING"
    setup.notices.group_changed(group, False)
    await one_turn()
    assert setup.sent == []
    setup.notices.group_changed(group, True)
    await one_turn()
    assert setup.sent == [("c0", "g")]


async def test_a_group_that_wants_no_notices_gets_none() -> None:
    setup = Setup(wanted=lambda group: group != "g")
    setup.notices.group_changed(group_of(1), True)
    await one_turn()
    assert setup.sent == []


async def test_a_second_burst_waits_in_proportion_to_the_group_and_is_then_told(setup: Setup) -> None:
    group = group_of(100)
    setup.notices.group_changed(group, True)
    await one_turn()
    setup.sent.clear()
    for _ in range(3):
        setup.notices.group_changed(group, True)
        await one_turn()
    assert setup.sent == []
    setup.clock.advance(100 * MEMBER_COST_S)
    assert len(setup.sent) == 100


async def test_nothing_is_sent_after_close(setup: Setup) -> None:
    group = group_of(100)
    setup.notices.group_changed(group, True)
    await one_turn()
    setup.notices.group_changed(group, True)
    await one_turn()
    setup.sent.clear()
    setup.notices.close()
    setup.clock.advance(10)
    setup.notices.group_changed(group, True)
    await one_turn()
    assert setup.sent == []
