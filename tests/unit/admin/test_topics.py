"""Topics: list, show, create, update, delete."""

import pytest

import pocketmq
from pocketmq.admin import Admin
from pocketmq.admin.topics import kind_of, parse_permission, permission_text
from pocketmq.model.errors import InvalidNameError, RouteNotFoundError, UsageError
from pocketmq.model.names import ORDER_TOPIC_NAMESPACE
from pocketmq.testing import AsyncEmbeddedServer


async def test_a_created_topic_is_known_at_once_with_its_settings(admin: Admin) -> None:
    details = await admin.topics.create("orders", queues=4, attributes={"message.type": "FIFO"})
    assert [(queue.queue, queue.messages) for queue in details.queues] == [(0, 0), (1, 0), (2, 0), (3, 0)]
    (there,) = details.brokers
    assert (there.broker, there.cluster) == ("broker-a", "DefaultCluster")
    assert there.config.attributes["message.type"] == "FIFO"
    (listed,) = await admin.topics.list(system=False)
    assert (listed.topic, listed.kind, listed.read_queues, listed.permission) == ("orders", "normal", 4, "rw")
    assert listed.message_type == "FIFO"


async def test_creating_what_exists_is_refused(admin: Admin) -> None:
    await admin.topics.create("orders")
    with pytest.raises(UsageError, match="exists already on broker-a"):
        await admin.topics.create("orders")


@pytest.mark.parametrize("name", ["", "a b", "x" * 200])
async def test_a_bad_name_is_refused_before_anybody_is_asked(admin: Admin, name: str) -> None:
    with pytest.raises(InvalidNameError):
        await admin.topics.create(name)


async def test_an_update_keeps_what_is_not_given(admin: Admin) -> None:
    await admin.topics.create("orders", queues=4, attributes={"message.type": "FIFO"})
    details = await admin.topics.update("orders", write_queues=2, permission="r")
    config = details.brokers[0].config
    assert (config.read_queue_nums, config.write_queue_nums, permission_text(config.perm)) == (4, 2, "r")
    assert config.attributes["message.type"] == "FIFO"
    details = await admin.topics.update("orders", remove_attributes=["message.type"])
    assert details.brokers[0].config.attributes == {}
    assert details.brokers[0].config.write_queue_nums == 2


async def test_updating_a_topic_that_nobody_has_is_an_error(admin: Admin) -> None:
    with pytest.raises(RouteNotFoundError, match="no topic orders"):
        await admin.topics.update("orders", queues=2)


async def test_the_queues_of_an_ordered_topic_are_kept_by_the_name_servers(
    admin: Admin, server: AsyncEmbeddedServer
) -> None:
    def kept() -> str | None:
        assert server.server.name_server is not None
        return server.server.name_server.kv.get(ORDER_TOPIC_NAMESPACE, "orders")

    await admin.topics.create("orders", queues=4, order=True)
    assert kept() == "broker-a:4"
    await admin.topics.update("orders", queues=6)
    assert kept() == "broker-a:6"
    await admin.topics.update("orders", order=False)
    assert kept() is None


async def test_show_counts_messages_and_names_the_groups(admin: Admin, client: pocketmq.Client) -> None:
    await admin.topics.create("orders", queues=2)
    for _ in range(3):
        await client.send("orders", b"x", queue=pocketmq.MessageQueue("orders", "broker-a", 1))
    async with client.consume("orders", group="billing", from_where="first") as consumer:
        async with await anext(consumer):
            pass
        details = await admin.topics.show("orders")
    assert [queue.end_offset for queue in details.queues] == [0, 3]
    assert details.messages == 3
    assert details.queues[1].last_stored_timestamp is not None
    assert details.groups == ("billing",)


async def test_a_deleted_topic_is_gone_from_brokers_and_name_servers(admin: Admin) -> None:
    await admin.topics.create("orders")
    assert await admin.topics.delete("orders") == ("broker-a",)
    with pytest.raises(RouteNotFoundError):
        await admin.topics.show("orders")
    assert await admin.topics.list(system=False) == []
    with pytest.raises(RouteNotFoundError):
        await admin.topics.delete("orders")


async def test_system_topics_cannot_be_deleted(admin: Admin) -> None:
    with pytest.raises(UsageError, match="belongs to the brokers"):
        await admin.topics.delete("TBW102")


async def test_system_topics_are_listed_on_demand(admin: Admin) -> None:
    assert await admin.topics.list(system=False) == []
    assert "TBW102" in {info.topic for info in await admin.topics.list()}


def test_kinds_follow_from_names() -> None:
    names = ["orders", "%RETRY%billing", "%DLQ%billing", "TBW102", "rmq_sys_wheel_timer", "RMQ_SYS_X"]
    assert [kind_of(name) for name in names] == ["normal", "retry", "dead-letter", "system", "system", "system"]


@pytest.mark.parametrize(("text", "bits"), [("rw", 6), ("r", 4), ("W", 2), ("-", 0), ("6", 6)])
def test_permissions_are_letters_or_numbers(text: str, bits: int) -> None:
    assert parse_permission(text) == bits


def test_other_permissions_are_refused() -> None:
    with pytest.raises(UsageError, match="rw, r, w or -"):
        parse_permission("x")
