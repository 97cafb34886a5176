"""What `connect()` and `consume()` can be told, as plain values, with the one place of their defaults."""

import random
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Literal

import msgspec

from pocketmq.client.middleware import Middleware
from pocketmq.client.parts import Router, Serializer, WritableQueue
from pocketmq.client.routers import RoundRobinRouter
from pocketmq.client.serializers import BytesSerializer
from pocketmq.model.errors import UsageError
from pocketmq.model.limits import BODY_BYTES_MAX

Duration = timedelta | float
"""A length of time: a timedelta, or seconds."""

DEFAULT_PRODUCER_GROUP = "pocketmq-producer"
Compression = Literal["zlib", "lz4", "zstd"]


def seconds(value: Duration, name: str) -> float:
    """A duration in seconds. Raises UsageError when it is negative or none at all."""
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise UsageError(f"{name} is a timedelta or a number of seconds, not {type(value).__name__}")
    if not 0 <= value < 1e12:
        raise UsageError(f"{name} cannot be {value} s")
    return float(value)


def timestamp_ms(value: datetime | float, name: str) -> int:
    """A point in time in milliseconds since the epoch; floats are seconds since the epoch.

    A datetime without a time zone is local time, as `datetime.timestamp` has it.
    """
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise UsageError(f"{name} is a datetime or a number of seconds since the epoch, not {type(value).__name__}")
    return round(value * 1000)


class ClientOptions(msgspec.Struct, kw_only=True):
    """Everything about a client that is no address. Times in seconds."""

    client_id: str | None = None
    instance: str = "DEFAULT"
    """Names this process where positions are kept in local files (broadcasting)."""
    producer_group: str = DEFAULT_PRODUCER_GROUP
    request_timeout_s: float = 3.0
    connect_timeout_s: float = 3.0
    route_refresh_s: float = 30.0
    heartbeat_s: float = 30.0
    cursor_commit_s: float = 5.0
    rebalance_s: float = 20.0
    send_timeout_s: float = 3.0
    send_retries: int = 2
    compress_above_bytes: int = 4096
    compression: Compression = "zlib"
    compression_level: int = 5
    message_bytes_max: int = BODY_BYTES_MAX
    pending_messages_max: int = 100_000
    pending_bytes_max: int = 64 * 1024 * 1024
    pending_requests_max: int = 10_000
    merge: bool = True
    merge_messages_max: int = 256
    merge_bytes_max: int = 1024 * 1024
    in_flight_max: int = 1
    """Requests of one queue that may be on their way at the same time; what comes meanwhile is merged."""
    router: Router = msgspec.field(default_factory=RoundRobinRouter)
    writable_queues: Callable[[str], Sequence[WritableQueue]] | None = None
    serializer: Serializer = msgspec.field(default_factory=BytesSerializer)
    middleware: Sequence[Middleware] = ()
    namespace: str = ""
    """Prefix of topics and groups; `producer_group` above has it already."""
    random_source: random.Random = msgspec.field(default_factory=random.SystemRandom)
