"""The SDK and SQL92 filters: what comes, and what a mistake in one looks like."""

import pytest

import pocketmq
from pocketmq import PocketMQError, Sql
from pocketmq.testing.embedded import AsyncEmbeddedServer


async def test_a_consumer_gets_what_its_expression_wants() -> None:
    async with AsyncEmbeddedServer() as server, pocketmq.connect(server.namesrv) as client:
        for number in range(10):
            await client.send("orders", b"%d" % number, properties={"amount": str(number), "region": "x"})
        wanted = Sql("amount > 5 AND region = 'x' AND amount <> 8")
        async with client.consume("orders", group="billing", filter=wanted, from_where="first") as consumer:
            bodies = set()
            while len(bodies) < 3:
                message = await consumer.next(timeout=10)
                assert message is not None
                async with message:
                    bodies.add(message.body)
        assert bodies == {b"6", b"7", b"9"}


async def test_a_consumer_with_a_broken_expression_does_not_start() -> None:
    async with AsyncEmbeddedServer() as server, pocketmq.connect(server.namesrv) as client:
        await client.send("orders", b"x")
        consumer = client.consume("orders", group="billing", filter=Sql("amount >"))
        with pytest.raises(PocketMQError, match="line 1, column 9") as caught:
            await consumer.next(timeout=10)
        assert caught.value.code == 23
        await consumer.close()
