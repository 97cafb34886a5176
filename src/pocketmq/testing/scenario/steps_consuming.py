"""Steps of consumers: join a group, take messages, settle them."""

import asyncio
from typing import Any

from pocketmq.client import Delivery, Sql, Tag
from pocketmq.client.filters import Filter
from pocketmq.model.message import MessageQueue
from pocketmq.testing.scenario.acting import Play, Reader, Seen, step
from pocketmq.testing.scenario.script import Step
from pocketmq.testing.scenario.stage import MemoryCursors, moment
from pocketmq.testing.scenario.values import duration, number, one_of, shown, start, text, yes

WITHIN_S = 10.0
_CONSUME_OPTIONS: dict[str, Any] = {
    "group": text,
    "tags": text,
    "sql": text,
    "from": start,
    "orderly": yes,
    "mode": one_of("clustering", "broadcasting"),
    "attempts": number,
    "concurrency": number,
    "suspend": duration,
    "drain": duration,
    "handler": text,
    "on": text,
}
_TAKE_OPTIONS: dict[str, Any] = {
    "after": duration,
    "within": duration,
    "order": one_of("any", "kept"),
    "tolerance": duration,
}
_TAKE_FACTS = frozenset({"attempt", "topic", "tag", "keys", "size", "queue", "offset"})


def wanted(call: Step) -> Filter | None:
    """The filter that a step's options name."""
    if "sql" in call.options:
        return Sql(call.options["sql"])
    return Tag(call.options["tags"]) if "tags" in call.options else None


@step("consume NAME TOPIC", options=_CONSUME_OPTIONS)
async def consume(play: Play, call: Step) -> None:
    """Start a consumer of `group=`; TOPIC may be several, with commas between them.

    `tags="a || b"` or `sql="a > 5"`, `from=first|last|@name`, `orderly=yes`, `mode=broadcasting`, `attempts=3`,
    `concurrency=1`, `suspend=2s`, `handler=` the name of a function that is given every message, `on=` the client that
    it is a part of, by default one of its own that has its name.
    """
    options = call.options
    name = call.arguments["NAME"]
    client_name = options.get("on", name)
    arguments: dict[str, Any] = {
        each: options[each]
        for each in ("orderly", "mode", "attempts", "concurrency", "suspend", "drain")
        if each in options
    }
    where = options.get("from", "last")
    if options.get("mode") == "broadcasting":
        arguments["cursors"] = MemoryCursors()
    consumer = play.stage.client(client_name).consume(
        [play.stage.real(topic) for topic in call.arguments["TOPIC"].split(",")],
        group=play.stage.real(options["group"]),
        filter=wanted(call),
        from_where=moment(play.time_ms(where)) if where.startswith("@") else where,
        **arguments,
    )
    await play.stage.call(client_name, consumer.start())
    reader = play.readers[name] = Reader(consumer)
    if "handler" in options:
        _handle(play, reader, client_name, options["handler"])


def _handle(play: Play, reader: Reader, client_name: str, handler_name: str) -> None:
    if handler_name not in play.handlers:
        known = ", ".join(play.handlers) or "none"
        raise ValueError(f"there is no handler {handler_name!r}; handlers={{...}} of this run has {known}")
    handler = play.handlers[handler_name]

    async def work() -> None:
        async for message in reader.consumer:
            async with message:
                try:
                    await handler(message)
                except Exception:
                    reader.failed.append(shown(message.body))
                    raise
                reader.handled.append(shown(message.body))

    reader.task = asyncio.get_running_loop().create_task(play.stage.call(client_name, work()))


async def _next(play: Play, name: str, reader: Reader, timeout_s: float) -> Delivery | None:
    work = reader.consumer.next(timeout=timeout_s)
    owner = name if play.stage.has_client(name) else None
    return await (work if owner is None else play.stage.call(owner, work))


async def _take(play: Play, call: Step, name: str, count: int) -> list[Delivery]:
    """The next `count` messages; fewer when no more come in time. With `after=` each comes then, and not before."""
    reader = play.reader(name)
    taken: list[Delivery] = []
    clock = play.stage.clock
    after = call.options.get("after")
    tolerance_s = call.options.get("tolerance", play.stage.tolerance_s)
    deadline = clock.monotonic() + call.options.get("within", WITHIN_S) + (after or 0.0)
    while len(taken) < count:
        message = await _next(play, name, reader, max(0.0, deadline - clock.monotonic()))
        if message is None:
            break
        taken.append(message)
        if after is not None:
            body = shown(message.body)
            elapsed_s = clock.monotonic() - play.last_touched.get(body, 0.0)
            if not after - 0.02 <= elapsed_s <= after + tolerance_s:
                raise ValueError(f"{body} came after {elapsed_s:.3f} s, not {after:g} s")
    return taken


def _seen(play: Play, call: Step, taken: list[Delivery]) -> Seen:
    bodies = [shown(message.body) for message in taken]
    if call.options.get("order") == "any" and call.expected is not None and set(bodies) <= set(call.expected.words):
        bodies.sort(key=call.expected.words.index)
    facts: dict[str, object] = {}
    if taken:
        last = taken[-1]
        facts = {
            "attempt": last.delivery_attempt,
            "topic": last.topic,
            "tag": last.tag,
            "keys": ",".join(last.keys),
            "size": len(last.body),
            "queue": last.queue_id,
            "offset": last.queue_offset,
        }
        if call.expected is not None and "topic" in call.expected.facts:
            wanted_topic = call.expected.facts["topic"]
            facts["topic"] = wanted_topic if last.topic == play.stage.real(wanted_topic) else last.topic
    return Seen(bodies, facts)


def _count(call: Step) -> int:
    if call.expected is None:
        raise ValueError("this step needs an arrow: => the messages that come, or => nothing")
    return max(1, len(call.expected.words))


@step("receive NAME", options=_TAKE_OPTIONS | {"for": duration}, seen="messages", facts=_TAKE_FACTS)
async def receive(play: Play, call: Step) -> Seen:
    """Take the next messages and acknowledge them. `=> nothing for 2 s`, or for as long as `for=` says.

    `after=10s`: they come so long after they were sent (or given back), and not before. `within=`: how long they are
    waited for. `order=any`: in whatever order. What may be expected beside the bodies is that of the last one:
    `attempt=`, `tag=`, `keys=`, `size=`, `queue=`, `offset=`, `topic=`.
    """
    if call.expected is not None and not call.expected.words:
        reader = play.reader(call.arguments["NAME"])
        message = await _next(play, call.arguments["NAME"], reader, call.options.get("for", 2.0))
        return Seen([] if message is None else [shown(message.body)])
    taken = await _take(play, call, call.arguments["NAME"], _count(call))
    for message in taken:
        await message.ack()
    return _seen(play, call, taken)


@step("fail NAME", options=_TAKE_OPTIONS | {"delay": duration}, seen="messages", facts=_TAKE_FACTS)
async def fail(play: Play, call: Step) -> Seen:
    """Take the next messages and give them back, to be delivered again (`delay=`: after the level of that length)."""
    taken = await _take(play, call, call.arguments["NAME"], _count(call))
    seen = _seen(play, call, taken)
    for message in taken:
        await play.stage.call(_owner(play, call), message.nack(call.options.get("delay")))
        play.touch(shown(message.body))
    return seen


@step("reject NAME", options=_TAKE_OPTIONS, seen="messages", facts=_TAKE_FACTS)
async def reject(play: Play, call: Step) -> Seen:
    """Take the next messages and put them with the dead letters."""
    taken = await _take(play, call, call.arguments["NAME"], _count(call))
    for message in taken:
        await play.stage.call(_owner(play, call), message.reject())
    return _seen(play, call, taken)


@step("take NAME", options=_TAKE_OPTIONS, seen="messages", facts=_TAKE_FACTS)
async def take(play: Play, call: Step) -> Seen:
    """Take the next messages and settle them later, with `settle`."""
    taken = await _take(play, call, call.arguments["NAME"], _count(call))
    play.reader(call.arguments["NAME"]).out += taken
    return _seen(play, call, taken)


@step("settle NAME HOW BODY...")
async def settle(play: Play, call: Step) -> None:
    """Settle messages that were taken: `ack`, `fail` or `reject`."""
    reader, how = play.reader(call.arguments["NAME"]), call.arguments["HOW"]
    if how not in ("ack", "fail", "reject"):
        raise ValueError(f"{how!r} is none of ack, fail, reject")
    for body in call.bodies:
        found = [message for message in reader.out if shown(message.body) == body]
        if not found:
            raise ValueError(f"{call.arguments['NAME']} has not taken {body}, or has settled it")
        reader.out.remove(found[0])
        work = {"ack": found[0].ack, "fail": found[0].nack, "reject": found[0].reject}[how]
        await play.stage.call(_owner(play, call), work())
        play.touch(body)


@step("leave NAME")
async def leave(play: Play, call: Step) -> None:
    """Close a consumer in good order; its client stays."""
    reader = play.reader(call.arguments["NAME"])
    await play.stage.call(_owner(play, call), reader.consumer.close())


@step("seek NAME QUEUE OFFSET")
async def seek(play: Play, call: Step) -> None:
    """Let a consumer go on at another offset of a queue that it reads."""
    consumer = play.reader(call.arguments["NAME"]).consumer
    found = [queue for queue in _own_queues(consumer.queues) if queue.queue_id == number(call.arguments["QUEUE"])]
    if not found:
        raise ValueError(f"{call.arguments['NAME']} reads no queue {call.arguments['QUEUE']}")
    await consumer.seek(found[0], number(call.arguments["OFFSET"]))


@step("queues NAME", options={"within": duration}, seen="queue ids")
async def queues(play: Play, call: Step) -> Seen:
    """The queues that a consumer reads now; the group's retry queue is left out."""
    consumer = play.reader(call.arguments["NAME"]).consumer
    return Seen([str(queue.queue_id) for queue in sorted(_own_queues(consumer.queues))])


@step("handled NAME", options={"within": duration}, seen="messages")
async def handled(play: Play, call: Step) -> Seen:
    """What the handler of a consumer has dealt with so far, in order."""
    return Seen(list(play.reader(call.arguments["NAME"]).handled))


@step("failed NAME", options={"within": duration}, seen="messages")
async def failed(play: Play, call: Step) -> Seen:
    """What the handler of a consumer has raised for so far, in order."""
    return Seen(list(play.reader(call.arguments["NAME"]).failed))


def _own_queues(found: list[MessageQueue]) -> list[MessageQueue]:
    return [queue for queue in found if not queue.topic.startswith("%")]


def _owner(play: Play, call: Step) -> str:
    name = call.arguments["NAME"]
    return name if play.stage.has_client(name) else "producer"
