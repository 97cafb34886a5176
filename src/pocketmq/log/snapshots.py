"""Stored states of the views: each says which position of the log it covers.

    "PMQSNAP1" | int64 position | int64 length of the payload | uint32 checksum of all but itself | payload

A state is written beside, made durable, renamed to `<name>-<20-digit position>`, and the folder made durable; the two
newest are kept. One that fails its checksum is passed over for the older one: that costs a longer replay, nothing else.
"""

import struct
from binascii import crc32

from pocketmq.log.disk import sync_folder
from pocketmq.log.segments import position_name
from pocketmq.model.seams import Disk, DiskFile

MAGIC = b"PMQSNAP1"
HEADER = struct.Struct("<8sqqI")
KEPT = 2
TEMPORARY = ".new"
_WRITE_BYTES = 4 * 1024 * 1024


class SnapshotStore:
    """The stored states in one folder, each under a name."""

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        disk.make_folder(folder)

    def save(self, name: str, position: int, payload: bytes) -> None:
        """Store the state that covers the log up to `position`, which must be durable. Blocks. Raises OSError."""
        file = self._begin(name, position, payload)
        try:
            self._disk.sync_now(file)
        finally:
            file.close()
        self._put_in_place(name, position)
        self._disk.sync_folder(self._folder)
        self._remove_old(name)

    async def save_beside(self, name: str, position: int, payload: bytes) -> None:
        """`save`, waiting for the disk beside the event loop."""
        file = self._begin(name, position, payload)
        try:
            await self._disk.sync(file)
        finally:
            file.close()
        self._put_in_place(name, position)
        await sync_folder(self._disk, self._folder)
        self._remove_old(name)

    def load(self, name: str, *, position_max: int | None = None) -> tuple[int, bytes] | None:
        """(position, payload) of the newest state that is whole and covers no more than `position_max`, or None."""
        for file_name in reversed(self._names(name)):
            position = int(file_name[len(name) + 1 :])
            if position_max is None or position <= position_max:
                payload = self._read(file_name, position)
                if payload is not None:
                    return position, payload
        return None

    def positions(self, name: str) -> list[int]:
        """Positions of the states stored under a name, rising; some may turn out to be damaged."""
        return [int(file_name[len(name) + 1 :]) for file_name in self._names(name)]

    def _begin(self, name: str, position: int, payload: bytes) -> DiskFile:
        path = f"{self._folder}/{name}{TEMPORARY}"
        self._disk.remove(path)
        head = HEADER.pack(MAGIC, position, len(payload), 0)
        head = head[:-4] + crc32(payload, crc32(head[:-4])).to_bytes(4, "little")
        file = self._disk.open(path, create_size=len(head) + len(payload))
        try:
            file.write_at(0, head)
            for start in range(0, len(payload), _WRITE_BYTES):
                file.write_at(len(head) + start, payload[start : start + _WRITE_BYTES])
        except OSError:
            file.close()
            self._disk.remove(path)
            raise
        return file

    def _put_in_place(self, name: str, position: int) -> None:
        target = f"{self._folder}/{name}-{position_name(position)}"
        self._disk.rename(f"{self._folder}/{name}{TEMPORARY}", target)

    def _remove_old(self, name: str) -> None:
        for file_name in self._names(name)[:-KEPT]:
            self._disk.remove(f"{self._folder}/{file_name}")

    def _names(self, name: str) -> list[str]:
        prefix = name + "-"
        names = self._disk.list_folder(self._folder)
        return [found for found in names if found.startswith(prefix) and found[len(prefix) :].isdigit()]

    def _read(self, file_name: str, position: int) -> bytes | None:
        file = self._disk.open(f"{self._folder}/{file_name}")
        try:
            data = file.read_at(0, file.size)
        finally:
            file.close()
        if len(data) < HEADER.size:
            return None
        magic, stored_position, length, crc = HEADER.unpack_from(data)
        payload = data[HEADER.size :]
        if magic != MAGIC or stored_position != position or length != len(payload):
            return None
        return payload if crc32(payload, crc32(data[: HEADER.size - 4])) == crc else None
