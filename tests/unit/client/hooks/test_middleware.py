"""Middleware around sends and around the handling of messages."""

import asyncio
import contextvars

import pytest

import pocketmq
from pocketmq import Message, Middleware, PocketMQError, UsageError
from pocketmq.testing.fakes import FakeQueue, FakeRouter

current = contextvars.ContextVar("current", default="nothing")


class Noting(Middleware):
    """Notes what passes by."""

    def __init__(self, name, notes):
        self.name, self.notes = name, notes

    async def send(self, outgoing, forward):
        self.notes.append(f"{self.name} before {outgoing.kind} {outgoing.topic} {len(outgoing.messages)}")
        try:
            receipts = await forward(outgoing)
        except Exception as error:
            self.notes.append(f"{self.name} failed {type(error).__name__}")
            raise
        self.notes.append(f"{self.name} after {len(receipts)}")
        return receipts

    async def handle(self, incoming, forward):
        self.notes.append(f"{self.name} before {incoming.group} {incoming.message.body.decode()}")
        try:
            result = await forward(incoming)
        except BaseException as error:
            self.notes.append(f"{self.name} failed {type(error).__name__}")
            raise
        self.notes.append(f"{self.name} after{' given back' if incoming.given_back else ''}")
        return result


def sending(story, middleware, queue=None):
    queue = queue or FakeQueue("orders")

    async def main():
        options = {"writable_queues": lambda topic: [queue], "router": FakeRouter(), "middleware": middleware}
        async with pocketmq.connect("127.0.0.1:1", **options) as client:
            await story(client, queue)

    asyncio.run(main())


# -- sending ---------------------------------------------------------------------------------------------------------


def test_the_first_is_the_outermost():
    notes = []

    async def story(client, queue):
        await client.send("orders", b"a")

    sending(story, [Noting("1", notes), Noting("2", notes)])
    assert notes == ["1 before send orders 1", "2 before send orders 1", "2 after 1", "1 after 1"]


def test_every_way_of_sending_goes_through_it():
    notes = []

    async def story(client, queue):
        await client.send_batch("orders", [b"a", b"b"])
        await client.send_batch("orders", [])
        await client.send_oneway("orders", b"c")

    sending(story, [Noting("1", notes)])
    assert notes == ["1 before batch orders 2", "1 after 2", "1 before oneway orders 1", "1 after 0"]


def test_messages_are_complete_and_may_be_changed_but_not_those_of_the_caller():
    class Stamping(Middleware):
        async def send(self, outgoing, forward):
            for message in outgoing.messages:
                assert len(message.properties["UNIQ_KEY"]) == 32
                message.properties["stamp"] = "yes"
            return await forward(outgoing)

    async def story(client, queue):
        mine = Message(topic="orders", body=b"a")
        receipt = await client.send(mine)
        assert mine.properties == {}
        assert queue.written[0].properties["stamp"] == "yes"
        assert queue.written[0].properties["UNIQ_KEY"] == receipt.message_id

    sending(story, [Stamping()])


def test_a_retry_is_written_as_middleware():
    class Retry(Middleware):
        async def send(self, outgoing, forward):
            for attempt in range(3):
                try:
                    return await forward(outgoing)
                except PocketMQError:
                    if attempt == 2:
                        raise
            raise AssertionError

    class Failing(Middleware):
        left = 2

        async def send(self, outgoing, forward):
            if self.left:
                self.left -= 1
                raise PocketMQError("not now")
            return await forward(outgoing)

    async def story(client, queue):
        await client.send("orders", b"a")
        assert len(queue.written) == 1

    sending(story, [Retry(), Failing()])


def test_errors_pass_through_and_a_send_can_be_left_out():
    notes = []

    class Refusing(Middleware):
        async def send(self, outgoing, forward):
            if outgoing.messages[0].body == b"bad":
                raise ValueError("no")
            return []

    async def story(client, queue):
        with pytest.raises(ValueError, match="no"):
            await client.send("orders", b"bad")
        with pytest.raises(UsageError, match="0 receipts for 1"):
            await client.send("orders", b"good")
        assert queue.written == []

    sending(story, [Noting("1", notes), Refusing()])
    assert notes[1] == "1 failed ValueError"


def test_without_middleware_there_is_nothing_in_between():
    class Deaf(Middleware):
        pass

    async def story(client, queue):
        assert client.core.sender is client.core.producer
        await client.send("orders", b"a")

    sending(story, [])
    sending(story, [Deaf()])


def test_it_is_attached_and_closed_with_the_client_and_can_still_send():
    events = []

    class Living(Middleware):
        def attach(self, host):
            self.host = host
            events.append("attached")

        async def close(self):
            await self.host.send_beside(Message(topic="orders", body=b"last words", properties={}))
            events.append("closed")

    class Broken(Middleware):
        async def close(self):
            raise ValueError("oops")

    queue = FakeQueue("orders")

    async def story(client, queue):
        assert events == ["attached"]

    sending(story, [Broken(), Living()], queue)
    assert events == ["attached", "closed"]
    assert [message.body for message in queue.written] == [b"last words"]


# -- handling --------------------------------------------------------------------------------------------------------


def test_it_is_around_the_block(live):
    notes = []

    async def story(house):
        client = house.connect(middleware=[Noting("1", notes), Noting("2", notes)])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                notes.append("block")

    live(story)
    assert notes == ["1 before billing a", "2 before billing a", "block", "2 after", "1 after"]


def test_it_is_around_the_handler_which_can_run_again(live):
    notes, tries = [], []

    class Again(Middleware):
        async def handle(self, incoming, forward):
            try:
                return await forward(incoming)
            except ValueError:
                return await forward(incoming)

    async def story(house):
        client = house.connect(middleware=[Noting("1", notes), Again()])
        await house.connect().send("orders", b"a")
        consumer = client.consume("orders", group="billing", from_where="first")

        async def handler(message):
            tries.append(message.delivery_attempt)
            if len(tries) == 1:
                raise ValueError

        worker = asyncio.get_running_loop().create_task(consumer.run(handler))
        await house.clock.sleep(30)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    live(story)
    assert tries == [1, 1]
    assert notes == ["1 before billing a", "1 after"]


def test_a_block_runs_once(live, caplog):
    class Again(Middleware):
        async def handle(self, incoming, forward):
            await forward(incoming)
            await forward(incoming)

    async def story(house):
        client = house.connect(middleware=[Again()])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                pass
            assert "runs once" in caplog.text
            again = await consumer.next(timeout=30)
            assert again.delivery_attempt == 2
            again._handling = None
            await again.ack()

    live(story)


def test_context_variables_and_waiting_work_in_a_block(live):
    class Setting(Middleware):
        def __init__(self, clock):
            self.clock = clock

        async def handle(self, incoming, forward):
            await self.clock.sleep(1)
            token = current.set(incoming.message.body.decode())
            try:
                await forward(incoming)
                await self.clock.sleep(1)
            finally:
                current.reset(token)

    async def story(house):
        client = house.connect(middleware=[Setting(house.clock)])
        await house.connect().send("orders", b"something")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                assert current.get() == "something"
            assert current.get() == "nothing"
            assert await message.ack() is False, "it was acknowledged"

    live(story)


def test_an_error_in_the_block_is_seen_and_may_be_forgiven(live, caplog):
    notes = []

    class Forgiving(Middleware):
        async def handle(self, incoming, forward):
            try:
                return await forward(incoming)
            except KeyError:
                return None

    async def story(house):
        client = house.connect(middleware=[Noting("1", notes), Forgiving(), Noting("2", notes)])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first", reraise=True) as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                raise KeyError
            assert await message.ack() is False, "it was acknowledged"
            assert notes == ["1 before billing a", "2 before billing a", "2 failed KeyError", "1 after"]

    live(story)


def test_an_error_of_another_kind_takes_its_place(live):
    class Translating(Middleware):
        async def handle(self, incoming, forward):
            try:
                return await forward(incoming)
            except KeyError as error:
                raise ValueError("translated") from error

    async def story(house):
        client = house.connect(middleware=[Translating()])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first", reraise=True) as consumer:
            message = await consumer.next(timeout=10)
            with pytest.raises(ValueError, match="translated"):
                async with message:
                    raise KeyError
            again = await consumer.next(timeout=30)
            assert again.delivery_attempt == 2
            async with again:
                pass

    live(story)


def test_one_that_fails_before_the_block_gives_the_message_back(live):
    class Failing(Middleware):
        failures = 1

        async def handle(self, incoming, forward):
            if self.failures:
                self.failures -= 1
                raise ValueError("not yet")
            return await forward(incoming)

    async def story(house):
        client = house.connect(middleware=[Failing()])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            with pytest.raises(ValueError, match="not yet"):
                async with message:
                    raise AssertionError("the block must not run")
            again = await consumer.next(timeout=30)
            async with again:
                assert again.delivery_attempt == 2

    live(story)


def test_one_that_deals_with_the_message_itself(live):
    handled = []

    class Dropping(Middleware):
        async def handle(self, incoming, forward):
            return None

    async def story(house):
        client = house.connect(middleware=[Dropping()])
        sender = house.connect()
        await sender.send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            with pytest.raises(UsageError, match="run"):
                async with message:
                    handled.append(message.body)
            assert await message.ack() is False, "it was acknowledged"
        consumer = client.consume("orders", group="billing")

        async def handler(message):
            handled.append(message.body)

        await sender.send("orders", b"b")
        worker = asyncio.get_running_loop().create_task(consumer.run(handler))
        await house.clock.sleep(5)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)
        async with house.connect().consume("orders", group="billing") as consumer:
            assert await consumer.next(timeout=5) is None

    live(story)
    assert handled == []


def test_it_sees_what_is_given_back_by_hand_and_what_is_cancelled(live):
    notes = []

    async def story(house):
        client = house.connect(middleware=[Noting("1", notes)])
        await house.connect().send("orders", b"a")
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                await message.nack()
            message = await consumer.next(timeout=30)

            async def work():
                async with message:
                    await house.clock.sleep(100)

            task = asyncio.get_running_loop().create_task(work())
            await house.clock.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = await consumer.next(timeout=1)
            assert again is message
            async with again:
                pass

    live(story)
    assert notes == [
        "1 before billing a",
        "1 after given back",
        "1 before billing a",
        "1 failed CancelledError",
        "1 before billing a",
        "1 after",
    ]


def test_it_is_told_what_was_fetched_and_how_transactions_ended(live):
    seen = []

    class Listening(Middleware):
        def received(self, fetched):
            seen.append((fetched.group, fetched.queue.topic, [message.body for message in fetched.messages]))

        def transaction_ended(self, ended):
            seen.append((ended.message.topic, ended.committed, ended.asked))

    async def story(house):
        client = house.connect(middleware=[Listening()])
        async with client.transaction("orders", b"a"):
            pass
        with pytest.raises(KeyError):
            async with client.transaction("orders", b"b"):
                raise KeyError
        async with client.consume("orders", group="billing", from_where="first") as consumer:
            message = await consumer.next(timeout=10)
            async with message:
                pass

    live(story)
    assert seen == [("orders", True, False), ("orders", False, False), ("billing", "orders", [b"a"])]


def test_requests_and_replies_go_through_it(live):
    notes, answers = [], []

    async def story(house):
        replier = house.connect(middleware=[Noting("r", answers)])

        async def handle(message):
            return b"yes"

        consumer = await replier.consume("questions", group="g", from_where="first").start()
        worker = asyncio.get_running_loop().create_task(consumer.run(handle))
        client = house.connect(middleware=[Noting("1", notes)])
        assert (await client.request("questions", b"well?", timeout=10)).body == b"yes"
        await house.clock.sleep(1)
        worker.cancel()
        await asyncio.gather(worker, return_exceptions=True)

    live(story)
    assert notes == ["1 before request questions 1", "1 after 1"]
    assert answers == [
        "r before g well?",
        "r before reply DefaultCluster_REPLY_TOPIC 1",
        "r after 1",
        "r after",
    ]
