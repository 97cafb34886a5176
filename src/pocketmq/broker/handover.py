"""Queues that change hands: who reads which queue of a group now, and telling those who wait for one.

Two tables, asked with the same requests:

    locks   of orderly consumers, as every RocketMQ client knows them. That a group holds locks also changes where its
            retries go, so nobody else may take one. They outlive the client, for as long as they are valid.
    claims  of all other consumers that know of them. A consumer claims a queue before it reads it and returns the
            claim when it has stored its position, so that a planned change of hands delivers nothing twice. Clients
            of other make take none and are hindered by none: a pull asks for no claim.

A claim is valid for a minute and renewed every 20 s. It ends at once when its client says goodbye to the group, and
`GRACE_S` after the last connection of its client ended: long enough to reconnect, and short enough for those who take
over from a process that was killed.

Whoever was refused a queue is told (code 40) when it is free, since asking again after a while would make each change
of hands take that while.
"""

from collections.abc import Callable, Iterable

from pocketmq.broker.clients import ClientRegistry
from pocketmq.broker.locks import Freed, QueueLocks
from pocketmq.broker.membership import ConsumerMember
from pocketmq.model.message import MessageQueue
from pocketmq.model.seams import Cancellable, Clock

CLAIM_S = 60.0
GRACE_S = 1.0

Tell = Callable[[ConsumerMember, str], object]
"""Tells one member that a queue of the group is free; must not raise for a connection that is closing."""


class Handover:
    """Locks and claims of all groups."""

    def __init__(self, clock: Clock, clients: ClientRegistry, locks: QueueLocks, *, tell: Tell) -> None:
        self._clock = clock
        self._clients = clients
        self._tell = tell
        self.locks = locks
        self.claims = QueueLocks(CLAIM_S)
        self._gone: dict[tuple[str, str], Cancellable] = {}
        """(group, client id) of clients whose connection ended just now, and when their claims end."""

    # -- requests ----------------------------------------------------------------------------------------------------

    def take(self, group: str, client_id: str, queues: Iterable[MessageQueue], *, claim: bool) -> list[MessageQueue]:
        """Take or renew; returns what the client has now. Who is refused is told when it is worth asking again."""
        table = self.claims if claim else self.locks
        return table.lock(group, client_id, queues, self._clock.monotonic())

    def give_back(self, group: str, client_id: str, queues: Iterable[MessageQueue], *, claim: bool) -> None:
        """The client reads these queues no more, or does not want them any more."""
        table = self.claims if claim else self.locks
        self._tell_waiting(group, table.unlock(group, client_id, queues))

    # -- clients that come and go ------------------------------------------------------------------------------------

    def joined(self, group: str, client_id: str) -> None:
        """A client came to the group, or came back: it still has what it had."""
        timer = self._gone.pop((group, client_id), None)
        if timer is not None:
            timer.cancel()

    def left(self, group: str, client_id: str, said_goodbye: bool) -> None:
        """A client left the group."""
        if said_goodbye:
            self._end_claims(group, client_id)
        elif (group, client_id) not in self._gone:
            self._gone[group, client_id] = self._clock.call_later(GRACE_S, self._end_claims, group, client_id)

    def _end_claims(self, group: str, client_id: str) -> None:
        self.joined(group, client_id)
        self._tell_waiting(group, self.claims.unlock_all(group, client_id))

    def _tell_waiting(self, group: str, freed: Freed) -> None:
        for client_id in freed.waiting:
            member = self._clients.consumer(group, client_id)
            if member is not None:
                self._tell(member, group)

    # -- housekeeping ------------------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Forget what has expired. Call it every few seconds."""
        now = self._clock.monotonic()
        self.locks.expire(now)
        self.claims.expire(now)

    def close(self) -> None:
        """Forget the clients that have gone."""
        for timer in self._gone.values():
            timer.cancel()
        self._gone.clear()
