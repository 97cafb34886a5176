"""Where each connection comes from, and under which address its client reaches this broker.

Both are stored in every record, and the second is part of the message ids that clients get: it must be one that the
client can use. It is the advertised address when there is one, else the local end of the client's own connection.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.registration import split_advertised
from pocketmq.model.errors import UsageError
from pocketmq.wire.hosts import HOST_V4_BYTES, pack_host
from pocketmq.wire.record import SysFlag

if TYPE_CHECKING:
    from pocketmq.model.settings import BrokerSettings
    from pocketmq.net.remoting import RemotingConnection


class Origin:
    """The two hosts of one connection, packed as records hold them."""

    __slots__ = ("born_host", "host_flags", "message_id_prefix", "store_host")

    def __init__(self, born_host: bytes, store_host: bytes) -> None:
        self.born_host = born_host
        self.store_host = store_host
        self.host_flags = (SysFlag.BORN_HOST_V6 if len(born_host) != HOST_V4_BYTES else 0) | (
            SysFlag.STORE_HOST_V6 if len(store_host) != HOST_V4_BYTES else 0
        )
        """Bits of the sys flag that say how long the hosts are."""
        self.message_id_prefix = store_host.hex().upper().encode()
        """Offset message ids are this and the position, 16 hexadecimal digits."""


class Origins:
    """The origin of each open connection, made on first use."""

    def __init__(self, settings: "BrokerSettings") -> None:
        self._settings = settings
        self.port = settings.port
        """The main port in use; clients of the fast port are told this one as well."""
        self.known: dict[RemotingConnection, Origin] = {}

    def of(self, connection: "RemotingConnection") -> Origin:
        """The origin of a connection."""
        origin = self.known.get(connection)
        if origin is None:
            origin = self.known[connection] = Origin(
                _pack(*connection.peer_address) or bytes(HOST_V4_BYTES), self.store_host(connection)
            )
        return origin

    def store_host(self, connection: "RemotingConnection | None" = None, *, local_host: str = "") -> bytes:
        """This broker's address, as the client of `connection` knows it, or one that reached it at `local_host`."""
        local = connection.local_address[0] if connection is not None else local_host or self._settings.host
        # A record holds addresses, not names: with a name advertised, the one that the client used has to do.
        advertised = split_advertised(self._settings.advertise, self.port)
        return _pack(*advertised) or _pack(local, self.port) or pack_host("0.0.0.0", self.port)

    def forget(self, connection: "RemotingConnection") -> None:
        """The connection is closed."""
        self.known.pop(connection, None)


def _pack(host: str, port: int) -> bytes | None:
    """The host packed; None when it is no IP address."""
    try:
        return pack_host(host, port) if host else None
    except UsageError:
        return None
