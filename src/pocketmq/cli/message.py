"""`pocketmq message`: look messages up."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pocketmq.cli.connection import NamesrvOption
from pocketmq.cli.messages import message_fields
from pocketmq.cli.operating import ask, progress_line, time_text
from pocketmq.cli.output import Output, body_text, show, show_one, write_json
from pocketmq.cli.times import time_ms
from pocketmq.model.names import TRACE_TOPIC

if TYPE_CHECKING:
    from pocketmq.admin import Admin
    from pocketmq.admin.traces import TraceEvent
    from pocketmq.model.message import ReceivedMessage

app = App(name="message", help="Look messages up: by id, by key, by place; what became of them.")

BODY_CHARS_MAX = 10_000
END_OF_TIME_MS = 2**63 - 1


@app.command(name="show")
def show_(
    message_id: str, /, *, topic: str | None = None, namesrv: NamesrvOption = None, output: Output = "table"
) -> None:
    """Show a message by its id: the one that `send` prints, or its offset id.

    Parameters
    ----------
    message_id
        Either of the two ids.
    topic
        Where to look for it; without this, all topics are searched, one after the other.
    """

    async def question(admin: "Admin") -> "ReceivedMessage":
        return await admin.messages.show(message_id, topic=topic, progress=progress_line("searching topics"))

    _print(ask(namesrv, question), output)


@app.command
def find(
    *,
    topic: str,
    key: str,
    since: Annotated[str | None, Parameter(help="Stored since then: 2026-01-31T12:00, or how long ago: 2h.")] = None,
    until: Annotated[str | None, Parameter(help="Stored until then.")] = None,
    max: int = 32,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> int:
    """Find messages by a key, the newest first. Exit code 1 when there are none.

    Parameters
    ----------
    topic
        Where to look.
    key
        One of the keys that they were sent with.
    max
        Most messages to show, at most 64.
    """
    begin_ms, end_ms = time_ms(since, 0), time_ms(until, END_OF_TIME_MS)

    async def question(admin: "Admin") -> "list[ReceivedMessage]":
        return await admin.messages.find(topic, key, begin_ms=begin_ms, end_ms=end_ms, max=max)

    found = ask(namesrv, question)
    if output == "json":
        write_json([message_fields(message) for message in found])
        return 0 if found else 1
    rows: list[dict[str, Any]] = [
        {
            "message_id": message.message_id,
            "stored": time_text(message.store_timestamp),
            "place": f"{message.broker_name}/{message.queue_id}@{message.queue_offset}",
            "tag": message.tag,
            "keys": " ".join(message.keys),
            "body": body_text(message.body, 60),
        }
        for message in found
    ]
    show(rows, output, empty=f"{topic} has no message with the key {key} there")
    return 0 if found else 1


@app.command
def at(
    topic: str,
    queue: int,
    offset: int,
    /,
    *,
    broker: Annotated[str | None, Parameter(help="Which broker's queue, when several have one.")] = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Show the message at an offset of a queue.

    Parameters
    ----------
    topic
        Topic.
    queue
        Number of the queue.
    offset
        Number of the message in it.
    """

    async def question(admin: "Admin") -> "ReceivedMessage":
        return await admin.messages.at(topic, queue, offset, broker=broker)

    _print(ask(namesrv, question), output)


@app.command
def trace(
    message_id: str | None = None,
    /,
    *,
    key: Annotated[str | None, Parameter(help="A key of messages, instead of the id of one.")] = None,
    trace_topic: Annotated[str, Parameter(help="Where clients write their traces.")] = TRACE_TOPIC,
    since: Annotated[str | None, Parameter(help="Traces written since then: 2026-01-31T12:00, or 2h (ago).")] = None,
    until: Annotated[str | None, Parameter(help="Traces written until then.")] = None,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> int:
    """Show what became of a message: when it was sent, by whom, who consumed it and how that ended.

    Reads what clients wrote that were told to: ours with the middleware MessageTrace, Java's with enableMsgTrace. Exit
    code 1 when there is nothing.

    Parameters
    ----------
    message_id
        The id that `send` prints.
    """
    begin_ms, end_ms = time_ms(since, 0), time_ms(until, END_OF_TIME_MS)

    async def question(admin: "Admin") -> "list[TraceEvent]":
        return await admin.traces.find(
            message_id=message_id, key=key, topic=trace_topic, begin_ms=begin_ms, end_ms=end_ms
        )

    found = ask(namesrv, question)
    if output == "json":
        write_json(found)
        return 0 if found else 1
    first_ms = found[0].time_ms if found else 0
    several = len({event.message_id for event in found}) > 1
    rows: list[dict[str, Any]] = [
        {
            "time": time_text(event.time_ms),
            "after": f"+{(event.time_ms - first_ms) / 1000:.3f} s",
            **({"message_id": event.message_id} if several else {}),
            "what": event.what if event.attempt in (None, 1) else f"{event.what} (attempt {event.attempt})",
            "took": None if event.cost_ms is None else f"{event.cost_ms} ms",
            "group": event.group,
            "client": event.client,
            "broker": event.broker,
            "topic": event.topic,
            "keys": event.keys,
        }
        for event in found
    ]
    show(rows, output, empty="there are no traces of it; clients write them when they are told to")
    return 0 if found else 1


def _print(message: "ReceivedMessage", output: Output) -> None:
    if output == "json":
        write_json(message_fields(message))
        return
    own = {name: value for name, value in message.properties.items() if name not in {"TAGS", "KEYS", "UNIQ_KEY"}}
    show_one(
        {
            "topic": message.topic,
            "message_id": message.message_id,
            "offset_message_id": message.offset_message_id,
            "place": f"{message.broker_name}/{message.queue_id}@{message.queue_offset}",
            "tag": message.tag,
            "keys": " ".join(message.keys),
            "attempt": message.delivery_attempt,
            "born": f"{time_text(message.born_timestamp)} at {message.born_host}",
            "stored": f"{time_text(message.store_timestamp)} at {message.store_host}",
            "stored_bytes": message.store_size,
            "properties": " ".join(f"{name}={value}" for name, value in sorted(own.items())),
            "body_bytes": len(message.body),
        },
        output,
    )
    print(f"\n{body_text(message.body, BODY_CHARS_MAX, keep_lines=True)}")
