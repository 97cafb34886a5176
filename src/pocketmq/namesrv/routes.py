"""Who serves what: the route table of a name server. Pure state; the time is an argument, in milliseconds.

Theory of operation. Brokers register under (cluster, broker name, broker id) with their address and their topics, over
and over; a broker that is silent for too long, or whose connection ends, is forgotten together with its topics. Name
servers do not know of each other: each has its own table, and a broker tells all of them.

Identity. A broker *set* has a name; its members have ids, 0 being the master. A *member* is alive by (cluster,
address). Topics belong to the broker set, and only the master (or a member standing in for it) speaks for them.

The order of the steps of a registration matters to brokers; it is RocketMQ's.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

from pocketmq.model.config import DataVersion, Permission
from pocketmq.namesrv.values import (
    BrokerSet,
    LiveBroker,
    Member,
    MinIdChange,
    QueueEntry,
    Registered,
    Registration,
    Route,
)

DEFAULT_TIMEOUT_MS = 120_000
UNIT_FLAG = 1
UNIT_SUB_FLAG = 2
# Members of a broker set look each other up through topics of this prefix and must see who really is there.
MEMBER_TOPIC_PREFIX = "%SYNC_BROKER_MEMBER_"


class RouteTable:
    """The whole state of a name server, except the key-value table."""

    def __init__(self, *, acting_master: bool = False, forget_missing_topics: bool = False) -> None:
        self.acting_master = acting_master
        self.forget_missing_topics = forget_missing_topics
        self.clusters: dict[str, dict[str, None]] = {}
        self.brokers: dict[str, BrokerSet] = {}
        self.live: dict[Member, LiveBroker] = {}
        self.topics: dict[str, dict[str, QueueEntry]] = {}
        self._mappings: dict[str, dict[str, Any]] = {}
        self._filters: dict[Member, list[str]] = {}
        self._by_channel: dict[Hashable, set[Member]] = {}
        self._auto_hosts: set[str] = set()
        self.version = 0
        """Grows with every change that a route could show; repeated registrations are none."""
        self.on_min_id_change: Callable[[MinIdChange], None] | None = None

    # -- registration ------------------------------------------------------------------------------------------------

    def register(self, asked: Registration, now_ms: int) -> Registered | None:
        """Take a registration; None means it was refused (rule 5: a first registration with just one topic)."""
        self.clusters.setdefault(asked.cluster, {})[asked.name] = None
        brokers = self.brokers.get(asked.name)
        first = brokers is None
        if brokers is None:
            brokers = self.brokers[asked.name] = BrokerSet(asked.cluster, asked.name)
        before = self._shown(brokers, asked)
        brokers.acting_master = bool(asked.acting_master)
        brokers.zone = asked.zone
        addresses = brokers.addresses
        min_id_before = min(addresses, default=None)
        # The same process under a new id: it has changed sides between master and replica.
        for other_id in [
            key for key, address in addresses.items() if address == asked.address and key != asked.broker_id
        ]:
            del addresses[other_id]
        previous = addresses.get(asked.broker_id)
        if previous is not None and previous != asked.address and self._is_outdated(asked, previous):
            self._forget_live((asked.cluster, asked.address))
            self.version += 1
            return Registered()
        if asked.broker_id not in addresses and asked.topics is not None and len(asked.topics) == 1:
            if not addresses:
                self._forget_set(brokers)
            return None
        addresses[asked.broker_id] = asked.address
        first = first or not previous
        topics_changed = self._take_topics(asked, brokers, first)
        self._take_liveness(asked, now_ms)
        if first or topics_changed or self._shown(brokers, asked) != before:
            self.version += 1
        self._report_min_id(brokers, min_id_before, None, None)
        return self._master_of(asked, brokers)

    def _shown(self, brokers: BrokerSet, asked: Registration) -> object:
        """What routes show of a broker set, besides its topics."""
        filters = self._filters.get((asked.cluster, asked.address))
        auto_host = asked.address in self._auto_hosts
        return brokers.acting_master, brokers.zone, dict(brokers.addresses), filters, auto_host

    def _is_outdated(self, asked: Registration, previous: str) -> bool:
        live = self.live.get((asked.cluster, previous))
        return live is not None and live.data_version.state_version > asked.data_version.state_version

    def _take_topics(self, asked: Registration, brokers: BrokerSet, first: bool) -> bool:
        stands_in = asked.broker_id != 0 and asked.acting_master is not None
        stands_in = stands_in and asked.broker_id == min(brokers.addresses)
        if asked.topics is None or not (asked.broker_id == 0 or stands_in):
            return False
        touched = False
        if self.forget_missing_topics and not asked.mappings:
            for topic in [t for t, queues in self.topics.items() if asked.name in queues and t not in asked.topics]:
                self._drop_queues(topic, asked.name)
                touched = True
        live = self.live.get((asked.cluster, asked.address))
        changed = first or live is None or live.data_version != asked.data_version
        for topic, config in asked.topics.items():
            known = self.topics.get(topic)
            if not changed and known is not None and asked.name in known:
                continue
            touched = True
            permission = config.perm
            if stands_in and brokers.acting_master:
                permission &= ~Permission.WRITE
            if known is None:
                known = self.topics[topic] = {}
            known[asked.name] = QueueEntry(
                config.read_queue_nums, config.write_queue_nums, int(permission), config.topic_sys_flag
            )
        if changed:
            for topic, mapping in asked.mappings.items():
                self._mappings.setdefault(topic, {})[asked.name] = mapping
                touched = True
        return touched

    def _take_liveness(self, asked: Registration, now_ms: int) -> None:
        member = (asked.cluster, asked.address)
        self._forget_live(member)
        self.live[member] = LiveBroker(
            now_ms,
            asked.timeout_ms or DEFAULT_TIMEOUT_MS,
            asked.data_version,
            asked.channel,
            asked.ha_address,
            asked.auto_host,
        )
        if asked.channel is not None:
            self._by_channel.setdefault(asked.channel, set()).add(member)
        if asked.auto_host:
            self._auto_hosts.add(asked.address)
        else:
            self._auto_hosts.discard(asked.address)
        if asked.filters:
            self._filters[member] = list(asked.filters)
        else:
            self._filters.pop(member, None)

    def _master_of(self, asked: Registration, brokers: BrokerSet) -> Registered:
        master = brokers.addresses.get(0)
        if asked.broker_id == 0 or not master:
            return Registered()
        live = self.live.get((asked.cluster, master))
        return Registered() if live is None else Registered(master, live.ha_address)

    def _forget_live(self, member: Member) -> None:
        live = self.live.pop(member, None)
        if live is None:
            return
        members = self._by_channel.get(live.channel)
        if members is not None:
            members.discard(member)
            if not members:
                del self._by_channel[live.channel]

    # -- leaving -----------------------------------------------------------------------------------------------------

    def unregister(self, cluster: str, name: str, address: str) -> None:
        """Forget one member; with the last one go the broker set and its queues."""
        self.version += 1
        member = (cluster, address)
        live = self.live.get(member)
        self._forget_live(member)
        self._filters.pop(member, None)
        self._auto_hosts.discard(address)
        brokers = self.brokers.get(name)
        if brokers is None:
            return
        min_id_before = min(brokers.addresses, default=None)
        for broker_id in [key for key, value in brokers.addresses.items() if value == address]:
            del brokers.addresses[broker_id]
        if not brokers.addresses:
            self._forget_set(brokers)
            return
        if brokers.acting_master and 0 not in brokers.addresses:
            for queues in self.topics.values():
                entry = queues.get(name)
                if entry is not None:
                    entry.permission &= ~Permission.WRITE
        self._report_min_id(brokers, min_id_before, address, live.ha_address if live else None)

    def _forget_set(self, brokers: BrokerSet) -> None:
        del self.brokers[brokers.name]
        # A name that was used in two clusters (a mistake, but not ours) leaves both.
        for cluster in [cluster for cluster, names in self.clusters.items() if brokers.name in names]:
            del self.clusters[cluster][brokers.name]
            if not self.clusters[cluster]:
                del self.clusters[cluster]
        for topic in [topic for topic, queues in self.topics.items() if brokers.name in queues]:
            self._drop_queues(topic, brokers.name)

    def _drop_queues(self, topic: str, name: str) -> None:
        queues = self.topics.get(topic)
        if queues is None:
            return
        queues.pop(name, None)
        if not queues:
            del self.topics[topic]
        mappings = self._mappings.get(topic)
        if mappings is not None:
            mappings.pop(name, None)
            if not mappings:
                del self._mappings[topic]

    def channel_closed(self, channel: Hashable) -> list[Member]:
        """A connection ended: forget the members whose latest registration came over it."""
        return self._leave(list(self._by_channel.get(channel, ())))

    def speaks_for_others(self, channel: Hashable) -> bool:
        """True when some member's latest registration came over this connection."""
        return channel in self._by_channel

    def expire(self, now_ms: int) -> list[tuple[Member, Hashable]]:
        """Forget members that were silent for too long; returns them with the connections they came over."""
        due = [(m, live.channel) for m, live in self.live.items() if live.last_ms + live.timeout_ms < now_ms]
        self._leave([member for member, _ in due])
        return due

    def _leave(self, members: list[Member]) -> list[Member]:
        for cluster, address in members:
            for name in [name for name, known in self.brokers.items() if address in known.addresses.values()]:
                self.unregister(cluster, name, address)
            self._forget_live((cluster, address))
            self._filters.pop((cluster, address), None)
        return members

    def _report_min_id(
        self, brokers: BrokerSet, before: int | None, offline_address: str | None, ha_address: str | None
    ) -> None:
        after = min(brokers.addresses, default=None)
        if self.on_min_id_change is None or after is None or before is None or after == before:
            return
        self.on_min_id_change(MinIdChange(brokers, after, brokers.addresses[after], offline_address, ha_address))

    # -- liveness ----------------------------------------------------------------------------------------------------

    def touch(self, cluster: str, address: str, now_ms: int) -> None:
        """The member is alive (heartbeat 904, or 322 with nothing changed)."""
        live = self.live.get((cluster, address))
        if live is not None:
            live.last_ms = now_ms

    def data_version(self, cluster: str, address: str) -> DataVersion | None:
        """The state of the member's topics that is known here."""
        live = self.live.get((cluster, address))
        return None if live is None else live.data_version

    # -- topics ------------------------------------------------------------------------------------------------------

    def add_topic(self, topic: str, queues: Iterable[tuple[str, QueueEntry]]) -> bool:
        """Take one topic for broker sets that are known (217); False and no more when one is not."""
        self.version += 1
        for name, entry in queues:
            if name not in self.brokers:
                return False
            self.topics.setdefault(topic, {})[name] = entry
        return True

    def delete_topic(self, topic: str, cluster: str | None = None) -> None:
        """Forget a topic, on all broker sets or on those of one cluster."""
        self.version += 1
        if cluster is None:
            self.topics.pop(topic, None)
            self._mappings.pop(topic, None)
            return
        for name in self.clusters.get(cluster, ()):
            self._drop_queues(topic, name)

    def set_write_permission(self, name: str, allowed: bool) -> int:
        """Take or give write permission on all topics of a broker set; returns how many topics there are."""
        self.version += 1
        count = 0
        for queues in self.topics.values():
            entry = queues.get(name)
            if entry is not None:
                entry.permission = int(Permission.READ_WRITE) if allowed else entry.permission & ~Permission.WRITE
                count += 1
        return count

    def topics_of_cluster(self, cluster: str) -> list[str]:
        """Topics that have queues in a cluster."""
        names = self.clusters.get(cluster, {})
        return [topic for topic, queues in self.topics.items() if not names.keys().isdisjoint(queues)]

    def topics_by_flag(self, wanted: int, unwanted: int = 0) -> list[str]:
        """Topics whose system flag (of their first broker set) has the wanted bits and none of the unwanted."""
        found: list[str] = []
        for topic, queues in self.topics.items():
            flag = next(iter(queues.values())).sys_flag
            if flag & wanted == wanted and not flag & unwanted:
                found.append(topic)
        return found

    # -- routes ------------------------------------------------------------------------------------------------------

    def route(self, topic: str) -> Route | None:
        """Where the topic's queues are; None when no broker that is known has it."""
        queues = self.topics.get(topic)
        if not queues:
            return None
        brokers = [self._copy(self.brokers[name]) for name in queues if name in self.brokers]
        if not brokers:
            return None
        filters: dict[str, list[str]] = {}
        if self._filters:
            for known in brokers:
                for address in known.addresses.values():
                    served = self._filters.get((known.cluster, address))
                    if served:
                        filters[address] = served
        route = Route(dict(queues), brokers, filters, self._mappings.get(topic))
        if self.acting_master and not topic.startswith(MEMBER_TOPIC_PREFIX):
            _show_stand_ins(route)
        return route

    @staticmethod
    def _copy(brokers: BrokerSet) -> BrokerSet:
        return BrokerSet(brokers.cluster, brokers.name, dict(brokers.addresses), brokers.acting_master, brokers.zone)

    def has_auto_host(self, address: str) -> bool:
        """True for a member on this machine that is to be told under the host its client used to reach us."""
        return address in self._auto_hosts


def _show_stand_ins(route: Route) -> None:
    """Show the smallest id as the master where there is none, so that clients go on reading."""
    for brokers in route.brokers:
        if not brokers.addresses or 0 in brokers.addresses or not brokers.acting_master:
            continue
        entry = route.queues.get(brokers.name)
        if entry is not None and not entry.permission & Permission.WRITE:
            brokers.addresses[0] = brokers.addresses.pop(min(brokers.addresses))
