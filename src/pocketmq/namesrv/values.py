"""What the route table is made of, what it is told and what it answers."""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from pocketmq.model.config import DataVersion, TopicConfig

Member = tuple[str, str]
"""(cluster, address): one broker process."""


class QueueEntry(msgspec.Struct):
    """The queues of one topic on one broker set."""

    read_queues: int
    write_queues: int
    permission: int
    sys_flag: int


class BrokerSet(msgspec.Struct):
    """All members with one broker name."""

    cluster: str
    name: str
    addresses: dict[int, str] = {}
    acting_master: bool = False
    zone: str | None = None


class LiveBroker(msgspec.Struct):
    """One member that has spoken lately."""

    last_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: Hashable
    ha_address: str
    auto_host: bool = False


class Registration(msgspec.Struct, kw_only=True):
    """What a broker says about itself. `topics` is None when it sent none (old versions)."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str = ""
    timeout_ms: int | None = None
    acting_master: bool | None = None
    zone: str | None = None
    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    topics: Mapping[str, TopicConfig] | None = None
    mappings: Mapping[str, Any] = {}
    filters: list[str] = []
    channel: Hashable = None
    auto_host: bool = False


class Registered(msgspec.Struct):
    """The answer to a registration that was taken. A replica learns about its master."""

    master_address: str | None = None
    ha_address: str | None = None


class MinIdChange(msgspec.Struct):
    """The smallest member id of a broker set has changed: its members want to know."""

    brokers: BrokerSet
    min_id: int
    min_address: str
    offline_address: str | None
    ha_address: str | None


class Route(msgspec.Struct):
    """Where the queues of one topic are. Broker sets are copies."""

    queues: dict[str, QueueEntry]
    brokers: list[BrokerSet]
    filters: dict[str, list[str]]
    mappings: dict[str, Any] | None
