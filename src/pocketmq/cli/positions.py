"""How positions of groups look in a table."""

from typing import TYPE_CHECKING, Any

from pocketmq.cli.operating import time_text
from pocketmq.cli.output import Output, show, write_json

if TYPE_CHECKING:
    from pocketmq.admin import GroupProgress, PositionChange


def print_progress(progress: "GroupProgress", output: Output, *, empty: str) -> None:
    """Positions and lag, a queue a line."""
    if output == "json":
        write_json(progress)
        return
    rows: list[dict[str, Any]] = [
        {
            "topic": each.topic,
            "broker": each.broker,
            "queue": each.queue,
            "position": each.position,
            "end_offset": each.end_offset,
            "lag": each.lag,
            "in_flight": each.in_flight,
            "last_consumed": time_text(each.last_consumed_timestamp),
        }
        for each in progress.queues
    ]
    show(rows, output, empty=empty)


def print_changes(changes: "list[PositionChange]", output: Output) -> None:
    """What became of positions."""
    if output == "json":
        write_json(changes)
        return
    rows: list[dict[str, Any]] = [
        {
            "topic": change.topic,
            "broker": change.broker,
            "queue": change.queue,
            "before": "none" if change.before is None else change.before,
            "after": change.after,
        }
        for change in changes
    ]
    show(rows, output, empty="there was nothing to change")
