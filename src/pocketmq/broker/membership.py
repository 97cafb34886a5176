"""Who is in a consumer group, and what each of them wants. Pure: no clock, no connections of its own.

Theory of operation
    A group's members are kept per *connection*, since that is what pulls arrive on and what closes. Clients share out
    queues by *client id*, so the list they are given holds each id once. When two connections carry the same id, both
    stay members (each gets notices and may pull), and the newer one speaks for the id when the broker has something
    to ask of that client.

    Subscriptions belong to the member that sent them. Members of one group are meant to want the same; when they do
    not, nothing is overwritten: each pull is filtered by what its own connection asked for, and the group is flagged.
    A pull on a connection that never sent a heartbeat is answered by the newest subscription of the group.
"""

from collections.abc import Iterable, Iterator
from typing import Protocol

from pocketmq.model.config import Subscription


class ClientConnection(Protocol):
    """What is asked of a connection, whatever protocol it speaks."""

    @property
    def peer_address(self) -> tuple[str, int]:
        """Host and port of the client."""

    def close(self) -> object:
        """End the connection."""


Signature = frozenset[tuple[str, str, str]]
"""What a member wants, in a form that compares: (topic, expression type, expression) of each subscription."""


class ProducerMember:
    """One producer of one group, on one connection."""

    __slots__ = ("client_id", "connection", "language", "last_heartbeat", "last_heartbeat_ms", "version")

    def __init__(self, connection: ClientConnection, client_id: str, language: str, version: int) -> None:
        self.connection = connection
        self.client_id = client_id
        self.language = language
        self.version = version
        self.last_heartbeat = 0.0
        """Monotonic seconds."""
        self.last_heartbeat_ms = 0
        """Wall clock, for people."""


class ConsumerMember(ProducerMember):
    """One consumer of one group, on one connection."""

    __slots__ = ("fingerprint", "signature", "subscriptions", "subscriptions_known")

    def __init__(self, connection: ClientConnection, client_id: str, language: str, version: int) -> None:
        super().__init__(connection, client_id, language, version)
        self.subscriptions: dict[str, Subscription] = {}
        self.subscriptions_known = False
        """False until a heartbeat has carried them (one that says "as before" to a broker that never saw the one
        before).
        """
        self.fingerprint = 0
        self.signature: Signature = frozenset()


class ConsumerGroup:
    """The members of one consumer group."""

    __slots__ = (
        "_clients",
        "_merged",
        "_signatures",
        "consume_from_where",
        "consume_type",
        "fingerprint",
        "members",
        "message_model",
        "name",
        "warned_client_ids",
        "warned_subscriptions",
    )

    def __init__(self, name: str) -> None:
        self.name = name
        self.members: dict[ClientConnection, ConsumerMember] = {}
        self.consume_type = "CONSUME_PASSIVELY"
        self.message_model = "CLUSTERING"
        self.consume_from_where = "CONSUME_FROM_LAST_OFFSET"
        self.fingerprint = 0
        """Of the newest heartbeat that carried one; 0 for none."""
        self.warned_client_ids: set[str] = set()
        self.warned_subscriptions = False
        self._clients: dict[str, list[ConsumerMember]] = {}
        self._signatures: dict[Signature, int] = {}
        self._merged: dict[str, Subscription] | None = None

    def __len__(self) -> int:
        return len(self.members)

    @property
    def client_ids(self) -> list[str]:
        """Each client id once, in the order in which they joined."""
        return list(self._clients)

    @property
    def subscriptions_differ(self) -> bool:
        """True when members want different topics, or different messages of one."""
        return len(self._signatures) > 1

    @property
    def subscriptions(self) -> dict[str, Subscription]:
        """What the group wants: of each topic the newest subscription that a member sent. Do not change it."""
        if self._merged is None:
            merged: dict[str, Subscription] = {}
            for member in self.members.values():
                for topic, subscription in member.subscriptions.items():
                    known = merged.get(topic)
                    if known is None or subscription.sub_version >= known.sub_version:
                        merged[topic] = subscription
            self._merged = merged
        return self._merged

    def subscription(self, connection: ClientConnection | None, topic: str) -> Subscription | None:
        """What the consumer on `connection` wants of `topic`; the group's newest when that consumer is not known."""
        member = self.members.get(connection) if connection is not None else None
        if member is not None and member.subscriptions_known:
            return member.subscriptions.get(topic)
        return self.subscriptions.get(topic)

    def speaker(self, client_id: str) -> ConsumerMember | None:
        """The newest connection of that client id."""
        members = self._clients.get(client_id)
        return members[-1] if members else None

    def add(self, member: ConsumerMember) -> bool:
        """Add a member; True when its client id is new to the group."""
        self.members[member.connection] = member
        same = self._clients.setdefault(member.client_id, [])
        same.append(member)
        return len(same) == 1

    def remove(self, connection: ClientConnection) -> bool:
        """Drop the member on `connection`; True when its client id has thereby left the group."""
        member = self.members.pop(connection, None)
        if member is None:
            return False
        if member.subscriptions_known:
            self._count(member.signature, -1)
        self._merged = None
        same = self._clients[member.client_id]
        same.remove(member)
        if same:
            return False
        del self._clients[member.client_id]
        self.warned_client_ids.discard(member.client_id)
        return True

    def subscribe(self, member: ConsumerMember, subscriptions: Iterable[Subscription]) -> bool:
        """Take what a heartbeat says `member` wants: newer versions replace, missing topics go. True when that
        changed anything.
        """
        wanted: dict[str, Subscription] = {}
        changed = False
        known = member.subscriptions
        for subscription in subscriptions:
            before = known.get(subscription.topic)
            if before is not None and subscription.sub_version <= before.sub_version:
                subscription = before
            elif before is None or not _same(before, subscription):
                changed = True
            wanted[subscription.topic] = subscription
        changed = changed or len(wanted) != len(known)
        if changed or not member.subscriptions_known or wanted != known:
            self._merged = None
            member.subscriptions = wanted
            if member.subscriptions_known:
                self._count(member.signature, -1)
            member.subscriptions_known = True
            member.signature = frozenset(
                (each.topic, each.expression_type or "TAG", each.sub_string) for each in wanted.values()
            )
            self._count(member.signature, 1)
        return changed

    def speakers(self) -> Iterator[ConsumerMember]:
        """The newest connection of every client id."""
        return (members[-1] for members in self._clients.values())

    def _count(self, signature: Signature, change: int) -> None:
        count = self._signatures.get(signature, 0) + change
        if count > 0:
            self._signatures[signature] = count
        else:
            self._signatures.pop(signature, None)


def _same(one: Subscription, other: Subscription) -> bool:
    return one.sub_string == other.sub_string and (one.expression_type or "TAG") == (other.expression_type or "TAG")
