"""When a message asks to be delivered later: reading the four properties that say so.

`DELAY` is one of the configured levels (1 is the first). `TIMER_DELAY_SEC`, `TIMER_DELAY_MS` and `TIMER_DELIVER_MS` are
arbitrary times, in this order of precedence; `DELAY` wins over all three. A delayed message is stored in a topic of its
own, with the topic and queue it is meant for as properties; `TIMER_OUT_MS` says when an arbitrary one is due.
"""

from collections.abc import Sequence
from typing import NamedTuple

from pocketmq.model.errors import PocketMQError, SettingError
from pocketmq.model.names import SCHEDULE_TOPIC, TIMER_TOPIC
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.properties import PropertyKey

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class DelayPlan(NamedTuple):
    """Where a delayed message waits, and until when (ms since the epoch)."""

    topic: str
    queue_id: int
    due_ms: int


def parse_levels(text: str) -> tuple[int, ...]:
    """Delays of `1s 5s 1m ...` in milliseconds, from level 1. Raises SettingError."""
    levels = []
    for part in text.split():
        number = part.rstrip("mshd")
        unit = part[len(number) :]
        if not number.isdigit() or unit not in _UNITS_MS:
            raise SettingError(f"{part!r} is not a delay; write a number and a unit, as in 1s, 10m or 2h")
        levels.append(int(number) * _UNITS_MS[unit])
    return tuple(levels)


def plan_delay(
    properties: dict[str, str], topic: str, queue_id: int, *, now_ms: int, levels: Sequence[int], delay_max_ms: int
) -> DelayPlan | None:
    """Where a message for `topic` waits, or None when it goes there at once; completes `properties`.

    Raises PocketMQError 13 for a time that cannot be read or is too far away.
    """
    level = _number(properties, PropertyKey.DELAY)
    if level is not None and level > 0 and levels:
        for name in (PropertyKey.TIMER_DELAY_SECONDS, PropertyKey.TIMER_DELAY_MS, PropertyKey.TIMER_DELIVER_MS):
            properties.pop(name, None)
        level = min(level, len(levels))
        properties[PropertyKey.DELAY] = str(level)
        plan = DelayPlan(SCHEDULE_TOPIC, level - 1, now_ms + levels[level - 1])
    else:
        due_ms = _due(properties, now_ms)
        if due_ms is None or due_ms <= now_ms:
            return None
        if due_ms - now_ms > delay_max_ms:
            raise PocketMQError(
                f"the delay of {(due_ms - now_ms) // 1000} s is above the limit of {delay_max_ms // 1000} s; "
                "shorten it, or raise the setting broker.delay_max_s",
                code=ResponseCode.MESSAGE_ILLEGAL,
            )
        properties[PropertyKey.TIMER_OUT_MS] = str(due_ms)
        plan = DelayPlan(TIMER_TOPIC, 0, due_ms)
    properties[PropertyKey.REAL_TOPIC] = topic
    properties[PropertyKey.REAL_QUEUE_ID] = str(queue_id)
    return plan


def due_of_record(
    topic: str, queue_id: int, store_timestamp: int, timer_out_ms: str | None, levels: Sequence[int]
) -> int | None:
    """When a stored record of one of the two delay topics is due; None when it does not say that readably."""
    if topic == SCHEDULE_TOPIC:
        return store_timestamp + levels[min(queue_id, len(levels) - 1)] if levels else None
    try:
        return int(timer_out_ms) if timer_out_ms is not None else None
    except ValueError:
        return None


def _due(properties: dict[str, str], now_ms: int) -> int | None:
    # A message that a consumer got and sends again still carries the time it was once due: it is not delayed again.
    if PropertyKey.TIMER_OUT_MS in properties:
        return None
    seconds = _number(properties, PropertyKey.TIMER_DELAY_SECONDS)
    if seconds is not None:
        return now_ms + seconds * 1000
    milliseconds = _number(properties, PropertyKey.TIMER_DELAY_MS)
    if milliseconds is not None:
        return now_ms + milliseconds
    return _number(properties, PropertyKey.TIMER_DELIVER_MS)


def _number(properties: dict[str, str], name: str) -> int | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return int(text)
    except ValueError:
        raise PocketMQError(
            f"the property {name} is {text!r}; it must be a whole number", code=ResponseCode.MESSAGE_ILLEGAL
        ) from None
