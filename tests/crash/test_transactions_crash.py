"""Transactions at every crash point: each ends once, and what was answered stays so."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.broker.transaction_upkeep import TransactionUpkeep
from pocketmq.model.errors import BrokerError
from pocketmq.model.settings import Settings
from pocketmq.net.remoting import RemotingConnection
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import BrokenPromiseError, explore
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.testing.raw import RawClient
from pocketmq.views.transactions import Transactions
from pocketmq.wire.bodies.clients import HeartbeatData, ProducerData
from pocketmq.wire.bodies.codec import encode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.clients import HeartbeatRequestHeader
from pocketmq.wire.headers.transactions import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.record import decode_record

GROUP, TOPIC = "payers", "orders"
COMMIT, ROLLBACK = 8, 12


@dataclass
class Promises:
    """What became of each transaction, by its body, as far as the broker has said."""

    stored: set[bytes] = field(default_factory=set)
    ended: set[bytes] = field(default_factory=set)


def decision_of(body: bytes) -> int:
    return COMMIT if int(body.split()[0]) % 3 else ROLLBACK


def settings() -> Settings:
    table = Settings()
    table.broker.host = "0.0.0.0"
    table.broker.advertise = "10.0.0.1"
    table.store.data_dir = "data"
    table.store.flush = "sync"
    table.store.segment_bytes = 16 * 1024
    table.store.index_stretch_bytes = 8 * 1024
    table.store.snapshot_interval_s = 9.0
    return table


@asynccontextmanager
async def running(disk: SimulatedDisk, clock: VirtualClock) -> AsyncIterator[tuple[Broker, RawClient]]:
    network = SimulatedNetwork(clock, seed=disk.seed)
    broker = Broker(settings(), clock=clock, disk=disk, network=network.host("10.0.0.1"))
    await broker.start()
    client = await RawClient.connect(f"10.0.0.1:{broker.port}", network=network.host("10.0.0.9"), clock=clock)
    try:
        yield broker, client
    finally:
        client.close()
        await broker.stop()


def end_header(position: int, offset: int, decision: int) -> EndTransactionRequestHeader:
    return EndTransactionRequestHeader(
        producer_group=GROUP,
        tran_state_table_offset=offset,
        commit_log_offset=position,
        commit_or_rollback=decision,
        msg_id="",
    )


async def join(broker: Broker, clock: VirtualClock, disk: SimulatedDisk) -> RemotingConnection:
    """A producer that answers whatever it is asked."""

    def asked(connection: RemotingConnection, command: Command) -> None:
        header = command.header(CheckTransactionStateRequestHeader)
        decision = decision_of(decode_record(command.body).body)
        answer = end_header(header.commit_log_offset, header.tran_state_table_offset, decision)
        connection.request_oneway(RequestCode.END_TRANSACTION, answer)

    connection = await broker.network.connect(
        "10.0.0.1", broker.port, lambda: RemotingConnection(clock, on_request=asked, accepted=False), timeout=5
    )
    body = encode_body(HeartbeatData(client_id="payer", producer_data_set=[ProducerData(group_name=GROUP)]))
    await connection.request(RequestCode.HEART_BEAT, HeartbeatRequestHeader(), body, timeout_s=60)
    return connection


async def send_half(client: RawClient, promises: Promises, number: int) -> tuple[bytes, int, int]:
    body = b"%d " % number + b"x" * (number * 131 % 700)
    properties = {"TRAN_MSG": "true", "PGROUP": GROUP, "UNIQ_KEY": f"K{number}"}
    answer = await client.send(TOPIC, 0, body, properties=properties, group=GROUP)
    promises.stored.add(body)
    return body, decode_offset_id(answer.msg_id)[2], answer.queue_offset


async def end(client: RawClient, promises: Promises, half: tuple[bytes, int, int]) -> None:
    body, position, offset = half
    await client.request(RequestCode.END_TRANSACTION, end_header(position, offset, decision_of(body)))
    promises.ended.add(body)


async def work(disk: SimulatedDisk, clock: VirtualClock, promises: Promises) -> None:
    """Two lives: some are decided at once, many together; some are carried forward first; some are left open."""
    number = 0
    for life in range(2):
        async with running(disk, clock) as (broker, client):
            if not life:
                await client.create_topic(TOPIC, 1)
            for _ in range(3):
                halves = [await send_half(client, promises, number + each) for each in range(6)]
                number += 6
                await asyncio.gather(
                    *(end(client, promises, half) for half in halves[:4]),
                    client.send("other", 0, b"between them"),
                )
                await clock.sleep(5)
                broker.transaction_upkeep.carry_forward(0, broker.log.written_position)
            await end(client, promises, halves[4])


async def start_and_wait(disk: SimulatedDisk, clock: VirtualClock, promises: Promises) -> None:
    async with running(disk, clock) as (broker, _):
        await join(broker, clock, disk)
        await clock.sleep(40)


async def check(disk: SimulatedDisk, clock: VirtualClock, promises: Promises) -> None:
    async with running(disk, clock) as (broker, client):
        await check_ended(client, promises, promises.ended)
        bodies = []
        for position in broker.transactions.positions():
            half = broker.transactions.find(position)
            assert half is not None
            record = broker.transaction_service.read(half)
            assert record is not None
            bodies.append(record.body)
        assert len(bodies) == len(set(bodies)), "a half is open twice"
        assert not promises.ended & set(bodies), "an ended transaction is open again"
        connection = await join(broker, clock, disk)
        await clock.sleep(65)
        assert len(broker.transactions) == 0
        await check_ended(client, promises, promises.stored)
        connection.close()
    async with running(disk, clock) as (broker, client):
        assert len(broker.transactions) == 0
        await check_ended(client, promises, promises.stored)


async def check_ended(client: RawClient, promises: Promises, ended: set[bytes]) -> None:
    try:
        seen = Counter(record.body for record in await client.read(TOPIC, 0))
    except BrokerError:
        assert not promises.stored, "the topic is gone"
        return
    for body, count in seen.items():
        assert count == 1, f"{body[:10]!r} was delivered {count} times"
        assert decision_of(body) == COMMIT, f"{body[:10]!r} was delivered, and rolled back"
    for body in ended:
        assert seen[body] == (decision_of(body) == COMMIT), f"{body[:10]!r} was delivered {seen[body]} times"


def test_each_transaction_ends_once_whenever_the_power_goes(crash_step: int) -> None:
    assert explore(work, check, history=Promises, seeds=range(2), step=crash_step) > 10


def test_the_first_start_after_a_power_loss_may_end_in_another_one(crash_step: int) -> None:
    tried = explore(work, check, history=Promises, recover=start_and_wait, seeds=range(2), step=crash_step)
    assert tried > 10


def forget_the_copies(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Transactions, "fold_copy", lambda view, position: None)


def mark_nothing_at_the_start(patch: pytest.MonkeyPatch) -> None:
    async def lazy(upkeep: TransactionUpkeep, replayed_from: int) -> None:
        pass

    patch.setattr(TransactionUpkeep, "mark_copies", lazy)


@pytest.mark.parametrize("bug", [forget_the_copies, mark_nothing_at_the_start])
def test_a_planted_bug_is_found(bug: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(BrokenPromiseError, match="power loss"):
        explore(work, check, history=Promises, seeds=range(30))
