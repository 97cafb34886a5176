"""Steps that look at what is stored: messages, positions, keys."""

from typing import Any

from pocketmq.client import Delivery
from pocketmq.testing.scenario.acting import Play, Seen, step
from pocketmq.testing.scenario.script import Step
from pocketmq.testing.scenario.stage import plain
from pocketmq.testing.scenario.steps_admin import queue_of
from pocketmq.testing.scenario.steps_consuming import wanted
from pocketmq.testing.scenario.values import duration, number, shown, text

_WITHIN: dict[str, Any] = {"within": duration}


@step(
    "pull TOPIC QUEUE OFFSET",
    options={"group": text, "tags": text, "sql": text, "max": number},
    seen="messages",
    facts=frozenset({"next", "first", "end", "status"}),
)
async def pull(play: Play, call: Step) -> Seen:
    """Ask once for messages of a queue; nothing is settled.

    Beside the bodies: `next=` (offset), `first=`, `end=`, `status=found|nothing-new|nothing-matched|offset-moved`.
    """
    client = play.stage.client("reader")
    work = client.pull(
        await queue_of(play, call),
        number(call.arguments["OFFSET"]),
        group=play.stage.real(call.options.get("group", "readers")),
        max=call.options.get("max", 32),
        filter=wanted(call),
    )
    result = await play.stage.call("reader", work)
    facts: dict[str, object] = {
        "next": result.next_offset,
        "first": result.min_offset,
        "end": result.max_offset,
        "status": result.status.value.replace(" ", "-"),
    }
    return Seen([shown(message.body) for message in result.messages], facts)


@step("messages TOPIC QUEUE", options=_WITHIN, seen="messages")
async def messages(play: Play, call: Step) -> Seen:
    """All messages of a queue, in order; TOPIC may be `%DLQ%group` or `%RETRY%group`, too."""
    return Seen([shown(message.body) for message in await _read(play, call)])


@step("dead-letters GROUP", options=_WITHIN, seen="messages")
async def dead_letters(play: Play, call: Step) -> Seen:
    """All dead letters of a group."""
    group = plain(call.arguments["GROUP"])
    details = [topic for topic in await play.stage.admin.topics.names() if topic == play.stage.real(f"%DLQ%{group}")]
    if not details:
        return Seen([])
    return Seen([shown(message.body) for message in await _read_all(play, f"%DLQ%{group}", 0)])


@step("properties TOPIC QUEUE OFFSET", seen="facts", facts=frozenset({"*"}), options=_WITHIN)
async def properties(play: Play, call: Step) -> Seen:
    """Properties of a stored message: `=> TAGS=new region=north`; `-` for one that it does not have."""
    topic = play.stage.real(call.arguments["TOPIC"])
    offset = number(call.arguments["OFFSET"])
    message = await play.stage.admin.messages.at(topic, number(call.arguments["QUEUE"]), offset)
    names = call.expected.facts if call.expected is not None else {}
    return Seen(facts={name: message.properties.get(name, "-") for name in names})


@step("find TOPIC KEY", options=_WITHIN, seen="messages")
async def find(play: Play, call: Step) -> Seen:
    """Messages with a key, oldest first."""
    topic = play.stage.real(call.arguments["TOPIC"])
    found = await play.stage.admin.messages.find(topic, call.arguments["KEY"])
    return Seen([shown(message.body) for message in sorted(found, key=lambda each: each.physical_offset)])


@step("cursor GROUP TOPIC QUEUE", options=_WITHIN, seen="an offset, or none")
async def cursor(play: Play, call: Step) -> Seen:
    """The stored position of a group in a queue; consumers store theirs every 5 s and when they close."""
    client = play.stage.client("reader")
    group = play.stage.real(call.arguments["GROUP"])
    found = await play.stage.call("reader", client.committed_offset(await queue_of(play, call), group=group))
    return Seen(["none" if found is None else str(found)])


@step("offsets TOPIC QUEUE", options=_WITHIN, seen="the first offset and the end")
async def offsets(play: Play, call: Step) -> Seen:
    """The offset of the first message that is still stored, and the one that the next message will get."""
    client = play.stage.client("reader")
    queue = await queue_of(play, call)
    first = await play.stage.call("reader", client.first_offset(queue))
    return Seen([str(first), str(await play.stage.call("reader", client.end_offset(queue)))])


async def _read(play: Play, call: Step) -> list[Delivery]:
    return await _read_all(play, call.arguments["TOPIC"], number(call.arguments["QUEUE"]))


async def _read_all(play: Play, topic: str, queue_id: int) -> list[Delivery]:
    client = play.stage.client("reader")
    queues = await play.stage.call("reader", client.queues(play.stage.real(topic)))
    found = [queue for queue in queues if queue.queue_id == queue_id]
    if not found:
        raise ValueError(f"{topic} has no queue {queue_id} that can be read")
    offset = await play.stage.call("reader", client.first_offset(found[0]))
    messages: list[Delivery] = []
    while offset < await play.stage.call("reader", client.end_offset(found[0])):
        work = client.pull(found[0], offset, group=play.stage.real("readers"))
        result = await play.stage.call("reader", work)
        messages += result.messages
        offset = result.next_offset
    return messages
