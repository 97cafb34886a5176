"""Clusters and their brokers: who is there, how they are, what they say about themselves."""

from typing import Final

import msgspec

from pocketmq.admin.reach import MASTER_ID, Reach, each
from pocketmq.client.broker_errors import error_of
from pocketmq.model.errors import PocketMQError
from pocketmq.wire.bodies import ClusterInfo, KVTable, decode_body
from pocketmq.wire.codes import RequestCode

_FIRST_REGULAR_VERSION: Final = 213
"""V4_0_0; from there on every release has two numbers, the odd one being the release itself."""


class NameServerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One name server; `error` says why it did not answer."""

    address: str
    brokers: int = 0
    error: str | None = None


class BrokerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One broker process. Times in ms since the epoch; numbers that it did not tell are None."""

    cluster: str
    broker: str
    broker_id: int
    address: str
    error: str | None = None
    """Why it did not answer."""
    version: str = ""
    writable: bool | None = None
    started_timestamp: int | None = None
    in_per_second: float | None = None
    out_per_second: float | None = None
    messages_in: int | None = None
    """Messages taken since it counts."""
    messages_out: int | None = None
    log_first_position: int | None = None
    log_end_position: int | None = None
    oldest_message_timestamp: int | None = None
    disk_used_percent: float | None = None


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """All that the name servers know."""

    name_servers: list[NameServerStatus]
    brokers: list[BrokerStatus]


class Clusters:
    """Asks about clusters and brokers."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    async def status(self) -> ClusterStatus:
        """Every name server and every broker; those that do not answer carry their error.

        Raises ConnectError when no name server answers.
        """
        info = await self._reach.cluster_info()
        members = [
            (data.cluster or _cluster_of(info, name), name, broker_id, address)
            for name, data in info.broker_addr_table.items()
            for broker_id, address in data.broker_addrs.items()
        ]
        return ClusterStatus(
            name_servers=await each(self._reach.remoting.name_servers, self._name_server),
            brokers=await each(sorted(members), self._broker),
        )

    async def runtime(self, address: str) -> dict[str, str]:
        """What one broker says about itself, under RocketMQ's names, as text."""
        what = f"state of {address}"
        table = await self._reach.fetch(address, RequestCode.GET_BROKER_RUNTIME_INFO, KVTable, what=what)
        return dict(sorted(table.table.items()))

    async def address_of(self, broker: str) -> str:
        """The address of a broker's master. Raises UsageError."""
        return (await self._reach.masters(broker=broker))[broker]

    async def _name_server(self, address: str) -> NameServerStatus:
        try:
            answer = await self._reach.remoting.ask(address, RequestCode.GET_BROKER_CLUSTER_INFO)
            if answer.code != 0:
                raise error_of(answer, "list of brokers", address)
            info = decode_body(answer.body, ClusterInfo)
        except PocketMQError as error:
            return NameServerStatus(address=address, error=error.message)
        return NameServerStatus(address=address, brokers=len(info.broker_addr_table))

    async def _broker(self, member: tuple[str, str, int, str]) -> BrokerStatus:
        cluster, name, broker_id, address = member
        try:
            table = await self.runtime(address)
        except PocketMQError as error:
            return BrokerStatus(cluster=cluster, broker=name, broker_id=broker_id, address=address, error=error.message)
        return read_runtime(table, cluster=cluster, broker=name, broker_id=broker_id, address=address)


def read_runtime(table: dict[str, str], *, cluster: str, broker: str, broker_id: int, address: str) -> BrokerStatus:
    """The runtime table of a broker as a typed status. Numbers that are missing or unreadable are None."""
    ours = table.get("pocketmqVersion")
    writable = table.get("brokerActive")
    ratio = _number(table.get("commitLogDiskRatio"))
    first = _whole(table.get("commitLogMinOffset"))
    oldest = _whole(table.get("earliestMessageTimeStamp"))
    return BrokerStatus(
        cluster=cluster,
        broker=broker,
        broker_id=broker_id,
        address=address,
        version=f"PocketMQ {ours}" if ours else table.get("brokerVersionDesc", ""),
        writable=None if writable is None else writable == "true",
        started_timestamp=_whole(table.get("bootTimestamp")),
        in_per_second=_first_rate(table.get("putTps")),
        out_per_second=_first_rate(table.get("getTransferredTps", table.get("getTransferedTps"))),
        messages_in=_whole(table.get("msgPutTotalTodayNow")),
        messages_out=_whole(table.get("msgGetTotalTodayNow")),
        log_first_position=None if first is None else max(first, 0),
        log_end_position=_whole(table.get("commitLogMaxOffset")),
        oldest_message_timestamp=oldest if oldest is not None and oldest > 0 else None,
        disk_used_percent=None if ratio is None or ratio < 0 else round(ratio * 100, 1),
    )


def version_name(version: int) -> str:
    """RocketMQ's name of a client's or broker's version number, such as V5_3_3."""
    if version < _FIRST_REGULAR_VERSION - 1:
        return f"V3 ({version})"
    number, released = divmod(version - _FIRST_REGULAR_VERSION + 1, 2)
    major, rest = divmod(number, 100)
    name = f"V{4 + major}_{rest // 10}_{rest % 10}"
    return name if released else f"{name}_SNAPSHOT"


def is_master(status: BrokerStatus) -> bool:
    """Whether a broker takes messages itself."""
    return status.broker_id == MASTER_ID


def _cluster_of(info: ClusterInfo, broker: str) -> str:
    return next((name for name, brokers in info.cluster_addr_table.items() if broker in brokers), "")


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _whole(text: str | None) -> int | None:
    try:
        return int(text) if text else None
    except ValueError:
        return None


def _first_rate(text: str | None) -> float | None:
    """Brokers tell the rates of 10 s, 1 min and 10 min, with blanks between."""
    rate = _number(text.split()[0]) if text and text.split() else None
    return None if rate is None else round(rate, 3)
