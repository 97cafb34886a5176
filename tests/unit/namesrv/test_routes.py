"""The route table: who is registered, who is forgotten when, and what routes show."""

from typing import Any

import pytest

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.namesrv.routes import RouteTable
from pocketmq.namesrv.values import MinIdChange, QueueEntry, Registration


@pytest.fixture
def table() -> RouteTable:
    return RouteTable()


def topic(name: str, *, queues: int = 4, perm: int = 6, flag: int = 0) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm, topic_sys_flag=flag)


def registration(*topics: TopicConfig | str, version: int = 1, state: int = 0, **changes: Any) -> Registration:
    configs = [topic(entry) if isinstance(entry, str) else entry for entry in topics]
    fields: dict[str, Any] = {
        "cluster": "c",
        "name": "b",
        "broker_id": 0,
        "address": "10.0.0.1:10911",
        "ha_address": "10.0.0.1:10912",
        "data_version": DataVersion(version, state, 1),
        "topics": {config.topic_name: config for config in configs},
    }
    return Registration(**{**fields, **changes})


REPLICA = {"broker_id": 1, "address": "10.0.0.2:10911", "ha_address": "10.0.0.2:10912"}


def test_a_registered_brokers_topics_have_routes(table: RouteTable) -> None:
    table.register(registration("T", topic("U", queues=8, perm=4)), 0)
    route = table.route("U")
    assert route is not None
    assert route.queues == {"b": QueueEntry(8, 8, 4, 0)}
    assert [brokers.addresses for brokers in route.brokers] == [{0: "10.0.0.1:10911"}]
    assert table.route("other") is None


def test_a_first_registration_with_one_topic_is_refused_and_leaves_nothing(table: RouteTable) -> None:
    assert table.register(registration("T"), 0) is None
    assert not table.brokers and not table.clusters and not table.live
    table.register(registration("T", "U"), 0)
    assert table.register(registration("V", version=2), 0) is not None
    assert table.route("T") is not None and table.route("V") is not None


def test_a_new_member_of_a_known_set_with_one_topic_is_refused_too(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    assert table.register(registration("T", **REPLICA), 0) is None
    assert table.brokers["b"].addresses == {0: "10.0.0.1:10911"}


def test_topics_are_taken_anew_only_under_another_data_version(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    table.register(registration(topic("T", queues=16), "V"), 0)
    assert table.topics["T"]["b"].read_queues == 4
    assert "V" in table.topics, "a topic that was not known is taken in any case"
    table.register(registration(topic("T", queues=16), "V", version=2), 0)
    assert table.topics["T"]["b"].read_queues == 16
    assert "U" in table.topics, "topics that are missing in a registration stay"


def test_missing_topics_are_forgotten_when_asked_for() -> None:
    table = RouteTable(forget_missing_topics=True)
    table.register(registration("T", "U"), 0)
    table.register(registration("T", "V", version=2), 0)
    assert set(table.topics) == {"T", "V"}


def test_an_old_broker_without_topics_is_known_all_the_same(table: RouteTable) -> None:
    assert table.register(registration(topics=None), 0) is not None
    assert list(table.brokers) == ["b"] and not table.topics


def test_a_replica_learns_its_master_and_does_not_speak_for_topics(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    answer = table.register(registration(topic("T", queues=2), "V", version=2, **REPLICA), 0)
    assert answer is not None
    assert (answer.master_address, answer.ha_address) == ("10.0.0.1:10911", "10.0.0.1:10912")
    assert table.topics["T"]["b"].read_queues == 4 and "V" not in table.topics
    route = table.route("T")
    assert route is not None and route.brokers[0].addresses == {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}


def test_the_smallest_replica_speaks_for_topics_while_there_is_no_master(table: RouteTable) -> None:
    table.register(registration("T", "U", acting_master=True, **REPLICA), 0)
    assert table.topics["T"]["b"].permission == 4, "nobody may write to one who only stands in"
    table.register(registration("T", "U", version=2, acting_master=True), 0)
    assert table.topics["T"]["b"].permission == 6


def test_the_same_process_under_another_id_leaves_its_old_place(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    table.register(registration("T", "U", broker_id=2), 0)
    assert table.brokers["b"].addresses == {2: "10.0.0.1:10911"}


def test_a_place_that_is_taken_goes_to_the_newer_state(table: RouteTable) -> None:
    table.register(registration("T", "U", state=5), 0)
    older = registration("T", "U", state=4, address="10.0.0.9:10911")
    answer = table.register(older, 0)
    assert answer is not None and answer.master_address is None
    assert table.brokers["b"].addresses == {0: "10.0.0.1:10911"}
    assert ("c", "10.0.0.9:10911") not in table.live
    table.register(registration("T", "U", state=5, address="10.0.0.9:10911"), 0)
    assert table.brokers["b"].addresses == {0: "10.0.0.9:10911"}


def test_the_last_member_takes_the_set_and_its_queues_along(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    table.register(registration("T", "U", **REPLICA), 0)
    table.unregister("c", "b", "10.0.0.1:10911")
    assert table.route("T") is not None
    table.unregister("c", "b", "10.0.0.2:10911")
    assert table.route("T") is None
    assert not table.brokers and not table.clusters and not table.topics


def test_without_a_master_a_set_with_a_stand_in_cannot_be_written() -> None:
    table = RouteTable(acting_master=True)
    table.register(registration("T", "U", acting_master=True), 0)
    table.register(registration("T", "U", acting_master=True, **REPLICA), 0)
    table.unregister("c", "b", "10.0.0.1:10911")
    route = table.route("T")
    assert route is not None
    assert route.queues["b"].permission == 4
    assert route.brokers[0].addresses == {0: "10.0.0.2:10911"}, "readers see the replica as the master"
    assert table.brokers["b"].addresses == {1: "10.0.0.2:10911"}
    member_topic = "%SYNC_BROKER_MEMBER_b"
    table.topics[member_topic] = dict(table.topics["T"])
    route = table.route(member_topic)
    assert route is not None and route.brokers[0].addresses == {1: "10.0.0.2:10911"}


def test_silent_brokers_are_forgotten_after_their_own_time(table: RouteTable) -> None:
    table.register(registration("T", "U", channel="x"), 0)
    table.register(registration("V", "W", name="b2", address="10.0.0.5:1", timeout_ms=1_000, channel="y"), 0)
    assert table.expire(1_000) == []
    assert table.expire(1_001) == [(("c", "10.0.0.5:1"), "y")]
    assert table.route("V") is None and table.route("T") is not None
    table.touch("c", "10.0.0.1:10911", 100_000)
    assert table.expire(200_000) == []
    assert table.expire(220_001) == [(("c", "10.0.0.1:10911"), "x")]


def test_a_connection_that_ends_takes_its_brokers_along_unless_they_came_back(table: RouteTable) -> None:
    table.register(registration("T", "U", channel="old"), 0)
    table.register(registration("T", "U", channel="new"), 0)
    assert table.channel_closed("old") == []
    assert table.route("T") is not None
    assert table.channel_closed("new") == [("c", "10.0.0.1:10911")]
    assert table.route("T") is None
    assert table.channel_closed("new") == []


def test_write_permission_is_wiped_and_given_back_per_broker(table: RouteTable) -> None:
    table.register(registration("T", topic("U", perm=7)), 0)
    table.register(registration("T", "V", name="b2", address="10.0.0.5:1"), 0)
    assert table.set_write_permission("b", allowed=False) == 2
    assert [table.topics[name]["b"].permission for name in ("T", "U")] == [4, 5]
    assert table.topics["T"]["b2"].permission == 6
    table.register(registration("T", topic("U", perm=7)), 0)
    assert table.topics["T"]["b"].permission == 4, "a repeated registration does not bring it back"
    assert table.set_write_permission("b", allowed=True) == 2
    assert [table.topics[name]["b"].permission for name in ("T", "U")] == [6, 6]
    assert table.set_write_permission("nobody", allowed=True) == 0


def test_topics_are_listed_by_cluster_and_by_flag(table: RouteTable) -> None:
    table.register(registration(topic("A", flag=1), topic("B", flag=2), topic("C", flag=3), "D"), 0)
    table.register(registration("D", "E", cluster="c2", name="b2", address="10.0.0.5:1"), 0)
    assert table.topics_of_cluster("c2") == ["D", "E"]
    assert table.topics_of_cluster("none") == []
    assert table.topics_by_flag(1) == ["A", "C"]
    assert table.topics_by_flag(2) == ["B", "C"]
    assert table.topics_by_flag(2, 1) == ["B"]


def test_topics_are_deleted_everywhere_or_in_one_cluster(table: RouteTable) -> None:
    table.register(registration("D", "T"), 0)
    table.register(registration("D", "T", cluster="c2", name="b2", address="10.0.0.5:1"), 0)
    table.delete_topic("D", "c2")
    assert list(table.topics["D"]) == ["b"]
    table.delete_topic("D", "c")
    table.delete_topic("T")
    assert not table.topics


def test_single_topics_are_taken_for_brokers_that_are_known(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    assert table.add_topic("N", [("b", QueueEntry(1, 1, 6, 0))])
    assert not table.add_topic("M", [("nobody", QueueEntry(1, 1, 6, 0))])
    assert "N" in table.topics and "M" not in table.topics


def test_static_topic_mappings_and_filter_servers_are_shown(table: RouteTable) -> None:
    mapping = {"bname": "b", "totalQueues": 8}
    table.register(registration("T", "U", mappings={"T": mapping}, filters=["10.0.0.1:1"]), 0)
    route = table.route("T")
    assert route is not None
    assert route.mappings == {"b": mapping} and route.filters == {"10.0.0.1:10911": ["10.0.0.1:1"]}
    table.register(registration("T", "U"), 0)
    route = table.route("T")
    assert route is not None and route.filters == {}


def test_only_changes_that_show_count_as_changes(table: RouteTable) -> None:
    table.register(registration("T", "U"), 0)
    seen = table.version
    table.register(registration("T", "U"), 5)
    table.touch("c", "10.0.0.1:10911", 6)
    assert table.version == seen
    for change in (
        registration("T", "U", "V"),
        registration("T", "U", version=2),
        registration("T", "U", version=2, zone="z"),
        registration("T", "U", version=2, address="10.0.0.8:1"),
        registration("T", "U", version=2, address="10.0.0.8:1", auto_host=True),
        registration("T", "U", version=2, address="10.0.0.8:1", filters=["f:1"]),
    ):
        seen = table.version
        table.register(change, 7)
        assert table.version > seen


def test_members_are_told_when_the_smallest_id_changes(table: RouteTable) -> None:
    told: list[MinIdChange] = []
    table.on_min_id_change = told.append
    table.register(registration("T", "U", **REPLICA), 0)
    assert told == []
    table.register(registration("T", "U"), 0)
    table.unregister("c", "b", "10.0.0.1:10911")
    assert [(change.min_id, change.offline_address) for change in told] == [(0, None), (1, "10.0.0.1:10911")]
