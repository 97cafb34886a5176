"""The pure parts: routers, allocators, filters, routes, outgoing messages, errors, position files."""

import pytest

from pocketmq import BrokerError, MessageQueue, Sql, Tag, UsageError
from pocketmq.client.allocators import AverageAllocator, CircleAllocator
from pocketmq.client.broker_errors import ERRORS, error_of
from pocketmq.client.filters import as_filter, subscription
from pocketmq.client.health import BrokerHealth
from pocketmq.client.outgoing import can_be_merged, level_of_delay, properties_text
from pocketmq.client.parts import Allocator, MessageBuffer, Router, Serializer, WritableQueue
from pocketmq.client.positions_file import decode_positions, encode_positions
from pocketmq.client.routers import HashRouter, RoundRobinRouter, bucket
from pocketmq.client.routing import topic_route
from pocketmq.client.serializers import BytesSerializer
from pocketmq.model.errors import BodyError, MessageTooLargeError
from pocketmq.model.message import Message
from pocketmq.testing.fakes import FakeAllocator, FakeBuffer, FakeQueue, FakeRouter, FakeSerializer
from pocketmq.wire.bodies import BrokerData, QueueData, TopicRouteData
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.command import Command


def message(**fields):
    return Message(topic="t", body=b"", **fields)


def writable(*names):
    return [FakeQueue("t", name, queue_id) for name in names for queue_id in range(2)]


def queues(count):
    return [MessageQueue("t", "broker-a", n) for n in range(count)]


def test_the_defaults_and_the_fakes_are_what_the_protocols_ask_for():
    assert isinstance(RoundRobinRouter(), Router)
    assert isinstance(HashRouter(), Router)
    assert isinstance(AverageAllocator(), Allocator)
    assert isinstance(BytesSerializer(), Serializer)
    assert isinstance(FakeRouter(), Router)
    assert isinstance(FakeQueue(), WritableQueue)
    assert isinstance(FakeAllocator(), Allocator)
    assert isinstance(FakeBuffer(), MessageBuffer)
    assert isinstance(FakeSerializer(), Serializer)


class TestRouters:
    def test_in_turn_over_all_queues(self):
        router, all_queues = RoundRobinRouter(), writable("a", "b")
        assert [router.choose(message(), all_queues, ()) for _ in range(8)] == all_queues * 2

    def test_several_in_a_row_with_a_stride(self):
        router, all_queues = RoundRobinRouter(stride=2), writable("a")
        chosen = [router.choose(message(), all_queues, ()).queue.queue_id for _ in range(6)]
        assert chosen == [0, 0, 1, 1, 0, 0]

    def test_a_broker_that_failed_is_left_out_unless_there_is_no_other(self):
        router, all_queues = RoundRobinRouter(), writable("a", "b")
        chosen = {router.choose(message(), all_queues, {"a"}).queue.broker_name for _ in range(8)}
        assert chosen == {"b"}
        assert router.choose(message(), all_queues, {"a", "b"}) in all_queues

    def test_a_message_group_stays_in_its_queue_whatever_fails(self):
        router, all_queues = RoundRobinRouter(), writable("a", "b")
        grouped = message(properties={"__SHARDINGKEY": "user-7"})
        first = router.choose(grouped, all_queues, ())
        assert all(router.choose(grouped, all_queues, {first.queue.broker_name}) is first for _ in range(5))

    def test_the_bucket_of_a_key_is_the_one_that_java_clients_use(self):
        assert bucket("TagA", 16) == 2598919 % 16
        assert bucket("polygenelubricants", 7) == 2147483648 % 7

    def test_by_key_of_ones_own_choosing(self):
        router, all_queues = HashRouter(), writable("a", "b")
        same = {id(router.choose(message(keys=("k",)), all_queues, ())) for _ in range(5)}
        assert len(same) == 1
        assert HashRouter(key=lambda m: m.tag or "").choose(message(tag="x"), all_queues, ()) in all_queues


class TestAllocators:
    @pytest.mark.parametrize("count", range(12))
    @pytest.mark.parametrize("consumers", range(1, 6))
    @pytest.mark.parametrize("allocator", [AverageAllocator(), CircleAllocator()])
    def test_every_queue_has_one_consumer_and_shares_differ_by_one_at_most(self, allocator, count, consumers):
        ids = [f"c{n}" for n in range(consumers)]
        shares = [allocator.allocate(me, ids, queues(count)) for me in ids]
        assert sorted(queue for share in shares for queue in share) == queues(count)
        assert max(map(len, shares)) - min(map(len, shares)) <= 1

    def test_averagely_gives_neighbours_and_by_circle_deals_them_out(self):
        ids = ["a", "b", "c"]
        assert [q.queue_id for q in AverageAllocator().allocate("a", ids, queues(8))] == [0, 1, 2]
        assert [q.queue_id for q in AverageAllocator().allocate("c", ids, queues(8))] == [6, 7]
        assert [q.queue_id for q in CircleAllocator().allocate("b", ids, queues(8))] == [1, 4, 7]

    def test_who_is_not_in_the_list_gets_nothing(self):
        assert AverageAllocator().allocate("x", ["a"], queues(4)) == []
        assert CircleAllocator().allocate("x", ["a"], queues(4)) == []


class TestFilters:
    def test_tags_are_split_and_stars_mean_everything(self):
        assert Tag(" a || b").tags == ("a", "b")
        assert Tag.ALL.tags == Tag("").tags == Tag(" * ").tags == ()

    def test_what_a_user_may_give(self):
        assert as_filter(None) is Tag.ALL
        assert as_filter("a") == Tag("a")
        assert as_filter(Sql("x > 5")).kind == "SQL92"
        for wrong in (Sql(" "), Tag(""), 5):
            with pytest.raises(UsageError):
                as_filter(wrong)

    def test_the_heartbeat_says_it_as_java_does(self):
        told = subscription("t", Tag("A||B"), 7)
        assert (told.sub_string, told.tags_set, told.code_set) == ("A || B", ["A", "B"], [65, 66])
        assert (told.expression_type, told.sub_version) == ("TAG", 7)
        assert subscription("t", Tag.ALL, 7).sub_string == "*"
        assert subscription("t", Sql("a > 1"), 7).expression_type == "SQL92"


class TestRoutes:
    def data(self, **fields):
        return TopicRouteData(
            broker_datas=[
                BrokerData(broker_name="a", cluster="c", broker_addrs={0: "1.1.1.1:1", 1: "1.1.1.2:1"}),
                BrokerData(broker_name="b", cluster="c", broker_addrs={1: "1.1.1.3:1"}),
            ],
            queue_datas=[
                QueueData(broker_name="b", read_queue_nums=1, write_queue_nums=1, perm=6),
                QueueData(broker_name="a", read_queue_nums=3, write_queue_nums=2, perm=6),
                QueueData(broker_name="gone", read_queue_nums=3, write_queue_nums=2, perm=6),
            ],
            **fields,
        )

    def test_writing_needs_a_master_and_reading_anybody(self):
        route = topic_route("t", self.data())
        assert [(q.broker_name, q.queue_id) for q in route.writable] == [("a", 0), ("a", 1)]
        assert [(q.broker_name, q.queue_id) for q in route.readable] == [("a", 0), ("a", 1), ("a", 2), ("b", 0)]
        assert (route.master("a"), route.master("b")) == ("1.1.1.1:1", None)
        assert (route.address("a", 1), route.address("b"), route.address("x")) == ("1.1.1.2:1", "1.1.1.3:1", None)
        assert route.addresses() == {"1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"}

    def test_permissions_count(self):
        data = self.data()
        data.queue_datas[1].perm = 4
        assert topic_route("t", data).writable == ()
        data.queue_datas[1].perm = 2
        assert [q.broker_name for q in topic_route("t", data).readable] == ["b"]

    def test_an_order_configuration_fixes_the_queues_that_are_written(self):
        route = topic_route("t", self.data(order_topic_conf="a:1;b:4"))
        assert [(q.broker_name, q.queue_id) for q in route.writable] == [("a", 0)]

    def test_a_topic_that_will_be_made_gets_four_queues_at_most(self):
        data = TopicRouteData(
            broker_datas=[BrokerData(broker_name="a", broker_addrs={0: "1.1.1.1:1"})],
            queue_datas=[QueueData(broker_name="a", read_queue_nums=8, write_queue_nums=8, perm=7)],
        )
        route = topic_route("new", data, automatic=True)
        assert len(route.writable) == 4
        assert route.writable[0].topic == "new"


class TestOutgoing:
    def test_properties_are_written_out(self):
        text = properties_text(message(tag="T", keys=("a", "b"), properties={"x": "1"}, delay_level=3))
        assert text == "x\x011\x02TAGS\x01T\x02KEYS\x01a b\x02DELAY\x013\x02"

    def test_too_many_are_refused(self):
        with pytest.raises(MessageTooLargeError):
            properties_text(message(properties={"x": "y" * 33_000}))
        with pytest.raises(UsageError):
            properties_text(message(properties={"x": "a\x02b"}))

    def test_a_batch_carries_plain_messages_only(self):
        assert can_be_merged(message(tag="a", properties={"UNIQ_KEY": "k", "mine": "x"}))
        assert not can_be_merged(message(delay_level=1))
        assert not can_be_merged(message(properties={"TRAN_MSG": "true"}))
        assert not can_be_merged(message(properties={"TIMER_DELAY_MS": "5"}))
        assert not can_be_merged(Message(topic="%RETRY%g", body=b""))

    def test_which_delays_are_levels(self):
        assert [level_of_delay(s) for s in (1, 5.0, 7200, 7, 0.5, 0)] == [1, 2, 18, 0, 0, 0]


def test_a_broker_is_avoided_longer_after_each_failure_until_something_succeeds():
    health = BrokerHealth()
    assert health.all_well
    health.failed("a", now=10.0)
    assert health.avoid(10.4) == ["a"]
    assert health.avoid(10.6) == []
    health.failed("a", now=10.6)
    assert health.avoid(11.5) == ["a"]
    health.succeeded("a")
    assert health.all_well


def test_every_code_becomes_an_error_with_its_remark_and_address():
    for code in ResponseCode:
        error = error_of(Command(code=code, remark="because"), "send to t", "1.1.1.1:1")
        assert error.code == code
        assert f"{code.value} {code.name}: because" in str(error)
        assert "1.1.1.1:1" in str(error)
        assert error.retryable == ERRORS.get(code, (None, False))[1]
    unknown = error_of(Command(code=4711), "x", "y")
    assert isinstance(unknown, BrokerError)
    assert not unknown.retryable


def test_position_files_are_those_of_java_clients():
    table = {MessageQueue("t", "b", 1): 5, MessageQueue("t", "b", 0): 7}
    data = encode_positions(table)
    assert data == (
        b'{"offsetTable":{{"brokerName":"b","queueId":1,"topic":"t"}:5,{"brokerName":"b","queueId":0,"topic":"t"}:7}}'
    )
    assert decode_positions(data) == table
    java = b'{\n\t"offsetTable":{{\n"brokerName":"b",\n"queueId":3,\n"topic":"t"\n}:12\n}\n}'
    assert decode_positions(java) == {MessageQueue("t", "b", 3): 12}
    with pytest.raises(BodyError):
        decode_positions(b"{}")
