"""The settings of `pocketmq.model.settings` as rows: found by any of their names, read from text, written as text.

Every row is known by `section.key`, and most also by the name that RocketMQ's broker.conf or namesrv.conf gives it. A
value under a Java name is in Java's unit (mostly milliseconds, where ours are seconds) and in Java's words
(`SYNC_FLUSH`).
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec

from pocketmq.model.errors import SettingError
from pocketmq.model.settings import Setting, Settings

Value = str | int | float | bool

PORT_OFF = -1
PORT_EXPECTED = "expected a port from 0 (any free one) to 65535, or off"

_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})
_SIZES = {"": 1, "b": 1, "k": 1 << 10, "kib": 1 << 10, "kb": 1000, "m": 1 << 20, "mib": 1 << 20, "mb": 10**6}
_SIZES |= {"g": 1 << 30, "gib": 1 << 30, "gb": 10**9, "t": 1 << 40, "tib": 1 << 40, "tb": 10**12}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_QUANTITY = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-zA-Z]*)\Z")
# Java's words for ours, both ways.
_JAVA_WORDS = {"flushDiskType": {"ASYNC_FLUSH": "async", "SYNC_FLUSH": "sync"}}
# Java names of durations that are in the same unit as ours; all others with seconds here are milliseconds there.
_JAVA_SAME_UNIT = frozenset({"timerMaxDelaySec"})
# How RocketMQ 4 spelt them, and many files still do.
_JAVA_OLD_NAMES = {"mapedFileSizeCommitLog": "mappedFileSizeCommitLog"}
_UNIT_WORDS = {"s": " of seconds", "h": " of hours", "%": " from 0 to 100"}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One setting. `kind` is str, int, float or bool; `choices` are the words it may be, when it may not be any."""

    section: str
    key: str
    kind: type
    choices: tuple[str, ...] = ()
    default: Value
    java: str | None
    unit: str
    dynamic: bool
    doc: str

    @property
    def name(self) -> str:
        """`section.key`."""
        return f"{self.section}.{self.key}"

    @property
    def java_factor(self) -> int:
        """How many of Java's units make one of ours."""
        return 1000 if self.unit == "s" and self.java and self.java not in _JAVA_SAME_UNIT else 1


@cache
def rows() -> tuple[Row, ...]:
    """All settings, in the order of the table."""
    found: list[Row] = []
    for section in msgspec.structs.fields(Settings):
        hints = get_type_hints(section.type, include_extras=True)
        found += [_row(section.name, f.name, hints[f.name], f.default) for f in msgspec.structs.fields(section.type)]
    return tuple(found)


def _row(section: str, key: str, hint: Any, default: Value) -> Row:
    assert get_origin(hint) is Annotated, f"{section}.{key} has no Setting"
    base, about = get_args(hint)[:2]
    assert isinstance(about, Setting)
    choices: tuple[str, ...] = get_args(base) if get_origin(base) is Literal else ()
    return Row(
        section=section,
        key=key,
        kind=str if choices else base,
        choices=choices,
        default=default,
        java=about.java,
        unit=about.unit,
        dynamic=about.dynamic,
        doc=about.doc,
    )


def find(name: str, *, prefer: Iterable[str] = ("broker",), section: str | None = None) -> tuple[Row, bool]:
    """The row for one of its names, and whether that was the Java name.

    `prefer` orders the sections for Java names that several of them have (`listenPort`). `section` is where a bare key
    of ours may be looked up. Raises SettingError that names the nearest right one.
    """
    wanted = name.strip()
    qualified = f"{section}.{wanted}" if section and "." not in wanted else wanted
    for row in rows():
        if row.name in (qualified, wanted):
            return row, False
    prefix, _, java = wanted.rpartition(".")
    java = _JAVA_OLD_NAMES.get(java, java)
    order = {preferred: rank for rank, preferred in enumerate(prefer)}
    named = [row for row in rows() if row.java == java and prefix in ("", row.section)]
    if section is not None:
        named = [row for row in named if row.section == section] or named
    if named:
        return min(named, key=lambda row: order.get(row.section, len(order))), True
    raise SettingError(unknown(qualified))


def unknown(name: str, more_names: Iterable[str] = ()) -> str:
    """One sentence: there is no such setting, and which one was probably meant."""
    import difflib  # here: only mistakes need it

    names: dict[str, str] = {}
    for row in rows():
        names[row.name.lower()] = row.name
        names.setdefault(row.key.lower(), row.name)
        if row.java:
            names.setdefault(row.java.lower(), row.java)
    for other in more_names:
        names.setdefault(other.lower(), other)
    lowered = name.lower().replace("-", "_")
    near = difflib.get_close_matches(lowered, names, n=1, cutoff=0.6)
    if not near:
        near = difflib.get_close_matches(lowered.rpartition(".")[2], names, n=1, cutoff=0.6)
    hint = f"did you mean {names[near[0]]}?" if near else "`pocketmq config` lists all of them"
    return f"there is no setting {name}; {hint}"


def read_value(row: Row, value: Value, *, java: bool = False) -> Value:
    """Turn text (or a value of the right kind) into the setting's own kind and unit. Raises SettingError."""
    try:
        result = _read(row, value, java)
    except (ValueError, OverflowError) as error:
        name = row.java if java and row.java else row.name
        raise SettingError(f"{name} cannot be {value!r}: {error}") from None
    return result


def _read(row: Row, value: Value, java: bool) -> Value:
    if isinstance(value, str):
        value = value.strip()
        if java and row.java in _JAVA_WORDS:
            value = _JAVA_WORDS[row.java].get(value.upper(), value)
    if row.kind is str:
        return _read_text(row, value)
    if row.kind is bool:
        return _read_bool(value)
    number = _read_number(row, value)
    if java:
        number = number / row.java_factor
    if row.kind is int:
        if number != int(number):
            raise ValueError("expected a whole number")
        number = int(number)
    else:
        number = float(number)
    _check_range(row, number)
    return number


def _read_text(row: Row, value: Value) -> str:
    if not isinstance(value, str):
        # TOML allows `name = 4`; nothing is lost by taking it as text.
        value = str(value).lower() if isinstance(value, bool) else str(value)
    if row.choices and value not in row.choices:
        lowered = value.lower()
        if lowered in row.choices:
            return lowered
        import difflib

        near = difflib.get_close_matches(lowered, row.choices, n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ValueError(f"expected one of {', '.join(row.choices)}{hint}")
    return value


def _read_bool(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    lowered = str(value).lower()
    if lowered in _TRUE:
        return True
    if lowered in _FALSE:
        return False
    raise ValueError("expected true or false")


def _read_number(row: Row, value: Value) -> int | float:
    if isinstance(value, bool):
        raise ValueError("expected a number")
    if isinstance(value, int | float):
        return value
    if row.unit == "port" and value.lower() == "off":
        return PORT_OFF
    match = _QUANTITY.match(value.replace("_", ""))
    if match is None:
        if row.unit == "port":
            raise ValueError(PORT_EXPECTED)
        raise ValueError(f"expected a number{_UNIT_WORDS.get(row.unit, f' of {row.unit}' if row.unit else '')}")
    digits, suffix = match[1], match[2].lower()
    number: int | float = float(digits) if "." in digits else int(digits)
    if not suffix:
        return number
    if row.unit == "bytes" and suffix in _SIZES:
        return number * _SIZES[suffix]
    if row.unit in {"s", "h"} and suffix in _SECONDS:
        return number * _SECONDS[suffix] / _SECONDS[row.unit]
    raise ValueError(f"{match[2]!r} is not a unit of {row.name}" + (f", which is in {row.unit}" if row.unit else ""))


def _check_range(row: Row, number: int | float) -> None:
    if row.unit == "port":
        if not PORT_OFF <= number <= 65_535:
            raise ValueError(PORT_EXPECTED)
    elif row.unit == "%":
        if not 0 <= number <= 100:
            raise ValueError("expected a percentage from 0 to 100")
    elif row.unit == "bytes":
        if number < 1:
            raise ValueError("expected at least one byte")
    elif number < 0:
        raise ValueError("expected a number that is not negative")


def get_value(settings: Settings, row: Row) -> Value:
    """The value that the settings hold."""
    value: Value = getattr(getattr(settings, row.section), row.key)
    return value


def set_value(settings: Settings, row: Row, value: Value) -> None:
    """Put a value that `read_value` has given into the settings."""
    setattr(getattr(settings, row.section), row.key, value)


def write_value(row: Row, value: Value, *, java: bool = False) -> str:
    """The value as text, as `read_value` reads it."""
    if java and row.java in _JAVA_WORDS:
        words = {ours: theirs for theirs, ours in _JAVA_WORDS[row.java].items()}
        return words.get(str(value), str(value))
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value
    if java:
        value = value * row.java_factor
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def java_properties(settings: Settings, sections: Iterable[str]) -> str:
    """The settings of some sections as Java properties text, under their Java names where they have one."""
    wanted = set(sections)
    lines: list[str] = []
    for row in rows():
        if row.section in wanted:
            value = get_value(settings, row)
            lines.append(f"{row.java or row.name}={write_value(row, value, java=row.java is not None)}")
    return "\n".join(lines) + "\n"


# Which settings the name server and the broker answer for, each on its own port.
_SECTIONS_OF = {"namesrv": {"namesrv", "log"}, "broker": {"broker", "store", "log"}}


def change_dynamic(settings: Settings, changes: Iterable[tuple[str, str]], *, section: str) -> list[Row]:
    """Apply changes to a running process, all or none; returns the rows that were changed.

    `section` is `namesrv` or `broker`: who was asked. Raises SettingError for a name that is unknown, a value that
    cannot be, or a setting that takes a restart.
    """
    accepted: list[tuple[Row, Value]] = []
    for name, text in changes:
        row, java = find(name, prefer=(section,), section=section)
        if row.section not in _SECTIONS_OF[section]:
            raise SettingError(f"{row.name} is not a setting of this server")
        value = read_value(row, text, java=java)
        if value == get_value(settings, row):
            continue
        if not row.dynamic:
            raise SettingError(f"{row.name} cannot change while the server runs; set it at start")
        accepted.append((row, value))
    for row, value in accepted:
        set_value(settings, row, value)
    return [row for row, _ in accepted]
