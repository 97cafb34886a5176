"""A scripted name server and broker in memory, on a simulated network, for the client's tests."""

import random
from collections import defaultdict
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

import pocketmq
from pocketmq.client import Client
from pocketmq.net.remoting import RemotingConnection
from pocketmq.testing import SimulatedNetwork, VirtualClock, run
from pocketmq.wire.batch import split_batch
from pocketmq.wire.bodies import (
    BrokerData,
    GetConsumerListByGroupResponseBody,
    HeartbeatData,
    LockBatchRequestBody,
    LockBatchResponseBody,
    QueueData,
    TopicRouteData,
    decode_body,
    encode_body,
)
from pocketmq.wire.codes import RequestCode as Code
from pocketmq.wire.command import Command, encode_request, encode_response
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.properties import decode_properties, encode_properties
from pocketmq.wire.record import decode_record, encode_record

NAMESRV = "10.0.0.2:9876"
Script = Callable[[RemotingConnection, Command], bytes | None]


class ScriptedBroker:
    """Does what a broker does in the simplest way, remembers what it was asked, and fails when the script says so."""

    def __init__(self, cluster: "ScriptedCluster", name: str, address: str) -> None:
        self.cluster = cluster
        self.name = name
        self.address = address
        self.requests: list[Command] = []
        self.scripts: dict[int, list[Script]] = defaultdict(list)
        self.queues: dict[tuple[str, int], list[bytes]] = defaultdict(list)
        self.positions: dict[tuple[str, str, int], int] = {}
        self.members: dict[str, dict[RemotingConnection, str]] = defaultdict(dict)
        self.locks: dict[tuple[str, str, int], str] = {}
        self.holds: dict[tuple[str, int], list[tuple[RemotingConnection, Command]]] = defaultdict(list)
        self.connections: set[RemotingConnection] = set()
        self.listener: Any = None

    # -- the script --------------------------------------------------------------------------------------------------

    def refuse(self, code: int, response: int, remark: str = "scripted", *, times: int = 1) -> None:
        """Answer the next requests of this code with an error."""
        self.scripts[code] += [lambda _, command: encode_response(command.opaque, response, remark)] * times

    def ignore(self, code: int, *, times: int = 1) -> None:
        """Answer the next requests of this code never."""
        self.scripts[code] += [lambda _, command: None] * times

    def do(self, code: int, script: Script) -> None:
        """Handle the next request of this code otherwise."""
        self.scripts[code].append(script)

    def asked(self, code: int) -> list[Command]:
        """All requests of one code so far."""
        return [command for command in self.requests if command.code == code]

    async def start(self) -> None:
        host, _, port = self.address.partition(":")
        machine = self.cluster.network.host(host)
        self.listener = await machine.listen(host, int(port), self._make)

    def _make(self) -> RemotingConnection:
        return RemotingConnection(
            self.cluster.clock, on_request=self.handle, on_open=self.connections.add, on_closed=self._closed
        )

    def _closed(self, connection: RemotingConnection) -> None:
        self.connections.discard(connection)
        for group in list(self.members):
            if self.members[group].pop(connection, None) is not None:
                self.notify(group)

    def crash(self) -> None:
        """Listen no more and cut all connections."""
        self.listener.close()
        for connection in list(self.connections):
            connection.abort("crash")
        self.members.clear()
        self.holds.clear()

    def handle(self, connection: RemotingConnection, command: Command) -> bytes | None:
        self.requests.append(command)
        if self.scripts[command.code]:
            return self.scripts[command.code].pop(0)(connection, command)
        handler = self.HANDLERS.get(command.code)
        if handler is None:
            return encode_response(command.opaque, 0)
        return handler(self, connection, command, command.ext())

    # -- sending -----------------------------------------------------------------------------------------------------

    def store(self, topic: str, queue_id: int, body: bytes, properties: str, **fields: int) -> tuple[int, str]:
        records = self.queues[topic, queue_id]
        position = self.cluster.next_position()
        host, _, port = self.address.partition(":")
        packed = pack_host(host, int(port))
        now = self.cluster.clock.time_ms()
        offset = len(records)
        record = encode_record(
            topic,
            body,
            properties.encode(),
            queue_id=queue_id,
            queue_offset=offset,
            physical_offset=position,
            born_timestamp=now,
            born_host=packed,
            store_timestamp=now,
            store_host=packed,
            **fields,
        )
        records.append(record)
        self.cluster.by_position[position] = record
        for connection, held in self.holds.pop((topic, queue_id), []):
            connection.write(self._found(held, held.ext()) or b"")
        return offset, f"{packed.hex()}{position:016x}".upper()

    def _send(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        topic, queue_id = ext["b"], int(ext["e"])
        self.cluster.topics.setdefault(topic, 4)
        times = int(ext.get("j", "0"))
        offset, offset_id = self.store(
            topic, queue_id, command.body, ext.get("i", ""), sys_flag=int(ext["f"]), reconsume_times=times
        )
        fields = {"msgId": offset_id, "queueId": str(queue_id), "queueOffset": str(offset)}
        return encode_response(command.opaque, 0, None, fields)

    def _send_batch(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        topic, queue_id = ext["b"], int(ext["e"])
        messages = split_batch(command.body)
        if any(body == b"poison" for _, body, _ in messages):
            return encode_response(command.opaque, 13, "one of them is poison")
        self.cluster.topics.setdefault(topic, 4)
        stored = [self.store(topic, queue_id, body, properties.decode()) for _, body, properties in messages]
        fields = {
            "msgId": ",".join(offset_id for _, offset_id in stored),
            "queueId": str(queue_id),
            "queueOffset": str(stored[0][0]),
        }
        return encode_response(command.opaque, 0, None, fields)

    def bodies(self, topic: str) -> list[bytes]:
        """All bodies of a topic, queue by queue."""
        keys = sorted(key for key in self.queues if key[0] == topic)
        return [decode_record(record).body for key in keys for record in self.queues[key]]

    def properties(self, topic: str) -> list[dict[str, str]]:
        """The properties of all messages of a topic, queue by queue."""
        keys = sorted(key for key in self.queues if key[0] == topic)
        return [decode_properties(decode_record(r).properties.decode()) for key in keys for r in self.queues[key]]

    # -- consuming ---------------------------------------------------------------------------------------------------

    def _pull(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes | None:
        topic, queue_id, offset = ext["topic"], int(ext["queueId"]), int(ext["queueOffset"])
        if int(ext["sysFlag"]) & 1:
            self.positions[ext["consumerGroup"], topic, queue_id] = int(ext["commitOffset"])
        end = len(self.queues[topic, queue_id])
        if offset == end and int(ext["sysFlag"]) & 2:
            self.holds[topic, queue_id].append((connection, command))
            wait_s = int(ext["suspendTimeoutMillis"]) / 1000
            self.cluster.clock.call_later(wait_s, self._release, topic, queue_id, connection, command)
            return None
        return self._found(command, ext)

    def _release(self, topic: str, queue_id: int, connection: RemotingConnection, command: Command) -> None:
        held = self.holds[topic, queue_id]
        if (connection, command) in held:
            held.remove((connection, command))
            connection.write(self._found(command, command.ext()))

    def _found(self, command: Command, ext: dict[str, str]) -> bytes:
        records = self.queues[ext["topic"], int(ext["queueId"])]
        offset = int(ext["queueOffset"])
        found = records[offset : offset + int(ext["maxMsgNums"])]
        code = 0 if found else 21 if offset > len(records) else 19
        fields = {
            "suggestWhichBrokerId": "0",
            "nextBeginOffset": str(min(offset + len(found), len(records))),
            "minOffset": "0",
            "maxOffset": str(len(records)),
        }
        return encode_response(command.opaque, code, None, fields, b"".join(found))

    def _heartbeat(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        data = decode_body(command.body, HeartbeatData)
        for consumer in data.consumer_data_set:
            self.cluster.topics.setdefault(f"%RETRY%{consumer.group_name}", 1)
            members = self.members[consumer.group_name]
            if connection not in members:
                members[connection] = data.client_id
                self.notify(consumer.group_name)
        return encode_response(command.opaque, 0)

    def notify(self, group: str) -> None:
        for connection in self.members[group]:
            connection.write(encode_request(Code.NOTIFY_CONSUMER_IDS_CHANGED, 0, {"consumerGroup": group}, oneway=True))

    def _unregister(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        group = ext.get("consumerGroup")
        if group and self.members[group].pop(connection, None) is not None:
            self.notify(group)
        return encode_response(command.opaque, 0)

    def _consumers(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        ids = list(self.members[ext["consumerGroup"]].values())
        if not ids:
            return encode_response(command.opaque, 1, "no consumer for this group")
        body = encode_body(GetConsumerListByGroupResponseBody(consumer_id_list=ids))
        return encode_response(command.opaque, 0, None, None, body)

    def _query_position(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        position = self.positions.get((ext["consumerGroup"], ext["topic"], int(ext["queueId"])))
        if position is None:
            return encode_response(command.opaque, 22, "none")
        return encode_response(command.opaque, 0, None, {"offset": str(position)})

    def _store_position(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        self.positions[ext["consumerGroup"], ext["topic"], int(ext["queueId"])] = int(ext["commitOffset"])
        return encode_response(command.opaque, 0)

    def _end(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        end = len(self.queues[ext["topic"], int(ext["queueId"])])
        return encode_response(command.opaque, 0, None, {"offset": str(end)})

    def _zero(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        return encode_response(command.opaque, 0, None, {"offset": "0"})

    def _give_back(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        record = decode_record(self.cluster.by_position[int(ext["offset"])])
        properties = decode_properties(record.properties.decode())
        properties.setdefault("RETRY_TOPIC", record.topic)
        times = record.reconsume_times
        retries_max = int(ext.get("maxReconsumeTimes", "16"))
        dead = times >= retries_max or int(ext["delayLevel"]) < 0
        topic = f"{'%DLQ%' if dead else '%RETRY%'}{ext['group']}"
        text = encode_properties(properties)
        delay_s = 0.0 if dead else 10.0
        self.cluster.clock.call_later(
            delay_s, lambda: self.store(topic, 0, record.body, text, reconsume_times=times + 1)
        )
        return encode_response(command.opaque, 0)

    def _lock(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        wanted = decode_body(command.body, LockBatchRequestBody)
        got = [
            queue
            for queue in wanted.mq_set
            if self.locks.setdefault((wanted.consumer_group, queue.topic, queue.queue_id), wanted.client_id)
            == wanted.client_id
        ]
        return encode_response(command.opaque, 0, None, None, encode_body(LockBatchResponseBody(lock_ok_mq_set=got)))

    def _unlock(self, connection: RemotingConnection, command: Command, ext: dict[str, str]) -> bytes:
        wanted = decode_body(command.body, LockBatchRequestBody)
        for queue in wanted.mq_set:
            self.locks.pop((wanted.consumer_group, queue.topic, queue.queue_id), None)
        return encode_response(command.opaque, 0)

    HANDLERS = {  # noqa: RUF012
        Code.SEND_MESSAGE_V2: _send,
        Code.SEND_BATCH_MESSAGE: _send_batch,
        Code.PULL_MESSAGE: _pull,
        Code.LITE_PULL_MESSAGE: _pull,
        Code.HEART_BEAT: _heartbeat,
        Code.UNREGISTER_CLIENT: _unregister,
        Code.GET_CONSUMER_LIST_BY_GROUP: _consumers,
        Code.QUERY_CONSUMER_OFFSET: _query_position,
        Code.UPDATE_CONSUMER_OFFSET: _store_position,
        Code.GET_MAX_OFFSET: _end,
        Code.GET_MIN_OFFSET: _zero,
        Code.SEARCH_OFFSET_BY_TIMESTAMP: _end,
        Code.CONSUMER_SEND_MSG_BACK: _give_back,
        Code.LOCK_BATCH_MQ: _lock,
        Code.UNLOCK_BATCH_MQ: _unlock,
    }


class ScriptedCluster:
    """A name server at 10.0.0.2:9876 and brokers that it knows, on virtual time."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=1)
        self.topics: dict[str, int] = {"TBW102": 8}
        self.brokers: dict[str, ScriptedBroker] = {}
        self.by_position: dict[int, bytes] = {}
        self.route_requests: list[str] = []
        self.name_servers: list[Any] = []
        self.down = False
        self._position = 0
        self._clients: list[Client] = []

    def next_position(self) -> int:
        self._position += 1000
        return self._position

    async def start(self, brokers: int = 1) -> "ScriptedCluster":
        host, _, port = NAMESRV.partition(":")
        listener = await self.network.host(host).listen(host, int(port), self._name_server)
        self.name_servers.append(listener)
        for index in range(brokers):
            broker = ScriptedBroker(self, f"broker-{'abc'[index]}", f"10.0.0.{3 + index}:10911")
            self.brokers[broker.name] = broker
            await broker.start()
        return self

    @property
    def broker(self) -> ScriptedBroker:
        """The first broker."""
        return next(iter(self.brokers.values()))

    def _name_server(self) -> RemotingConnection:
        return RemotingConnection(self.clock, on_request=self._route)

    def _route(self, connection: RemotingConnection, command: Command) -> bytes:
        topic = command.ext()["topic"]
        self.route_requests.append(topic)
        count = self.topics.get(topic)
        if count is None:
            return encode_response(command.opaque, 17, f"no route for {topic}")
        route = TopicRouteData(
            broker_datas=[
                BrokerData(broker_name=name, cluster="c", broker_addrs={0: broker.address})
                for name, broker in self.brokers.items()
            ],
            queue_datas=[
                QueueData(broker_name=name, read_queue_nums=count, write_queue_nums=count, perm=6)
                for name in self.brokers
            ],
        )
        return encode_response(command.opaque, 0, None, None, encode_body(route, quote_keys=True))

    def connect(self, address: str = NAMESRV, *, host: str | None = None, **options: Any) -> Client:
        """A client on a machine of its own."""
        machine = self.network.host(host)
        client = pocketmq.connect(
            address, clock=self.clock, network=machine, random_source=random.Random(len(self._clients)), **options
        )
        self._clients.append(client)
        return client


@pytest.fixture
def simulate() -> Callable[[Callable[[ScriptedCluster], Coroutine[Any, Any, None]]], None]:
    """Run a coroutine function with a scripted cluster on virtual time."""

    def simulate(story: Callable[[ScriptedCluster], Coroutine[Any, Any, None]], brokers: int = 1) -> None:
        async def main() -> None:
            cluster = await ScriptedCluster().start(brokers)
            await story(cluster)
            for client in cluster._clients:
                await client.close()

        run(main())

    return simulate


async def until(condition: Callable[[], bool], clock: VirtualClock, seconds: float = 60.0) -> None:
    """Wait until a condition holds, on virtual time."""
    deadline = clock.monotonic() + seconds
    while not condition():
        assert clock.monotonic() < deadline, "it did not happen"
        await clock.sleep(0.01)


@pytest.fixture(name="until")
def until_fixture() -> Callable[..., Coroutine[Any, Any, None]]:
    """Wait for a condition on virtual time."""
    return until
