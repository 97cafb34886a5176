"""The consumer groups of a broker: their settings, what they may not read, and how they are to ask for messages."""

from collections.abc import Iterator

import msgspec

from pocketmq.model.config import DataVersion, GroupConfig
from pocketmq.views.journal import Entry, GroupDelete, GroupForbidden, GroupPut, RequestModePut, TopicDelete


class _State(msgspec.Struct, array_like=True):
    groups: list[GroupConfig]
    version: DataVersion
    forbidden: dict[str, list[str]] = {}
    request_modes: dict[str, dict[str, RequestModePut]] = {}


_decoder = msgspec.msgpack.Decoder(_State)


class GroupTable:
    """Group name -> settings. A `GroupConfig` in the table is never changed in place, only replaced."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupConfig] = {}
        self.data_version = DataVersion()
        self._forbidden: dict[str, list[str]] = {}
        self._request_modes: dict[str, dict[str, RequestModePut]] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def __contains__(self, group: str) -> bool:
        return group in self._groups

    def __iter__(self) -> Iterator[GroupConfig]:
        return iter(self._groups.values())

    def get(self, group: str) -> GroupConfig | None:
        """Settings of one group, or None when it was never created."""
        return self._groups.get(group)

    def names(self) -> list[str]:
        """All group names, sorted."""
        return sorted(self._groups)

    def is_forbidden(self, group: str, topic: str) -> bool:
        """Whether somebody took the topic away from the group."""
        return bool(self._forbidden) and topic in self._forbidden.get(group, ())

    def forbidden(self) -> dict[str, list[str]]:
        """Group -> topics that it may not read."""
        return {group: list(topics) for group, topics in self._forbidden.items()}

    def request_mode(self, topic: str, group: str) -> RequestModePut | None:
        """How the group is to ask for the topic; None when nobody said."""
        return self._request_modes.get(topic, {}).get(group)

    def request_modes(self) -> dict[str, dict[str, RequestModePut]]:
        """Topic -> group -> how the group is to ask for the topic."""
        return {topic: dict(groups) for topic, groups in self._request_modes.items()}

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if isinstance(entry, GroupPut):
            self._groups[entry.config.group_name] = entry.config
        elif isinstance(entry, GroupDelete):
            self._groups.pop(entry.group, None)
            self._forbidden.pop(entry.group, None)
            for groups in self._request_modes.values():
                groups.pop(entry.group, None)
        elif isinstance(entry, GroupForbidden):
            self._forbid(entry)
        elif isinstance(entry, RequestModePut):
            self._request_modes.setdefault(entry.topic, {})[entry.group] = entry
            return
        elif isinstance(entry, TopicDelete):
            self._request_modes.pop(entry.topic, None)
            return
        else:
            return
        version = self.data_version
        self.data_version = DataVersion(version.counter + 1, version.state_version, entry.timestamp)

    def _forbid(self, entry: GroupForbidden) -> None:
        topics = self._forbidden.setdefault(entry.group, [])
        if entry.topic in topics:
            topics.remove(entry.topic)
        if not entry.readable:
            topics.append(entry.topic)
        if not topics:
            del self._forbidden[entry.group]

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        return msgspec.msgpack.encode(
            _State(list(self._groups.values()), self.data_version, self._forbidden, self._request_modes)
        )

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        self._groups = {config.group_name: config for config in state.groups}
        self.data_version = state.version
        self._forbidden = state.forbidden
        self._request_modes = state.request_modes
