"""What the route table is made of, what it is told and what it answers."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pocketmq.model.config import DataVersion, TopicConfig

Member = tuple[str, str]
"""(cluster, address): one broker process."""


@dataclass(slots=True)
class QueueEntry:
    """The queues of one topic on one broker set."""

    read_queues: int
    write_queues: int
    permission: int
    sys_flag: int


@dataclass(slots=True)
class BrokerSet:
    """All members with one broker name."""

    cluster: str
    name: str
    addresses: dict[int, str] = field(default_factory=dict)
    acting_master: bool = False
    zone: str | None = None


@dataclass(slots=True)
class LiveBroker:
    """One member that has spoken lately."""

    last_ms: int
    timeout_ms: int
    data_version: DataVersion
    channel: Hashable
    ha_address: str
    auto_host: bool = False


@dataclass(slots=True, kw_only=True)
class Registration:
    """What a broker says about itself. `topics` is None when it sent none (old versions)."""

    cluster: str
    name: str
    broker_id: int
    address: str
    ha_address: str = ""
    timeout_ms: int | None = None
    acting_master: bool | None = None
    zone: str | None = None
    data_version: DataVersion = field(default_factory=DataVersion)
    topics: Mapping[str, TopicConfig] | None = None
    mappings: Mapping[str, Any] = field(default_factory=dict)
    filters: list[str] = field(default_factory=list)
    channel: Hashable = None
    auto_host: bool = False


@dataclass(slots=True)
class Registered:
    """The answer to a registration that was taken. A replica learns about its master."""

    master_address: str | None = None
    ha_address: str | None = None


@dataclass(slots=True)
class MinIdChange:
    """The smallest member id of a broker set has changed: its members want to know."""

    brokers: BrokerSet
    min_id: int
    min_address: str
    offline_address: str | None
    ha_address: str | None


@dataclass(slots=True)
class Route:
    """Where the queues of one topic are. Broker sets are copies."""

    queues: dict[str, QueueEntry]
    brokers: list[BrokerSet]
    filters: dict[str, list[str]]
    mappings: dict[str, Any] | None
