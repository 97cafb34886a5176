"""Whatever brokers do, in whatever order, the route table agrees with itself."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.namesrv.routes import RouteTable
from pocketmq.namesrv.values import Registration

NAMES = st.sampled_from(["a", "b"])
CLUSTERS = st.sampled_from(["c", "d"])
ADDRESSES = st.sampled_from(["1:1", "2:2", "3:3"])
TOPICS = st.sets(st.sampled_from(["T", "U", "V"]))
CHANNELS = st.sampled_from(["x", "y"])

REGISTER = st.builds(
    lambda topics, version, **fields: Registration(
        topics={name: TopicConfig(topic_name=name) for name in topics},
        data_version=DataVersion(version, version, 0),
        timeout_ms=1000,
        **fields,
    ),
    topics=TOPICS,
    version=st.integers(0, 2),
    cluster=CLUSTERS,
    name=NAMES,
    broker_id=st.integers(0, 2),
    address=ADDRESSES,
    acting_master=st.sampled_from([None, False, True]),
    auto_host=st.booleans(),
    channel=CHANNELS,
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("register"), REGISTER),
        st.tuples(st.just("unregister"), st.tuples(CLUSTERS, NAMES, ADDRESSES)),
        st.tuples(st.just("close"), CHANNELS),
        st.tuples(st.just("wait"), st.integers(1, 2000)),
        st.tuples(st.just("delete"), st.tuples(st.sampled_from(["T", "U", "V"]), st.none() | CLUSTERS)),
    ),
    max_size=30,
)


def play(table: RouteTable, steps: list[tuple[str, object]]) -> None:
    now_ms = 0
    for kind, argument in steps:
        if isinstance(argument, Registration):
            table.register(argument, now_ms)
        elif kind == "unregister":
            table.unregister(*argument)  # type: ignore[misc]
        elif kind == "close":
            table.channel_closed(argument)
        elif kind == "delete":
            table.delete_topic(*argument)  # type: ignore[misc]
        else:
            assert isinstance(argument, int)
            now_ms += argument
            table.expire(now_ms)
        check(table)
    for member in list(table.live):
        table.touch(*member, now_ms)
    table.expire(now_ms + 10_000)
    check(table)
    assert not table.live


def check(table: RouteTable) -> None:
    listed = {name for names in table.clusters.values() for name in names}
    assert set(table.brokers) == listed, "every broker set is in a cluster, and no other"
    assert all(table.clusters.values()), "no empty cluster"
    for topic, queues in table.topics.items():
        assert queues, "no topic without queues"
        assert set(queues) <= set(table.brokers), "no queues of brokers that are gone"
        route = table.route(topic)
        assert route is not None
        assert all(brokers.addresses for brokers in route.brokers), "no route to nowhere"
    for brokers in table.brokers.values():
        addresses = list(brokers.addresses.values())
        assert len(addresses) == len(set(addresses)), "one process has one id"


@settings(max_examples=100, deadline=None)
@given(STEPS, st.booleans())
def test_the_route_table_agrees_with_itself(steps: list[tuple[str, object]], acting_master: bool) -> None:
    play(RouteTable(acting_master=acting_master), steps)
