"""The key-value table of a name server: namespace -> key -> value, kept in one small JSON file.

The file has the shape of RocketMQ's kvConfig.json, so that one can be moved over:
`{"configTable": {"ORDER_TOPIC_CONFIG": {"topic": "broker-a:4;broker-b:4"}}}`.
"""

from posixpath import dirname

import msgspec

from pocketmq.model.errors import StoreCorruptError, StoreError
from pocketmq.model.seams import Disk

Namespaces = dict[str, dict[str, str]]


class _Stored(msgspec.Struct, rename={"config_table": "configTable"}):
    config_table: Namespaces = {}


class KvTable:
    """A change is in the file, durably, before the call returns; one that cannot be stored is undone."""

    def __init__(self, disk: Disk | None = None, path: str = "") -> None:
        self._disk = disk if path else None
        self._path = path
        self._table: Namespaces = {}

    def load(self) -> None:
        """Read the file, if there is one. Raises StoreCorruptError, OSError."""
        if self._disk is None or not self._disk.exists(self._path):
            return
        file = self._disk.open(self._path)
        try:
            data = file.read_at(0, file.size)
        finally:
            file.close()
        try:
            self._table = msgspec.json.decode(data, type=_Stored).config_table
        except msgspec.DecodeError as error:
            raise StoreCorruptError(
                f"the key-value table {self._path} cannot be read: {error}; mend or remove the file", cause=error
            ) from error

    def get(self, namespace: str, key: str) -> str | None:
        """The value, or None."""
        return self._table.get(namespace, {}).get(key)

    def namespace(self, namespace: str) -> dict[str, str] | None:
        """All keys of a namespace, or None when nothing was ever put into it."""
        return self._table.get(namespace)

    def put(self, namespace: str, key: str, value: str) -> None:
        """Set a value. Raises StoreError when it cannot be stored."""
        changed = {**self._table, namespace: {**self._table.get(namespace, {}), key: value}}
        self._replace(changed)

    def delete(self, namespace: str, key: str) -> None:
        """Remove a key; fine when it is not there. Raises StoreError."""
        if self.get(namespace, key) is None:
            return
        kept = {name: value for name, value in self._table[namespace].items() if name != key}
        self._replace({**self._table, namespace: kept})

    def _replace(self, table: Namespaces) -> None:
        if self._disk is not None:
            try:
                self._store(self._disk, msgspec.json.encode(_Stored(table)))
            except OSError as error:
                raise StoreError(f"the key-value table cannot be stored in {self._path}: {error}") from error
        self._table = table

    def _store(self, disk: Disk, data: bytes) -> None:
        folder = dirname(self._path) or "."
        beside = self._path + ".new"
        disk.make_folder(folder)
        disk.remove(beside)
        file = disk.open(beside, create_size=len(data))
        try:
            file.write_at(0, data)
            disk.sync_now(file)
        finally:
            file.close()
        disk.rename(beside, self._path)
        disk.sync_folder(folder)
