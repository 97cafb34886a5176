"""Tells the members of a consumer group that it changed, so that they share out its queues anew.

However many members come or go in one turn of the event loop, each member gets one notice. A large group is told less
often, so that n members joining one after the other do not cost n * n notices: notices to one group are at least
`members * MEMBER_COST_S` apart, and the last change is always told.
"""

import asyncio
from collections.abc import Callable

from pocketmq.broker.membership import ConsumerGroup, ConsumerMember
from pocketmq.model.seams import Cancellable, Clock

MEMBER_COST_S = 0.0001
GAP_S_MAX = 1.0
GROUPS_REMEMBERED_MAX = 10_000

Send = Callable[[ConsumerMember, str], object]
"""Sends the notice for a group to one member; must not raise for a connection that is closing."""


class ConsumerNotices:
    """Collects changes, and sends one notice per member and burst."""

    def __init__(self, clock: Clock, *, wanted: Callable[[str], bool], send: Send) -> None:
        """
        Args:
            wanted: whether the settings of the group ask for notices.
            send: how a member is told; chosen by the protocol that it speaks.
        """
        self._clock = clock
        self._wanted = wanted
        self._send = send
        self._pending: dict[str, ConsumerGroup] = {}
        self._last_sent: dict[str, float] = {}
        self._soon: asyncio.Handle | None = None
        self._delayed: dict[str, Cancellable] = {}
        self._delayed_groups: dict[str, ConsumerGroup] = {}
        self._closed = False

    def group_changed(self, group: ConsumerGroup, membership: bool) -> None:
        """Note a change.

        `membership` is False when only subscriptions changed: that does not concern broadcasting groups.
        """
        if self._closed or (not membership and group.message_model == "BROADCASTING"):
            return
        self._pending[group.name] = group
        if self._soon is None:
            self._soon = asyncio.get_running_loop().call_soon(self._flush)

    def close(self) -> None:
        """Send nothing any more."""
        self._closed = True
        self._pending.clear()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        for call in self._delayed.values():
            call.cancel()
        self._delayed.clear()
        self._delayed_groups.clear()

    def _flush(self) -> None:
        self._soon = None
        pending, self._pending = self._pending, {}
        now = self._clock.monotonic()
        for name, group in pending.items():
            if name in self._delayed:
                self._delayed_groups[name] = group
                continue
            if not group.members or not self._wanted(name):
                continue
            gap = min(len(group) * MEMBER_COST_S, GAP_S_MAX)
            wait = self._last_sent.get(name, now - gap) + gap - now
            if wait > 0:
                self._delayed_groups[name] = group
                self._delayed[name] = self._clock.call_later(wait, self._send_delayed, name)
            else:
                self._tell(group, now)

    def _send_delayed(self, name: str) -> None:
        del self._delayed[name]
        self._tell(self._delayed_groups.pop(name), self._clock.monotonic())

    def _tell(self, group: ConsumerGroup, now: float) -> None:
        if len(self._last_sent) > GROUPS_REMEMBERED_MAX:
            self._last_sent = {name: sent for name, sent in self._last_sent.items() if now - sent < GAP_S_MAX}
        self._last_sent[group.name] = now
        for member in list(group.members.values()):
            self._send(member, group.name)
