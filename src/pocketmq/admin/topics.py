"""Topics: list, show, create, update, delete. A change goes to the masters and, where it must, to all name servers."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec

from pocketmq.admin.reach import Progress, Reach, each, no_such_topic
from pocketmq.model.config import Permission, TopicConfig
from pocketmq.model.errors import RequestTimeoutError, UsageError
from pocketmq.model.limits import QUEUES_PER_TOPIC_MAX
from pocketmq.model.names import (
    AUTO_CREATE_TOPIC,
    DLQ_PREFIX,
    ORDER_TOPIC_NAMESPACE,
    RETRY_PREFIX,
    SYSTEM_PREFIX,
    check_topic,
    is_system_topic,
)
from pocketmq.model.seams import Clock
from pocketmq.wire.bodies import (
    GroupList,
    TopicConfigAndMappingSerializeWrapper,
    TopicList,
    TopicStatsTable,
)
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.namesrv import (
    DeleteKVConfigRequestHeader,
    DeleteTopicFromNamesrvRequestHeader,
    PutKVConfigRequestHeader,
)
from pocketmq.wire.headers.topics import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetTopicStatsInfoRequestHeader,
    QueryTopicConsumeByWhoRequestHeader,
)

TopicKind = Literal["normal", "retry", "dead-letter", "system"]

DEFAULT_QUEUES: Final = 8
VISIBLE_TIMEOUT_S: Final = 10.0
VISIBLE_POLL_S: Final = 0.1
MESSAGE_TYPE: Final = "message.type"
REPLY_SUFFIX: Final = "_REPLY_TOPIC"


class TopicInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A topic in short: queues of all brokers together, the rest as its first broker has it."""

    topic: str
    kind: TopicKind
    brokers: tuple[str, ...]
    read_queues: int
    write_queues: int
    permission: str
    order: bool
    message_type: str | None


class TopicOnBroker(msgspec.Struct, frozen=True, kw_only=True):
    """How one broker has a topic."""

    broker: str
    address: str
    cluster: str
    config: TopicConfig


class QueueStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One queue: its messages are those from `first_offset` up to, not including, `end_offset`."""

    broker: str
    queue: int
    first_offset: int
    end_offset: int
    messages: int
    last_stored_timestamp: int | None
    """When its newest message was stored, in ms; None without one."""


class TopicDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a topic."""

    topic: str
    kind: TopicKind
    brokers: list[TopicOnBroker]
    queues: list[QueueStatus]
    groups: tuple[str, ...]
    """Consumer groups that read it, or have read it."""
    messages: int
    in_per_second: float | None


class Topics:
    """Asks about topics and changes them."""

    def __init__(self, reach: Reach, clock: Clock) -> None:
        self._reach = reach
        self._clock = clock

    # -- asking ------------------------------------------------------------------------------------------------------

    async def list(
        self, *, cluster: str | None = None, system: bool = True, progress: Progress | None = None
    ) -> list[TopicInfo]:
        """All topics, by name. `system=False` leaves out those that brokers and groups own."""
        masters = await self._reach.masters(cluster=cluster)
        tables = await self._reach.of_all(masters, self._configs, progress=progress)
        found: dict[str, list[tuple[str, TopicConfig]]] = {}
        for broker, configs in tables.items():
            for name, config in configs.items():
                found.setdefault(name, []).append((broker, config))
        if cluster is None:
            for name in await self.names():
                found.setdefault(name, [])
        clusters = set((await self._reach.cluster_info()).cluster_addr_table)
        # Topics that every broker has for itself and its cluster.
        own = clusters | set(masters) | {f"{name}{REPLY_SUFFIX}" for name in clusters}
        infos = [_info(name, held, "system" if name in own else kind_of(name)) for name, held in sorted(found.items())]
        return [info for info in infos if system or info.kind == "normal"]

    async def names(self) -> Sequence[str]:
        """Names of all topics that the name servers know; none when that is switched off there."""
        answer, address = await self._reach.remoting.ask_name_server(RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER)
        if answer.code != ResponseCode.SUCCESS:
            return ()
        found = await self._reach.fetch(
            address, RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER, TopicList, what="list of topics"
        )
        return found.topic_list

    async def show(self, topic: str) -> TopicDetails:
        """A topic's settings, queues, offsets, and the groups that read it. Raises RouteNotFoundError."""
        route = await self._reach.route(topic)
        masters = await self._reach.masters_of(topic)
        clusters = {data.broker_name: data.cluster for data in route.broker_datas}
        held = await self._held(topic, masters)
        header = GetTopicStatsInfoRequestHeader(topic=topic)

        async def statistics(broker: str, address: str) -> TopicStatsTable:
            what = f"offsets of {topic}"
            return await self._reach.fetch(
                address, RequestCode.GET_TOPIC_STATS_INFO, TopicStatsTable, header, what=what
            )

        reachable = {broker: masters[broker] for broker in held}
        tables = await self._reach.of_all(reachable, statistics)
        queues = [
            QueueStatus(
                broker=queue.broker_name,
                queue=queue.queue_id,
                first_offset=max(offsets.min_offset, 0),
                end_offset=max(offsets.max_offset, 0),
                messages=max(offsets.max_offset - max(offsets.min_offset, 0), 0),
                last_stored_timestamp=offsets.last_update_timestamp if offsets.last_update_timestamp > 0 else None,
            )
            for table in tables.values()
            for queue, offsets in sorted(table.offset_table.items())
        ]
        return TopicDetails(
            topic=topic,
            kind=kind_of(topic),
            brokers=[
                TopicOnBroker(broker=name, address=masters[name], cluster=clusters.get(name, ""), config=config)
                for name, config in held.items()
            ],
            queues=queues,
            groups=await self.groups(topic, reachable),
            messages=sum(queue.messages for queue in queues),
            in_per_second=round(sum(table.topic_put_tps for table in tables.values()), 3),
        )

    async def groups(self, topic: str, masters: Mapping[str, str] | None = None) -> tuple[str, ...]:
        """Consumer groups that read a topic now, or have a position in it."""
        header = QueryTopicConsumeByWhoRequestHeader(topic=topic)

        async def ask(broker: str, address: str) -> GroupList:
            what = f"groups of {topic}"
            return await self._reach.fetch(
                address, RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, GroupList, header, what=what
            )

        if masters is None:
            masters = await self._reach.masters_of(topic)
        found = await self._reach.of_all(masters, ask)
        return tuple(sorted({group for groups in found.values() for group in groups.group_list}))

    async def configs(self, topic: str, *, cluster: str | None = None) -> dict[str, TopicConfig]:
        """Broker name -> the topic as it is there; empty when no broker has it."""
        return await self._held(topic, await self._reach.masters(cluster=cluster))

    # -- changing ----------------------------------------------------------------------------------------------------

    async def create(
        self,
        topic: str,
        *,
        queues: int = DEFAULT_QUEUES,
        permission: str = "rw",
        order: bool = False,
        attributes: Mapping[str, str] | None = None,
        cluster: str | None = None,
        broker: str | None = None,
    ) -> TopicDetails:
        """Create a topic on all masters, or those of one cluster, or one broker, and wait until it can be found.

        Args:
            topic: its name.
            queues: how many on each broker.
            permission: "rw", "r", "w" or "-".
            order: whether messages of one key must stay in order even while a broker is away.
            attributes: named extras, such as {"message.type": "FIFO"}.
            cluster: only there. broker: only there.

        Raises:
            UsageError: it exists already there, a name or a value cannot be.
        """
        check_topic(topic)
        masters = await self._reach.masters(cluster=cluster, broker=broker)
        there = await self._held(topic, masters)
        if there:
            raise UsageError(f"the topic {topic} exists already on {', '.join(there)}; change it with update")
        _check_queues(queues)
        config = TopicConfig(
            topic_name=topic,
            read_queue_nums=queues,
            write_queue_nums=queues,
            perm=parse_permission(permission),
            order=order,
        )
        await each(masters.items(), lambda item: self._put(item[1], config, attributes or {}, ()))
        if order:
            await self._set_order(topic, dict.fromkeys(masters, config))
        await self._wait_visible(topic, set(masters))
        return await self.show(topic)

    async def update(
        self,
        topic: str,
        *,
        queues: int | None = None,
        read_queues: int | None = None,
        write_queues: int | None = None,
        permission: str | None = None,
        order: bool | None = None,
        attributes: Mapping[str, str] | None = None,
        remove_attributes: Sequence[str] = (),
        cluster: str | None = None,
        broker: str | None = None,
    ) -> TopicDetails:
        """Change a topic where it is; what is not given stays. Raises RouteNotFoundError, UsageError.

        Fewer queues hide what is in the others: lower `write_queues` first, and `read_queues` when they are drained.
        """
        masters = await self._reach.masters(cluster=cluster, broker=broker)
        there = await self._held(topic, masters)
        if not there:
            raise no_such_topic(topic)
        changes: dict[str, int | bool] = {}
        for name, value in (
            ("read_queue_nums", read_queues if read_queues is not None else queues),
            ("write_queue_nums", write_queues if write_queues is not None else queues),
        ):
            if value is not None:
                _check_queues(value)
                changes[name] = value
        if permission is not None:
            changes["perm"] = parse_permission(permission)
        if order is not None:
            changes["order"] = order
        changed = {name: msgspec.structs.replace(config, **changes) for name, config in there.items()}

        async def put(name: str) -> None:
            await self._put(masters[name], changed[name], attributes or {}, remove_attributes)

        await each(changed, put)
        if order is not None or (changes and any(config.order for config in changed.values())):
            await self._set_order(topic, await self._held(topic, await self._reach.masters()))
        return await self.show(topic)

    async def delete(self, topic: str, *, cluster: str | None = None) -> tuple[str, ...]:
        """Delete a topic with its messages, on the masters first and then in all name servers.

        Returns the brokers that had it. Raises RouteNotFoundError when nobody knows it.
        """
        if is_system_topic(topic):
            raise UsageError(f"the topic {topic} belongs to the brokers and cannot be deleted")
        masters = await self._reach.masters(cluster=cluster)
        there = await self._held(topic, masters)
        if not there and await self._reach.find_route(topic) is None:
            raise no_such_topic(topic)
        header = DeleteTopicRequestHeader(topic=topic)
        what = f"delete {topic}"
        for name in there:
            await self._reach.tell(masters[name], RequestCode.DELETE_TOPIC_IN_BROKER, header, what=what)
        remoting = self._reach.remoting
        await remoting.call_name_servers(
            RequestCode.DELETE_TOPIC_IN_NAMESRV, DeleteTopicFromNamesrvRequestHeader(topic=topic, cluster_name=cluster)
        )
        if any(config.order for config in there.values()):
            await self._set_order(topic, {})
        return tuple(sorted(there))

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _configs(self, broker: str, address: str) -> dict[str, TopicConfig]:
        table = await self._reach.fetch(
            address,
            RequestCode.GET_ALL_TOPIC_CONFIG,
            TopicConfigAndMappingSerializeWrapper,
            what=f"topics of {broker}",
        )
        return table.topic_config_table

    async def _held(self, topic: str, masters: Mapping[str, str]) -> dict[str, TopicConfig]:
        async def ask(broker: str, address: str) -> TopicConfig | None:
            # The whole table: brokers before version 5 cannot be asked for one topic.
            return (await self._configs(broker, address)).get(topic)

        found = await self._reach.of_all(masters, ask)
        return {broker: config for broker, config in sorted(found.items()) if config is not None}

    async def _put(
        self, address: str, config: TopicConfig, attributes: Mapping[str, str], remove: Sequence[str]
    ) -> None:
        edits = [f"+{name}={value}" for name, value in attributes.items()] + [f"-{name}" for name in remove]
        header = CreateTopicRequestHeader(
            topic=config.topic_name,
            default_topic=AUTO_CREATE_TOPIC,
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
            attributes=",".join(edits),
        )
        what = f"settings of {config.topic_name}"
        await self._reach.tell(address, RequestCode.UPDATE_AND_CREATE_TOPIC, header, what=what)

    async def _set_order(self, topic: str, held: Mapping[str, TopicConfig]) -> None:
        """Tell the name servers the queues of an ordered topic, which then stay the same while a broker is away."""
        text = ";".join(f"{name}:{config.write_queue_nums}" for name, config in sorted(held.items()) if config.order)
        call = self._reach.remoting.call_name_servers
        if text:
            header = PutKVConfigRequestHeader(namespace=ORDER_TOPIC_NAMESPACE, key=topic, value=text)
            await call(RequestCode.PUT_KV_CONFIG, header)
        else:
            await call(RequestCode.DELETE_KV_CONFIG, DeleteKVConfigRequestHeader(ORDER_TOPIC_NAMESPACE, topic))

    async def _wait_visible(self, topic: str, brokers: set[str]) -> None:
        """Brokers tell the name servers at once, but they do not wait for each other."""
        end = self._clock.monotonic() + VISIBLE_TIMEOUT_S
        while True:
            route = await self._reach.find_route(topic)
            if route is not None and brokers <= {queue.broker_name for queue in route.queue_datas}:
                return
            if self._clock.monotonic() >= end:
                raise RequestTimeoutError(
                    f"the topic {topic} was created, but the name server does not show it after "
                    f"{VISIBLE_TIMEOUT_S:g} s; check that the brokers reach the name server"
                )
            await self._clock.sleep(VISIBLE_POLL_S)


def kind_of(topic: str) -> TopicKind:
    """Whose topic it is, by its name."""
    if topic.startswith(RETRY_PREFIX):
        return "retry"
    if topic.startswith(DLQ_PREFIX):
        return "dead-letter"
    return "system" if is_system_topic(topic) or topic.startswith(SYSTEM_PREFIX.upper()) else "normal"


def parse_permission(text: str) -> int:
    """ "rw", "r", "w" or "-" as permission bits; RocketMQ's numbers (2, 4, 6) will do too. Raises UsageError."""
    found = {"rw": 6, "wr": 6, "r": 4, "w": 2, "-": 0, "6": 6, "4": 4, "2": 2}.get(text.strip().lower())
    if found is None:
        raise UsageError(f"a permission is rw, r, w or - (none), not {text!r}")
    return found


def permission_text(perm: int) -> str:
    """Permission bits as "rw", "r", "w" or "-"."""
    return ("r" if perm & Permission.READ else "") + ("w" if perm & Permission.WRITE else "") or "-"


def _info(topic: str, held: Sequence[tuple[str, TopicConfig]], kind: TopicKind) -> TopicInfo:
    first = held[0][1] if held else None
    return TopicInfo(
        topic=topic,
        kind=kind,
        brokers=tuple(sorted(broker for broker, _ in held)),
        read_queues=sum(config.read_queue_nums for _, config in held),
        write_queues=sum(config.write_queue_nums for _, config in held),
        permission=permission_text(first.perm) if first else "-",
        order=any(config.order for _, config in held),
        message_type=first.attributes.get(MESSAGE_TYPE) if first else None,
    )


def _check_queues(count: int) -> None:
    if not 0 < count <= QUEUES_PER_TOPIC_MAX:
        raise UsageError(f"a topic has 1 to {QUEUES_PER_TOPIC_MAX} queues on a broker, not {count}")
