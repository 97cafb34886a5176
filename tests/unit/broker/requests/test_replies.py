"""Replies to requests: pushed to the producer that waits for them, and stored."""

from typing import Any

import pytest

from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from pocketmq.wire.properties import decode_properties, encode_properties
from pocketmq.wire.record import decode_records

World = Any
Client = Any

TOPIC = "DefaultCluster_REPLY_TOPIC"


@pytest.fixture
async def requester(world: World) -> Client:
    """A producer that waits for replies."""
    client = await world.connect()
    await client.heartbeat("r1", producers=("askers",))
    return client


async def reply(
    client: Client, to: str | None = "r1", *, body: bytes = b"42", topic: str = TOPIC, v1: bool = False, expect: int = 0
) -> Command:
    properties = {"UNIQ_KEY": "AC11000200002A9F0000000000000001", "MSG_TYPE": "reply", "CORRELATION_ID": "c-1"}
    if to is not None:
        properties["REPLY_TO_CLIENT"] = to
    fields = {
        "producer_group": "answerers",
        "topic": topic,
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 1,
        "born_timestamp": 7,
        "flag": 3,
        "properties": encode_properties(properties),
    }
    if v1:
        return await client.ask(RequestCode.SEND_REPLY_MESSAGE, SendMessageRequestHeader(**fields), body, expect=expect)
    header = SendMessageRequestHeaderV2(**fields)
    return await client.ask(RequestCode.SEND_REPLY_MESSAGE_V2, header, body, expect=expect)


def pushed(requester: Client) -> list[Command]:
    return [command for command in requester.asked if command.code == RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT]


async def stored(client: Client) -> list[bytes]:
    answer = await client.pull(TOPIC, "readers", 0)
    return [record.body for record in decode_records(answer.body)]


@pytest.fixture
async def replier(world: World) -> Client:
    client = await world.connect()
    await client.heartbeat("c1", groups=("readers",), topics={TOPIC: "*"})
    return client


@pytest.mark.parametrize("v1", [False, True])
async def test_a_reply_is_pushed_to_who_asked_and_stored(
    world: World, replier: Client, requester: Client, v1: bool
) -> None:
    before = world.clock.time_ms()
    answer = await reply(replier, v1=v1)
    assert answer.ext()["queueId"] == "0"
    assert answer.ext()["queueOffset"] == "0"
    assert len(answer.ext()["msgId"]) == 32
    (push,) = pushed(requester)
    fields = push.ext()
    assert push.body == b"42"
    assert fields["topic"] == TOPIC
    assert fields["sysFlag"] == "1", "a compressed body is passed on as it is"
    assert fields["flag"] == "3"
    assert fields["bornTimestamp"] == "7"
    assert int(fields["storeTimestamp"]) >= before
    assert fields["bornHost"].rpartition(":")[0]
    assert fields["storeHost"].rpartition(":")[0]
    properties = decode_properties(fields["properties"])
    assert properties["CORRELATION_ID"] == "c-1"
    assert int(properties["PUSH_REPLY_TIME"]) >= before
    assert await stored(replier) == [b"42"]


async def test_replies_need_not_be_stored(world: World, replier: Client, requester: Client) -> None:
    world.broker.settings.broker.store_replies = False
    answer = await reply(replier)
    assert answer.ext()["msgId"] == "0"
    assert len(pushed(requester)) == 1
    assert await stored(replier) == []


@pytest.mark.parametrize("to", ["somebody-else", None])
async def test_a_reply_to_nobody_is_refused_and_stored(replier: Client, requester: Client, to: str | None) -> None:
    answer = await reply(replier, to, expect=1)
    assert (to or "REPLY_TO_CLIENT") in answer.remark
    assert await stored(replier) == [b"42"]
    assert pushed(requester) == []


async def test_a_client_that_refuses_a_reply(replier: Client, requester: Client) -> None:
    requester.reply = lambda command: encode_response(command.opaque, 1, "not now")
    answer = await reply(replier, expect=1)
    assert "not now" in (answer.remark or "")
    assert await stored(replier) == [b"42"]


async def test_a_client_that_says_nothing_is_given_up(world: World, replier: Client, requester: Client) -> None:
    requester.reply = lambda command: None
    before = world.clock.monotonic()
    await reply(replier, expect=1)
    assert world.clock.monotonic() - before == pytest.approx(10, abs=0.1)


async def test_a_client_that_goes_away_instead(replier: Client, requester: Client) -> None:
    connection: RemotingConnection = requester.connection
    requester.reply = lambda command: connection.close()
    await reply(replier, expect=1)


async def test_the_newest_connection_of_a_client_gets_the_reply(
    world: World, replier: Client, requester: Client
) -> None:
    again = await world.connect()
    await again.heartbeat("r1", producers=("askers",))
    await reply(replier)
    assert len(pushed(again)) == 1
    assert pushed(requester) == []


async def test_what_cannot_be_sent_is_not_pushed(replier: Client, requester: Client) -> None:
    await reply(replier, topic="SCHEDULE_TOPIC_XXXX", expect=16)
    await reply(replier, body=b"", expect=13)
    assert pushed(requester) == []


async def test_with_synchronous_flush_a_reply_is_durable_when_it_is_answered(world: World, requester: Client) -> None:
    await world.stop()
    world.settings.store.flush = "sync"
    await world.start()
    requester = await world.connect()
    await requester.heartbeat("r1", producers=("askers",))
    await reply(await world.connect())
    assert world.broker.log.durable_position == world.broker.log.written_position


async def test_the_topic_of_traces_is_made_when_it_is_wanted(world: World) -> None:
    assert "RMQ_SYS_TRACE_TOPIC" in world.broker.topics
    await world.stop()
    world.settings.broker.trace_topic_name = "traces"
    await world.start()
    assert "traces" in world.broker.topics
    await world.stop()
    world.settings.broker.trace_topic = False
    world.settings.broker.trace_topic_name = "others"
    await world.start()
    assert "others" not in world.broker.topics
