"""Attributes of topics and groups: named extras with rules of their own. Pure.

Operators edit them as `+name=value` and `-name`. Each kind of thing knows its names, the values they may have, and
whether they may change once set. Attributes that would promise something that PocketMQ does not do are refused with a
sentence.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import ResponseCode


class Attribute(NamedTuple):
    """What an attribute may be. `check` gives the reason against a value, or None."""

    check: Callable[[str], str | None]
    mutable: bool


def _one_of(*allowed: str) -> Callable[[str], str | None]:
    return lambda value: None if value in allowed else f"it can be {', '.join(allowed)}"


def _only(supported: str, known: str) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        if value == supported:
            return None
        return "PocketMQ does not support that" if value == known else f"it can be {supported}"

    return check


def _between(least: int, greatest: int) -> Callable[[str], str | None]:
    def check(value: str) -> str | None:
        if value.removeprefix("-").isdecimal() and least <= int(value) <= greatest:
            return None
        return f"it is a whole number from {least} to {greatest}"

    return check


TOPIC_ATTRIBUTES: dict[str, Attribute] = {
    "queue.type": Attribute(_only("SimpleCQ", "BatchCQ"), mutable=False),
    "cleanup.policy": Attribute(_only("DELETE", "COMPACTION"), mutable=False),
    "message.type": Attribute(
        _one_of("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED", "PRIORITY"), mutable=True
    ),
    "reserve.time": Attribute(_only("-1", ""), mutable=True),
}
GROUP_ATTRIBUTES: dict[str, Attribute] = {"priority.factor": Attribute(_between(0, 100), mutable=True)}


def parse_edits(text: str | None) -> dict[str, str]:
    """`+a=1,-b` as {"+a": "1", "-b": ""}. Raises PocketMQError 1."""
    edits: dict[str, str] = {}
    for part in (text or "").split(","):
        if not part.strip():
            continue
        name, equals, value = part.strip().partition("=")
        if (equals and not name.startswith("+")) or (not equals and not name.startswith("-")):
            raise _refusal(f"add/alter attribute format is wrong: {part}; write +name=value or -name")
        if name in edits:
            raise _refusal(f"key duplication: {name}")
        edits[name] = value
    return edits


def as_edits(attributes: Mapping[str, str]) -> dict[str, str]:
    """Attributes as a body carries them: names without a sign are meant to be set."""
    return {name if name[:1] in ("+", "-") else f"+{name}": value for name, value in attributes.items()}


def edit_attributes(
    current: Mapping[str, str], edits: Mapping[str, str], known: Mapping[str, Attribute], *, create: bool
) -> dict[str, str]:
    """The attributes after `edits`; keys of edits begin with + or -. Raises PocketMQError 1 with the reason."""
    after = dict(current)
    seen: set[str] = set()
    for key, value in edits.items():
        sign, name = key[:1], key[1:]
        if sign not in "+-" or not name:
            raise _refusal(f"kv string format wrong: {key}; write +name=value or -name")
        if name in seen:
            raise _refusal(f"alter duplication key. key: {name}")
        seen.add(name)
        attribute = known.get(name)
        if attribute is None:
            raise _refusal(f"unsupported key: {name}; known are {', '.join(sorted(known))}")
        if sign == "-":
            if create:
                raise _refusal(f"only add attribute is supported while creating topic. key: {name}")
            if name not in after:
                raise _refusal(f"attempt to delete a nonexistent key: {name}")
            if not attribute.mutable:
                raise _refusal(f"attempt to delete an unchangeable attribute. key: {name}")
            del after[name]
            continue
        reason = attribute.check(value)
        if reason is not None:
            raise _refusal(f"value is not in set: {value} for {name}: {reason}")
        if not create and not attribute.mutable and after.get(name, value) != value:
            raise _refusal(f"attempt to update an unchangeable attribute. key: {name}")
        after[name] = value
    return after


def _refusal(reason: str) -> PocketMQError:
    return PocketMQError(reason, code=ResponseCode.SYSTEM_ERROR)
