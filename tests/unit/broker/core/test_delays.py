"""When a message asks to be delivered later."""

import pytest

from pocketmq.broker.delays import DelayPlan, due_of_record, parse_levels, plan_delay
from pocketmq.model.errors import PocketMQError, SettingError

NOW = 1_700_000_000_000
LEVELS = parse_levels("1s 5s 2m")


def plan(properties: dict[str, str]) -> DelayPlan | None:
    return plan_delay(properties, "orders", 3, now_ms=NOW, levels=LEVELS, delay_max_ms=86_400_000)


def test_levels_are_numbers_with_units() -> None:
    assert parse_levels("1s 5s 10m 2h 1d 20ms") == (1000, 5000, 600_000, 7_200_000, 86_400_000, 20)


@pytest.mark.parametrize("text", ["soon", "5", "s", "5x", "-1s", "1.5s"])
def test_a_level_that_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(SettingError):
        parse_levels(f"1s {text}")


def test_a_level_waits_in_the_queue_of_its_number() -> None:
    properties = {"DELAY": "2", "TIMER_DELIVER_MS": "5"}
    assert plan(properties) == ("SCHEDULE_TOPIC_XXXX", 1, NOW + 5000)
    assert properties == {"DELAY": "2", "REAL_TOPIC": "orders", "REAL_QID": "3"}


def test_a_level_above_the_last_is_the_last() -> None:
    properties = {"DELAY": "50"}
    assert plan(properties) == ("SCHEDULE_TOPIC_XXXX", 2, NOW + 120_000)
    assert properties["DELAY"] == "3"


@pytest.mark.parametrize("level", ["0", "-1"])
def test_level_zero_and_below_are_no_delay(level: str) -> None:
    assert plan({"DELAY": level}) is None


@pytest.mark.parametrize(
    ("properties", "due"),
    [
        ({"TIMER_DELAY_SEC": "7", "TIMER_DELAY_MS": "9", "TIMER_DELIVER_MS": str(NOW + 1)}, NOW + 7000),
        ({"TIMER_DELAY_MS": "9", "TIMER_DELIVER_MS": str(NOW + 1)}, NOW + 9),
        ({"TIMER_DELIVER_MS": str(NOW + 123)}, NOW + 123),
    ],
)
def test_seconds_win_over_milliseconds_and_those_over_a_moment(properties: dict[str, str], due: int) -> None:
    assert plan(properties) == ("rmq_sys_wheel_timer", 0, due)
    assert properties["TIMER_OUT_MS"] == str(due)
    assert properties["REAL_TOPIC"] == "orders"


def test_a_moment_that_is_not_ahead_is_no_delay() -> None:
    assert plan({"TIMER_DELIVER_MS": str(NOW)}) is None
    assert plan({"TIMER_DELAY_MS": "-5"}) is None


def test_a_message_that_was_delayed_before_is_not_delayed_again_by_the_same_properties() -> None:
    assert plan({"TIMER_DELAY_SEC": "7", "TIMER_OUT_MS": "5"}) is None
    assert plan({"DELAY": "1", "TIMER_OUT_MS": "5"}) is not None


def test_the_limit_is_exact() -> None:
    assert plan({"TIMER_DELAY_SEC": "86400"}) is not None
    with pytest.raises(PocketMQError) as caught:
        plan({"TIMER_DELAY_MS": "86400001"})
    assert caught.value.code == 13


def test_the_due_time_of_a_stored_level_follows_from_when_it_was_stored() -> None:
    assert due_of_record("SCHEDULE_TOPIC_XXXX", 1, NOW, None, LEVELS) == NOW + 5000
    assert due_of_record("SCHEDULE_TOPIC_XXXX", 17, NOW, "3", LEVELS) == NOW + 120_000
    assert due_of_record("SCHEDULE_TOPIC_XXXX", 0, NOW, None, ()) is None


def test_the_due_time_of_a_stored_timer_stands_in_it() -> None:
    assert due_of_record("rmq_sys_wheel_timer", 0, NOW, str(NOW + 5), LEVELS) == NOW + 5
    assert due_of_record("rmq_sys_wheel_timer", 0, NOW, None, LEVELS) is None
    assert due_of_record("rmq_sys_wheel_timer", 0, NOW, "soon", LEVELS) is None
