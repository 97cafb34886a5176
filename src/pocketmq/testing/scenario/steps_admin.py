"""Steps of an operator: topics, groups, positions."""

from typing import Any

from pocketmq.model.message import MessageQueue
from pocketmq.testing.scenario.acting import Play, Seen, step
from pocketmq.testing.scenario.script import Step
from pocketmq.testing.scenario.stage import moment
from pocketmq.testing.scenario.values import mark, number, one_of, place, text, yes

_GROUP_FIELDS = {
    "retries": "retry_max_times",
    "retry-queues": "retry_queue_nums",
    "enabled": "consume_enable",
    "broadcast": "consume_broadcast_enable",
}
_GROUP_OPTIONS: dict[str, Any] = {"retries": number, "retry-queues": number, "enabled": yes, "broadcast": yes}
_TOPIC_OPTIONS = {"queues": number, "permission": one_of("rw", "r", "w", "-"), "order": yes}


@step("topic TOPIC", options=_TOPIC_OPTIONS)
async def topic(play: Play, call: Step) -> None:
    """Create a topic; it has one queue unless `queues=` says otherwise."""
    values = {"queues": 1} | dict(call.options)
    await play.stage.admin.topics.create(play.stage.real(call.arguments["TOPIC"]), **values)


@step("change topic TOPIC", options=_TOPIC_OPTIONS)
async def change_topic(play: Play, call: Step) -> None:
    """Change a topic; what is not given stays."""
    await play.stage.admin.topics.update(play.stage.real(call.arguments["TOPIC"]), **call.options)


@step("delete topic TOPIC")
async def delete_topic(play: Play, call: Step) -> None:
    """Delete a topic with its messages."""
    await play.stage.admin.topics.delete(play.stage.real(call.arguments["TOPIC"]))


@step("group GROUP", options=_GROUP_OPTIONS)
async def group(play: Play, call: Step) -> None:
    """Create a consumer group."""
    await play.stage.admin.groups.create(play.stage.real(call.arguments["GROUP"]), **_group_fields(call))


@step("change group GROUP", options=_GROUP_OPTIONS)
async def change_group(play: Play, call: Step) -> None:
    """Change a consumer group; what is not given stays."""
    await play.stage.admin.groups.update(play.stage.real(call.arguments["GROUP"]), **_group_fields(call))


@step("delete group GROUP")
async def delete_group(play: Play, call: Step) -> None:
    """Delete a consumer group."""
    await play.stage.admin.groups.delete(play.stage.real(call.arguments["GROUP"]))


@step("reset GROUP TOPIC", options={"to": place, "queue": number})
async def reset(play: Play, call: Step) -> None:
    """Set where a group goes on: `to=first`, `to=last`, `to=5`, `to=@name`; in one queue or in all."""
    to = call.options["to"]
    if isinstance(to, str) and to.startswith("@"):
        to = moment(play.time_ms(to))
    await play.stage.admin.offsets.reset(
        play.stage.real(call.arguments["GROUP"]),
        play.stage.real(call.arguments["TOPIC"]),
        to,
        queue=call.options.get("queue"),
    )


@step("skip GROUP TOPIC")
async def skip(play: Play, call: Step) -> None:
    """Let a group leave out all that waits for it in a topic."""
    real = play.stage.real
    await play.stage.admin.offsets.skip(real(call.arguments["GROUP"]), topic=real(call.arguments["TOPIC"]))


@step("clone GROUP TARGET", options={"topic": text})
async def clone(play: Play, call: Step) -> None:
    """Give the group TARGET the positions of GROUP."""
    real = play.stage.real
    name = call.options.get("topic")
    await play.stage.admin.offsets.clone(
        real(call.arguments["GROUP"]), real(call.arguments["TARGET"]), topic=None if name is None else real(name)
    )


@step("commit GROUP TOPIC QUEUE OFFSET")
async def commit(play: Play, call: Step) -> None:
    """Store a position of a group as a client that reads by hand does."""
    client = play.stage.client("reader")
    queue = await queue_of(play, call)
    group = play.stage.real(call.arguments["GROUP"])
    await play.stage.call("reader", client.commit_offset(queue, number(call.arguments["OFFSET"]), group=group))


@step("topic-of TOPIC", seen="facts", facts=frozenset({"queues", "permission", "messages"}))
async def topic_of(play: Play, call: Step) -> Seen:
    """A topic's settings: `queues=`, `permission=`, `messages=`."""
    details = await play.stage.admin.topics.show(play.stage.real(call.arguments["TOPIC"]))
    config = details.brokers[0].config
    letters = ("r" if config.perm & 4 else "") + ("w" if config.perm & 2 else "")
    return Seen(facts={"queues": config.read_queue_nums, "permission": letters or "-", "messages": details.messages})


@step("members GROUP", seen="a number")
async def members(play: Play, call: Step) -> Seen:
    """How many consumers of a group the broker knows."""
    details = await play.stage.admin.groups.show(play.stage.real(call.arguments["GROUP"]))
    return Seen([str(len(details.membership.members))])


@step("offset-at TOPIC QUEUE MARK", seen="an offset")
async def offset_at(play: Play, call: Step) -> Seen:
    """The offset of the first message of a queue stored at a remembered moment or later."""
    when = play.time_ms(mark(call.arguments["MARK"])) / 1000
    client = play.stage.client("reader")
    return Seen([str(await play.stage.call("reader", client.offset_at(await queue_of(play, call), when)))])


async def queue_of(play: Play, call: Step) -> MessageQueue:
    """The queue that a step names. Raises PocketMQError, ValueError."""
    client = play.stage.client("reader")
    wanted = number(call.arguments["QUEUE"])
    queues = await play.stage.call("reader", client.queues(play.stage.real(call.arguments["TOPIC"])))
    found = [queue for queue in queues if queue.queue_id == wanted]
    if not found:
        raise ValueError(f"{call.arguments['TOPIC']} has no queue {wanted} that can be read; it has {len(queues)}")
    return found[0]


def _group_fields(call: Step) -> dict[str, Any]:
    return {_GROUP_FIELDS[name]: value for name, value in call.options.items()}
