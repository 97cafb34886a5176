"""Groups: list, show, create, update, delete."""

import pytest

import pocketmq
from pocketmq.admin import Admin
from pocketmq.model.errors import BrokerError, UsageError


async def send(client: pocketmq.Client, count: int) -> None:
    for number in range(count):
        await client.send("orders", str(number).encode(), queue=pocketmq.MessageQueue("orders", "broker-a", 0))


async def test_a_created_group_has_its_settings_on_every_broker(admin: Admin) -> None:
    made = await admin.groups.create("billing", retry_max_times=3)
    assert made["broker-a"].retry_max_times == 3
    with pytest.raises(UsageError, match="exists already on broker-a"):
        await admin.groups.create("billing")


async def test_an_update_keeps_what_is_not_given(admin: Admin) -> None:
    await admin.groups.create("billing", retry_max_times=3, attributes={"priority.factor": "50"})
    after = await admin.groups.update("billing", consume_enable=False)
    config = after["broker-a"]
    assert (config.retry_max_times, config.consume_enable) == (3, False)
    assert config.attributes == {"priority.factor": "50"}
    after = await admin.groups.update("billing", remove_attributes=["priority.factor"])
    assert after["broker-a"].attributes == {}


async def test_a_group_that_nobody_has_is_an_error_and_is_not_made_by_asking(admin: Admin) -> None:
    for ask in (admin.groups.show, admin.groups.delete, admin.groups.update):
        with pytest.raises(BrokerError, match="no group billing") as caught:
            await ask("billing")
        assert caught.value.code == 26
    assert await admin.groups.list(system=False) == []


async def test_show_tells_members_subscriptions_and_lag(admin: Admin, client: pocketmq.Client) -> None:
    await admin.topics.create("orders", queues=2)
    await send(client, 5)
    async with client.consume("orders", group="billing", filter="a || b", from_where="first") as consumer:
        await consumer.start()
        details = await admin.groups.show("billing")
        (member,) = details.membership.members
        assert member.client_id == client.client_id
        assert (member.language, member.version) == ("PYTHON", "V5_3_3")
        assert member.subscriptions is not None
        assert ("orders", "a || b") in [(each.topic, each.expression) for each in member.subscriptions]
        assert member.queues is not None
        assert {(queue.topic, queue.queue_id) for queue in member.queues} >= {("orders", 0), ("orders", 1)}
        assert details.membership.message_model == "CLUSTERING"
        (listed,) = await admin.groups.list(system=False)
        assert (listed.group, listed.members) == ("billing", 1)
        with pytest.raises(UsageError, match="1 consumers connected"):
            await admin.groups.delete("billing")


async def test_lag_is_told_for_each_queue_and_in_total(admin: Admin, client: pocketmq.Client) -> None:
    await admin.topics.create("orders", queues=2)
    await send(client, 5)
    await admin.groups.create("billing")
    await client.commit_offset(pocketmq.MessageQueue("orders", "broker-a", 0), 2, group="billing")
    progress = (await admin.groups.show("billing")).progress
    assert [(each.queue, each.position, each.lag) for each in progress.queues] == [(0, 2, 3), (1, 0, 0)]
    assert progress.lag == 3
    assert progress.queues[0].last_consumed_timestamp is not None
    (listed,) = await admin.groups.list(system=False)
    assert listed.lag == 3


async def test_a_list_without_details_asks_nobody_for_them(admin: Admin) -> None:
    await admin.groups.create("billing")
    (listed,) = await admin.groups.list(system=False, details=False)
    assert (listed.brokers, listed.members, listed.lag) == (("broker-a",), None, None)


async def test_a_deleted_group_is_gone_with_its_positions_and_retry_topic(
    admin: Admin, client: pocketmq.Client
) -> None:
    await admin.topics.create("orders", queues=1)
    await send(client, 1)
    async with client.consume("orders", group="billing", from_where="first") as consumer, await anext(consumer):
        pass
    assert "%RETRY%billing" in {info.topic for info in await admin.topics.list()}
    assert await admin.groups.delete("billing") == ("broker-a",)
    assert "%RETRY%billing" not in {info.topic for info in await admin.topics.list()}
    assert await admin.offsets.topics_of("billing") == []


async def test_groups_of_the_brokers_cannot_be_deleted(admin: Admin) -> None:
    with pytest.raises(UsageError, match="belongs to the brokers"):
        await admin.groups.delete("TOOLS_CONSUMER")
