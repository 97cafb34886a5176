"""Messages: by id, by key, by place."""

import pytest

import pocketmq
from pocketmq.admin import Admin
from pocketmq.admin.messages import is_offset_id
from pocketmq.model.errors import BrokerError, RouteNotFoundError, UsageError


async def test_a_message_is_found_by_either_of_its_ids(admin: Admin, client: pocketmq.Client) -> None:
    receipt = await client.send("orders", b"hello", tag="new", keys=["o-1"])
    by_offset = await admin.messages.show(receipt.offset_message_id)
    by_topic = await admin.messages.show(receipt.message_id, topic="orders")
    by_search = await admin.messages.show(receipt.message_id)
    for message in (by_offset, by_topic, by_search):
        assert (message.topic, message.body, message.tag, message.keys) == ("orders", b"hello", "new", ("o-1",))
        assert message.message_id == receipt.message_id
        assert message.offset_message_id == receipt.offset_message_id
        assert message.broker_name == "broker-a"


async def test_a_compressed_body_is_shown_as_it_was_sent(admin: Admin, client: pocketmq.Client) -> None:
    body = b"abc" * 10_000
    receipt = await client.send("orders", body)
    assert (await admin.messages.show(receipt.message_id)).body == body


async def test_no_such_message_is_an_error(admin: Admin, client: pocketmq.Client) -> None:
    receipt = await client.send("orders", b"hello")
    for message_id in ("7F000001" + "0" * 24, receipt.offset_message_id[:-4] + "FFFF", "order-12"):
        with pytest.raises(BrokerError, match="there is no message") as caught:
            await admin.messages.show(message_id)
        assert caught.value.code == 22


async def test_messages_are_found_by_key_newest_first(admin: Admin, client: pocketmq.Client) -> None:
    receipts = [await client.send("orders", str(n).encode(), keys=["o-1", f"n-{n}"]) for n in range(3)]
    found = await admin.messages.find("orders", "o-1")
    assert {message.message_id for message in found} == {receipt.message_id for receipt in receipts}
    times = [message.store_timestamp for message in found]
    assert times == sorted(times, reverse=True)
    assert [message.body for message in await admin.messages.find("orders", "n-1")] == [b"1"]
    assert await admin.messages.find("orders", "o-2") == []
    assert len(await admin.messages.find("orders", "o-1", max=2)) == 2


async def test_a_time_range_narrows_the_search(admin: Admin, client: pocketmq.Client) -> None:
    await client.send("orders", b"hello", keys=["o-1"])
    (message,) = await admin.messages.find("orders", "o-1")
    stored = message.store_timestamp
    assert await admin.messages.find("orders", "o-1", begin_ms=stored, end_ms=stored)
    assert await admin.messages.find("orders", "o-1", begin_ms=stored + 1) == []
    assert await admin.messages.find("orders", "o-1", end_ms=stored - 1) == []


async def test_a_search_that_cannot_be_is_refused(admin: Admin, client: pocketmq.Client) -> None:
    await client.send("orders", b"hello")
    with pytest.raises(UsageError, match="key is empty"):
        await admin.messages.find("orders", "")
    with pytest.raises(UsageError, match="at most 64"):
        await admin.messages.find("orders", "k", max=65)
    with pytest.raises(RouteNotFoundError, match="no topic invoices"):
        await admin.messages.find("invoices", "k")


async def test_a_message_is_found_by_its_place(admin: Admin, client: pocketmq.Client) -> None:
    receipt = await client.send("orders", b"hello")
    message = await admin.messages.at("orders", receipt.queue.queue_id, receipt.queue_offset)
    assert (message.body, message.message_id) == (b"hello", receipt.message_id)


async def test_a_place_without_a_message_says_what_there_is(admin: Admin, client: pocketmq.Client) -> None:
    receipt = await client.send("orders", b"hello")
    queue = receipt.queue.queue_id
    with pytest.raises(BrokerError, match="has no message at 5; it has those from 0 to 0"):
        await admin.messages.at("orders", queue, 5)
    with pytest.raises(BrokerError, match="is empty"):
        await admin.messages.at("orders", (queue + 1) % 4, 0)
    with pytest.raises(UsageError, match="not on broker nobody, but on broker-a"):
        await admin.messages.at("orders", 0, 0, broker="nobody")


@pytest.mark.parametrize(
    ("message_id", "expected"),
    [
        ("7F00000100002A9F0000000000000000", True),
        ("7F0000011A2B3C4D5E6F000001230001", False),
        ("0" * 31 + "1" + "00002A9F" + "0" * 16, True),
        ("01" + "A" * 32, False),
        ("order-12", False),
        ("", False),
    ],
)
def test_offset_ids_are_told_from_producers_ids(message_id: str, expected: bool) -> None:
    assert is_offset_id(message_id) is expected
