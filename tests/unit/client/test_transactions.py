"""Transactions with the SDK, against the broker of the house on virtual time."""

import random

import pytest

import pocketmq
import pocketmq.sync
from pocketmq import BrokerError, RequestTimeoutError, UsageError
from pocketmq.broker.broker import Broker
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.namesrv.server import NameServer
from pocketmq.testing import SimulatedNetwork, VirtualClock, run
from pocketmq.testing.embedded import EmbeddedServer, embedded_settings
from pocketmq.wire.codes import RequestCode

CHECK_S = 31


class House:
    """A name server and a broker on virtual time."""

    async def start(self):
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=3)
        settings = embedded_settings()
        settings.namesrv.host = settings.broker.host = "10.0.0.2"
        settings.namesrv.port, settings.broker.port = 9876, 10911
        settings.broker.namesrv = "10.0.0.2:9876"
        self.settings, self.disk, self.clients = settings, MemoryDisk(), []
        machine = self.network.host("10.0.0.2")
        self.name_server = NameServer(settings, clock=self.clock, network=machine, disk=self.disk)
        await self.name_server.start()
        self.broker = Broker(settings, clock=self.clock, disk=self.disk, network=machine)
        await self.broker.start()
        return self

    def connect(self, **options):
        options = {"producer_group": "payers", **options}
        number = random.Random(len(self.clients))
        client = pocketmq.connect(
            "10.0.0.2:9876", clock=self.clock, network=self.network.host(), random_source=number, **options
        )
        self.clients.append(client)
        return client

    def lose(self, code, count=1):
        """Do not hear the next requests of this code."""
        hear = self.broker.dispatcher._handlers[code]
        left = [count]

        def deaf(connection, command):
            if not left[0]:
                return hear(connection, command)
            left[0] -= 1
            return None

        self.broker.dispatcher._handlers[code] = deaf

    async def delivered(self, client, topic="orders"):
        found = []
        for queue in await client.queues(topic):
            result = await client.pull(queue, 0, group="reader")
            found += [message.body for message in result.messages]
        return sorted(found)


@pytest.fixture
def live():
    def live(story):
        async def main():
            house = await House().start()
            await story(house)
            for client in house.clients:
                await client.close()
            await house.broker.stop()
            await house.name_server.stop()

        run(main())

    return live


def test_the_message_is_delivered_at_the_end_of_the_block(live):
    async def story(house):
        client = house.connect()
        async with client.transaction("orders", b"paid", tag="t", keys="k", properties={"a": "b"}) as tx:
            assert tx.state == "open"
            assert tx.message_id == tx.receipt.message_id
            assert await house.delivered(client) == []
        assert tx.state == "committed"
        for queue in await client.queues("orders"):
            for message in (await client.pull(queue, 0, group="g", filter=pocketmq.Tag("t"))).messages:
                assert message.body == b"paid"
                assert message.message_id == tx.message_id
                assert message.queue_id == tx.receipt.queue.queue_id
                assert message.properties["a"] == "b"
                assert message.keys == ("k",)
        assert await house.delivered(client) == [b"paid"]
        await house.clock.sleep(2 * CHECK_S)
        assert await house.delivered(client) == [b"paid"]

    live(story)


def test_an_exception_rolls_it_back_and_goes_on(live):
    async def story(house):
        client = house.connect()
        with pytest.raises(KeyError):
            async with client.transaction("orders", b"paid") as tx:
                raise KeyError("no such account")
        assert tx.state == "rolled back"
        assert len(house.broker.transactions) == 0
        assert await house.delivered(client) == []

    live(story)


def test_the_block_may_decide_by_itself(live):
    async def story(house):
        client = house.connect()
        async with client.transaction("orders", b"yes") as yes, client.transaction("orders", b"no") as no:
            await yes.commit()
            assert await house.delivered(client) == [b"yes"]
            await no.rollback()
            with pytest.raises(UsageError):
                await no.commit()
        assert (yes.state, no.state) == ("committed", "rolled back")
        assert await house.delivered(client) == [b"yes"]
        with pytest.raises(UsageError):
            async with yes:
                pass

    live(story)


@pytest.mark.parametrize(("answer", "expected"), [(True, [b"paid"]), (False, [])])
def test_what_is_left_open_is_decided_by_the_check_function(live, answer, expected):
    async def story(house):
        asked = []

        async def check(message):
            asked.append((message.topic, message.body, message.message_id))
            return None if len(asked) == 1 else answer

        client = house.connect()
        async with client.transaction("orders", b"paid", check=check) as tx:
            tx.leave_open()
        await house.clock.sleep(CHECK_S)
        assert asked == [("orders", b"paid", tx.message_id)]
        assert len(house.broker.transactions) == 1
        await house.clock.sleep(CHECK_S)
        assert len(asked) == 2
        assert len(house.broker.transactions) == 0
        assert await house.delivered(client) == expected

    live(story)


def test_while_the_block_runs_the_check_function_is_not_asked(live):
    async def story(house):
        async def check(message):
            raise AssertionError("asked")

        client = house.connect()
        async with client.transaction("orders", b"slow", check=check):
            await house.clock.sleep(3 * CHECK_S)
        assert await house.delivered(client) == [b"slow"]

    live(story)


def test_another_process_of_the_group_answers_for_one_that_died(live):
    async def story(house):
        seen = []

        async def check(message):
            seen.append(message.body)
            return message.body == b"1"

        dead = house.connect()
        transactions = [dead.transaction("orders", b"%d" % number) for number in range(2)]
        for transaction in transactions:
            await transaction.__aenter__()
        await dead.core.remoting.close()
        heir = house.connect()
        await heir.watch_transactions("orders", check)
        await house.clock.sleep(CHECK_S)
        assert sorted(seen) == [b"0", b"1"]
        assert await house.delivered(heir) == [b"1"]
        assert len(house.broker.transactions) == 0

    live(story)


def test_a_commit_that_was_not_heard_is_given_when_the_broker_asks(live):
    async def story(house):
        async def check(message):
            raise AssertionError("asked")

        client = house.connect()
        async with client.transaction("orders", b"paid", check=check) as tx:
            house.lose(RequestCode.END_TRANSACTION)
        assert tx.state == "committed"
        assert await house.delivered(client) == []
        await house.clock.sleep(CHECK_S)
        assert await house.delivered(client) == [b"paid"]

    live(story)


def test_what_is_left_of_a_half_that_was_not_acknowledged_is_rolled_back(live):
    async def story(house):
        async def check(message):
            return True

        client = house.connect()
        await client.send("orders", b"first")
        answer = house.broker.dispatcher._handlers[RequestCode.SEND_MESSAGE_V2]

        def mute(connection, command):
            answer(connection, command)

        house.broker.dispatcher._handlers[RequestCode.SEND_MESSAGE_V2] = mute
        with pytest.raises(RequestTimeoutError):
            async with client.transaction("orders", b"paid", check=check):
                raise AssertionError("the block ran")
        assert len(house.broker.transactions) == 1
        await house.clock.sleep(CHECK_S)
        assert len(house.broker.transactions) == 0
        assert await house.delivered(client) == [b"first"]

    live(story)


def test_a_commit_of_what_the_broker_gave_up_is_an_error(live):
    async def story(house):
        house.settings.broker.transaction_age_max_s = 10.0
        client = house.connect()
        with pytest.raises(BrokerError, match="given up"):
            async with client.transaction("orders", b"paid"):
                await house.clock.sleep(CHECK_S)
        assert await house.delivered(client) == []

    live(story)


def test_a_failing_check_function_is_asked_again(live):
    async def story(house):
        asked = []

        async def check(message):
            asked.append(message)
            if len(asked) == 1:
                raise OSError("the database is down")
            return True

        client = house.connect()
        async with client.transaction("orders", b"paid", check=check) as tx:
            tx.leave_open()
        await house.clock.sleep(2 * CHECK_S)
        assert len(asked) == 2
        assert await house.delivered(client) == [b"paid"]

    live(story)


def test_immunity_puts_the_question_off(live):
    async def story(house):
        asked = []

        async def check(message):
            asked.append(house.clock.monotonic())

        client = house.connect()
        begin = house.clock.monotonic()
        async with client.transaction("orders", b"paid", check=check, immunity=100) as tx:
            tx.leave_open()
        await house.clock.sleep(200)
        assert asked[0] - begin > 100

    live(story)


def test_a_delay_cannot_be_in_a_transaction(live):
    async def story(house):
        client = house.connect()
        with pytest.raises(UsageError, match="no delay"):
            client.transaction(pocketmq.Message(topic="orders", body=b"x", delay_level=3))

    live(story)


def test_the_blocking_api_has_transactions_too():
    asked = []

    def check(message):
        asked.append(message.body)
        return True

    with EmbeddedServer() as server, pocketmq.sync.connect(server.namesrv, producer_group="payers") as client:
        with client.transaction("orders", b"one") as tx:
            assert tx.state == "open"
        with pytest.raises(KeyError), client.transaction("orders", b"two"):
            raise KeyError
        with client.transaction("orders", b"three", check=check) as left:
            left.leave_open()
        client.watch_transactions("orders", check)
        server.advance(CHECK_S)
        with client.consume("orders", group="billing", from_where="first") as consumer:
            bodies = set()
            for _ in range(2):
                message = consumer.next(timeout=10)
                with message:
                    bodies.add(message.body)
        assert bodies == {b"one", b"three"}
        assert asked == [b"three"]
