"""`connect_admin`: from an address to an `Admin`, whose parts are named after what they look after."""

from collections.abc import Sequence
from typing import Self

from pocketmq.admin.clusters import Clusters
from pocketmq.admin.groups import Groups
from pocketmq.admin.messages import Messages
from pocketmq.admin.offsets import Offsets
from pocketmq.admin.reach import Reach
from pocketmq.admin.topics import Topics
from pocketmq.admin.traces import Traces
from pocketmq.client._async.remoting import Remoting
from pocketmq.client.options import Duration, seconds
from pocketmq.model.errors import UsageError
from pocketmq.model.seams import Clock, Network
from pocketmq.net.addresses import parse_addresses


class Admin:
    """Asks name servers and brokers, PocketMQ's or Apache's, and changes what they hold. Made by `connect_admin`.

    `clusters`, `topics`, `groups`, `messages`, `traces` and `offsets` are its parts. It connects when it is first used;
    close it, or use it as an async context manager. Everything raises PocketMQError.
    """

    def __init__(self, remoting: Remoting, clock: Clock) -> None:
        self._remoting = remoting
        reach = Reach(remoting)
        self.clusters = Clusters(reach)
        self.topics = Topics(reach, clock)
        self.offsets = Offsets(reach)
        self.groups = Groups(reach, self.topics)
        self.messages = Messages(reach, self.topics, clock)
        self.traces = Traces(self.messages)

    @property
    def name_servers(self) -> Sequence[str]:
        """Addresses of the name servers that are asked."""
        return self._remoting.name_servers

    async def __aenter__(self) -> Self:
        """The same; nothing is connected yet."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Close."""
        await self.close()

    async def close(self) -> None:
        """Close all connections; a second call does nothing."""
        await self._remoting.close()


def connect_admin(
    address: str,
    *,
    request_timeout: Duration = 5.0,
    connect_timeout: Duration = 3.0,
    clock: Clock | None = None,
    network: Network | None = None,
) -> Admin:
    """An `Admin` of the cluster that the name servers at `address` (`host:port[;host:port]`) know.

        async with connect_admin("127.0.0.1:9876") as admin:
            for topic in await admin.topics.list():
                print(topic.topic, topic.read_queues)

    Args:
        address: name servers.
        request_timeout: how long a server may take to answer; seconds or a timedelta.
        connect_timeout: how long making a connection may take.
        clock: time. network: connections. Defaults: the real ones.

    Raises:
        UsageError: an address or a value that cannot be.
    """
    name_servers = parse_addresses(address)
    if not name_servers:
        raise UsageError("there is no name server in the address; expected host:port, for example 127.0.0.1:9876")
    if clock is None:
        from pocketmq.net.clock import SystemClock

        clock = SystemClock()
    if network is None:
        from pocketmq.net.network import TcpNetwork

        network = TcpNetwork()
    remoting = Remoting(
        network,
        clock,
        name_servers,
        request_timeout_s=seconds(request_timeout, "request_timeout"),
        connect_timeout_s=seconds(connect_timeout, "connect_timeout"),
        on_request=lambda connection, command: None,
        on_closed=lambda connection: None,
    )
    return Admin(remoting, clock)
