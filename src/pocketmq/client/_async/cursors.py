"""Where positions are kept: at the broker (the default), or in a local file (broadcasting)."""

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path

from pocketmq.client._async.offsets import Offsets
from pocketmq.client.positions_file import decode_positions, encode_positions
from pocketmq.model.errors import DecodeError, PocketMQError, StoreCorruptError
from pocketmq.model.message import MessageQueue


class BrokerCursors:
    """Positions at the broker of each queue, where operators see them and every consumer of the group finds them."""

    def __init__(self, offsets: Offsets) -> None:
        self._offsets = offsets

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        """The stored position, or None. Raises PocketMQError."""
        return await self._offsets.stored(group, queue)

    async def store(self, group: str, positions: Mapping[MessageQueue, int], *, final: bool) -> None:
        """Store positions, with an answer when they are final. Raises the first error after all were tried."""
        results = await asyncio.gather(
            *(self._offsets.store(group, queue, offset, certain=final) for queue, offset in positions.items()),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result


class FileCursors:
    """Positions in a file of this machine, in the layout of Java clients: `<folder>/<group>/offsets.json`.

    `folder` is by default `~/.rocketmq_offsets/<host>@<instance>`; two processes that broadcast to the same group on
    one machine need different instances. Small and rarely written; it is written beside and renamed.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = Path(folder)
        self._tables: dict[str, dict[MessageQueue, int]] = {}

    def _path(self, group: str) -> Path:
        return self._folder / group / "offsets.json"

    async def load(self, group: str, queue: MessageQueue) -> int | None:
        """The stored position, or None. Raises StoreCorruptError when neither the file nor its copy can be read."""
        table = self._tables.get(group)
        if table is None:
            table = self._tables[group] = self._read(group)
        return table.get(queue)

    def _read(self, group: str) -> dict[MessageQueue, int]:
        path = self._path(group)
        failure: Exception | None = None
        for candidate in (path, path.with_suffix(".json.bak")):
            try:
                return decode_positions(candidate.read_bytes())
            except FileNotFoundError:
                continue
            except (OSError, DecodeError) as error:
                failure = error
        if failure is not None:
            raise StoreCorruptError(f"the positions in {path} cannot be read; repair or remove it", cause=failure)
        return {}

    async def store(self, group: str, positions: Mapping[MessageQueue, int], *, final: bool) -> None:
        """Write the group's file anew. Raises PocketMQError."""
        table = self._tables.setdefault(group, {})
        table.update(positions)
        try:
            self._write(self._path(group), encode_positions(table))
        except OSError as error:
            raise PocketMQError(f"positions cannot be written to {self._path(group)}: {error}", cause=error) from error

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_suffix(".json.tmp")
        with beside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            path.replace(path.with_suffix(".json.bak"))
        beside.replace(path)
