"""Settings of a process: defaults, then a file, then the environment, then `--set`; the later ones win.

A file is TOML with sections, or Java properties (`broker.conf`, `namesrv.conf`) as they are; which one is told from its
name and content. Both take our names and Java's. A name that nobody knows is refused with the nearest right one; one
that Java knows and that means nothing here is passed over with a warning.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pocketmq.model.errors import PocketMQError, SettingError
from pocketmq.model.java_properties import parse_properties
from pocketmq.model.setting_table import (
    PORT_OFF,
    Value,
    find,
    get_value,
    read_value,
    rows,
    set_value,
    unknown,
    write_value,
)
from pocketmq.model.settings import Settings
from pocketmq.net.addresses import parse_addresses

ENVIRONMENT_PREFIX = "POCKETMQ__"
FILE_BYTES_MAX = 1024 * 1024
FAST_PORT_DISTANCE = 2


class Assignment(NamedTuple):
    """One setting as somebody wrote it, and where."""

    name: str
    value: Value
    place: str


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
    prefer = tuple(prefer)
    strangers: list[Assignment] = []
    for assignment in (*_from_file(file), *_from_environment(environment or {}), *_from_options(assignments)):
        with _told_where(assignment):
            try:
                row, java = find(assignment.name, prefer=prefer)
            except SettingError:
                strangers.append(assignment)
                continue
            set_value(settings, row, read_value(row, assignment.value, java=java))
    ignored: dict[str, None] = {}
    for assignment in strangers:
        with _told_where(assignment):
            if not _means_nothing_new(settings, assignment.name, assignment.value):
                ignored[assignment.name] = None
    if not ignored:
        return settings, []
    return settings, [f"these Java settings have no counterpart here and are ignored: {', '.join(ignored)}"]


@contextlib.contextmanager
def _told_where(assignment: Assignment) -> Iterator[None]:
    try:
        yield
    except SettingError as error:
        raise SettingError(f"{error.message} (in {assignment.place})") from None


def _means_nothing_new(settings: Settings, name: str, value: Value) -> bool:
    """True for what PocketMQ does anyway, False for what has no meaning here. Raises SettingError for all else."""
    # Only for names that are not in the table: most processes never load these lists.
    from pocketmq.server.java_names import HARMLESS_JAVA_NAMES, REFUSED_UNLESS

    java = name.rpartition(".")[2]
    if java == "storePathCommitLog":
        folder = f"{settings.store.data_dir.rstrip('/')}/commitlog"
        if str(value).rstrip("/") != folder:
            raise SettingError(
                f"{name} cannot be {value!r}: the log is always in commitlog/ of storePathRootDir, {folder}"
            )
        return True
    if java in REFUSED_UNLESS:
        accepted, reason = REFUSED_UNLESS[java]
        text = str(value).lower() if isinstance(value, bool) else str(value).strip()
        if text not in accepted:
            raise SettingError(f"{name} cannot be {text!r}: {reason}")
        return True
    if java in HARMLESS_JAVA_NAMES:
        return False
    raise SettingError(unknown(name, HARMLESS_JAVA_NAMES))


def check_settings(settings: Settings) -> None:
    """What must hold between settings, and what a single value cannot show. Raises SettingError."""
    broker, store = settings.broker, settings.store
    if broker.id != 0:
        raise SettingError("broker.id must be 0: there are no replicas yet")
    for name, text in (("broker.cluster", broker.cluster), ("broker.name", broker.name)):
        if not text or any(c.isspace() or c in ";,:" for c in text):
            raise SettingError(f"{name} cannot be {text!r}: expected a word without blanks, semicolons and colons")
    if PORT_OFF < broker.port <= FAST_PORT_DISTANCE and broker.port != 0:
        raise SettingError(f"broker.port cannot be {broker.port}: the fast port is {FAST_PORT_DISTANCE} below it")
    try:
        parse_addresses(broker.namesrv)
    except PocketMQError as error:
        raise SettingError(f"broker.namesrv: {error.message}") from None
    try:
        parse_addresses(settings.grpc.advertise)
    except PocketMQError as error:
        raise SettingError(f"grpc.advertise: {error.message}") from None
    if max(store.disk_used_max, store.disk_used_clean) > store.disk_used_refuse:
        raise SettingError(
            "store.disk_used_max and disk_used_clean must not be above disk_used_refuse: "
            f"{store.disk_used_max:g}, {store.disk_used_clean:g}, {store.disk_used_refuse:g}"
        )
    ports: dict[int, str] = {}
    for name, port in (
        ("namesrv.port", settings.namesrv.port),
        ("broker.port", broker.port),
        ("the broker's fast port, two below broker.port,", broker.port - FAST_PORT_DISTANCE),
        ("grpc.port", settings.grpc.port),
        ("http.port", settings.http.port),
    ):
        if port > 0 and port in ports:
            raise SettingError(f"{ports[port]} and {name} are both {port}; choose another one")
        ports[port] = name


def describe(settings: Settings) -> list[dict[str, str]]:
    """Every setting as a row for people: name, value, unit, default, Java name, whether it may change, what it is."""
    return [
        {
            "setting": row.name,
            "value": write_value(row, get_value(settings, row)),
            "default": write_value(row, row.default),
            "unit": row.unit,
            "java name": row.java or "",
            "live": "yes" if row.dynamic else "",
            "meaning": row.doc,
        }
        for row in rows()
    ]


def _from_file(file: str | None) -> Iterator[Assignment]:
    if not file:
        return
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
        text = data.decode()
    except OSError as error:
        raise SettingError(f"the settings file {file} cannot be read: {error.strerror or error}", cause=error) from None
    except UnicodeDecodeError as error:
        raise SettingError(f"the settings file {file} is not UTF-8 text: {error}", cause=error) from None
    if len(data) > FILE_BYTES_MAX:
        raise SettingError(f"the settings file {file} is larger than {FILE_BYTES_MAX} bytes; is it the right file?")
    if _is_toml(file, text):
        import tomllib  # here: a server without a TOML file starts without it

        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise SettingError(f"the settings file {file} is not valid TOML: {error}", cause=error) from None
        yield from _flatten(document, "", file)
        return
    for name, value, line in parse_properties(text):
        yield Assignment(name, value, f"{file}, line {line}")


def _is_toml(file: str, text: str) -> bool:
    """By its name, by a section, or because it can be read as TOML (a quoted value, say)."""
    if file.endswith(".toml"):
        return True
    lines = [line.strip() for line in text.splitlines()]
    if any(line.startswith("[") and line.partition("#")[0].rstrip().endswith("]") for line in lines):
        return True
    if file.endswith((".conf", ".properties")):
        return False
    import tomllib

    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


def _flatten(table: Mapping[str, Any], prefix: str, file: str) -> Iterator[Assignment]:
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            yield from _flatten(value, f"{name}.", file)
        elif isinstance(value, str | int | float | bool):
            yield Assignment(name, value, file)
        else:
            raise SettingError(f"{name} must be a text, a number or a boolean (in {file})")


def _from_environment(environment: Mapping[str, str]) -> Iterator[Assignment]:
    for variable, value in sorted(environment.items()):
        if variable.upper().startswith(ENVIRONMENT_PREFIX):
            name = variable[len(ENVIRONMENT_PREFIX) :]
            # Ours are written in capitals there; Java's names keep their case.
            name = name.lower() if name.isupper() else name
            yield Assignment(name.replace("__", "."), value, f"the environment variable {variable}")


def _from_options(assignments: Iterable[str]) -> Iterator[Assignment]:
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals:
            raise SettingError(f"--set {assignment} has no value; write --set NAME=VALUE")
        yield Assignment(name.strip(), value, "--set")
