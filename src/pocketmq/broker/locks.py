"""Queue locks of orderly consumers: who alone may consume a queue. Pure: the time is an argument.

A lock belongs to a client id and lasts `lock_s` since it was last taken (clients take it again every 20 s and believe
in it for 30 s). It outlives the connection on purpose: a client that reconnects still holds what it thinks it holds,
and nobody else starts on the queue while it may still be working on its messages.
"""

from collections.abc import Iterable

from pocketmq.model.message import MessageQueue

LOCKS_MAX = 1_000_000
"""Most locks kept; beyond it no new ones are granted until old ones expire."""


class QueueLocks:
    """All queue locks of a broker. Times are seconds on one monotonic clock."""

    def __init__(self, lock_s: float) -> None:
        self.lock_s = lock_s
        self._groups: dict[str, dict[MessageQueue, tuple[str, float]]] = {}
        """Of each group and queue: (client id, time it was last taken)."""
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
            elif held[0] != client_id and now - held[1] <= self.lock_s:
                continue
            locks[queue] = (client_id, now)
            granted.append(queue)
        if not locks:
            del self._groups[group]
        return granted

    def unlock(self, group: str, client_id: str, queues: Iterable[MessageQueue]) -> int:
        """Give locks back; those of other clients stay. Returns how many were given back."""
        locks = self._groups.get(group)
        if locks is None:
            return 0
        released = 0
        for queue in queues:
            held = locks.get(queue)
            if held is not None and held[0] == client_id:
                del locks[queue]
                released += 1
        self._count -= released
        if not locks:
            del self._groups[group]
        return released

    def owner(self, group: str, queue: MessageQueue, now: float) -> str | None:
        """The client id that holds the queue; None when nobody does or the lock has expired."""
        held = self._groups.get(group, {}).get(queue)
        return held[0] if held is not None and now - held[1] <= self.lock_s else None

    def group_holds_locks(self, group: str, now: float) -> bool:
        """True when some consumer of the group holds an unexpired lock, that is, when the group consumes in order."""
        locks = self._groups.get(group)
        return locks is not None and any(now - taken <= self.lock_s for _, taken in locks.values())

    def expire(self, now: float) -> int:
        """Forget expired locks; returns how many. Only memory depends on it: an expired lock binds nobody."""
        expired = 0
        for group, locks in list(self._groups.items()):
            old = [queue for queue, (_, taken) in locks.items() if now - taken > self.lock_s]
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
