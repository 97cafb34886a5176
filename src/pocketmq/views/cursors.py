"""How far each group has come in each queue: a fold over commits and resets.

Theory of operation. A cursor is the next offset that a group wants from a queue. Consumers commit cursors again and
again, late and out of order, over connections that may be older than others: so a commit moves a cursor only forwards
(`CursorsCommitted`). Moving it back is a decision of a person or of the broker, and has an entry of its own
(`CursorReset`). An announced reset stays pending until a consumer of the queue was told of it (`ResetTaken`); while it
is pending, commits of that queue are ignored, since they come from consumers that do not know of it yet.

Commits may be applied here before they are in the log (`commit`): folding them in again is harmless.
"""

from collections.abc import Iterator

import msgspec

from pocketmq.views.journal import (
    Cursor,
    CursorReset,
    CursorsCommitted,
    Entry,
    GroupOffsetsDropped,
    ResetTaken,
    TopicDelete,
)


class _State(msgspec.Struct, array_like=True):
    offsets: dict[str, dict[str, dict[int, int]]]
    resets: list[tuple[str, str, int, int]]


_decoder = msgspec.msgpack.Decoder(_State)


class Cursors:
    """(group, topic, queue id) -> committed offset."""

    def __init__(self) -> None:
        self._offsets: dict[str, dict[str, dict[int, int]]] = {}
        self._resets: dict[tuple[str, str, int], int] = {}

    def __len__(self) -> int:
        return sum(len(queues) for topics in self._offsets.values() for queues in topics.values())

    def get(self, group: str, topic: str, queue_id: int) -> int | None:
        """The committed offset, or None when the group never committed there."""
        topics = self._offsets.get(group)
        if topics is None:
            return None
        queues = topics.get(topic)
        return None if queues is None else queues.get(queue_id)

    def commit(self, group: str, topic: str, queue_id: int, offset: int) -> bool:
        """Move one cursor forwards; True when that changed it."""
        if self._resets and (group, topic, queue_id) in self._resets:
            return False
        queues = self._offsets.setdefault(group, {}).setdefault(topic, {})
        stored = queues.get(queue_id)
        if stored is not None and stored >= offset:
            return False
        queues[queue_id] = offset
        return True

    def pending_reset(self, group: str, topic: str, queue_id: int) -> int | None:
        """The target of an announced reset that no consumer has been told of yet."""
        return self._resets.get((group, topic, queue_id)) if self._resets else None

    def groups(self) -> list[str]:
        """Groups that have any cursor, sorted."""
        return sorted(group for group, topics in self._offsets.items() if topics)

    def topics_of(self, group: str) -> list[str]:
        """Topics in which the group has a cursor, sorted."""
        return sorted(self._offsets.get(group, ()))

    def groups_of(self, topic: str) -> list[str]:
        """Groups that have a cursor in the topic, sorted."""
        return sorted(group for group, topics in self._offsets.items() if topic in topics)

    def queues_of(self, group: str, topic: str) -> dict[int, int]:
        """Queue id -> offset of one group in one topic (a copy)."""
        return dict(self._offsets.get(group, {}).get(topic, {}))

    def listing(self) -> Iterator[Cursor]:
        """Every cursor, by group, topic and queue."""
        for group in self.groups():
            for topic, queues in sorted(self._offsets[group].items()):
                for queue_id, offset in sorted(queues.items()):
                    yield Cursor(group, topic, queue_id, offset)

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if isinstance(entry, CursorsCommitted):
            for cursor in entry.cursors:
                self.commit(cursor.group, cursor.topic, cursor.queue_id, cursor.offset)
        elif isinstance(entry, CursorReset):
            cursor = entry.cursor
            self._offsets.setdefault(cursor.group, {}).setdefault(cursor.topic, {})[cursor.queue_id] = cursor.offset
            key = (cursor.group, cursor.topic, cursor.queue_id)
            if entry.announce:
                self._resets[key] = cursor.offset
            else:
                self._resets.pop(key, None)
        elif isinstance(entry, ResetTaken):
            self._resets.pop((entry.group, entry.topic, entry.queue_id), None)
        elif isinstance(entry, GroupOffsetsDropped):
            self._offsets.pop(entry.group, None)
            self._resets = {key: offset for key, offset in self._resets.items() if key[0] != entry.group}
        elif isinstance(entry, TopicDelete):
            for topics in self._offsets.values():
                topics.pop(entry.topic, None)
            self._resets = {key: offset for key, offset in self._resets.items() if key[1] != entry.topic}

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        resets = [(*key, offset) for key, offset in self._resets.items()]
        return msgspec.msgpack.encode(_State(self._offsets, resets))

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        self._offsets = state.offsets
        self._resets = {(group, topic, queue_id): offset for group, topic, queue_id, offset in state.resets}
