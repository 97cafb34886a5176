"""Who alone may read a queue. Pure: the time is an argument.

A lock belongs to a client id and lasts `lock_s` since it was last taken. A broker keeps two tables of this kind: the
locks of orderly consumers, and the claims of the others, which make a queue change hands in good order (see
`pocketmq.broker.handover`).

A lock outlives the connection on purpose: a client that reconnects still holds what it thinks it holds, and nobody
else starts on the queue while it may still be working on its messages.

Who is refused a lock is remembered, so that whoever frees the queue knows whom to tell.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pocketmq.model.message import MessageQueue

LOCKS_MAX = 1_000_000
"""Most locks kept; beyond it no new ones are granted until old ones expire."""
WAITING_MAX = 64
"""Most clients remembered as waiting for one queue; more than that have to ask again by themselves."""


class Freed(NamedTuple):
    """What giving locks back did."""

    queues: int
    """How many queues nobody holds any more."""
    waiting: set[str]
    """Client ids that were refused one of them since."""


class _Held:
    __slots__ = ("client_id", "taken", "waiting")

    def __init__(self, client_id: str, taken: float) -> None:
        self.client_id = client_id
        self.taken = taken
        self.waiting: set[str] | None = None


class QueueLocks:
    """All locks of one kind of a broker. Times are seconds on one monotonic clock."""

    def __init__(self, lock_s: float) -> None:
        self.lock_s = lock_s
        self._groups: dict[str, dict[MessageQueue, _Held]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def lock(self, group: str, client_id: str, queues: Iterable[MessageQueue], now: float) -> list[MessageQueue]:
        """Take or renew locks.

        Returns the queues that `client_id` holds now; a queue that another holds is left out.
        """
        locks = self._groups.setdefault(group, {})
        granted: list[MessageQueue] = []
        for queue in queues:
            held = locks.get(queue)
            if held is None:
                if self._count >= LOCKS_MAX:
                    continue
                self._count += 1
                locks[queue] = _Held(client_id, now)
            elif held.client_id == client_id:
                held.taken = now
            elif now - held.taken > self.lock_s:
                held.client_id, held.taken = client_id, now
                if held.waiting is not None:
                    held.waiting.discard(client_id)
            else:
                if held.waiting is None:
                    held.waiting = set()
                if len(held.waiting) < WAITING_MAX:
                    held.waiting.add(client_id)
                continue
            granted.append(queue)
        if not locks:
            del self._groups[group]
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> Freed:
        """Give locks back; those of other clients stay, but `client_id` waits for them no more."""
        locks = self._groups.get(group)
        freed, waiting = 0, set[str]()
        if locks is None:
            return Freed(0, waiting)
        for queue in queues:
            held = locks.get(queue)
            if held is None:
                continue
            if held.client_id == client_id:
                del locks[queue]
                freed += 1
                waiting |= held.waiting or set()
            elif held.waiting is not None:
                held.waiting.discard(client_id)
        self._count -= freed
        if not locks:
            del self._groups[group]
        return Freed(freed, waiting)

    def unlock_all(self, group: str, client_id: str) -> Freed:
        """Give back all that a client holds in a group."""
        return self.unlock(group, client_id, list(self._groups.get(group, ())))

    def owner(self, group: str, queue: MessageQueue, now: float) -> str | None:
        """The client id that holds the queue; None when nobody does or the lock has expired."""
        held = self._groups.get(group, {}).get(queue)
        return held.client_id if held is not None and now - held.taken <= self.lock_s else None

    def group_holds_locks(self, group: str, now: float) -> bool:
        """True when some consumer of the group holds an unexpired lock, that is, when the group consumes in order."""
        locks = self._groups.get(group)
        return locks is not None and any(now - held.taken <= self.lock_s for held in locks.values())

    def expire(self, now: float) -> int:
        """Forget expired locks; returns how many. Only memory depends on it: an expired lock binds nobody."""
        expired = 0
        for group, locks in list(self._groups.items()):
            old = [queue for queue, held in locks.items() if now - held.taken > self.lock_s]
            for queue in old:
                del locks[queue]
            expired += len(old)
            if not locks:
                del self._groups[group]
        self._count -= expired
        return expired

    def forget_group(self, group: str) -> None:
        """The group was deleted."""
        self._count -= len(self._groups.pop(group, {}))
