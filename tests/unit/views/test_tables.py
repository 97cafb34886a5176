"""Topics and groups: the newest settings count, and every change shows in the data version."""

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.views.groups import GroupTable
from pocketmq.views.journal import GroupDelete, GroupPut, TimersFired, TopicDelete, TopicPut
from pocketmq.views.topics import TopicTable


def topic(name: str, queues: int = 4) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues)


def test_a_topic_is_there_after_it_was_put_and_gone_after_it_was_deleted() -> None:
    table = TopicTable()
    table.apply(TopicPut(topic("orders"), 1))
    assert "orders" in table
    assert table.get("orders") == topic("orders")
    table.apply(TopicDelete("orders", 2))
    assert table.get("orders") is None
    assert len(table) == 0


def test_putting_a_topic_again_replaces_its_settings() -> None:
    table = TopicTable()
    table.apply(TopicPut(topic("orders", 4), 1))
    table.apply(TopicPut(topic("orders", 8), 2))
    config = table.get("orders")
    assert config is not None
    assert config.write_queue_nums == 8


def test_each_change_of_the_topics_makes_a_new_data_version() -> None:
    table = TopicTable()
    first = table.data_version
    table.apply(TopicPut(topic("orders"), 1000))
    second = table.data_version
    table.apply(TopicDelete("orders", 2000))
    assert (first.counter, second.counter, table.data_version.counter) == (0, 1, 2)
    assert (second.timestamp, table.data_version.timestamp) == (1000, 2000)


def test_entries_of_other_views_change_nothing() -> None:
    table = TopicTable()
    table.apply(TimersFired([1]))
    table.apply(GroupPut(GroupConfig(group_name="g"), 1))
    assert len(table) == 0
    assert table.data_version.counter == 0


def test_a_restored_topic_table_is_the_one_that_was_stored() -> None:
    table = TopicTable()
    for number in range(10):
        table.apply(TopicPut(topic(f"topic-{number}", number + 1), number))
    restored = TopicTable()
    restored.apply(TopicPut(topic("something else"), 1))
    restored.restore(table.snapshot())
    assert restored.names() == table.names()
    assert list(restored) == list(table)
    assert restored.data_version == table.data_version


def test_a_group_is_there_after_it_was_put_and_gone_after_it_was_deleted() -> None:
    table = GroupTable()
    table.apply(GroupPut(GroupConfig(group_name="billing"), 1))
    assert table.names() == ["billing"]
    assert table.data_version.counter == 1
    table.apply(GroupDelete("billing", 2))
    assert "billing" not in table
    table.apply(GroupDelete("never there", 2))
    assert len(table) == 0


def test_a_restored_group_table_is_the_one_that_was_stored() -> None:
    table = GroupTable()
    table.apply(GroupPut(GroupConfig(group_name="billing", retry_max_times=2, group_retry_policy={"type": "X"}), 1))
    restored = GroupTable()
    restored.restore(table.snapshot())
    assert list(restored) == list(table)
    assert restored.data_version == table.data_version
