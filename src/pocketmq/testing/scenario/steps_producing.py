"""Steps that send: single messages, batches, transactions."""

import asyncio
from typing import Any

import msgspec

from pocketmq.client import Transaction
from pocketmq.model.message import Message, MessageQueue
from pocketmq.testing.scenario.acting import Play, Seen, step
from pocketmq.testing.scenario.script import Step
from pocketmq.testing.scenario.values import duration, number, one_of, size, text, words
from pocketmq.wire.properties import PropertyKey

_MESSAGE_OPTIONS: dict[str, Any] = {
    "tag": text,
    "keys": words,
    "property": text,
    "size": size,
    "group": text,
    "queue": number,
    "by": text,
}
_LATER_OPTIONS: dict[str, Any] = {"delay": duration, "level": number, "at": duration, "together": one_of("yes", "no")}
DECISIONS = {"commit": True, "rollback": False, "unknown": None}


def _message(play: Play, call: Step, body: str) -> Message:
    options = call.options
    content = body.encode()
    if "size" in options:
        content = (content + b" ").ljust(options["size"], b"x")
    properties = dict(call.properties)
    if "group" in options:
        properties[PropertyKey.SHARDING_KEY] = options["group"]
    if "delay" in options:
        properties[PropertyKey.TIMER_DELAY_MS] = str(round(options["delay"] * 1000))
    if "at" in options:
        due_ms = play.stage.clock.time_ms() + round(options["at"] * 1000)
        properties[PropertyKey.TIMER_DELIVER_MS] = str(due_ms)
    return Message(
        topic=play.stage.real(call.arguments["TOPIC"]),
        body=content,
        tag=options.get("tag"),
        keys=options.get("keys", ()),
        properties=properties,
        delay_level=options.get("level", 0),
    )


async def _queue(play: Play, call: Step, by: str) -> MessageQueue | None:
    wanted = call.options.get("queue")
    if wanted is None:
        return None
    topic = play.stage.real(call.arguments["TOPIC"])
    queues = await play.stage.call(by, play.stage.client(by).queues(topic))
    return next((queue for queue in queues if queue.queue_id == wanted), MessageQueue(topic, "broker-a", wanted))


@step("send TOPIC BODY...", options=_MESSAGE_OPTIONS | _LATER_OPTIONS)
async def send(play: Play, call: Step) -> None:
    """Send messages, one after the other (`together=yes`: at the same time).

    `tag=`, `keys=a,b`, `property.NAME=`, `size=`, `group=` (a message group), `queue=`, `delay=10s` (any time),
    `level=3` (one of the 18), `at=10s` (an absolute time, so much from now), `by=` (the producer's name).
    """
    by = call.options.get("by", "producer")
    client = play.stage.client(by)
    queue = await _queue(play, call, by)
    messages = [_message(play, call, body) for body in call.bodies]
    for body in call.bodies:
        play.touch(body)
    if call.options.get("together") == "yes":
        await play.stage.call(by, _send_together(play, by, messages, queue))
        return
    for body, message in zip(call.bodies, messages, strict=True):
        play.touch(body)
        await play.stage.call(by, client.send(message, queue=queue))


async def _send_together(play: Play, by: str, messages: list[Message], queue: MessageQueue | None) -> None:
    client = play.stage.client(by)
    await asyncio.gather(*(client.send(message, queue=queue) for message in messages))


@step("batch TOPIC BODY...", options=_MESSAGE_OPTIONS | {"large": text})
async def batch(play: Play, call: Step) -> None:
    """Send messages as one batch, to one queue. With `large=m2` that one gets the `size=`, and the others none."""
    by = call.options.get("by", "producer")
    messages = [_message(play, call, body) for body in call.bodies]
    large = call.options.get("large")
    if large is not None:
        messages = [
            message if body == large else msgspec.structs.replace(message, body=body.encode())
            for body, message in zip(call.bodies, messages, strict=True)
        ]
    for body in call.bodies:
        play.touch(body)
    await play.stage.call(by, play.stage.client(by).send_batch(messages))


@step("send-oneway TOPIC BODY...", options=_MESSAGE_OPTIONS)
async def send_oneway(play: Play, call: Step) -> None:
    """Send messages that nobody answers."""
    by = call.options.get("by", "producer")
    queue = await _queue(play, call, by)
    for body in call.bodies:
        play.touch(body)
        message = _message(play, call, body)
        await play.stage.call(by, play.stage.client(by).send_oneway(message, queue=queue))


# -- transactions ----------------------------------------------------------------------------------------------------


@step("transaction begin NAME TOPIC BODY", options=_MESSAGE_OPTIONS | _LATER_OPTIONS | {"immunity": duration})
async def begin(play: Play, call: Step) -> None:
    """Send a half message. `immunity=30s`: nobody is asked about it before."""
    by = call.options.get("by", "producer")
    body = call.arguments["BODY"]
    transaction = play.stage.client(by).transaction(
        _message(play, call, body), check=play.check, immunity=call.options.get("immunity")
    )
    play.touch(body)
    await play.stage.call(by, transaction.__aenter__())
    play.transactions[call.arguments["NAME"]] = (by, transaction)


@step("transaction commit NAME")
async def commit(play: Play, call: Step) -> None:
    """Commit it."""
    by, transaction = play.transaction(call.arguments["NAME"])
    await play.stage.call(by, transaction.commit())


@step("transaction rollback NAME")
async def rollback(play: Play, call: Step) -> None:
    """Roll it back."""
    by, transaction = play.transaction(call.arguments["NAME"])
    await play.stage.call(by, transaction.rollback())


@step("transaction leave NAME")
async def leave(play: Play, call: Step) -> None:
    """Decide nothing: the broker has to ask."""
    _leave(play.transaction(call.arguments["NAME"])[1])


def _leave(transaction: Transaction) -> None:
    transaction.leave_open()


@step("answer DECISION BODY...")
async def answer(play: Play, call: Step) -> None:
    """What producers answer from now on when they are asked: `commit`, `rollback`, or `unknown` (the default)."""
    decision = call.arguments["DECISION"]
    if decision not in DECISIONS:
        raise ValueError(f"{decision!r} is none of {', '.join(DECISIONS)}")
    for body in call.bodies:
        play.answers[body] = DECISIONS[decision]


@step("watch PRODUCER TOPIC")
async def watch(play: Play, call: Step) -> None:
    """Let a producer be there to be asked, without sending anything."""
    name = call.arguments["PRODUCER"]
    topic = play.stage.real(call.arguments["TOPIC"])
    await play.stage.call(name, play.stage.client(name).watch_transactions(topic, play.check))


@step("asked BODY", seen="a number")
async def asked(play: Play, call: Step) -> Seen:
    """How often producers were asked about a message."""
    return Seen([str(play.asked.get(call.arguments["BODY"], 0))])
