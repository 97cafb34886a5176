"""Transactional messages: nobody sees one before its producer has decided, and each is decided once."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.model.errors import StoreFullError
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.bodies.clients import HeartbeatData, ProducerData
from pocketmq.wire.bodies.codec import encode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.clients import HeartbeatRequestHeader
from pocketmq.wire.headers.messages import ResumeCheckHalfMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageResponseHeader
from pocketmq.wire.headers.transactions import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import Record, decode_record

COMMIT, ROLLBACK, UNKNOWN = 8, 12, 0
HALVES, MARKS, GIVEN_UP = "RMQ_SYS_TRANS_HALF_TOPIC", "RMQ_SYS_TRANS_OP_HALF_TOPIC", "TRANS_CHECK_MAX_TIME_TOPIC"
PROPERTIES = {"TRAN_MSG": "true", "PGROUP": "payers", "UNIQ_KEY": "KEY1", "TAGS": "paid", "colour": "green"}


class Sent:
    """What a producer knows about a half message that it sent."""

    def __init__(self, answer: Command) -> None:
        self.answer = answer.header(SendMessageResponseHeader)
        self.position = decode_offset_id(self.answer.msg_id)[2]
        self.offset = self.answer.queue_offset


async def send_half(peer: Any, body: bytes = b"pay", **options: Any) -> Sent:
    properties = {**PROPERTIES, **options.pop("properties", {})}
    answer = await peer.send(body=body, properties=properties, sys_flag=4, **options)
    assert answer.code == 0, answer.remark
    return Sent(answer)


async def end(peer: Any, sent: Sent, decision: int, **changes: Any) -> Command:
    fields = {
        "producer_group": "payers",
        "tran_state_table_offset": sent.offset,
        "commit_log_offset": sent.position,
        "commit_or_rollback": decision,
        "msg_id": "KEY1",
        **changes,
    }
    return await peer.ask(RequestCode.END_TRANSACTION, EndTransactionRequestHeader(**fields))


def properties_of(record: Record) -> dict[str, str]:
    return decode_properties(record.properties.decode())


class Payer:
    """A producer on a connection of its own, and what it is asked."""

    def __init__(self, world: Any) -> None:
        self.world = world
        self.checks: list[tuple[CheckTransactionStateRequestHeader, Record]] = []
        self.decision = UNKNOWN
        self.connection: RemotingConnection

    async def join(self, group: str = "payers", client_id: str = "payer") -> "Payer":
        self.connection = await self.world.network.connect(
            "127.0.0.1",
            self.world.broker.port,
            lambda: RemotingConnection(self.world.clock, on_request=self._asked, accepted=False),
            timeout=5,
        )
        body = encode_body(HeartbeatData(client_id=client_id, producer_data_set=[ProducerData(group_name=group)]))
        await self.connection.request(RequestCode.HEART_BEAT, HeartbeatRequestHeader(), body, timeout_s=5)
        return self

    def _asked(self, connection: RemotingConnection, command: Command) -> None:
        assert command.code == RequestCode.CHECK_TRANSACTION_STATE
        assert command.is_oneway
        header = command.header(CheckTransactionStateRequestHeader)
        self.checks.append((header, decode_record(command.body, check_crc=True)))
        connection.request_oneway(
            RequestCode.END_TRANSACTION,
            EndTransactionRequestHeader(
                producer_group="payers",
                tran_state_table_offset=header.tran_state_table_offset,
                commit_log_offset=header.commit_log_offset,
                commit_or_rollback=self.decision,
                msg_id=header.msg_id or "",
                from_transaction_check=True,
            ),
        )


@pytest.fixture
def payer(world: Any, peer: Any) -> Callable[..., Any]:
    """Make a producer that can be asked."""

    async def join(**options: Any) -> Payer:
        return await Payer(world).join(**options)

    return join


# -- what producers and consumers see --------------------------------------------------------------------------------


async def test_nobody_sees_a_message_before_it_is_committed(peer) -> None:
    sent = await send_half(peer, queue_id=2)
    assert sent.answer.queue_id == 2
    assert sent.answer.transaction_id == "KEY1"
    assert (await peer.pull(queue_id=2)).code != 0
    (half,) = await peer.records(HALVES)
    assert (half.physical_offset, half.queue_offset, half.queue_id) == (sent.position, sent.offset, 0)
    assert half.sys_flag & 12 == 0
    found = properties_of(half)
    assert found["REAL_TOPIC"] == "orders"
    assert found["REAL_QID"] == "2"
    assert found["__transactionId__"] == "KEY1"
    assert found["TRAN_MSG"] == "true"
    assert found["colour"] == "green"


async def test_a_commit_delivers_the_message_and_marks_the_half(peer) -> None:
    sent = await send_half(peer, queue_id=2)
    assert (await end(peer, sent, COMMIT)).code == 0
    (record,) = await peer.records(queue_id=2, subscription="paid")
    (half,) = await peer.records(HALVES)
    assert record.sys_flag & 12 == COMMIT
    assert record.prepared_transaction_offset == sent.position
    for name in ("body", "flag", "born_timestamp", "born_host", "reconsume_times"):
        assert getattr(record, name) == getattr(half, name), name
    expected = {key: value for key, value in properties_of(half).items() if not key.startswith("REAL_")}
    assert properties_of(record) == expected
    (mark,) = await peer.records(MARKS)
    assert mark.body == b"%d," % sent.offset
    assert properties_of(mark)["TAGS"] == "d"


@pytest.mark.parametrize(
    "hostile", [{"REAL_TOPIC": "elsewhere", "REAL_QID": "9"}, {"XREAL_TOPIC": "x"}, {"REAL_QID": "7", "PGROUPS": "x"}]
)
async def test_what_a_client_says_about_the_real_topic_does_not_count(peer, hostile: dict[str, str]) -> None:
    sent = await send_half(peer, queue_id=1, properties=hostile)
    assert (await end(peer, sent, COMMIT)).code == 0
    (record,) = await peer.records(queue_id=1)
    assert "REAL_TOPIC" not in properties_of(record)
    assert "REAL_QID" not in properties_of(record) or "REAL_TOPIC" not in hostile


async def test_a_rollback_only_marks_the_half(peer) -> None:
    sent = await send_half(peer)
    assert (await end(peer, sent, ROLLBACK)).code == 0
    assert (await peer.pull()).code != 0
    (mark,) = await peer.records(MARKS)
    assert mark.body == b"%d," % sent.offset


@pytest.mark.parametrize("first", [COMMIT, ROLLBACK])
@pytest.mark.parametrize("second", [COMMIT, ROLLBACK])
async def test_what_has_ended_cannot_be_ended_again(peer, first: int, second: int) -> None:
    sent = await send_half(peer)
    await end(peer, sent, first)
    answer = await end(peer, sent, second)
    assert answer.code == 1
    assert "no open transaction" in answer.remark
    assert len(await peer.records()) == (first == COMMIT)
    assert len(await peer.records(MARKS)) == 1


@pytest.mark.parametrize(
    "wrong", [{"producer_group": "thieves"}, {"tran_state_table_offset": 7}, {"commit_log_offset": 12345}]
)
async def test_who_does_not_know_the_transaction_cannot_end_it(peer, wrong: dict[str, Any]) -> None:
    sent = await send_half(peer)
    assert (await end(peer, sent, COMMIT, **wrong)).code == 1
    assert (await peer.pull()).code != 0
    assert (await end(peer, sent, COMMIT)).code == 0


async def test_unknown_changes_nothing_and_is_not_answered(world, peer) -> None:
    sent = await send_half(peer)
    peer.connection.request_oneway(
        RequestCode.END_TRANSACTION,
        EndTransactionRequestHeader(
            producer_group="payers",
            tran_state_table_offset=sent.offset,
            commit_log_offset=sent.position,
            commit_or_rollback=UNKNOWN,
            msg_id="KEY1",
        ),
    )
    assert (await peer.pull()).code != 0
    assert len(world.broker.transactions) == 1


@pytest.mark.parametrize("name", ["DELAY", "TIMER_DELAY_SEC", "TIMER_DELAY_MS", "TIMER_DELIVER_MS"])
async def test_a_delay_is_refused_not_lost(world, peer, name: str) -> None:
    value = "2" if name != "TIMER_DELIVER_MS" else str(world.clock.time_ms() + 1000)
    answer = await peer.send(properties={**PROPERTIES, name: value})
    assert answer.code == 13
    assert "delay" in answer.remark
    assert len(world.broker.transactions) == 0


async def test_what_looks_like_a_delay_and_is_none_is_taken(peer) -> None:
    await send_half(peer, properties={"DELAY": "0", "DELAYED_BY": "nobody"})


async def test_a_retry_of_a_committed_message_is_no_new_transaction(world, peer) -> None:
    await peer.send_back(0, group="consumers")
    properties = {**PROPERTIES, "DELAY": "1"}
    assert (await peer.send(properties=properties, reconsume_times=1)).code == 0
    await world.clock.sleep(1.5)
    assert len(await peer.records()) == 1
    assert len(world.broker.transactions) == 0


async def test_transactions_can_be_switched_off(world) -> None:
    await world.start(broker__reject_transactions=True)
    peer = await world.connect()
    answer = await peer.send(properties=PROPERTIES)
    assert answer.code == 16
    assert "broker.reject_transactions" in answer.remark


async def test_no_client_decides_what_a_record_is_in_a_transaction(world, peer) -> None:
    await peer.send(sys_flag=4)
    await peer.send(sys_flag=12)
    await peer.send_batch(sys_flag=8)
    assert {record.sys_flag & 12 for record in await peer.records()} == {0}
    await world.crash()
    assert len(await (await world.connect()).records()) == 5


async def test_many_that_end_together_share_one_mark(world, peer) -> None:
    sent = [await send_half(peer, b"%d" % number) for number in range(3)]
    for each, decision in zip(sent, (COMMIT, ROLLBACK, COMMIT), strict=True):
        peer.connection.request_oneway(
            RequestCode.END_TRANSACTION,
            EndTransactionRequestHeader(
                producer_group="payers",
                tran_state_table_offset=each.offset,
                commit_log_offset=each.position,
                commit_or_rollback=decision,
                msg_id="KEY1",
            ),
        )
    assert [record.body for record in await peer.records()] == [b"0", b"2"]
    marks = b"".join(record.body for record in await peer.records(MARKS))
    assert marks == b"0,1,2,"


# -- asking ----------------------------------------------------------------------------------------------------------


async def test_a_producer_of_the_group_is_asked_about_an_open_transaction(world, peer, payer) -> None:
    producer = await payer()
    await payer(group="others", client_id="other")
    sent = await send_half(peer, queue_id=3)
    await world.clock.sleep(31)
    ((header, record),) = producer.checks
    assert (header.commit_log_offset, header.tran_state_table_offset) == (sent.position, sent.offset)
    assert header.msg_id == header.transaction_id == "KEY1"
    assert header.offset_msg_id == sent.answer.msg_id
    assert header.target_broker == world.broker.settings.broker.name
    assert (record.topic, record.queue_id, record.body) == ("orders", 3, b"pay")
    assert properties_of(record)["TRANSACTION_CHECK_TIMES"] == "1"
    await world.clock.sleep(30)
    assert len(producer.checks) == 2


@pytest.mark.parametrize("decision", [COMMIT, ROLLBACK])
async def test_the_answer_to_a_check_ends_the_transaction(world, peer, payer, decision: int) -> None:
    producer = await payer()
    producer.decision = decision
    await send_half(peer)
    await world.clock.sleep(100)
    assert len(producer.checks) == 1
    found = await peer.records()
    assert len(found) == (decision == COMMIT)
    if found:
        assert properties_of(found[0])["TRANSACTION_CHECK_TIMES"] == "1"
    assert len(world.broker.transactions) == 0


async def test_young_and_immune_transactions_are_not_asked_about(world, peer, payer) -> None:
    producer = await payer()
    await send_half(peer, b"immune", properties={"CHECK_IMMUNITY_TIME_IN_SECONDS": "70"})
    await world.clock.sleep(25)
    await send_half(peer, b"young")
    await world.clock.sleep(6)
    assert producer.checks == []
    await world.clock.sleep(30)
    assert [record.body for _, record in producer.checks] == [b"young"]
    await world.clock.sleep(30)
    assert [record.body for _, record in producer.checks] == [b"young", b"immune", b"young"]


async def test_the_producers_of_a_group_take_turns(world, peer, payer) -> None:
    producers = [await payer(client_id=f"payer-{number}") for number in range(3)]
    for number in range(9):
        await send_half(peer, b"%d" % number)
    await world.clock.sleep(31)
    assert [len(producer.checks) for producer in producers] == [3, 3, 3]
    producers[0].connection.close()
    await world.clock.sleep(30)
    assert len(producers[0].checks) == 3
    assert sum(len(producer.checks) for producer in producers[1:]) == 6 + 9


async def test_each_check_of_a_transaction_goes_to_another_producer(world, peer, payer) -> None:
    producers = [await payer(client_id=f"payer-{number}") for number in range(2)]
    for number in range(4):
        await send_half(peer, b"%d" % number)
    await world.clock.sleep(61)
    for producer in producers:
        assert sorted(record.body for _, record in producer.checks) == [b"0", b"1", b"2", b"3"]


async def test_only_checks_that_were_sent_count(world, peer, payer) -> None:
    await send_half(peer)
    await world.clock.sleep(30 * 20)
    assert await peer.pull(GIVEN_UP) is not None
    assert len(world.broker.transactions) == 1
    producer = await payer()
    await world.clock.sleep(30 * 15 + 1)
    assert len(producer.checks) == 15
    assert len(world.broker.transactions) == 1
    await world.clock.sleep(30)
    assert len(producer.checks) == 15
    assert len(world.broker.transactions) == 0
    (record,) = await peer.records(GIVEN_UP)
    assert record.body == b"pay"
    assert properties_of(record)["REAL_TOPIC"] == "orders"
    assert properties_of(record)["TRANSACTION_CHECK_TIMES"] == "15"
    assert (await peer.pull()).code != 0


async def test_a_late_commit_wins_until_the_transaction_is_given_up(world, peer, payer) -> None:
    await payer()
    first, second = await send_half(peer, b"first"), await send_half(peer, b"second")
    await world.clock.sleep(30 * 15 + 1)
    assert (await end(peer, first, COMMIT)).code == 0
    await world.clock.sleep(30)
    assert (await end(peer, second, COMMIT)).code == 1
    assert [record.body for record in await peer.records()] == [b"first"]
    assert [record.body for record in await peer.records(GIVEN_UP)] == [b"second"]


async def test_a_transaction_that_nobody_can_be_asked_about_is_given_up_for_its_age(world) -> None:
    await world.start(broker__transaction_age_max_s=1000.0)
    peer = await world.connect()
    await send_half(peer)
    await world.clock.sleep(990)
    assert len(world.broker.transactions) == 1
    await world.clock.sleep(100)
    assert len(world.broker.transactions) == 0
    assert len(await peer.records(GIVEN_UP)) == 1


async def test_thousands_are_asked_about_in_one_round(world, peer, payer) -> None:
    producer = await payer()
    producer.decision = COMMIT
    for number in range(2500):
        await send_half(peer, b"%d" % number, properties={"UNIQ_KEY": f"KEY{number}"})
    await world.clock.sleep(60)
    assert len(producer.checks) == 2500
    assert len(world.broker.transactions) == 0


# -- restarts --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["restart", "crash"])
async def test_open_and_ended_transactions_survive(world, peer, payer, how: str) -> None:
    await payer()
    ended = [await send_half(peer, b"a"), await send_half(peer, b"b")]
    still_open = await send_half(peer, b"c")
    await end(peer, ended[0], COMMIT)
    await end(peer, ended[1], ROLLBACK)
    await world.clock.sleep(31)
    await getattr(world, how)()
    peer = await world.connect()
    half = world.broker.transactions.find(still_open.position)
    assert half.checks == 1
    assert len(world.broker.transactions) == 1
    for each in ended:
        assert (await end(peer, each, COMMIT)).code == 1
    assert (await end(peer, still_open, COMMIT)).code == 0
    assert [record.body for record in await peer.records()] == [b"a", b"c"]


@pytest.mark.parametrize("with_views", [True, False])
async def test_a_copy_without_its_mark_has_ended_the_transaction(world, peer, monkeypatch, with_views: bool) -> None:
    first, second = await send_half(peer, b"a"), await send_half(peer, b"b")
    if with_views:
        await world.broker.snapshots.save(world.broker.log)
    monkeypatch.setattr(world.broker.transaction_service, "append_marks", lambda: None)
    await end(peer, first, COMMIT)
    await world.crash()
    peer = await world.connect()
    assert (await end(peer, first, COMMIT)).code == 1
    assert (await end(peer, second, ROLLBACK)).code == 0
    assert [record.body for record in await peer.records()] == [b"a"]
    assert [record.body for record in await peer.records(MARKS)] == [b"0,", b"1,"]
    await world.crash()
    assert len(world.broker.transactions) == 0


async def test_what_the_disk_did_not_take_has_not_happened(world, peer) -> None:
    sent = await send_half(peer)

    def full(position: int, data: object) -> None:
        raise OSError(28, "no space left on device")

    file = world.broker.log._segment.file
    file.write_at = full
    assert (await end(peer, sent, COMMIT)).code == 14
    assert (await peer.send(properties=PROPERTIES)).code == 14
    del file.write_at
    assert len(world.broker.transactions) == 1
    assert (await end(peer, sent, COMMIT)).code == 0
    assert len(await peer.records()) == 1


async def test_giving_up_waits_for_room_on_the_disk(world, peer, payer) -> None:
    await send_half(peer)
    service, half = world.broker.transaction_service, world.broker.transactions.positions()[0]
    world.broker.log.refuse("test", StoreFullError("full"))
    with pytest.raises(StoreFullError):
        service.give_up([world.broker.transactions.find(half)])
    assert len(world.broker.transactions) == 1
    world.broker.log.refuse("test", None)
    service.give_up([world.broker.transactions.find(half)])
    assert len(world.broker.transactions) == 0


# -- retention -------------------------------------------------------------------------------------------------------


async def test_open_transactions_are_carried_forward_and_still_known_to_their_producer(world, peer, payer) -> None:
    producer = await payer()
    sent = [await send_half(peer, body) for body in (b"a", b"b", b"c")]
    await end(peer, sent[2], ROLLBACK)
    await world.clock.sleep(31)
    for _ in range(2):
        stretch = world.broker.log.written_position
        assert world.broker.transaction_upkeep.carry_forward(0, stretch) == 2
        assert world.broker.transactions.between(0, stretch) == []
    assert (await end(peer, sent[0], COMMIT)).code == 0
    await world.clock.sleep(30)
    header, _ = producer.checks[-1]
    assert (header.commit_log_offset, header.tran_state_table_offset) == (sent[1].position, sent[1].offset)
    await world.crash()
    peer = await world.connect()
    assert world.broker.transactions.find(sent[1].position).checks == 2
    assert (await end(peer, sent[0], COMMIT)).code == 1
    assert (await end(peer, sent[1], COMMIT)).code == 0
    found = await peer.records()
    assert [record.body for record in found] == [b"a", b"b"]
    assert "TRAN_PREPARED_QUEUE_OFFSET" not in properties_of(found[0])
    assert "PMQ_HALF_AT" not in properties_of(found[0])
    assert len(world.broker.transactions) == 0


# -- operators -------------------------------------------------------------------------------------------------------


async def test_an_operator_has_an_open_transaction_asked_about_anew(world, peer, payer) -> None:
    await payer()
    sent = await send_half(peer)
    await world.clock.sleep(30 * 15 + 1)
    header = ResumeCheckHalfMessageRequestHeader(HALVES, sent.answer.msg_id)
    assert (await peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)).code == 0
    await world.clock.sleep(60)
    await world.restart()
    assert world.broker.transactions.find(sent.position).checks == 2


async def test_an_operator_has_a_transaction_that_was_given_up_asked_about_again(world, peer, payer) -> None:
    producer = await payer()
    await send_half(peer)
    await world.clock.sleep(30 * 16 + 1)
    (record,) = await peer.records(GIVEN_UP)
    message_id = f"{record.store_host.hex()}{record.physical_offset:016x}".upper()
    header = ResumeCheckHalfMessageRequestHeader(GIVEN_UP, message_id)
    assert (await peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)).code == 0
    assert (await peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)).code == 1
    await world.crash()
    producer = await Payer(world).join()
    producer.decision = COMMIT
    await world.clock.sleep(31)
    assert len(producer.checks) == 1
    peer = await world.connect()
    assert [record.body for record in await peer.records()] == [b"pay"]


async def test_what_was_decided_cannot_be_resumed(peer) -> None:
    sent = await send_half(peer)
    await end(peer, sent, COMMIT)
    header = ResumeCheckHalfMessageRequestHeader(HALVES, sent.answer.msg_id)
    assert (await peer.ask(RequestCode.RESUME_CHECK_HALF_MESSAGE, header)).code == 1


async def test_halves_that_a_rocketmq_broker_has_passed_are_over(world, peer) -> None:
    first = await send_half(peer, properties={"UNIQ_KEY": "A"})
    asked = await send_half(peer, properties={"UNIQ_KEY": "B"})
    asked_again = await send_half(peer, properties={"UNIQ_KEY": "B"})
    last = await send_half(peer, properties={"UNIQ_KEY": "C"})
    assert world.broker.transaction_upkeep.outdated(1) == [first.position, asked.position]
    assert {asked_again.position, last.position} <= set(world.broker.transactions.positions())
