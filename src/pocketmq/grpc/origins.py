"""Where the messages of a call come from, as records hold it."""

from functools import lru_cache
from typing import TYPE_CHECKING

from pocketmq.broker.origins import Origin
from pocketmq.grpc.calls import Call
from pocketmq.model.errors import UsageError
from pocketmq.wire.hosts import HOST_V4_BYTES, pack_host

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker


def origin_of(broker: "Broker", call: Call) -> Origin:
    """The origin of a caller's messages: his own address, and this broker's for clients of the remoting protocol."""
    return _origin(*call.peer_address, broker.origins.store_host(local_host=call.local_address[0]))


@lru_cache(maxsize=4096)
def _origin(host: str, port: int, store_host: bytes) -> Origin:
    try:
        born_host = pack_host(host, port)
    except UsageError:
        born_host = bytes(HOST_V4_BYTES)
    return Origin(born_host, store_host)
