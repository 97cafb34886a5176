"""A broker of one's own in virtual time, and a client connection that speaks raw requests to it."""

import asyncio
import warnings
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import pytest

from pocketmq.broker.broker import Broker
from pocketmq.model.seams import Disk
from pocketmq.model.settings import Settings
from pocketmq.net.remoting import RemotingConnection
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.loop import VirtualLoop
from pocketmq.testing.network import SimulatedNetwork
from pocketmq.wire.batch import encode_batch
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.clients import ConsumerSendMsgBackRequestHeader
from pocketmq.wire.headers.pull import PullMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from pocketmq.wire.properties import encode_properties
from pocketmq.wire.record import Record, decode_records

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    _Policy = asyncio.DefaultEventLoopPolicy

COMMIT, SUSPEND, SUBSCRIPTION = 1, 2, 4


class VirtualPolicy(_Policy):  # type: ignore[misc, valid-type]
    """Every test runs on a loop on which waiting takes no time."""

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop()


@pytest.fixture(scope="session")
def event_loop_policy() -> asyncio.AbstractEventLoopPolicy:
    return VirtualPolicy()


class Peer:
    """A client's connection; every method is one request, waited for."""

    def __init__(self, connection: RemotingConnection) -> None:
        self.connection = connection

    async def ask(self, code: int, header: Header | Mapping[str, str] | None = None, body: bytes = b"") -> Command:
        return await self.connection.request(code, header, body, timeout_s=3600)

    def send_frame(
        self,
        topic: str = "orders",
        body: bytes = b"hello",
        *,
        queue_id: int = 0,
        properties: dict[str, str] | str | None = None,
        reconsume_times: int = 0,
        default_topic: str = "TBW102",
        default_queues: int = 4,
        max_reconsume_times: int | None = None,
        batch: bool = False,
        sys_flag: int = 0,
    ) -> tuple[SendMessageRequestHeaderV2, bytes]:
        if properties is None:
            properties = {"UNIQ_KEY": "AC11000200002A9F0000000000000123", "WAIT": "true"}
        return (
            SendMessageRequestHeaderV2(
                producer_group="producers",
                topic=topic,
                default_topic=default_topic,
                default_topic_queue_nums=default_queues,
                queue_id=queue_id,
                sys_flag=sys_flag,
                born_timestamp=1_600_000_000_000,
                flag=7,
                properties=properties if isinstance(properties, str) else encode_properties(properties),
                reconsume_times=reconsume_times,
                max_reconsume_times=max_reconsume_times,
                batch=batch,
            ),
            body,
        )

    async def send(self, topic: str = "orders", body: bytes = b"hello", **options: Any) -> Command:
        return await self.ask(RequestCode.SEND_MESSAGE_V2, *self.send_frame(topic, body, **options))

    async def send_v1(self, topic: str = "orders", body: bytes = b"hello", **options: Any) -> Command:
        header, body = self.send_frame(topic, body, **options)
        return await self.ask(
            RequestCode.SEND_MESSAGE,
            SendMessageRequestHeader(
                header.producer_group,
                header.topic,
                header.default_topic,
                header.default_topic_queue_nums,
                header.queue_id,
                header.sys_flag,
                header.born_timestamp,
                header.flag,
                header.properties,
                header.reconsume_times,
            ),
            body,
        )

    async def send_batch(self, topic: str = "orders", bodies: list[bytes] | None = None, **options: Any) -> Command:
        tag = options.pop("tag", None)
        messages = [
            (3, body, encode_properties({"UNIQ_KEY": f"KEY{number}", "TAGS": tag}).encode())
            for number, body in enumerate(bodies or [b"a", b"b", b"c"])
        ]
        header, body = self.send_frame(topic, encode_batch(messages), batch=True, **options)
        return await self.ask(RequestCode.SEND_BATCH_MESSAGE, header, body)

    async def pull(
        self,
        topic: str = "orders",
        offset: int = 0,
        *,
        queue_id: int = 0,
        group: str = "consumers",
        count: int = 32,
        flags: int = SUBSCRIPTION,
        subscription: str | None = "*",
        suspend_ms: int = 15_000,
        commit_offset: int = 0,
        sub_version: int = 0,
        expression_type: str | None = None,
        code: int = RequestCode.PULL_MESSAGE,
    ) -> Command:
        return await self.ask(
            code,
            PullMessageRequestHeader(
                group,
                topic,
                queue_id,
                offset,
                count,
                flags,
                commit_offset,
                suspend_ms,
                sub_version,
                subscription,
                expression_type,
            ),
        )

    async def records(self, topic: str = "orders", offset: int = 0, **options: Any) -> list[Record]:
        answer = await self.pull(topic, offset, **options)
        return decode_records(answer.body, check_crc=True)

    async def send_back(
        self, position: int, *, group: str = "consumers", delay_level: int = 0, max_reconsume_times: int | None = None
    ) -> Command:
        header = ConsumerSendMsgBackRequestHeader(position, group, delay_level, max_reconsume_times=max_reconsume_times)
        return await self.ask(RequestCode.CONSUMER_SEND_MSG_BACK, header)


class World:
    """One machine with a disk and a network, and the broker that runs on it."""

    def __init__(self, disk: Disk | None = None) -> None:
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, delay_s=(0.0001, 0.0001))
        self.disk: Any = disk or SimulatedDisk(clock=self.clock)
        self.broker: Broker
        self._running: Broker | None = None

    async def start(self, **settings: Any) -> Broker:
        """Start a broker; `store__flush="sync"` sets `store.flush`."""
        table = Settings()
        table.store.data_dir = "/data"
        table.store.segment_bytes = 1024 * 1024
        table.broker.client_expire_s = 100 * 86_400.0
        for name, value in settings.items():
            section, _, key = name.partition("__")
            setattr(getattr(table, section), key, value)
        self.broker = self._running = Broker(table, clock=self.clock, disk=self.disk, network=self.network)
        await self.broker.start()
        return self.broker

    async def stop(self) -> None:
        if self._running is not None:
            broker, self._running = self._running, None
            await broker.stop()

    async def restart(self, **settings: Any) -> Broker:
        await self.stop()
        return await self.start(**settings)

    async def crash(self, **settings: Any) -> Broker:
        """The process dies at once; what the system had is still there. Then a new one starts."""
        self._running = None
        self.broker.delivery.stop()
        self.broker.journal.close()
        self.disk = self.disk.kill()
        dead = asyncio.all_tasks() - {asyncio.current_task()}
        for task in dead:
            task.cancel()
        await asyncio.gather(*dead, return_exceptions=True)
        self.network = SimulatedNetwork(self.clock, delay_s=(0.0001, 0.0001))
        return await self.start(**settings)

    async def connect(self) -> Peer:
        connection = await self.network.connect(
            "127.0.0.1", self.broker.port, lambda: RemotingConnection(self.clock, accepted=False), timeout=5
        )
        return Peer(connection)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A world in which no broker runs yet; what runs at the end is stopped."""
    here = World()
    yield here
    await here.stop()


@pytest.fixture
async def peer(world: World) -> Peer:
    """A connection to a broker with the default settings."""
    await world.start()
    return await world.connect()


@pytest.fixture
def make_world() -> Callable[..., World]:
    return World
