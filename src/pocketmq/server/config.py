"""Settings of a process: defaults, then a file, then the environment, then `--set`; the later ones win.

A file is TOML with sections, or Java properties (`broker.conf`, `namesrv.conf`) as they are; which one is told from its
content. Both take our names and Java's. A name that nobody knows is refused with the nearest right one; one that Java
knows and that means nothing here is passed over with a warning.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pocketmq.model.errors import SettingError
from pocketmq.model.setting_table import Value, find, get_value, read_value, rows, set_value, write_value
from pocketmq.model.settings import Settings
from pocketmq.server.java_names import HARMLESS_JAVA_NAMES

ENVIRONMENT_PREFIX = "POCKETMQ__"


def load_settings(
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Iterable[str] = (),
    prefer: Iterable[str] = ("broker",),
) -> tuple[Settings, list[str]]:
    """The settings, and warnings to show, one sentence each.

    `assignments` are `KEY=VALUE`. `prefer` orders the sections for Java names that several have (`listenPort`). Raises
    SettingError for what cannot be, and for a file that cannot be read.
    """
    settings = Settings()
    warnings: list[str] = []
    prefer = tuple(prefer)
    for source, pairs in (
        (f"the file {file}", _file_pairs(file)),
        ("the environment", _environment_pairs(environment or {})),
        ("--set", _assignment_pairs(assignments)),
    ):
        for name, value in pairs:
            try:
                row, java = find(name, prefer=prefer)
            except SettingError as error:
                if name.rpartition(".")[2] in HARMLESS_JAVA_NAMES:
                    warnings.append(f"{name} in {source} has no meaning here and is ignored")
                    continue
                raise SettingError(f"{error.message} (in {source})") from None
            set_value(settings, row, read_value(row, value, java=java))
    return settings, warnings


def describe(settings: Settings) -> list[dict[str, str]]:
    """Every setting as a row for people: name, value, unit, default, Java name, whether it may change, what it is."""
    return [
        {
            "setting": row.name,
            "value": write_value(row, get_value(settings, row)),
            "default": write_value(row, row.default),
            "unit": row.unit,
            "java name": row.java or "",
            "dynamic": "yes" if row.dynamic else "",
            "meaning": row.doc,
        }
        for row in rows()
    ]


def _file_pairs(file: str | None) -> Iterator[tuple[str, Value]]:
    if not file:
        return
    try:
        text = Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"the settings file {file} cannot be read: {error}", cause=error) from None
    if file.endswith((".conf", ".properties")) and not _looks_like_toml(text):
        yield from parse_properties(text)
        return
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        if file.endswith(".toml") or _looks_like_toml(text):
            raise SettingError(f"the settings file {file} is not valid TOML: {error}", cause=error) from None
        yield from parse_properties(text)
        return
    yield from _flatten(document, "", file)


def _looks_like_toml(text: str) -> bool:
    return any(line.strip().startswith("[") for line in text.splitlines())


def _flatten(table: Mapping[str, Any], prefix: str, file: str) -> Iterator[tuple[str, Value]]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.", file)
        elif isinstance(value, str | int | float | bool):
            yield name, value
        else:
            raise SettingError(f"{name} in the file {file} must be a text, a number or a boolean")


def parse_properties(text: str) -> list[tuple[str, str]]:
    """Pairs of Java properties text: `key=value` or `key: value`; comments and continued lines as Java has them."""
    pairs: list[tuple[str, str]] = []
    pending = ""
    for raw in text.splitlines():
        line = pending + raw.strip()
        pending = ""
        if not line or line[0] in "#!":
            continue
        if line.endswith("\\") and not line.endswith("\\\\"):
            pending = line[:-1]
            continue
        cut = min((at for at in (line.find("="), line.find(":")) if at >= 0), default=-1)
        if cut < 0:
            raise SettingError(f"{line!r} is not a setting; write name=value")
        pairs.append((line[:cut].strip(), line[cut + 1 :].strip().replace("\\:", ":").replace("\\=", "=")))
    return pairs


def _environment_pairs(environment: Mapping[str, str]) -> Iterator[tuple[str, Value]]:
    for name, value in sorted(environment.items()):
        if name.startswith(ENVIRONMENT_PREFIX):
            yield name.removeprefix(ENVIRONMENT_PREFIX).lower().replace("__", "."), value


def _assignment_pairs(assignments: Iterable[str]) -> Iterator[tuple[str, Value]]:
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingError(f"--set {assignment} has no value; write --set NAME=VALUE")
        yield name.strip(), value
