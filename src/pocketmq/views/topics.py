"""The topics of a broker: a fold over `TopicPut` and `TopicDelete`."""

from collections.abc import Iterator

import msgspec

from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.views.journal import Entry, TopicDelete, TopicPut


class _State(msgspec.Struct, array_like=True):
    topics: list[TopicConfig]
    version: DataVersion


_decoder = msgspec.msgpack.Decoder(_State)


class TopicTable:
    """Topic name -> settings. A `TopicConfig` in the table is never changed in place, only replaced."""

    def __init__(self) -> None:
        self._topics: dict[str, TopicConfig] = {}
        self.data_version = DataVersion()
        """Changes with every change of the table; replaced, never changed in place."""

    def __len__(self) -> int:
        return len(self._topics)

    def __contains__(self, topic: str) -> bool:
        return topic in self._topics

    def __iter__(self) -> Iterator[TopicConfig]:
        return iter(self._topics.values())

    def get(self, topic: str) -> TopicConfig | None:
        """Settings of one topic, or None when there is no such topic."""
        return self._topics.get(topic)

    def names(self) -> list[str]:
        """All topic names, sorted."""
        return sorted(self._topics)

    def apply(self, entry: Entry) -> None:
        """Fold one entry in; entries of other views have no effect."""
        if isinstance(entry, TopicPut):
            self._topics[entry.config.topic_name] = entry.config
        elif isinstance(entry, TopicDelete):
            self._topics.pop(entry.topic, None)
        else:
            return
        version = self.data_version
        self.data_version = DataVersion(version.counter + 1, version.state_version, entry.timestamp)

    def snapshot(self) -> bytes:
        """The whole state, for `restore`."""
        return msgspec.msgpack.encode(_State(list(self._topics.values()), self.data_version))

    def restore(self, data: bytes | memoryview) -> None:
        """Replace the whole state. Raises `msgspec.MsgspecError` when `data` is no snapshot."""
        state = _decoder.decode(data)
        self._topics = {config.topic_name: config for config in state.topics}
        self.data_version = state.version
