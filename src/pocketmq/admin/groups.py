"""Consumer groups: list, show, create, update, delete."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pocketmq.admin.members import Membership, connections_of, members_of
from pocketmq.admin.progress import GroupProgress, progress_of
from pocketmq.admin.reach import Progress, Reach, each
from pocketmq.admin.topics import Topics
from pocketmq.model.config import GroupConfig
from pocketmq.model.errors import BrokerError, RouteNotFoundError, UsageError
from pocketmq.model.names import check_group, dead_letter_topic, is_system_group, retry_topic
from pocketmq.wire.bodies import SubscriptionGroupWrapper, encode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.groups import DeleteSubscriptionGroupRequestHeader


class GroupInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A group in short."""

    group: str
    system: bool
    brokers: tuple[str, ...]
    members: int | None = None
    """Consumers that are connected; None when that was not asked."""
    lag: int | None = None
    """Messages that it has not consumed; None when that was not asked."""
    out_per_second: float | None = None


class GroupOnBroker(msgspec.Struct, frozen=True, kw_only=True):
    """How one broker has a group."""

    broker: str
    address: str
    config: GroupConfig


class GroupDetails(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a group."""

    group: str
    brokers: list[GroupOnBroker]
    membership: Membership
    progress: GroupProgress


class Groups:
    """Asks about consumer groups and changes them."""

    def __init__(self, reach: Reach, topics: Topics) -> None:
        self._reach = reach
        self._topics = topics

    # -- asking ------------------------------------------------------------------------------------------------------

    async def list(
        self,
        *,
        cluster: str | None = None,
        system: bool = True,
        details: bool = True,
        progress: Progress | None = None,
    ) -> list[GroupInfo]:
        """All groups, by name. `details` asks for each one's members and lag; `system=False` leaves out RocketMQ's."""
        masters = await self._reach.masters(cluster=cluster)
        tables = await self._reach.of_all(masters, self._configs)
        held: dict[str, list[str]] = {}
        for broker, configs in tables.items():
            for name in configs:
                held.setdefault(name, []).append(broker)
        names = [name for name in sorted(held) if system or not is_system_group(name)]

        async def ask(name: str) -> GroupInfo:
            brokers = tuple(sorted(held[name]))
            if not details:
                return GroupInfo(group=name, system=is_system_group(name), brokers=brokers)
            there = {broker: masters[broker] for broker in brokers}
            connections = await connections_of(self._reach, name, there)
            reached = await progress_of(self._reach, name, there)
            return GroupInfo(
                group=name,
                system=is_system_group(name),
                brokers=brokers,
                members=len({client.client_id for each in connections.values() for client in each.connection_set}),
                lag=reached.lag,
                out_per_second=reached.out_per_second,
            )

        return await each(names, ask, progress=progress)

    async def show(self, group: str) -> GroupDetails:
        """A group's settings, members and lag. Raises BrokerError 26 when no broker has it."""
        masters, held = await self._find(group)
        there = {broker: masters[broker] for broker in held}
        return GroupDetails(
            group=group,
            brokers=[GroupOnBroker(broker=name, address=masters[name], config=held[name]) for name in held],
            membership=await members_of(self._reach, group, there),
            progress=await progress_of(self._reach, group, there),
        )

    # -- changing ----------------------------------------------------------------------------------------------------

    async def create(
        self,
        group: str,
        *,
        attributes: Mapping[str, str] | None = None,
        cluster: str | None = None,
        broker: str | None = None,
        **settings: Any,
    ) -> dict[str, GroupConfig]:
        """Create a group on all masters, or those of one cluster, or one broker; returns it by broker.

        `settings` are fields of GroupConfig. Raises UsageError when it exists there.
        """
        check_group(group)
        masters = await self._reach.masters(cluster=cluster, broker=broker)
        there = await self._held(group, masters)
        if there:
            raise UsageError(f"the group {group} exists already on {', '.join(there)}; change it with update")
        edits = {f"+{name}": value for name, value in (attributes or {}).items()}
        config = GroupConfig(group_name=group, attributes=edits, **settings)
        await each(masters.values(), lambda address: self._put(address, config))
        return await self._held(group, masters)

    async def update(
        self,
        group: str,
        *,
        attributes: Mapping[str, str] | None = None,
        remove_attributes: Sequence[str] = (),
        cluster: str | None = None,
        broker: str | None = None,
        **settings: Any,
    ) -> dict[str, GroupConfig]:
        """Change fields of a group where it is; what is not given stays. Raises BrokerError 26."""
        masters, there = await self._find(group, cluster=cluster, broker=broker)
        # On the wire these are edits, not the attributes as they shall be.
        edits = {f"+{name}": value for name, value in (attributes or {}).items()}
        edits |= {f"-{name}": "" for name in remove_attributes}
        for name, config in there.items():
            await self._put(masters[name], msgspec.structs.replace(config, attributes=edits, **settings))
        return await self._held(group, masters)

    async def delete(
        self,
        group: str,
        *,
        positions: bool = True,
        dead_letters: bool = False,
        force: bool = False,
        cluster: str | None = None,
    ) -> tuple[str, ...]:
        """Delete a group and its retry topic; returns the brokers that had it.

        Args:
            group: its name.
            positions: forget where it has come to, too.
            dead_letters: delete the messages that it gave up on, too.
            force: even while consumers are connected, which may create it again.
            cluster: only there.

        Raises:
            BrokerError: 26, no broker has it.
            UsageError: it has members and `force` was not given; it is one of RocketMQ's own.
        """
        if is_system_group(group):
            raise UsageError(f"the group {group} belongs to the brokers and cannot be deleted")
        masters, held = await self._find(group, cluster=cluster)
        there = {broker: masters[broker] for broker in held}
        connections = await connections_of(self._reach, group, there)
        members = {client.client_id for each in connections.values() for client in each.connection_set}
        if members and not force:
            raise UsageError(
                f"the group {group} has {len(members)} consumers connected, which would create it again; stop them "
                "first, or use force"
            )
        header = DeleteSubscriptionGroupRequestHeader(group_name=group, clean_offset=positions)
        for address in there.values():
            await self._reach.tell(address, RequestCode.DELETE_SUBSCRIPTIONGROUP, header, what=f"delete {group}")
        for topic in (retry_topic(group), *([dead_letter_topic(group)] if dead_letters else ())):
            try:
                await self._topics.delete(topic, cluster=cluster)
            except RouteNotFoundError:
                pass  # It never needed one.
        return tuple(sorted(held))

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _configs(self, broker: str, address: str) -> dict[str, GroupConfig]:
        # The whole table: asking for one group would create it.
        table = await self._reach.fetch(
            address, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG, SubscriptionGroupWrapper, what=f"groups of {broker}"
        )
        return table.subscription_group_table

    async def _held(self, group: str, masters: Mapping[str, str]) -> dict[str, GroupConfig]:
        async def ask(broker: str, address: str) -> GroupConfig | None:
            return (await self._configs(broker, address)).get(group)

        found = await self._reach.of_all(masters, ask)
        return {broker: config for broker, config in sorted(found.items()) if config is not None}

    async def _find(
        self, group: str, *, cluster: str | None = None, broker: str | None = None
    ) -> tuple[dict[str, str], dict[str, GroupConfig]]:
        masters = await self._reach.masters(cluster=cluster, broker=broker)
        held = await self._held(group, masters)
        if not held:
            raise no_such_group(group)
        return masters, held

    async def _put(self, address: str, config: GroupConfig) -> None:
        await self._reach.tell(
            address,
            RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP,
            body=encode_body(config),
            what=f"settings of {config.group_name}",
        )


def no_such_group(group: str) -> BrokerError:
    """The error for a group that no broker has."""
    return BrokerError(
        f"there is no group {group}; see `pocketmq group list`, or create it with `pocketmq group create {group}`",
        code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
    )
