"""Registration: every name server learns what the broker has, at once, again and again, and whatever the others do."""

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from pocketmq.broker.registration import Registration
from pocketmq.model.config import TopicConfig
from pocketmq.model.errors import UsageError
from pocketmq.model.settings import BrokerSettings
from pocketmq.net.network import TcpNetwork
from pocketmq.net.remoting import RemotingConnection
from pocketmq.net.server import RemotingServer
from pocketmq.testing.clock import AdvanceableClock
from pocketmq.views.journal import TopicDelete, TopicPut
from pocketmq.views.topics import TopicTable
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response

BROKER_PORT = 10911


class FakeNameServer:
    """Writes down what it is told, and answers `code`."""

    def __init__(self, clock: AdvanceableClock) -> None:
        self.server = RemotingServer(clock, TcpNetwork(), on_request=self._answer)
        self.requests: asyncio.Queue[Command] = asyncio.Queue()
        self.code = 0
        self.address = ""

    async def start(self, port: int = 0) -> None:
        await self.server.listen("127.0.0.1", port)
        self.address = f"127.0.0.1:{self.server.port}"

    def _answer(self, connection: RemotingConnection, command: Command) -> bytes:
        self.requests.put_nowait(command)
        return encode_response(command.opaque, self.code, "not today" if self.code else None)

    async def next(self, code: RequestCode = RequestCode.REGISTER_BROKER) -> Command:
        command = await asyncio.wait_for(self.requests.get(), 5)
        assert command.code == code
        return command

    async def next_topics(self) -> set[str]:
        return set(wrapper(await self.next())["topicConfigTable"])


def wrapper(command: Command) -> dict[str, dict[str, dict[str, int]]]:
    return msgspec.json.decode(command.body)["topicConfigSerializeWrapper"]  # type: ignore[no-any-return]


class Setup:
    def __init__(self) -> None:
        self.clock = AdvanceableClock()
        self.topics = TopicTable()
        self.put("TBW102", perm=7)
        self.put("orders")
        self.settings = BrokerSettings()
        self.registration = Registration(self.settings, self.topics, clock=self.clock, network=TcpNetwork())
        self.name_servers: list[FakeNameServer] = []

    def put(self, topic: str, perm: int = 6) -> None:
        self.topics.apply(TopicPut(TopicConfig(topic_name=topic, perm=perm), timestamp=1))

    async def name_server(self) -> FakeNameServer:
        server = FakeNameServer(self.clock)
        await server.start()
        self.name_servers.append(server)
        self.settings.namesrv = ";".join(each.address for each in self.name_servers)
        return server


@pytest.fixture
async def setup() -> AsyncIterator[Setup]:
    setup = Setup()
    yield setup
    await setup.registration.stop()
    for server in setup.name_servers:
        await server.server.stop()


async def test_start_registers_with_every_name_server(setup: Setup) -> None:
    servers = [await setup.name_server(), await setup.name_server()]
    await setup.registration.start(BROKER_PORT)
    assert [server.registered for server in setup.registration.servers] == [True, True]
    for server in servers:
        command = await server.next()
        fields = command.ext()
        assert fields["brokerName"] == "broker-a"
        assert fields["clusterName"] == "DefaultCluster"
        assert fields["brokerId"] == "0"
        assert fields["brokerAddr"] == "127.0.0.1:10911"
        assert fields["haServerAddr"] == "127.0.0.1:10912"
        assert int(fields["bodyCrc32"]) == zlib.crc32(command.body) & 0x7FFF_FFFF
        assert set(wrapper(command)["topicConfigTable"]) == {"TBW102", "orders"}


async def test_a_name_server_that_is_down_holds_nobody_up(setup: Setup, caplog: pytest.LogCaptureFixture) -> None:
    up = await setup.name_server()
    setup.settings.namesrv = f"127.0.0.1:1;{up.address}"
    with caplog.at_level(logging.WARNING, "pocketmq.broker.registration"):
        await setup.registration.start(BROKER_PORT)
        assert [server.registered for server in setup.registration.servers] == [False, True]
        await setup.clock.advance(5)
    ours = [record for record in caplog.records if "127.0.0.1:1:" in record.getMessage()]
    assert len(ours) == 1, "one line when it is found to be down, not one per try"
    assert setup.registration.servers[0].failures > 1


async def test_a_name_server_that_comes_back_is_told_everything(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    await server.next()
    port = server.server.port
    await server.server.stop()
    successor = FakeNameServer(setup.clock)
    await successor.start(port)
    setup.name_servers.append(successor)
    await setup.clock.advance(2)
    assert await successor.next_topics() == {"TBW102", "orders"}


async def test_it_registers_again_after_ten_seconds_and_then_every_period(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    await server.next()
    await setup.clock.advance(9)
    assert server.requests.empty()
    await setup.clock.advance(1.1)
    await server.next()
    await setup.clock.advance(29)
    assert server.requests.empty()
    await setup.clock.advance(1.1)
    await server.next()


async def test_a_new_topic_is_told_at_once(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    before = wrapper(await server.next())["dataVersion"]
    setup.put("new")
    setup.registration.topic_changed("new")
    command = await server.next()
    assert "new" in wrapper(command)["topicConfigTable"]
    assert wrapper(command)["dataVersion"] != before


async def test_a_burst_of_new_topics_costs_few_registrations(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    await server.next()
    for number in range(100):
        setup.put(f"new-{number}")
        setup.registration.topic_changed(f"new-{number}")
    assert len(await server.next_topics()) == 102
    assert server.requests.empty()


async def test_a_large_table_goes_in_pages_and_then_only_what_changed(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.broker.registration.PAGE_TOPICS", 2)
    for number in range(3):
        setup.put(f"t{number}")
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    pages = [await server.next() for _ in range(3)]
    assert [len(wrapper(page)["topicConfigTable"]) for page in pages] == [2, 2, 1]
    versions = [tuple(sorted(wrapper(page)["dataVersion"].items())) for page in pages]
    assert len(set(versions)) == 3, "a name server skips what it has under a version that it knows"
    setup.put("new")
    setup.topics.apply(TopicDelete("t0", 2))
    setup.registration.topic_changed("new")
    setup.registration.topic_changed("t0")
    assert await server.next_topics() == {"new"}


async def test_a_refusal_is_tried_again(setup: Setup) -> None:
    server = await setup.name_server()
    server.code = 1
    await setup.registration.start(BROKER_PORT)
    await server.next()
    assert setup.registration.servers[0].reason == "it answered 1: not today"
    server.code = 0
    await setup.clock.advance(1.1)
    await server.next()
    await setup.clock.advance(0.1)
    assert setup.registration.servers[0].registered


async def test_stop_unregisters(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    await server.next()
    await setup.registration.stop()
    fields = (await server.next(RequestCode.UNREGISTER_BROKER)).ext()
    assert fields == {
        "brokerName": "broker-a",
        "brokerAddr": "127.0.0.1:10911",
        "clusterName": "DefaultCluster",
        "brokerId": "0",
    }


async def test_a_broker_that_may_not_write_says_so_for_every_topic(setup: Setup) -> None:
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    before = wrapper(await server.next())
    assert [config["perm"] for config in before["topicConfigTable"].values()] == [7, 6]
    setup.settings.permission = 4
    setup.registration.permission_changed()
    after = wrapper(await server.next())
    assert [config["perm"] for config in after["topicConfigTable"].values()] == [4, 4]
    assert after["dataVersion"] != before["dataVersion"]


async def test_on_all_interfaces_clients_may_be_told_the_address_that_they_used(setup: Setup) -> None:
    setup.settings.host = "0.0.0.0"
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    fields = (await server.next()).ext()
    assert (fields["brokerAddr"], fields["pocketmqAdvertise"]) == ("127.0.0.1:10911", "auto")


@pytest.mark.parametrize(
    ("advertise", "address"),
    [("192.0.2.7", "192.0.2.7:10911"), ("192.0.2.7:31000", "192.0.2.7:31000"), ("::1", "[::1]:10911")],
)
async def test_an_address_in_the_settings_is_told_as_it_is(setup: Setup, advertise: str, address: str) -> None:
    setup.settings.host = "0.0.0.0"
    setup.settings.advertise = advertise
    server = await setup.name_server()
    await setup.registration.start(BROKER_PORT)
    fields = (await server.next()).ext()
    assert fields["brokerAddr"] == address
    assert "pocketmqAdvertise" not in fields


async def test_an_advertised_address_that_cannot_be_reached_is_warned_of_once(
    setup: Setup, caplog: pytest.LogCaptureFixture
) -> None:
    setup.settings.advertise = "127.0.0.1:1"
    server = await setup.name_server()
    with caplog.at_level(logging.WARNING, "pocketmq.broker.registration"):
        await setup.registration.start(1)
        await server.next()
        while setup.registration._checks:
            await asyncio.wait(setup.registration._checks)
        await setup.registration.register_now()
    assert len(caplog.records) == 1
    assert "127.0.0.1:1, but it cannot be reached there from here" in caplog.text


async def test_an_address_that_is_none_is_refused_at_start(setup: Setup) -> None:
    setup.settings.namesrv = "nowhere"
    with pytest.raises(UsageError, match="expected host:port"):
        await setup.registration.start(BROKER_PORT)


async def test_without_name_servers_there_is_nothing_to_do(setup: Setup) -> None:
    await setup.registration.start(BROKER_PORT)
    setup.registration.topic_changed("orders")
    assert setup.registration.servers == []
