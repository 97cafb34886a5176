"""`pocketmq send`, `receive` and `tail`: messages from and to the terminal."""

import asyncio
import base64
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from pocketmq.cli.connection import NamesrvOption, name_servers
from pocketmq.cli.operating import name_value_pairs
from pocketmq.cli.output import Output, body_text, show_one, write_json
from pocketmq.model.errors import UsageError

if TYPE_CHECKING:
    from pocketmq.client import Client
    from pocketmq.model.message import MessageQueue, ReceivedMessage

TAIL_PULL_COUNT = 32
TAIL_WAIT_S = 15.0
RECEIVE_DRAIN_S = 1.0
"""A message is printed and acknowledged in one step, so at the end there is nothing worth waiting for."""


def send(
    topic: str,
    body: str,
    /,
    *,
    tag: str | None = None,
    key: Annotated[list[str] | None, Parameter(negative=())] = None,
    property: Annotated[list[str] | None, Parameter(negative=())] = None,
    message_group: str | None = None,
    delay: float | None = None,
    count: int = 1,
    timeout: float = 3.0,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> None:
    """Send a message and print its receipt.

    Parameters
    ----------
    topic
        Where to.
    body
        The body as text; `@FILE` takes a file's bytes, `-` takes standard input.
    tag
        What consumers can filter by.
    key
        What the message can be found by; repeatable.
    property
        NAME=VALUE of your own; repeatable.
    message_group
        Messages of one group keep their order.
    delay
        Deliver it so many seconds later.
    count
        Send it so many times.
    timeout
        Seconds to wait for the broker.
    """
    if count < 1:
        raise UsageError("--count must be at least 1")
    if timeout <= 0:
        raise UsageError("--timeout must be above 0")
    data = _body(body)
    properties = name_value_pairs(property, "--property")

    async def run() -> list[dict[str, Any]]:
        import pocketmq

        async with pocketmq.connect(name_servers(namesrv)) as client:
            receipts = await asyncio.gather(
                *(
                    client.send(
                        topic,
                        data,
                        tag=tag,
                        keys=key or (),
                        properties=properties,
                        message_group=message_group,
                        delay=delay,
                        timeout=timeout,
                    )
                    for _ in range(count)
                )
            )
        return [
            {
                "message_id": receipt.message_id,
                "offset_message_id": receipt.offset_message_id,
                "broker": receipt.queue.broker_name,
                "queue": receipt.queue.queue_id,
                "offset": receipt.queue_offset,
                "status": receipt.status,
            }
            for receipt in receipts
        ]

    rows = asyncio.run(run())
    if output == "json":
        write_json(rows if count > 1 else rows[0])
    elif count == 1:
        show_one(rows[0], output)
    else:
        for row in rows:
            print(row["message_id"], row["broker"], row["queue"], row["offset"], row["status"])


def receive(
    topic: str,
    /,
    *,
    group: str,
    count: int = 1,
    tag: str | None = None,
    from_where: Literal["last", "first"] = "first",
    wait: float = 10.0,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> int:
    """Receive messages as a consumer of a group, acknowledge and print them.

    Exit code 1 when fewer than asked for came in time.

    Parameters
    ----------
    topic
        Where from.
    group
        Consumer group; its position moves on.
    count
        Stop after so many messages; 0 goes on until Ctrl-C.
    tag
        Only messages with this tag (`a || b` for several).
    from_where
        Where a group begins that was never here.
    wait
        Give up when nothing came for so many seconds (not with --count 0).
    """
    if count < 0 or wait <= 0:
        raise UsageError("--count must be at least 0, and --wait above 0")

    async def run() -> int:
        import pocketmq

        received = 0
        async with pocketmq.connect(name_servers(namesrv)) as client:
            await client.queues(topic)
            consumer = client.consume(
                topic,
                group=group,
                filter=tag,
                from_where=from_where,
                concurrency=max(1, min(count or 1024, 1024)),
                drain=RECEIVE_DRAIN_S,
            )
            async with consumer:
                while not count or received < count:
                    try:
                        delivery = await asyncio.wait_for(anext(consumer), None if count == 0 else wait)
                    except (TimeoutError, StopAsyncIteration):
                        break
                    async with delivery:
                        _print_message(delivery, output)
                        received += 1
        return received

    received = asyncio.run(run())
    if received < count:
        print(f"pocketmq: {received} of {count} messages came within {wait:g} s", file=sys.stderr)
        return 1
    return 0


def tail(
    topic: str,
    /,
    *,
    tag: str | None = None,
    last: int = 10,
    follow: bool = True,
    namesrv: NamesrvOption = None,
    output: Output = "table",
) -> int:
    """Print the newest messages of a topic and go on with what comes, until Ctrl-C. Moves no consumer's position.

    Parameters
    ----------
    topic
        Where from.
    tag
        Only messages with this tag (`a || b` for several).
    last
        Begin with so many of the newest messages of each queue.
    follow
        --no-follow stops at the end.
    """
    if last < 0:
        raise UsageError("--last must be at least 0")

    async def run() -> None:
        import pocketmq

        async with pocketmq.connect(name_servers(namesrv)) as client:
            queues = await client.queues(topic)
            await asyncio.gather(*(_tail_queue(client, queue, tag, last, follow, output) for queue in queues))

    asyncio.run(run())
    return 0


async def _tail_queue(
    client: "Client", queue: "MessageQueue", tag: str | None, last: int, follow: bool, output: Output
) -> None:
    first, end = await client.first_offset(queue), await client.end_offset(queue)
    offset = max(first, end - last)
    while follow or offset < end:
        wait = TAIL_WAIT_S if follow else 0.0
        result = await client.pull(queue, offset, group="TOOLS_CONSUMER", max=TAIL_PULL_COUNT, wait=wait, filter=tag)
        for message in result.messages:
            _print_message(message, output)
        offset = result.next_offset


def _print_message(message: "ReceivedMessage", output: Output) -> None:
    if output == "json":
        print(msgspec.json.encode(message_fields(message)).decode(), flush=True)
        return
    marks = [f"{message.broker_name}/{message.queue_id}@{message.queue_offset}"]
    if message.tag:
        marks.append(f"tag={message.tag}")
    if message.keys:
        marks.append(f"keys={','.join(message.keys)}")
    if message.delivery_attempt > 1:
        marks.append(f"attempt={message.delivery_attempt}")
    print(f"{' '.join(marks)}  {body_text(message.body)}", flush=True)


def message_fields(message: "ReceivedMessage") -> dict[str, Any]:
    """A received message as plain values for JSON: its body as `body` when it is UTF-8, else as `body_base64`."""
    try:
        body = {"body": message.body.decode()}
    except UnicodeDecodeError:
        body = {"body_base64": base64.b64encode(message.body).decode()}
    return {
        "topic": message.topic,
        "message_id": message.message_id,
        "offset_message_id": message.offset_message_id,
        "broker": message.broker_name,
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "tag": message.tag,
        "keys": list(message.keys),
        "attempt": message.delivery_attempt,
        "born": message.born_timestamp,
        "stored": message.store_timestamp,
        "producer": message.born_host,
        "properties": message.properties,
        **body,
    }


def _body(text: str) -> bytes:
    if text == "-":
        return sys.stdin.buffer.read()
    if text.startswith("@"):
        try:
            return Path(text[1:]).read_bytes()
        except OSError as error:
            raise UsageError(f"the body cannot be read from {text[1:]}: {error.strerror or error}") from error
    return os.fsencode(text)  # the very bytes of the command line, text or not
