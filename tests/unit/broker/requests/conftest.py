"""A broker in virtual time, and connections that ask it things and expect an exact code."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, TypeVar

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.config import GroupConfig, Subscription
from pocketmq.model.settings import Settings
from pocketmq.net.remoting import RemotingConnection
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import VirtualLoop
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.wire.bodies.clients import ConsumerData, HeartbeatData, ProducerData
from pocketmq.wire.bodies.codec import decode_body, encode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.pull import PullMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2
from pocketmq.wire.headers.topics import CreateTopicRequestHeader
from pocketmq.wire.properties import encode_properties

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _Policy = asyncio.DefaultEventLoopPolicy

Body = TypeVar("Body")


class VirtualPolicy(_Policy):  # type: ignore[misc, valid-type]
    """Every test runs on a loop on which waiting takes no time."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop()


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    return VirtualPolicy()


class Client:
    """A connection to the broker.

    Every `ask` is one request, waited for; what the broker asks back is kept and answered.
    """

    def __init__(self, clock: VirtualClock) -> None:
        self.asked: list[Command] = []
        self.reply: Callable[[Command], bytes | None] = lambda command: encode_response(command.opaque)
        self.connection = RemotingConnection(clock, on_request=self._answer, accepted=False)

    def _answer(self, connection: RemotingConnection, command: Command) -> bytes | None:
        self.asked.append(command)
        return self.reply(command)

    async def ask(
        self,
        code: int,
        header: Header | Mapping[str, str] | None = None,
        body: bytes | object = b"",
        *,
        expect: int = 0,
    ) -> Command:
        """One request; its answer, whose code must be `expect`."""
        data = body if isinstance(body, bytes) else encode_body(body)
        answer = await self.connection.request(code, header, data, timeout_s=3600)
        assert answer.code == expect, f"{RequestCode(code).name} was answered {answer.code}: {answer.remark}"
        if expect:
            assert answer.remark, "an error says what is wrong"
        return answer

    async def ask_body(self, kind: type[Body], code: int, header: Header | None = None, body: object = b"") -> Body:
        """The body of the answer to a request that succeeds."""
        return decode_body((await self.ask(code, header, body)).body, kind)

    async def heartbeat(
        self,
        client_id: str = "c1",
        *,
        groups: tuple[str, ...] = (),
        producers: tuple[str, ...] = (),
        topics: Mapping[str, str] | None = None,
        version: int = 1,
        fingerprint: int = 0,
        without: bool = False,
        model: str = "CLUSTERING",
        unit_mode: bool = False,
    ) -> dict[str, str]:
        """A heartbeat; the fields of its answer."""
        wanted = [
            Subscription(topic=topic, sub_string=expression, sub_version=version)
            for topic, expression in (topics or {"orders": "*"}).items()
        ]
        consumers = [
            ConsumerData(
                group, message_model=model, subscription_data_set=[] if without else wanted, unit_mode=unit_mode
            )
            for group in groups
        ]
        data = HeartbeatData(client_id, [ProducerData(group) for group in producers], consumers, fingerprint, without)
        return (await self.ask(RequestCode.HEART_BEAT, None, data)).ext()

    async def send(
        self, topic: str = "orders", body: bytes = b"hello", *, queue_id: int = 0, **properties: str
    ) -> dict[str, str]:
        """Store one message; the fields of the answer."""
        header = SendMessageRequestHeaderV2(
            producer_group="p",
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=1,
            flag=0,
            properties=encode_properties({"UNIQ_KEY": "AC11000200002A9F0000000000000001"} | properties),
        )
        return (await self.ask(RequestCode.SEND_MESSAGE_V2, header, body)).ext()

    async def pull(self, topic: str, group: str, offset: int, *, queue_id: int = 0) -> Command:
        """A pull by what the heartbeat subscribed to; never held."""
        header = PullMessageRequestHeader(group, topic, queue_id, offset, 32, 0, 0, 0, 0, None, None)
        return await self.connection.request(RequestCode.PULL_MESSAGE, header, timeout_s=60)

    async def create_topic(
        self, topic: str, *, queues: int = 4, expect: int = 0, attributes: str | None = None, **fields: Any
    ) -> Command:
        header = CreateTopicRequestHeader(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=fields.pop("read", queues),
            write_queue_nums=fields.pop("write", queues),
            perm=fields.pop("perm", 6),
            topic_filter_type=fields.pop("filter_type", "SINGLE_TAG"),
            attributes=attributes,
            **fields,
        )
        return await self.ask(RequestCode.UPDATE_AND_CREATE_TOPIC, header, expect=expect)

    async def create_group(self, group: str, *, expect: int = 0, **fields: Any) -> Command:
        config = GroupConfig(group_name=group, **fields)
        return await self.ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, config, expect=expect)


class World:
    """One machine and the broker that runs on it."""

    def __init__(self) -> None:
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, delay_s=(0.0001, 0.0001))
        self.disk = MemoryDisk()
        self.settings = Settings()
        self.settings.store.data_dir = "data"
        self.settings.store.segment_bytes = 1024 * 1024
        self.settings.broker.client_expire_s = 120.0
        self.broker: Broker
        self.running = False

    async def start(self) -> None:
        self.broker = Broker(self.settings, clock=self.clock, disk=self.disk, network=self.network)
        await self.broker.start()
        self.running = True

    async def stop(self) -> None:
        if self.running:
            self.running = False
            await self.broker.stop()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    async def connect(self) -> Client:
        client = Client(self.clock)
        await self.network.connect("127.0.0.1", self.broker.port, lambda: client.connection, timeout=5)
        return client


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world with a running broker."""
    here = World()
    await here.start()
    yield here
    await here.stop()


@pytest.fixture
async def client(world: World) -> Client:
    """A connection to the broker."""
    return await world.connect()
