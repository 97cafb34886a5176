"""`pocketmq offset`: positions of consumer groups."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pocketmq.cli.connection import NamesrvOption
from pocketmq.cli.operating import Broker, Yes, ask, confirm, progress_line
from pocketmq.cli.output import Output
from pocketmq.cli.positions import print_changes, print_progress
from pocketmq.cli.times import parse_time

if TYPE_CHECKING:
    from pocketmq.admin import Admin, GroupProgress, PositionChange
    from pocketmq.admin.offsets import Target

app = App(name="offset", help="Show and set positions of consumer groups.")


@app.command
def show(group: str, topic: str | None = None, /, *, namesrv: NamesrvOption = None, output: Output = "table") -> None:
    """Show where a group is in each queue, and how far behind.

    Parameters
    ----------
    group
        Consumer group.
    topic
        Only in this topic.
    """

    async def question(admin: "Admin") -> "GroupProgress":
        return await admin.offsets.show(group, topic=topic)

    print_progress(ask(namesrv, question), output, empty=f"the group {group} has no positions yet")


@app.command
def reset(
    group: str,
    topic: str,
    /,
    *,
    to: str,
    queue: Annotated[int | None, Parameter(help="Only the queue of this number.")] = None,
    broker: Broker = None,
    yes: Yes = False,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Let a group go on somewhere else in a topic: it gets messages again, or never. Asks first.

    Consumers that are connected follow at once.

    Parameters
    ----------
    group
        Consumer group.
    topic
        Topic.
    to
        `first`, `last`, an offset, a time (2026-01-31T12:00), or how long ago (30m, 2h, 1d).
    """
    target = parse_target(to, datetime.now())
    where = f"queue {queue} of {topic}" if queue is not None else f"all queues of {topic}"
    confirm(f"Set the position of {group} in {where} to {_told(target)}?", yes)

    async def question(admin: "Admin") -> "list[PositionChange]":
        return await admin.offsets.reset(
            group, topic, target, queue=queue, broker=broker, progress=progress_line("setting positions")
        )

    print_changes(ask(namesrv, question), output)


@app.command
def skip(
    group: str,
    topic: str | None = None,
    /,
    *,
    yes: Yes = False,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Let a group leave out all messages that wait for it. Asks first.

    Parameters
    ----------
    group
        Consumer group.
    topic
        Only in this topic (default: all that it reads, retries too).
    """
    confirm(f"Let {group} skip all that waits for it in {topic or 'all of its topics'}?", yes)

    async def question(admin: "Admin") -> "list[PositionChange]":
        return await admin.offsets.skip(group, topic=topic, progress=progress_line("skipping in topics"))

    print_changes(ask(namesrv, question), output)


@app.command
def clone(
    source: str,
    target: str,
    topic: str | None = None,
    /,
    *,
    yes: Yes = False,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Give a group the positions of another one. Asks first.

    Parameters
    ----------
    source
        The group whose positions are copied.
    target
        The group that gets them; it must exist.
    topic
        Only in this topic (default: all that the source reads).
    """
    confirm(f"Give {target} the positions of {source} in {topic or 'all topics'}?", yes)

    async def question(admin: "Admin") -> "list[PositionChange]":
        return await admin.offsets.clone(source, target, topic=topic, progress=progress_line("copying from topics"))

    print_changes(ask(namesrv, question), output)


def parse_target(text: str, now: datetime) -> "Target":
    """What --to means. Raises UsageError."""
    text = text.strip()
    if text == "first":
        return "first"
    if text == "last":
        return "last"
    if text.isascii() and text.isdigit():
        return int(text)
    return parse_time(text, now)


def _told(target: "Target") -> str:
    if target == "first":
        return "the oldest message"
    if target == "last":
        return "the end"
    if isinstance(target, datetime):
        return f"the first message since {target.isoformat(sep=' ', timespec='seconds')}"
    return f"offset {target}"
