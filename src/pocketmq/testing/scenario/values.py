"""What words of a scenario mean: durations, sizes, numbers, yes and no, and bodies. Each raises ValueError."""

import re
from collections.abc import Callable, Sequence
from typing import Any

Reader = Callable[[str], Any]

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)\Z")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_SIZE = re.compile(r"(\d+)([KM]?)\Z")
_RANGE = re.compile(r"(.*?)(\d+)\.\.(.*?)(\d+)\Z")
_MARK = re.compile(r"@[a-z][a-z0-9-]*\Z")
BODIES_MAX = 100_000


def duration(word: str) -> float:
    """`1500ms`, `10s`, `2m`, `1.5h`, `3d` as seconds."""
    found = _DURATION.match(word)
    if found is None:
        raise ValueError(f"{word!r} is no duration; write 500ms, 10s, 5m, 2h or 3d")
    return float(found[1]) * _SECONDS[found[2]]


def size(word: str) -> int:
    """`100`, `64K`, `5M` as bytes."""
    found = _SIZE.match(word)
    if found is None:
        raise ValueError(f"{word!r} is no size; write 100, 64K or 5M")
    return int(found[1]) * {"": 1, "K": 1024, "M": 1024 * 1024}[found[2]]


def number(word: str) -> int:
    """A whole number."""
    try:
        return int(word)
    except ValueError:
        raise ValueError(f"{word!r} is no whole number") from None


def yes(word: str) -> bool:
    """`yes` or `no`."""
    if word not in ("yes", "no"):
        raise ValueError(f"{word!r} is neither yes nor no")
    return word == "yes"


def text(word: str) -> str:
    """Any word."""
    return word


def words(word: str) -> tuple[str, ...]:
    """`a,b,c`."""
    return tuple(word.split(","))


def mark(word: str) -> str:
    """`@name`: a moment that `remember` has named."""
    if not _MARK.match(word):
        raise ValueError(f"{word!r} is no remembered moment; write @name")
    return word


def place(word: str) -> str | int:
    """`first`, `last`, `@name`, or an offset."""
    return word if word in ("first", "last") or _MARK.match(word) else number(word)


def start(word: str) -> str:
    """`first`, `last` or `@name`."""
    return word if word in ("first", "last") else mark(word)


def one_of(*choices: str) -> Reader:
    """One of some words."""

    def read(word: str) -> str:
        if word not in choices:
            raise ValueError(f"{word!r} is none of {', '.join(choices)}")
        return word

    return read


def expand(word: str) -> Sequence[str]:
    """`m1..m4` as m1, m2, m3, m4; any other word as itself."""
    found = _RANGE.match(word)
    if found is None:
        return (word,)
    prefix, first, other, last = found.groups()
    if other not in ("", prefix) or int(last) < int(first):
        raise ValueError(f"{word!r} is no range; write m1..m9")
    if int(last) - int(first) >= BODIES_MAX:
        raise ValueError(f"{word!r} is a range of more than {BODIES_MAX}")
    return [f"{prefix}{each}" for each in range(int(first), int(last) + 1)]


def shown(body: bytes) -> str:
    """The name of a message: its body up to the first blank; what `size=` adds comes behind that."""
    return body.split(b" ", 1)[0].decode(errors="replace")
