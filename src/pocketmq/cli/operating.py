"""What operator commands share: the connection, the question before something is destroyed, the progress line."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter

from pocketmq.cli.connection import name_servers
from pocketmq.model.errors import UsageError

if TYPE_CHECKING:
    from pocketmq.admin import Admin
    from pocketmq.admin.reach import Progress

Result = TypeVar("Result")

Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), help="Do not ask; needed where no terminal is.")]
Cluster = Annotated[str | None, Parameter(help="Only brokers of this cluster.")]
Broker = Annotated[str | None, Parameter(help="Only this broker.")]
Attributes = Annotated[
    list[str] | None,
    Parameter(name="--attribute", negative=(), help="NAME=VALUE, such as message.type=FIFO; repeatable."),
]
Removals = Annotated[
    list[str] | None, Parameter(name="--remove-attribute", negative=(), help="Name of one to take away; repeatable.")
]


def ask(namesrv: str | None, question: "Callable[[Admin], Awaitable[Result]]") -> Result:
    """Connect, ask, close; returns the answer. Raises PocketMQError."""
    from pocketmq.admin import connect_admin

    async def run() -> Result:
        async with connect_admin(name_servers(namesrv)) as admin:
            return await question(admin)

    return asyncio.run(run())


class Declined(Exception):
    """The operator was asked and said no."""


def confirm(question: str, yes: bool) -> None:
    """Ask before something is destroyed. Raises Declined; UsageError when there is nobody to ask."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError(f"{question} Without a terminal nobody can be asked; add --yes to do it")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Declined


def progress_line(what: str) -> "Progress | None":
    """Shows how far something is, on a line of its own that is gone at the end; None where no terminal is."""
    if not sys.stderr.isatty():
        return None

    def show(done: int, total: int) -> None:
        end = "\r" if done < total else "\r\033[K"
        print(f"{what}: {done} of {total}" if done < total else "", end=end, file=sys.stderr, flush=True)

    return show


def name_value_pairs(texts: Iterable[str] | None, option: str) -> dict[str, str]:
    """NAME=VALUE texts as a map. Raises UsageError."""
    pairs = {}
    for text in texts or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text} has no value; write NAME=VALUE")
        pairs[name] = value
    return pairs


def time_text(timestamp_ms: int | None) -> str | None:
    """A time in ms as people read it, in local time; None stays None."""
    if timestamp_ms is None:
        return None
    return datetime.fromtimestamp(timestamp_ms / 1000).isoformat(sep=" ", timespec="milliseconds")
