"""A name server: the route table behind a port."""

import asyncio
import logging

from pocketmq.model.errors import PocketMQError
from pocketmq.model.seams import Cancellable, Clock, Disk, Network
from pocketmq.model.settings import Settings
from pocketmq.namesrv.kv import KvTable
from pocketmq.namesrv.requests import Requests
from pocketmq.namesrv.routes import RouteTable
from pocketmq.namesrv.values import MinIdChange
from pocketmq.net.dialer import Connections
from pocketmq.net.remoting import RemotingConnection
from pocketmq.net.server import RemotingServer
from pocketmq.wire.codes import RequestCode

logger = logging.getLogger("pocketmq.namesrv")

NOTICES_MAX = 1000
"""Most notices to brokers under way at once; further ones are dropped, the brokers ask by themselves too."""


class NameServer:
    """Tells clients which brokers have which topics. Keeps nothing but the key-value table across restarts."""

    def __init__(self, settings: Settings, *, clock: Clock, network: Network, disk: Disk | None = None) -> None:
        self.settings = settings
        self._clock = clock
        self.table = RouteTable(
            acting_master=settings.namesrv.acting_master,
            forget_missing_topics=settings.namesrv.delete_topic_with_registration,
        )
        self.kv = KvTable(disk, settings.namesrv.kv_file)
        self._requests = Requests(settings, self.table, self.kv, clock)
        self._server = RemotingServer(
            clock,
            network,
            on_request=self._requests.handle,
            on_closed=self._connection_closed,
            idle_s=settings.broker.client_expire_s or None,
        )
        self._scan: Cancellable | None = None
        self._to_brokers = Connections(network, clock)
        self._notices: set[asyncio.Task[None]] = set()
        if settings.namesrv.notify_min_broker_id:
            self.table.on_min_id_change = self._min_id_changed

    async def start(self) -> None:
        """Load the key-value table and open the port. Raises OSError, StoreCorruptError."""
        self.kv.load()
        await self._server.listen(self.settings.namesrv.host, self.settings.namesrv.port)
        self._schedule_scan()

    @property
    def port(self) -> int:
        """The port in use."""
        return self._server.port

    @property
    def host(self) -> str:
        """The host it listens on, as given."""
        return self._server.host

    @property
    def connections(self) -> int:
        """How many peers are connected."""
        return len(self._server.connections)

    async def stop(self) -> None:
        """Close the port and all connections."""
        if self._scan is not None:
            self._scan.cancel()
            self._scan = None
        await self._server.stop()
        notices = list(self._notices)
        for notice in notices:
            notice.cancel()
        await asyncio.gather(*notices, return_exceptions=True)
        await self._to_brokers.close()

    def _schedule_scan(self) -> None:
        self._scan = self._clock.call_later(self.settings.namesrv.scan_interval_s, self._expire)

    def _expire(self) -> None:
        self._schedule_scan()
        for (_, address), channel in self.table.expire(self._requests.now_ms()):
            logger.warning("broker at %s has been silent for too long; forgotten", address)
            if isinstance(channel, RemotingConnection) and not self.table.speaks_for_others(channel):
                channel.close("the broker was silent for too long")

    def _connection_closed(self, connection: RemotingConnection) -> None:
        for _, address in self.table.channel_closed(connection):
            level = logging.WARNING if self._scan is not None else logging.DEBUG  # not while stopping
            logger.log(level, "broker at %s is gone: %s", address, connection.close_reason)

    # -- notices to brokers ------------------------------------------------------------------------------------------

    def _min_id_changed(self, change: MinIdChange) -> None:
        addresses = list(change.brokers.addresses.values())
        if len(self._notices) + len(addresses) > NOTICES_MAX:
            return
        fields = {
            "minBrokerId": str(change.min_id),
            "brokerName": change.brokers.name,
            "minBrokerAddr": change.min_address,
            "offlineBrokerAddr": change.offline_address,
            "haBrokerAddr": change.ha_address,
        }
        header = {name: value for name, value in fields.items() if value is not None}
        for address in addresses:
            task = asyncio.get_running_loop().create_task(self._notify(address, header))
            self._notices.add(task)
            task.add_done_callback(self._notices.discard)

    async def _notify(self, address: str, header: dict[str, str]) -> None:
        try:
            connection = await self._to_brokers.get(address)
            connection.request_oneway(RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE, header)
        except PocketMQError as error:
            logger.info("could not tell the broker at %s who is the smallest: %s", address, error.message)
