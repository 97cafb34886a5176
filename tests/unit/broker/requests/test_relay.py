"""What the broker asks clients on behalf of operators."""

from typing import Any

import pytest

from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import encode_body
from pocketmq.wire.bodies.offsets import GetConsumerStatusBody
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.clients import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
)
from pocketmq.wire.record import decode_records

World = Any
Client = Any


@pytest.fixture
async def consumer(world: World) -> Client:
    """A consumer of group g, that was told of itself already."""
    client = await world.connect()
    await client.heartbeat("c1", groups=("g",))
    client.asked.clear()
    return client


def asked(consumer: Client, code: RequestCode) -> Command:
    (command,) = [command for command in consumer.asked if command.code == code]
    assert isinstance(command, Command)
    return command


async def test_what_a_consumer_says_about_itself_is_passed_back_as_it_is(client: Client, consumer: Client) -> None:
    consumer.reply = lambda command: encode_response(command.opaque, body=b'{"jstack":"...",odd:{{"a":1}:2}}')
    header = GetConsumerRunningInfoRequestHeader("g", "c1", True)
    answer = await client.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header)
    assert answer.body == b'{"jstack":"...",odd:{{"a":1}:2}}'
    fields = asked(consumer, RequestCode.GET_CONSUMER_RUNNING_INFO).ext()
    assert fields == {"consumerGroup": "g", "clientId": "c1", "jstackEnable": "true"}


@pytest.mark.parametrize(("group", "client_id"), [("g", "c2"), ("h", "c1")])
async def test_a_consumer_that_is_not_there(client: Client, consumer: Client, group: str, client_id: str) -> None:
    header = GetConsumerRunningInfoRequestHeader(group, client_id, False)
    await client.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header, expect=1)


async def test_a_consumer_that_does_not_answer(world: World, client: Client, consumer: Client) -> None:
    consumer.reply = lambda command: None
    before = world.clock.monotonic()
    header = GetConsumerRunningInfoRequestHeader("g", "c1", False)
    await client.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header, expect=207)
    assert world.clock.monotonic() - before == pytest.approx(10, abs=0.1)


async def test_a_consumer_that_goes_away_instead_of_answering(client: Client, consumer: Client) -> None:
    def leave(command: Command) -> None:
        consumer.connection.close()

    consumer.reply = leave
    header = GetConsumerRunningInfoRequestHeader("g", "c1", False)
    await client.ask(RequestCode.GET_CONSUMER_RUNNING_INFO, header, expect=1)


async def test_a_message_is_given_to_a_consumer_directly(client: Client, consumer: Client) -> None:
    await client.create_topic("orders")
    message_id = (await client.send(body=b"again"))["msgId"]
    consumer.reply = lambda command: encode_response(command.opaque, body=b'{"consumeResult":"CR_SUCCESS"}')
    header = ConsumeMessageDirectlyResultRequestHeader("g", "c1", message_id, topic="orders")
    answer = await client.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    assert answer.body == b'{"consumeResult":"CR_SUCCESS"}'
    command = asked(consumer, RequestCode.CONSUME_MESSAGE_DIRECTLY)
    assert command.ext()["brokerName"] == "broker-a"
    assert [record.body for record in decode_records(command.body)] == [b"again"]


async def test_the_unique_key_names_the_message_as_well(client: Client, consumer: Client) -> None:
    await client.create_topic("orders")
    key = "AC11000200002A9F000000000000BEEF"
    await client.send(body=b"again", UNIQ_KEY=key)
    header = ConsumeMessageDirectlyResultRequestHeader("g", "c1", key, topic="orders")
    await client.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header)
    command = asked(consumer, RequestCode.CONSUME_MESSAGE_DIRECTLY)
    assert [record.body for record in decode_records(command.body)] == [b"again"]


async def test_a_message_that_is_not_there_cannot_be_given(client: Client, consumer: Client) -> None:
    header = ConsumeMessageDirectlyResultRequestHeader("g", "c1", "0A00000100002A9F0000000000001234")
    await client.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header, expect=1)
    header = ConsumeMessageDirectlyResultRequestHeader("g", "c1", "nonsense")
    await client.ask(RequestCode.CONSUME_MESSAGE_DIRECTLY, header, expect=29)


async def test_where_all_consumers_of_a_group_are(world: World, client: Client, consumer: Client) -> None:
    queue = MessageQueue("orders", "broker-a", 0)
    body = encode_body(GetConsumerStatusBody({queue: 3}))
    assert b'{{"brokerName"' in body, "the form that Java clients write"
    consumer.reply = lambda command: encode_response(command.opaque, body=body)
    silent = await world.connect()
    await silent.heartbeat("c2", groups=("g",))
    silent.reply = lambda command: None

    async def positions(client_id: str | None) -> dict[str, dict[MessageQueue, int]]:
        header = GetConsumerStatusRequestHeader("orders", "g", client_id)
        found = await client.ask_body(GetConsumerStatusBody, RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header)
        return dict(found.consumer_table)

    assert await positions(None) == {"c1": {queue: 3}}
    assert await positions("c1") == {"c1": {queue: 3}}


async def test_a_group_without_consumers_is_nowhere(client: Client) -> None:
    header = GetConsumerStatusRequestHeader("orders", "g", None)
    await client.ask(RequestCode.INVOKE_BROKER_TO_GET_CONSUMER_STATUS, header, expect=206)
