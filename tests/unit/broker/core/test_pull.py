"""Pulling: who may, from where, and what the answer says."""

import pytest

from pocketmq.model.config import GroupConfig, Subscription, TopicConfig
from pocketmq.views.journal import Cursor, CursorReset
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.record import decode_records

COMMIT, SUSPEND, SUBSCRIPTION = 1, 2, 4


def subscribe(world, peer, topic: str = "orders", expression: str = "*", *, version: int = 1, **options) -> None:
    (connection,) = world.broker.server.connections
    world.broker.topic_service.group_for("consumers")
    world.broker.clients.register_consumer(
        connection,
        "consumers",
        "client-1",
        language="JAVA",
        version=479,
        consume_type="CONSUME_PASSIVELY",
        message_model=options.get("message_model", "CLUSTERING"),
        consume_from_where="CONSUME_FROM_LAST_OFFSET",
        subscriptions=[Subscription(topic=topic, sub_string=expression, sub_version=version)],
    )


async def test_a_pull_gives_the_records_as_they_are_stored(world, peer) -> None:
    for number in range(3):
        await peer.send(body=b"%d" % number)
    answer = await peer.pull(offset=1)
    assert answer.code == 0
    assert answer.remark == "FOUND"
    assert [record.body for record in decode_records(answer.body, check_crc=True)] == [b"1", b"2"]
    assert answer.ext() == {
        "nextBeginOffset": "3",
        "minOffset": "0",
        "maxOffset": "3",
        "suggestWhichBrokerId": "0",
        "topicSysFlag": "0",
        "groupSysFlag": "0",
    }


async def test_the_light_pull_code_gives_the_same(peer) -> None:
    await peer.send(body=b"x")
    assert len(await peer.records(code=RequestCode.LITE_PULL_MESSAGE)) == 1


async def test_a_pull_in_binary_headers_is_answered_in_them(peer) -> None:
    await peer.send(body=b"x")
    peer.connection.serialize_type = 1
    answer = await peer.pull()
    assert answer.serialize_type == 1
    assert answer.ext()["nextBeginOffset"] == "1"
    assert len(decode_records(answer.body)) == 1


async def test_a_pull_gives_no_more_than_was_asked_for_and_never_more_than_32(peer) -> None:
    for _ in range(3):
        await peer.send_batch(bodies=[b"x"] * 20)
    assert len(await peer.records(count=5)) == 5
    assert len(await peer.records(count=1000)) == 32
    assert len(await peer.records(count=0)) == 1


async def test_a_pull_gives_no_more_bytes_than_fit_but_at_least_one_message(peer) -> None:
    for _ in range(5):
        await peer.send(body=b"x" * 100_000)
    assert len(await peer.records()) == 2
    await peer.send(body=b"x" * 500_000, queue_id=1)
    assert len(await peer.records(queue_id=1)) == 1


@pytest.mark.parametrize(
    ("offset", "code", "status", "next_offset"),
    [
        (3, 19, "OFFSET_OVERFLOW_ONE", 3),
        (4, 21, "OFFSET_OVERFLOW_BADLY", 3),
        (-1, 21, "OFFSET_TOO_SMALL", 0),
    ],
)
async def test_an_offset_that_has_no_message(peer, offset: int, code: int, status: str, next_offset: int) -> None:
    await peer.send_batch(bodies=[b"x"] * 3)
    answer = await peer.pull(offset=offset)
    assert (answer.code, answer.remark) == (code, status)
    assert answer.ext()["nextBeginOffset"] == str(next_offset)
    assert answer.body == b""


@pytest.mark.parametrize(("offset", "code"), [(0, 19), (7, 21)])
async def test_a_queue_that_never_had_a_message(peer, offset: int, code: int) -> None:
    await peer.send(queue_id=0)
    answer = await peer.pull(offset=offset, queue_id=1)
    assert answer.code == code
    assert answer.ext()["nextBeginOffset"] == "0"


async def test_messages_with_other_tags_are_passed_over(peer) -> None:
    for tag in ("a", "b", "a", "c"):
        await peer.send(properties={"UNIQ_KEY": tag, "TAGS": tag})
    answer = await peer.pull(subscription="a || c")
    assert [record.queue_offset for record in decode_records(answer.body)] == [0, 2, 3]
    assert answer.ext()["nextBeginOffset"] == "4"


async def test_when_no_message_matches_the_consumer_goes_on_behind_them(peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 3, tag="a")
    answer = await peer.pull(subscription="b")
    assert (answer.code, answer.remark) == (20, "NO_MATCHED_MESSAGE")
    assert answer.ext()["nextBeginOffset"] == "3"


async def test_an_unknown_topic_is_refused(peer) -> None:
    answer = await peer.pull("nowhere")
    assert answer.code == 17
    assert "pocketmq topic create nowhere" in answer.remark


async def test_a_group_is_made_on_its_first_pull_unless_that_is_switched_off(world, peer) -> None:
    await peer.send()
    await peer.pull(group="new")
    assert "new" in world.broker.groups
    world.broker.settings.broker.auto_create_group = False
    answer = await peer.pull(group="newer")
    assert answer.code == 26
    assert "pocketmq group create newer" in answer.remark
    assert (await peer.pull(group="TOOLS_CONSUMER")).code == 0


async def test_what_is_switched_off_is_refused(world, peer) -> None:
    await peer.send()
    service = world.broker.topic_service
    await service.put(TopicConfig(topic_name="closed", read_queue_nums=1, write_queue_nums=1, perm=2))
    assert (await peer.pull("closed")).code == 16
    await service.put_group(GroupConfig(group_name="resting", consume_enable=False))
    assert (await peer.pull(group="resting")).code == 16
    world.broker.settings.broker.permission = 2
    assert (await peer.pull()).code == 16


@pytest.mark.parametrize("queue_id", [-1, 4, 100])
async def test_a_queue_that_the_topic_does_not_have_is_refused(peer, queue_id: int) -> None:
    await peer.send()
    assert (await peer.pull(queue_id=queue_id)).code == 29


async def test_a_queue_that_is_only_read_any_more_is_still_given_out(world, peer) -> None:
    await peer.send(queue_id=3)
    await world.broker.topic_service.put(TopicConfig(topic_name="orders", read_queue_nums=4, write_queue_nums=2))
    assert len(await peer.records(queue_id=3)) == 1


async def test_without_a_heartbeat_there_is_no_subscription(peer) -> None:
    await peer.send()
    answer = await peer.pull(flags=0)
    assert answer.code == 24


async def test_the_subscription_of_the_heartbeat_counts(world, peer) -> None:
    for tag in ("a", "b"):
        await peer.send(properties={"UNIQ_KEY": tag, "TAGS": tag})
    subscribe(world, peer, expression="b")
    assert [record.queue_offset for record in await peer.records(flags=0)] == [1]
    answer = await peer.pull("orders-2", flags=0)
    assert answer.code == 17


async def test_a_topic_that_the_group_did_not_subscribe_to_is_refused(world, peer) -> None:
    await peer.send("orders")
    subscribe(world, peer, "returns")
    assert (await peer.pull("orders", flags=0)).code == 24


async def test_a_subscription_that_is_older_than_the_consumers_is_refused(world, peer) -> None:
    await peer.send()
    subscribe(world, peer, version=5)
    assert (await peer.pull(flags=0, sub_version=6)).code == 25
    assert (await peer.pull(flags=0, sub_version=5)).code == 0


async def test_broadcasting_can_be_forbidden(world, peer) -> None:
    await peer.send()
    subscribe(world, peer, message_model="BROADCASTING")
    assert (await peer.pull(flags=0)).code == 0
    await world.broker.topic_service.put_group(GroupConfig(group_name="consumers", consume_broadcast_enable=False))
    assert (await peer.pull(flags=0)).code == 16


@pytest.mark.parametrize(
    ("expression_type", "expression", "code"), [("SQL92", "a > ", 23), ("TAG", "||", 23), ("XPATH", "//a", 23)]
)
async def test_an_expression_that_cannot_be_served_is_refused(
    peer, expression_type: str, expression: str, code: int
) -> None:
    await peer.send()
    answer = await peer.pull(expression_type=expression_type, subscription=expression)
    assert answer.code == code


async def test_a_pull_may_carry_a_commit(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull(offset=3, flags=SUBSCRIPTION | COMMIT, commit_offset=3)
    assert world.broker.cursors.get("consumers", "orders", 0) == 3
    await peer.pull(offset=3, flags=SUBSCRIPTION | COMMIT, commit_offset=2)
    assert world.broker.cursors.get("consumers", "orders", 0) == 3
    await peer.pull(offset=3, flags=SUBSCRIPTION, commit_offset=5)
    assert world.broker.cursors.get("consumers", "orders", 0) == 3


async def test_an_announced_reset_is_told_once(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull(offset=5, flags=SUBSCRIPTION | COMMIT, commit_offset=5)
    world.broker.journal.write([CursorReset(Cursor("consumers", "orders", 0, 2), announce=True)])
    answer = await peer.pull(offset=5, flags=SUBSCRIPTION | SUSPEND | COMMIT, commit_offset=5)
    assert (answer.code, answer.remark) == (21, "OFFSET_RESET")
    assert answer.ext()["nextBeginOffset"] == "2"
    assert world.broker.cursors.get("consumers", "orders", 0) == 2
    assert (await peer.pull(offset=2)).code == 0


async def test_a_reset_that_nobody_was_told_of_survives_a_restart(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull()
    world.broker.journal.write([CursorReset(Cursor("consumers", "orders", 0, 2), announce=True)])
    await world.restart()
    peer = await world.connect()
    assert (await peer.pull(offset=5)).remark == "OFFSET_RESET"
    await world.restart()
    peer = await world.connect()
    assert (await peer.pull(offset=5)).remark == "OFFSET_OVERFLOW_ONE"


async def test_how_far_a_group_has_pulled_is_known(world, peer) -> None:
    await peer.send_batch(bodies=[b"x"] * 5)
    await peer.pull(count=2)
    assert world.broker.pulling.positions[("consumers", "orders", 0)] == 2
