"""The one registry of clients, whatever protocol they speak: producers by group, consumers by group.

What it decides
    - who is a member: whoever sent a heartbeat within `client_expire_s`, until it unregisters or its connection closes;
    - when a group's members must be told (`on_group_changed`): a client id came or went, or somebody's subscription
      changed;
    - nothing else. Creating groups is `pocketmq.broker.heartbeats`, sending the notices is `pocketmq.broker.notices`.
"""

import logging
from collections.abc import Callable, Iterable, Iterator

from pocketmq.broker.membership import ClientConnection, ConsumerGroup, ConsumerMember, ProducerMember
from pocketmq.model.config import Subscription
from pocketmq.model.errors import PocketMQError
from pocketmq.model.seams import Clock

logger = logging.getLogger(__name__)

MEMBERSHIPS_MAX = 1_000_000
"""Most (connection, group) pairs that one broker keeps; beyond it new ones are refused."""
MEMBERSHIPS_PER_CONNECTION_MAX = 10_000
SUBSCRIPTIONS_PER_MEMBER_MAX = 100_000
SYSTEM_BUSY = 2


class ClientRegistry:
    """Producers and consumers that are connected now."""

    def __init__(self, clock: Clock, *, expire_s: float) -> None:
        self._clock = clock
        self.expire_s = expire_s
        self.consumer_groups: dict[str, ConsumerGroup] = {}
        self.on_group_changed: Callable[[ConsumerGroup, bool], object] = lambda group, members: None
        """Called with the group and whether its membership changed (False: only a subscription did)."""
        self.on_consumer_joined: Callable[[str, str], object] = lambda group, client_id: None
        """Called with group and client id, when no other connection of the client is in the group."""
        self.on_consumer_left: Callable[[str, str, bool], object] = lambda group, client_id, said_goodbye: None
        """The same when its last connection leaves the group."""
        self._producer_groups: dict[str, dict[ClientConnection, ProducerMember]] = {}
        self._producers_by_id: dict[str, dict[ClientConnection, ProducerMember]] = {}
        self._next_producer: dict[str, int] = {}
        self._memberships: dict[ClientConnection, set[tuple[bool, str]]] = {}
        """Of each connection: (is consumer, group)."""
        self._count = 0

    # -- heartbeats --------------------------------------------------------------------------------------------------

    def register_consumer(
        self,
        connection: ClientConnection,
        group_name: str,
        client_id: str,
        *,
        language: str,
        version: int,
        consume_type: str,
        message_model: str,
        consume_from_where: str,
        subscriptions: Iterable[Subscription] | None,
        fingerprint: int = 0,
    ) -> bool:
        """Take one consumer of a heartbeat. `subscriptions` of None means "as before" (heartbeat V2).

        Returns True when the sender should send everything again: it said "as before" and this broker knows no
        before, or the group was last seen with another fingerprint.

        Raises:
            PocketMQError: code 2, there are too many clients.
        """
        group = self.consumer_groups.get(group_name)
        member = group.members.get(connection) if group is not None else None
        joined = False
        older: ConsumerMember | None = None
        if member is not None and member.client_id != client_id:
            self._remove_consumer(connection, group_name)
            group, member = self.consumer_groups.get(group_name), None
        if group is None or member is None:
            self._reserve(connection, True, group_name)
            group = self.consumer_groups.setdefault(group_name, group or ConsumerGroup(group_name))
            member = ConsumerMember(connection, client_id, language, version)
            older = group.speaker(client_id)
            joined = group.add(member)
            if joined:
                self.on_consumer_joined(group_name, client_id)
        self._warn_shared_client_id(group, member)
        self._touch(member, language, version)
        group.consume_type = consume_type
        group.message_model = message_model
        group.consume_from_where = consume_from_where
        changed = False
        resend = fingerprint != 0 and group.fingerprint not in (0, fingerprint)
        if subscriptions is None:
            resend = resend or not member.subscriptions_known or member.fingerprint != fingerprint
        else:
            changed = group.subscribe(member, _bounded(subscriptions))
            if older is not None:
                # The same client on another connection: news only when it wants something else now.
                changed = older.signature != member.signature
            member.fingerprint = fingerprint
            self._warn_subscriptions(group)
        if fingerprint:
            group.fingerprint = fingerprint
        if joined or changed:
            self.on_group_changed(group, joined)
        return resend

    def register_producer(
        self, connection: ClientConnection, group: str, client_id: str, *, language: str, version: int
    ) -> None:
        """Take one producer of a heartbeat.

        Raises:
            PocketMQError: code 2, there are too many clients.
        """
        members = self._producer_groups.get(group)
        member = members.get(connection) if members is not None else None
        if member is not None and member.client_id != client_id:
            self._remove_producer(connection, group)
            member = None
        if member is None:
            self._reserve(connection, False, group)
            member = ProducerMember(connection, client_id, language, version)
            self._producer_groups.setdefault(group, {})[connection] = member
            self._producers_by_id.setdefault(client_id, {})[connection] = member
        self._touch(member, language, version)

    # -- leaving -----------------------------------------------------------------------------------------------------

    def unregister(
        self,
        connection: ClientConnection,
        client_id: str,
        *,
        producer_group: str | None = None,
        consumer_group: str | None = None,
    ) -> None:
        """The client leaves these groups. It may say so on a connection other than the one that it registered on."""
        if producer_group:
            producers = self._producer_groups.get(producer_group, {})
            if connection not in producers:
                connection = next((c for c, member in producers.items() if member.client_id == client_id), connection)
            self._remove_producer(connection, producer_group)
        if consumer_group:
            group = self.consumer_groups.get(consumer_group)
            if group is not None and connection not in group.members:
                speaker = group.speaker(client_id)
                connection = speaker.connection if speaker is not None else connection
            self._remove_consumer(connection, consumer_group, said_goodbye=True)

    def remove_connection(self, connection: ClientConnection) -> None:
        """The connection closed: its client leaves all groups."""
        for is_consumer, group in sorted(self._memberships.get(connection, ())):
            if is_consumer:
                self._remove_consumer(connection, group)
            else:
                self._remove_producer(connection, group)

    def expire(self) -> int:
        """Drop whoever sent no heartbeat for `expire_s`, and close connections that no group has a use for then.

        Returns the number of memberships that ended. Call it every few seconds.
        """
        before = self._clock.monotonic() - self.expire_s
        silent: list[tuple[ClientConnection, bool, str]] = [
            (member.connection, True, group.name)
            for group in self.consumer_groups.values()
            for member in group.members.values()
            if member.last_heartbeat < before
        ]
        silent.extend(
            (connection, False, name)
            for name, members in self._producer_groups.items()
            for connection, member in members.items()
            if member.last_heartbeat < before
        )
        for connection, is_consumer, group_name in silent:
            if is_consumer:
                self._remove_consumer(connection, group_name)
            else:
                self._remove_producer(connection, group_name)
        for connection in {each[0] for each in silent}:
            if connection not in self._memberships:
                logger.info(
                    "no heartbeat from %s:%s for %g s: its connection is closed",
                    *connection.peer_address,
                    self.expire_s,
                )
                connection.close()
        return len(silent)

    # -- questions ---------------------------------------------------------------------------------------------------

    def group(self, name: str) -> ConsumerGroup | None:
        """The consumer group, when it has members now."""
        return self.consumer_groups.get(name)

    def subscription(self, connection: ClientConnection | None, group: str, topic: str) -> Subscription | None:
        """What a pull of `group` on `connection` wants of `topic`; None when nobody there subscribed to it."""
        found = self.consumer_groups.get(group)
        return found.subscription(connection, topic) if found is not None else None

    def client_ids(self, group: str) -> list[str]:
        """Ids of the consumers of a group, each once; empty when there are none."""
        found = self.consumer_groups.get(group)
        return found.client_ids if found is not None else []

    def consumer(self, group: str, client_id: str) -> ConsumerMember | None:
        """The consumer with this id, on its newest connection."""
        found = self.consumer_groups.get(group)
        return found.speaker(client_id) if found is not None else None

    def groups_subscribed_to(self, topic: str) -> list[str]:
        """Names of the groups that have a consumer of `topic` now."""
        return [group.name for group in self.consumer_groups.values() if topic in group.subscriptions]

    def producer_groups(self) -> Iterator[tuple[str, list[ProducerMember]]]:
        """Every producer group with its members."""
        return ((name, list(members.values())) for name, members in self._producer_groups.items())

    def producers(self, group: str) -> list[ProducerMember]:
        """The members of a producer group; empty when there are none."""
        return list(self._producer_groups.get(group, {}).values())

    def next_producer(self, group: str) -> ProducerMember | None:
        """A member of the producer group, another one each time: whom to ask about an open transaction."""
        members = list(self._producer_groups.get(group, {}).values())
        if not members:
            return None
        turn = self._next_producer.get(group, 0) % len(members)
        self._next_producer[group] = turn + 1
        return members[turn]

    def producer_by_client_id(self, client_id: str) -> ProducerMember | None:
        """The producer with this client id in whatever group, on its newest connection: whom a reply goes to."""
        members = self._producers_by_id.get(client_id)
        return next(reversed(members.values())) if members else None

    @property
    def membership_count(self) -> int:
        """Number of (connection, group) pairs, producers and consumers."""
        return self._count

    # -- inside ------------------------------------------------------------------------------------------------------

    def _touch(self, member: ProducerMember, language: str, version: int) -> None:
        member.language = language
        member.version = version
        member.last_heartbeat = self._clock.monotonic()
        member.last_heartbeat_ms = self._clock.time_ms()

    def _reserve(self, connection: ClientConnection, is_consumer: bool, group: str) -> None:
        mine = self._memberships.setdefault(connection, set())
        if self._count >= MEMBERSHIPS_MAX or len(mine) >= MEMBERSHIPS_PER_CONNECTION_MAX:
            if not mine:
                del self._memberships[connection]
            raise PocketMQError(
                "too many clients or groups are registered here; use more brokers, or fewer groups per client",
                code=SYSTEM_BUSY,
                retryable=True,
            )
        mine.add((is_consumer, group))
        self._count += 1

    def _release(self, connection: ClientConnection, is_consumer: bool, group: str) -> None:
        mine = self._memberships.get(connection)
        if mine is None or (is_consumer, group) not in mine:
            return
        mine.remove((is_consumer, group))
        self._count -= 1
        if not mine:
            del self._memberships[connection]

    def _remove_consumer(self, connection: ClientConnection, group_name: str, *, said_goodbye: bool = False) -> None:
        group = self.consumer_groups.get(group_name)
        member = group.members.get(connection) if group is not None else None
        if group is None or member is None:
            return
        left = group.remove(connection)
        self._release(connection, True, group_name)
        if not group.members:
            del self.consumer_groups[group_name]
        elif not group.subscriptions_differ:
            group.warned_subscriptions = False
        if left:
            self.on_consumer_left(group_name, member.client_id, said_goodbye)
            self.on_group_changed(group, True)

    def _remove_producer(self, connection: ClientConnection, group_name: str) -> None:
        members = self._producer_groups.get(group_name)
        member = members.pop(connection, None) if members is not None else None
        if members is None or member is None:
            return
        self._release(connection, False, group_name)
        if not members:
            del self._producer_groups[group_name]
            self._next_producer.pop(group_name, None)
        same = self._producers_by_id[member.client_id]
        other = self._another_producer(member)
        if other is not None:
            same[connection] = other
            return
        del same[connection]
        if not same:
            del self._producers_by_id[member.client_id]

    def _another_producer(self, member: ProducerMember) -> ProducerMember | None:
        """The same client's membership in another producer group, on the same connection."""
        for is_consumer, name in self._memberships.get(member.connection, ()):
            if not is_consumer:
                other = self._producer_groups[name][member.connection]
                if other.client_id == member.client_id:
                    return other
        return None

    def _warn_shared_client_id(self, group: ConsumerGroup, member: ConsumerMember) -> None:
        """An older connection is alive beside a newer one with the same id: two processes that think they are one."""
        speaker = group.speaker(member.client_id)
        if speaker is None or speaker is member or member.client_id in group.warned_client_ids:
            return
        group.warned_client_ids.add(member.client_id)
        logger.warning(
            "two live consumers of group %s share the client id %s: %s:%s and %s:%s; they will take the same queues "
            "and both get every message of them: give each its own instance name",
            group.name,
            member.client_id,
            *member.connection.peer_address,
            *speaker.connection.peer_address,
        )

    def _warn_subscriptions(self, group: ConsumerGroup) -> None:
        if not group.subscriptions_differ:
            group.warned_subscriptions = False
        elif not group.warned_subscriptions:
            group.warned_subscriptions = True
            logger.warning(
                "the consumers of group %s do not subscribe to the same: each gets what it asked for, but queues are "
                "shared out among all of them, so some messages may wait for nobody: use one group per purpose",
                group.name,
            )


def _bounded(subscriptions: Iterable[Subscription]) -> list[Subscription]:
    wanted = list(subscriptions)
    if len(wanted) > SUBSCRIPTIONS_PER_MEMBER_MAX:
        raise PocketMQError(
            f"a consumer may subscribe to at most {SUBSCRIPTIONS_PER_MEMBER_MAX} topics, not {len(wanted)}",
            code=29,
        )
    return wanted
