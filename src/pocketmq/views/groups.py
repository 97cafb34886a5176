"""The consumer groups of a broker: a fold over `GroupPut` and `GroupDelete`."""

from collections.abc import Iterator

import msgspec

from pocketmq.model.config import DataVersion, GroupConfig
from pocketmq.views.journal import Entry, GroupDelete, GroupPut


class _State(msgspec.Struct, array_like=True):
    groups: list[GroupConfig]
    version: DataVersion


_decoder = msgspec.msgpack.Decoder(_State)


class GroupTable:
    """Group name -> settings. A `GroupConfig` in the table is never changed in place, only replaced."""

    def __init__(self) -> None:
        self._groups: dict[str, GroupConfig] = {}
        self.data_version = DataVersion()

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

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if isinstance(entry, GroupPut):
            self._groups[entry.config.group_name] = entry.config
        elif isinstance(entry, GroupDelete):
            self._groups.pop(entry.group, None)
        else:
            return
        version = self.data_version
        self.data_version = DataVersion(version.counter + 1, version.state_version, entry.timestamp)

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        return msgspec.msgpack.encode(_State(list(self._groups.values()), self.data_version))

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        self._groups = {config.group_name: config for config in state.groups}
        self.data_version = state.version
