"""Tells every name server what this broker is and which topics it has, for as long as it runs.

Theory of operation
    Each name server has a loop of its own, so that one that is down or slow holds nobody up. A loop registers at
    once, again 10 s later, and then every `register_period_s`; it wakes early when topics changed or when its
    connection was lost. Changes that come while a registration is under way are part of the next one, which follows
    at once: that coalesces bursts. After a failure a loop waits 1, 2, 4 ... s. One line is logged when a name server
    comes or goes, not one per try.

    What is sent is the whole topic table while it is small. A large one goes in pages, and of later changes only what
    changed goes, as long as the connection is the one that the whole table went over: a name server that was
    restarted knows nothing. Every page needs a data version of its own, since name servers skip topics that they have
    under a version that they know.

    The advertised address is the one in the settings, or the address that the broker listens on, or, when it listens
    on all, the local address of the connection to that name server, with a note that lets PocketMQ's name server tell
    each client the address that the client itself used.
"""

import asyncio
import logging
import zlib
from collections.abc import Iterable

import msgspec

from pocketmq.model.config import DataVersion, Permission, TopicConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.model.seams import Clock, Network
from pocketmq.model.settings import BrokerSettings
from pocketmq.net.addresses import format_address, parse_address, parse_addresses
from pocketmq.net.dialer import Connections
from pocketmq.net.remoting import RemotingConnection
from pocketmq.views.topics import TopicTable
from pocketmq.wire.bodies.registration import RegisterBrokerBody, TopicConfigAndMappingSerializeWrapper
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.namesrv import RegisterBrokerRequestHeader, UnRegisterBrokerRequestHeader

logger = logging.getLogger(__name__)

SECOND_REGISTRATION_S = 10.0
PERIOD_S_MIN = 10.0
PERIOD_S_MAX = 60.0
BACK_OFF_S_MAX = 10.0
START_WAIT_S = 1.0
"""How long `start` waits for the first answers; a name server that is slower is registered with in the background."""
UNREGISTER_TIMEOUT_S = 2.0
REACH_TIMEOUT_S = 3.0
PAGE_TOPICS = 5_000
"""Most topics in one registration; about a megabyte."""
PAGES_MAX = 1000
WILDCARD_HOSTS = frozenset({"", "0.0.0.0", "::", "*"})
ADVERTISE_FIELD = "pocketmqAdvertise"
ADVERTISE_AUTO = "auto"


class NameServer:
    """One name server, as the broker sees it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.registered = False
        """Whether the newest registration was taken."""
        self.advertised: str | None = None
        """The address that it was told, from then on."""
        self.failures = 0
        self.reason: str | None = None
        """Why the newest registration failed."""
        self.known_over: RemotingConnection | None = None
        """The connection over which it was last told everything."""
        self.changed: set[str] = set()
        """Topics that changed since."""
        self.dirty = False
        self.told = asyncio.Event()
        """Set once the first registration has been answered or has failed."""
        self.wake: asyncio.Future[None] | None = None


class Registration:
    """Keeps the broker registered with all its name servers."""

    def __init__(self, settings: BrokerSettings, topics: TopicTable, *, clock: Clock, network: Network) -> None:
        self._settings = settings
        self._topics = topics
        self._clock = clock
        self._network = network
        self.connections = Connections(network, clock, on_closed=self._lost)
        self.servers: list[NameServer] = []
        self._port = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._stopping = False
        self._checked: set[str] = set()
        self._checks: set[asyncio.Task[None]] = set()

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self, port: int) -> None:
        """Register with every name server in the settings; `port` is the broker's main port, as it really is.

        Returns when all have answered or failed, or after `START_WAIT_S`. Raises UsageError for an address that is
        none.
        """
        self._port = port
        self.servers = [NameServer(address) for address in parse_addresses(self._settings.namesrv)]
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._keep(server)) for server in self.servers]
        if not self.servers:
            return
        told = loop.create_task(self._all_told())
        timer = self._clock.call_later(START_WAIT_S, told.cancel)
        await asyncio.wait([told])
        timer.cancel()

    async def _all_told(self) -> None:
        for server in self.servers:
            await server.told.wait()

    async def stop(self) -> None:
        """Unregister everywhere, within `UNREGISTER_TIMEOUT_S`, and close the connections."""
        self._stopping = True
        tasks = [*self._tasks, *self._checks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(self._unregister(server) for server in self.servers), return_exceptions=True)
        await self.connections.close()

    # -- what others tell us -----------------------------------------------------------------------------------------

    def topic_changed(self, topic: str) -> None:
        """A topic was created, changed or deleted: the name servers learn of it soon. Cheap; call it as often as you
        like.
        """
        for server in self.servers:
            server.changed.add(topic)
            self._wake(server)

    def permission_changed(self) -> None:
        """The broker's own permission changed, which shows in that of every topic."""
        for server in self.servers:
            server.known_over = None
            self._wake(server)

    async def register_now(self) -> None:
        """Tell every name server everything, now. Failures show in `servers`."""
        await asyncio.gather(*(self._attempt(server, whole=True) for server in self.servers))

    # -- one name server ---------------------------------------------------------------------------------------------

    async def _keep(self, server: NameServer) -> None:
        period_s = min(max(self._settings.register_period_s, PERIOD_S_MIN), PERIOD_S_MAX)
        first = True
        woken = False
        while not self._stopping:
            await self._attempt(server, whole=not woken)
            if not server.registered:
                delay = min(2.0 ** min(server.failures - 1, 10), BACK_OFF_S_MAX)
            else:
                delay = SECOND_REGISTRATION_S if first else period_s
                first = False
            woken = await self._wait(server, delay)

    async def _wait(self, server: NameServer, delay_s: float) -> bool:
        """Wait for the delay or until woken; True when woken."""
        if server.dirty and server.registered:
            return True
        server.wake = asyncio.get_running_loop().create_future()
        timer = self._clock.call_later(delay_s, _settle, server.wake)
        try:
            await server.wake
        finally:
            timer.cancel()
            server.wake = None
        return server.dirty

    def _wake(self, server: NameServer) -> None:
        server.dirty = True
        if server.wake is not None and server.registered:
            _settle(server.wake)

    def _lost(self, connection: RemotingConnection) -> None:
        """A connection ended: the name server at its other end may have been restarted, and then knows nothing."""
        for server in self.servers:
            if server.known_over is connection:
                server.known_over = None
                if not self._stopping:
                    self._wake(server)

    async def _attempt(self, server: NameServer, *, whole: bool) -> None:
        server.dirty = False
        try:
            await self._register(server, whole=whole)
        except PocketMQError as error:
            self._failed(server, error.message)
        except Exception as error:
            logger.debug("traceback of the failed registration", exc_info=error)
            self._failed(server, f"{type(error).__name__}: {error}")
        else:
            if not server.registered:
                logger.info(
                    "registered with name server %s as %s (cluster %s, broker %s, id %s)",
                    server.address,
                    server.advertised,
                    self._settings.cluster,
                    self._settings.name,
                    self._settings.id,
                )
            server.registered = True
            server.failures = 0
            server.reason = None
        finally:
            server.told.set()

    def _failed(self, server: NameServer, reason: str) -> None:
        if server.registered:
            logger.warning("lost name server %s: %s; trying on", server.address, reason)
        elif not server.failures:
            logger.warning("cannot register with name server %s: %s; trying on", server.address, reason)
        server.registered = False
        server.failures += 1
        server.reason = reason
        server.known_over = None

    async def _register(self, server: NameServer, *, whole: bool) -> None:
        connection = await self.connections.get(server.address)
        advertised, auto = self.advertised_address(connection)
        changed, server.changed = server.changed, set()
        whole = whole or server.known_over is not connection or advertised != server.advertised
        whole = whole or len(self._topics) <= PAGE_TOPICS
        topics = list(self._topics) if whole else [c for c in map(self._topics.get, sorted(changed)) if c is not None]
        try:
            for page, start in enumerate(range(0, max(len(topics), 1), PAGE_TOPICS)):
                part = topics[start : start + PAGE_TOPICS]
                await self._send(connection, advertised, auto, part, page)
        except BaseException:
            server.changed |= changed
            raise
        if whole:
            server.known_over = connection
        server.advertised = advertised
        self._check_reach(advertised)

    async def _send(
        self, connection: RemotingConnection, advertised: str, auto: bool, topics: Iterable[TopicConfig], page: int
    ) -> None:
        settings = self._settings
        body = self._body(topics, page)
        header = RegisterBrokerRequestHeader(
            broker_name=settings.name,
            broker_addr=advertised,
            cluster_name=settings.cluster,
            ha_server_addr=_with_port(advertised, 1),
            broker_id=settings.id,
            compressed=False,
            body_crc32=zlib.crc32(body) & 0x7FFF_FFFF,
        ).to_ext()
        if auto:
            header[ADVERTISE_FIELD] = ADVERTISE_AUTO
        answer = await connection.request(
            RequestCode.REGISTER_BROKER, header, body, timeout_s=settings.register_timeout_s
        )
        if answer.code != ResponseCode.SUCCESS:
            raise PocketMQError(f"it answered {answer.code}: {answer.remark}", code=answer.code)

    def _body(self, topics: Iterable[TopicConfig], page: int) -> bytes:
        permission = self._settings.permission & Permission.READ_WRITE
        known = self._topics.data_version
        # Pages of one table, and one table under two permissions of the broker, must not look like the same version.
        version = DataVersion(
            (known.counter * PAGES_MAX + page % PAGES_MAX) * 8 + permission, known.state_version, known.timestamp
        )
        table = {
            config.topic_name: (
                config
                if not config.perm & ~permission & Permission.READ_WRITE
                else msgspec.structs.replace(config, perm=config.perm & permission)
            )
            for config in topics
        }
        wrapper = TopicConfigAndMappingSerializeWrapper(data_version=version, topic_config_table=table)
        # No key in it is a number or an object: the fast encoder will do, and with many topics it matters.
        return msgspec.json.encode(RegisterBrokerBody(topic_config_serialize_wrapper=wrapper))

    async def _unregister(self, server: NameServer) -> None:
        connection = self.connections.peek(server.address)
        if connection is None or server.advertised is None:
            return
        header = UnRegisterBrokerRequestHeader(
            broker_name=self._settings.name,
            broker_addr=server.advertised,
            cluster_name=self._settings.cluster,
            broker_id=self._settings.id,
        )
        try:
            await connection.request(RequestCode.UNREGISTER_BROKER, header, timeout_s=UNREGISTER_TIMEOUT_S)
        except PocketMQError as error:
            logger.info("could not unregister from name server %s: %s", server.address, error.message)

    # -- the address -------------------------------------------------------------------------------------------------

    def advertised_address(self, connection: RemotingConnection) -> tuple[str, bool]:
        """What the name server behind `connection` is told, and whether it may tell clients another address."""
        if self._settings.advertise:
            return format_address(*split_advertised(self._settings.advertise, self._port)), False
        if self._settings.host not in WILDCARD_HOSTS:
            return format_address(self._settings.host, self._port), False
        return format_address(connection.local_address[0], self._port), True

    def _check_reach(self, advertised: str) -> None:
        if advertised in self._checked or len(self._checked) >= 100:
            return
        self._checked.add(advertised)
        task = asyncio.get_running_loop().create_task(self._reach(advertised))
        self._checks.add(task)
        task.add_done_callback(self._checks.discard)

    async def _reach(self, advertised: str) -> None:
        """Connect to the address that clients are told; warn when that fails here already."""
        try:
            host, port = parse_address(advertised)
            probe = await self._network.connect(host, port, _Probe, timeout=REACH_TIMEOUT_S)
        except (OSError, TimeoutError, PocketMQError) as error:
            logger.warning(
                "clients are told that this broker is at %s, but it cannot be reached there from here (%s): set "
                "broker.advertise (--advertise) to an address that clients can reach, or open the port",
                advertised,
                str(error) or type(error).__name__,
            )
        else:
            probe.close()


class _Probe(asyncio.Protocol):
    """Connects and says nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def close(self) -> None:
        self._transport.close()


def _settle(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


def split_advertised(advertise: str, port: int) -> tuple[str, int]:
    """Host and port of the setting `broker.advertise`: a host alone, or `host:port` where the port is mapped."""
    if advertise.count(":") > 1 and not advertise.startswith("["):
        return advertise, port
    try:
        return parse_address(advertise)
    except PocketMQError:
        return advertise.strip("[]"), port


def _with_port(address: str, add: int) -> str:
    host, port = parse_address(address)
    return format_address(host, port + add)
