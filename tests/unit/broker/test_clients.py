"""The registry of clients: who is a member, what it wants, and when the others must be told."""

import logging
from typing import Any

import pytest

from pocketmq.broker.clients import ClientRegistry
from pocketmq.broker.membership import ConsumerGroup
from pocketmq.model.config import Subscription
from pocketmq.model.errors import PocketMQError


class StillClock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def call_later(self, delay: float, callback: Any, *args: Any) -> Any:
        raise AssertionError("the registry waits for nothing")

    async def sleep(self, delay: float) -> None:
        raise AssertionError("the registry waits for nothing")


class FakeConnection:
    def __init__(self, port: int = 1) -> None:
        self.peer_address = ("10.0.0.1", port)
        self.closed = False

    def close(self) -> None:
        self.closed = True


class Registry(ClientRegistry):
    """With what it announced, and short ways to say who comes."""

    def __init__(self) -> None:
        self.still = StillClock()
        super().__init__(self.still, expire_s=120.0)
        self.changes: list[tuple[str, bool]] = []
        self.on_group_changed = self._note

    def _note(self, group: ConsumerGroup, membership: bool) -> None:
        self.changes.append((group.name, membership))

    def consumer_heartbeat(
        self,
        connection: FakeConnection,
        group: str = "g",
        client_id: str = "c1",
        topics: dict[str, tuple[str, int]] | None = None,
        *,
        fingerprint: int = 0,
        without_subscriptions: bool = False,
        model: str = "CLUSTERING",
    ) -> bool:
        wanted = topics if topics is not None else {"orders": ("*", 1)}
        subscriptions = [
            Subscription(topic=topic, sub_string=expression, sub_version=version)
            for topic, (expression, version) in wanted.items()
        ]
        return self.register_consumer(
            connection,
            group,
            client_id,
            language="JAVA",
            version=399,
            consume_type="CONSUME_PASSIVELY",
            message_model=model,
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
            subscriptions=None if without_subscriptions else subscriptions,
            fingerprint=fingerprint,
        )

    def producer_heartbeat(self, connection: FakeConnection, group: str = "p", client_id: str = "c1") -> None:
        self.register_producer(connection, group, client_id, language="GO", version=317)


@pytest.fixture
def registry() -> Registry:
    return Registry()


def test_a_heartbeat_makes_a_member(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection())
    assert registry.client_ids("g") == ["c1"]
    assert registry.changes == [("g", True)]


def test_the_same_heartbeat_again_changes_nothing(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection)
    registry.consumer_heartbeat(connection)
    assert registry.changes == [("g", True)]
    assert registry.membership_count == 1


def test_the_newest_heartbeat_sets_how_the_group_consumes(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection(1), client_id="c1")
    registry.consumer_heartbeat(FakeConnection(2), client_id="c2", model="BROADCASTING")
    group = registry.group("g")
    assert group is not None
    assert (group.message_model, group.consume_from_where) == ("BROADCASTING", "CONSUME_FROM_FIRST_OFFSET")


def test_a_closed_connection_leaves_all_its_groups(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, "g")
    registry.consumer_heartbeat(connection, "h")
    registry.producer_heartbeat(connection, "p")
    registry.changes.clear()
    registry.remove_connection(connection)
    assert sorted(registry.changes) == [("g", True), ("h", True)]
    assert registry.client_ids("g") == []
    assert registry.producers("p") == []
    assert registry.membership_count == 0


def test_unregistering_leaves_one_group_only(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, "g")
    registry.consumer_heartbeat(connection, "h")
    registry.producer_heartbeat(connection, "p")
    registry.unregister(connection, "c1", consumer_group="g", producer_group="p")
    assert registry.client_ids("g") == []
    assert registry.client_ids("h") == ["c1"]
    assert registry.producers("p") == []


def test_a_client_may_unregister_on_another_connection(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection(1))
    registry.producer_heartbeat(FakeConnection(1))
    registry.unregister(FakeConnection(2), "c1", consumer_group="g", producer_group="p")
    assert registry.client_ids("g") == []
    assert registry.producers("p") == []


def test_a_silent_client_is_dropped_and_its_connection_closed(registry: Registry) -> None:
    silent, alive = FakeConnection(1), FakeConnection(2)
    registry.consumer_heartbeat(silent, client_id="c1")
    registry.producer_heartbeat(silent)
    registry.still.now += 100
    registry.consumer_heartbeat(alive, client_id="c2")
    registry.still.now += 21
    assert registry.expire() == 2
    assert registry.client_ids("g") == ["c2"]
    assert (silent.closed, alive.closed) == (True, False)


def test_a_connection_with_one_group_left_stays_open(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, "old")
    registry.still.now += 121
    registry.consumer_heartbeat(connection, "new")
    assert registry.expire() == 1
    assert not connection.closed


def test_a_newer_subscription_replaces_and_a_missing_one_goes(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, topics={"orders": ("a", 1), "bills": ("*", 1)})
    registry.consumer_heartbeat(connection, topics={"orders": ("b", 2)})
    found = registry.subscription(connection, "g", "orders")
    assert found is not None
    assert (found.sub_string, found.sub_version) == ("b", 2)
    assert registry.subscription(connection, "g", "bills") is None
    assert registry.changes == [("g", True), ("g", False)]


def test_an_older_version_of_a_subscription_is_ignored(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, topics={"orders": ("new", 5)})
    registry.consumer_heartbeat(connection, topics={"orders": ("old", 4)})
    found = registry.subscription(connection, "g", "orders")
    assert found is not None
    assert found.sub_string == "new"


def test_a_new_version_of_the_same_wish_tells_nobody(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, topics={"orders": ("a", 1)})
    registry.consumer_heartbeat(connection, topics={"orders": ("a", 2)})
    found = registry.subscription(connection, "g", "orders")
    assert found is not None
    assert found.sub_version == 2
    assert registry.changes == [("g", True)]


def test_each_consumer_keeps_its_own_subscription_and_the_group_is_flagged(
    registry: Registry, caplog: pytest.LogCaptureFixture
) -> None:
    one, two = FakeConnection(1), FakeConnection(2)
    registry.consumer_heartbeat(one, client_id="c1", topics={"orders": ("a", 1)})
    group = registry.group("g")
    assert group is not None
    assert not group.subscriptions_differ
    with caplog.at_level(logging.WARNING):
        registry.consumer_heartbeat(two, client_id="c2", topics={"orders": ("b", 2)})
        registry.consumer_heartbeat(two, client_id="c2", topics={"orders": ("b", 2)})
    assert len(caplog.records) == 1
    assert "consumers of group g do not subscribe to the same" in caplog.text
    assert group.subscriptions_differ
    first, second = registry.subscription(one, "g", "orders"), registry.subscription(two, "g", "orders")
    assert first is not None
    assert second is not None
    assert (first.sub_string, second.sub_string) == ("a", "b")
    registry.remove_connection(two)
    assert not group.subscriptions_differ


def test_a_connection_without_heartbeat_is_served_by_what_the_group_wants(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection(1), client_id="c1", topics={"orders": ("a", 1)})
    registry.consumer_heartbeat(FakeConnection(2), client_id="c2", topics={"orders": ("b", 2), "bills": ("*", 1)})
    stranger = FakeConnection(3)
    found = registry.subscription(stranger, "g", "orders")
    assert found is not None
    assert found.sub_string == "b"
    assert registry.subscription(stranger, "g", "bills") is not None
    assert registry.subscription(stranger, "unknown", "orders") is None


def test_groups_that_want_a_topic_are_found(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection(1), "g", topics={"orders": ("*", 1)})
    registry.consumer_heartbeat(FakeConnection(2), "h", topics={"bills": ("*", 1)})
    assert registry.groups_subscribed_to("orders") == ["g"]


def test_one_client_id_on_two_connections_is_listed_once(registry: Registry) -> None:
    old, new = FakeConnection(1), FakeConnection(2)
    registry.consumer_heartbeat(old)
    registry.consumer_heartbeat(new)
    assert registry.client_ids("g") == ["c1"]
    speaker = registry.consumer("g", "c1")
    assert speaker is not None
    assert speaker.connection is new
    assert registry.changes == [("g", True)]
    registry.remove_connection(old)
    assert registry.client_ids("g") == ["c1"]
    assert registry.changes == [("g", True)]
    registry.remove_connection(new)
    assert registry.client_ids("g") == []


def test_two_live_clients_with_one_id_are_named_once(registry: Registry, caplog: pytest.LogCaptureFixture) -> None:
    old, new = FakeConnection(1), FakeConnection(2)
    with caplog.at_level(logging.WARNING):
        registry.consumer_heartbeat(old)
        registry.consumer_heartbeat(new)
        assert not caplog.records, "a client that reconnected looks like this too"
        for _ in range(3):
            registry.consumer_heartbeat(old)
            registry.consumer_heartbeat(new)
    assert len(caplog.records) == 1
    assert "10.0.0.1:1 and 10.0.0.1:2" in caplog.text
    assert "instance name" in caplog.text


def test_a_connection_that_changes_its_client_id_is_one_member(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, client_id="c1")
    registry.consumer_heartbeat(connection, client_id="c2")
    assert registry.client_ids("g") == ["c2"]
    assert registry.membership_count == 1


# -- heartbeat V2


def test_the_first_fingerprint_asks_for_nothing(registry: Registry) -> None:
    assert registry.consumer_heartbeat(FakeConnection(), fingerprint=7) is False


def test_another_fingerprint_than_the_groups_asks_for_everything(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, fingerprint=7)
    assert registry.consumer_heartbeat(connection, fingerprint=8) is True
    assert registry.consumer_heartbeat(connection, fingerprint=8) is False


def test_as_before_keeps_the_subscriptions_and_counts_as_alive(registry: Registry) -> None:
    connection = FakeConnection()
    registry.consumer_heartbeat(connection, fingerprint=7)
    registry.still.now += 100
    assert registry.consumer_heartbeat(connection, fingerprint=7, without_subscriptions=True) is False
    registry.still.now += 100
    assert registry.expire() == 0
    assert registry.subscription(connection, "g", "orders") is not None


def test_as_before_to_a_broker_that_knows_no_before_asks_for_everything(registry: Registry) -> None:
    connection = FakeConnection()
    assert registry.consumer_heartbeat(connection, fingerprint=7, without_subscriptions=True) is True
    assert registry.client_ids("g") == ["c1"], "it is a member all the same, so that queues are not shared out anew"
    assert registry.consumer_heartbeat(connection, fingerprint=7, without_subscriptions=True) is True
    assert registry.consumer_heartbeat(connection, fingerprint=7) is False
    assert registry.subscription(connection, "g", "orders") is not None


def test_until_it_sends_everything_the_groups_subscription_serves_it(registry: Registry) -> None:
    registry.consumer_heartbeat(FakeConnection(1), client_id="c1", fingerprint=7)
    late = FakeConnection(2)
    registry.consumer_heartbeat(late, client_id="c2", fingerprint=7, without_subscriptions=True)
    assert registry.subscription(late, "g", "orders") is not None
    group = registry.group("g")
    assert group is not None
    assert not group.subscriptions_differ
    registry.remove_connection(late)
    assert not group.subscriptions_differ


# -- producers


def test_producers_take_turns(registry: Registry) -> None:
    one, two = FakeConnection(1), FakeConnection(2)
    registry.producer_heartbeat(one, client_id="c1")
    registry.producer_heartbeat(two, client_id="c2")
    asked = [registry.next_producer("p") for _ in range(3)]
    assert [member.client_id for member in asked if member is not None] == ["c1", "c2", "c1"]
    assert registry.next_producer("unknown") is None


def test_a_producer_is_found_by_its_client_id_in_any_group(registry: Registry) -> None:
    connection = FakeConnection()
    registry.producer_heartbeat(connection, "p")
    registry.producer_heartbeat(connection, "q")
    registry.unregister(connection, "c1", producer_group="q")
    member = registry.producer_by_client_id("c1")
    assert member is not None
    assert member.connection is connection
    registry.unregister(connection, "c1", producer_group="p")
    assert registry.producer_by_client_id("c1") is None


def test_the_newest_connection_of_a_producer_gets_the_reply(registry: Registry) -> None:
    old, new = FakeConnection(1), FakeConnection(2)
    registry.producer_heartbeat(old)
    registry.producer_heartbeat(new)
    member = registry.producer_by_client_id("c1")
    assert member is not None
    assert member.connection is new


# -- limits


def test_beyond_the_limit_new_members_are_refused(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.clients.MEMBERSHIPS_MAX", 1)
    known = FakeConnection(1)
    registry.consumer_heartbeat(known)
    with pytest.raises(PocketMQError, match="too many clients") as refused:
        registry.consumer_heartbeat(FakeConnection(2), client_id="c2")
    assert (refused.value.code, refused.value.retryable) == (2, True)
    with pytest.raises(PocketMQError):
        registry.producer_heartbeat(FakeConnection(3))
    registry.consumer_heartbeat(known)
    assert registry.client_ids("g") == ["c1"]


def test_a_refused_member_leaves_no_empty_group(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pocketmq.broker.clients.MEMBERSHIPS_MAX", 0)
    with pytest.raises(PocketMQError):
        registry.consumer_heartbeat(FakeConnection())
    assert registry.group("g") is None
    assert registry.membership_count == 0
