"""What brokers ask of a client, and what it answers."""

import asyncio
import logging

import pytest

from pocketmq import MessageQueue
from pocketmq.wire.bodies import (
    ConsumeMessageDirectlyResult,
    ConsumerRunningInfo,
    GetConsumerStatusBody,
    ResetOffsetBody,
    decode_body,
    encode_body,
)
from pocketmq.wire.codes import RequestCode as Code

QUEUE = MessageQueue("orders", "broker-a", 0)


async def ask(cluster, code, fields, body=b""):
    """A request from the broker to the one client that is connected to it."""
    [connection] = cluster.broker.connections
    return await connection.request(code, fields, body, timeout_s=20.0)


async def consuming(cluster, **options):
    cluster.topics["orders"] = 1
    client = cluster.connect()
    await client.send_batch("orders", [b"%d" % n for n in range(5)])
    return await client.consume("orders", group="g", from_where="first", **options).start()


def test_a_request_that_nobody_handles_is_answered_with_3(simulate):
    async def story(cluster):
        await consuming(cluster)
        answer = await ask(cluster, 4711, {})
        assert answer.code == 3

    simulate(story)


def test_an_operator_can_reset_positions(simulate):
    async def story(cluster):
        consumer = await consuming(cluster)
        for _ in range(5):
            async with await consumer.next(timeout=5):
                pass
        fields = {"group": "g", "topic": "orders", "timestamp": "0", "isForce": "true"}
        body = encode_body(ResetOffsetBody(offset_table={QUEUE: 2}))
        answer = await ask(cluster, Code.RESET_CONSUMER_CLIENT_OFFSET, fields, body)
        assert answer.code == 0
        message = await consumer.next(timeout=5)
        assert message.body == b"2"
        assert cluster.broker.positions["g", "orders", 0] == 2

    simulate(story)


def test_an_operator_sees_positions_and_the_state_of_a_consumer(simulate):
    async def story(cluster):
        consumer = await consuming(cluster)
        async with await consumer.next(timeout=5):
            pass
        answer = await ask(cluster, Code.GET_CONSUMER_STATUS_FROM_CLIENT, {"group": "g", "topic": "orders"})
        assert decode_body(answer.body, GetConsumerStatusBody).message_queue_table == {QUEUE: 1}
        answer = await ask(cluster, Code.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "g", "clientId": "x"})
        info = decode_body(answer.body, ConsumerRunningInfo)
        assert info.mq_table[QUEUE].commit_offset == 1
        assert info.mq_table[QUEUE].cached_msg_count == 4
        assert {s.topic for s in info.subscription_set} == {"orders", "%RETRY%g"}
        answer = await ask(cluster, Code.GET_CONSUMER_RUNNING_INFO, {"consumerGroup": "other", "clientId": "x"})
        assert answer.code == 1

    simulate(story)


@pytest.mark.parametrize(
    ("fails", "result"), [(None, "CR_SUCCESS"), (ValueError("no"), "CR_THROW_EXCEPTION"), ("nack", "CR_LATER")]
)
def test_an_operator_can_have_a_message_tried(simulate, caplog, fails, result):
    async def story(cluster):
        consumer = await consuming(cluster)
        for _ in range(5):
            async with await consumer.next(timeout=5):
                pass
        record = cluster.broker.queues["orders", 0][3]
        fields = {"consumerGroup": "g", "clientId": "x", "msgId": "y", "brokerName": "broker-a", "topic": "orders"}
        asked = asyncio.ensure_future(ask(cluster, Code.CONSUME_MESSAGE_DIRECTLY, fields, record))
        message = await consumer.next(timeout=5)
        assert message.body == b"3"
        with caplog.at_level(logging.CRITICAL):
            async with message:
                if fails == "nack":
                    await message.nack()
                elif fails:
                    raise fails
        outcome = decode_body((await asked).body, ConsumeMessageDirectlyResult)
        assert outcome.consume_result == result
        assert consumer.positions()[QUEUE] == 5
        assert not cluster.broker.asked(Code.CONSUMER_SEND_MSG_BACK)

    simulate(story)


def test_a_trial_that_nobody_takes_is_answered_in_time(simulate):
    async def story(cluster):
        await consuming(cluster)
        record = cluster.broker.queues["orders", 0][3]
        fields = {"consumerGroup": "g", "clientId": "x", "msgId": "y", "brokerName": "broker-a", "topic": "orders"}
        answer = await ask(cluster, Code.CONSUME_MESSAGE_DIRECTLY, fields, record)
        assert decode_body(answer.body, ConsumeMessageDirectlyResult).consume_result == "CR_RETURN_NULL"
        answer = await ask(cluster, Code.CONSUME_MESSAGE_DIRECTLY, fields, b"garbage")
        assert answer.code == 1

    simulate(story)
