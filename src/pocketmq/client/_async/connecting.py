"""`connect`: from an address to a client."""

import random
from collections.abc import Callable, Sequence

from pocketmq.client._async.client import Client
from pocketmq.client.middleware import Middleware
from pocketmq.client.namespaces import check_namespace, with_namespace
from pocketmq.client.options import (
    DEFAULT_PRODUCER_GROUP,
    ClientOptions,
    Compression,
    Duration,
    seconds,
)
from pocketmq.client.parts import Router, Serializer, WritableQueue
from pocketmq.client.routers import RoundRobinRouter
from pocketmq.model.errors import UsageError
from pocketmq.model.limits import BODY_BYTES_MAX
from pocketmq.model.names import check_group
from pocketmq.model.seams import Clock, Network
from pocketmq.net.addresses import parse_addresses


def connect(
    address: str,
    *,
    producer_group: str = DEFAULT_PRODUCER_GROUP,
    client_id: str | None = None,
    instance: str = "DEFAULT",
    send_timeout: Duration = 3.0,
    send_retries: int = 2,
    request_timeout: Duration = 3.0,
    connect_timeout: Duration = 3.0,
    compress_above: int = 4096,
    compression: Compression = "zlib",
    compression_level: int = 5,
    message_bytes_max: int = BODY_BYTES_MAX,
    pending_messages: int = 100_000,
    pending_bytes: int = 64 * 1024 * 1024,
    pending_requests: int = 10_000,
    merge: bool = True,
    merge_messages: int = 256,
    router: Router | None = None,
    writable_queues: Callable[[str], Sequence[WritableQueue]] | None = None,
    serializer: Serializer | None = None,
    middleware: Sequence[Middleware] = (),
    namespace: str = "",
    clock: Clock | None = None,
    network: Network | None = None,
    random_source: random.Random | None = None,
) -> Client:
    """A client of the cluster that the name servers at `address` know. Connects when it is first used.

        async with pocketmq.connect("127.0.0.1:9876") as client:
            await client.send("orders", b"...")

    Args:
        address: name servers, `host:port[;host:port]`; any of them will do at any time.
        producer_group: what brokers know the senders of this program by.
        client_id: what brokers know this client by. Default: unique, also in containers.
        instance: names this process where broadcasting positions are kept in local files.
        send_timeout: how long a send may take with all of its attempts; seconds or a timedelta, as all times here.
        send_retries: further attempts of a send after the first.
        request_timeout: how long any other request may take.
        connect_timeout: how long making a connection may take.
        compress_above: bodies of more bytes than this are compressed.
        compression: "zlib", or with their extras "lz4" and "zstd".
        compression_level: 1 (fast) to 9, or the algorithm's own scale.
        message_bytes_max: largest body that is sent; brokers have their own limit, by default the same.
        pending_messages: how many messages may wait for their acknowledgement; `send` waits for room.
        pending_bytes: the same in bytes.
        pending_requests: how many requests may wait for their replies.
        merge: let messages that are sent at the same time share requests.
        merge_messages: most messages in such a request.
        router: decides which queue a message goes to. Default: in turn from any, by hash for a message group.
        writable_queues: gives the queues of a topic instead of the name servers; then nothing is sent over the network.
        serializer: values to bodies and back. Default: bytes only.
        middleware: what is to be done around every send and every handling of a message; the first is the outermost.
        namespace: a prefix of all topics and groups of this client, as clients of RocketMQ 4 have it.
        clock: time. network: connections. random_source: for ids. Defaults: the real ones.

    Raises:
        UsageError: an address or a value that cannot be.
    """
    if address.startswith("grpc://"):
        raise UsageError("this version speaks the remoting protocol only: give a name server, host:port")
    name_servers = parse_addresses(address)
    if not name_servers:
        raise UsageError("there is no name server in the address; expected host:port, for example 127.0.0.1:9876")
    options = ClientOptions(
        client_id=client_id,
        instance=instance,
        producer_group=check_group(with_namespace(producer_group, check_namespace(namespace))),
        send_timeout_s=seconds(send_timeout, "send_timeout"),
        send_retries=send_retries,
        request_timeout_s=seconds(request_timeout, "request_timeout"),
        connect_timeout_s=seconds(connect_timeout, "connect_timeout"),
        compress_above_bytes=compress_above,
        compression=compression,
        compression_level=compression_level,
        message_bytes_max=message_bytes_max,
        pending_messages_max=pending_messages,
        pending_bytes_max=pending_bytes,
        merge=merge,
        merge_messages_max=merge_messages,
        writable_queues=writable_queues,
        pending_requests_max=pending_requests,
        middleware=tuple(middleware),
        namespace=namespace,
    )
    if serializer is not None:
        options.serializer = serializer
    if random_source is not None:
        options.random_source = random_source
    # Not all programs begin with the same queue: many of them send one message and end.
    options.router = router if router is not None else RoundRobinRouter(start=options.random_source.randrange(1 << 16))
    if clock is None:
        from pocketmq.net.clock import SystemClock

        clock = SystemClock()
    if network is None:
        from pocketmq.net.network import TcpNetwork

        network = TcpNetwork()
    return Client(name_servers, options, clock, network)
