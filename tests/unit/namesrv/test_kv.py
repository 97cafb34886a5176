"""The key-value table: what was put is there after a power loss, and the file is Java's."""

import pytest

from pocketmq.model.errors import StoreCorruptError, StoreError
from pocketmq.namesrv.kv import KvTable
from pocketmq.testing import SimulatedDisk

PATH = "data/namesrv/kvConfig.json"


def file_text(disk: SimulatedDisk) -> bytes:
    file = disk.open(PATH)
    return file.read_at(0, file.size)


def reopened(disk: SimulatedDisk) -> KvTable:
    table = KvTable(disk, PATH)
    table.load()
    return table


def test_values_are_put_read_listed_and_deleted() -> None:
    table = KvTable()
    assert table.get("ns", "k") is None and table.namespace("ns") is None
    table.put("ns", "k", "v")
    table.put("ns", "k", "w")
    table.put("ns", "l", "x")
    assert table.get("ns", "k") == "w" and table.namespace("ns") == {"k": "w", "l": "x"}
    table.delete("ns", "k")
    table.delete("ns", "k")
    table.delete("other", "k")
    assert table.get("ns", "k") is None and table.namespace("ns") == {"l": "x"}
    assert table.namespace("other") is None


def test_the_file_has_the_shape_of_javas() -> None:
    disk = SimulatedDisk()
    KvTable(disk, PATH).put("ORDER_TOPIC_CONFIG", "t", "broker-a:4")
    assert file_text(disk) == b'{"configTable":{"ORDER_TOPIC_CONFIG":{"t":"broker-a:4"}}}'
    assert reopened(disk).get("ORDER_TOPIC_CONFIG", "t") == "broker-a:4"


def test_every_change_replaces_the_file_whole() -> None:
    disk = SimulatedDisk()
    table = KvTable(disk, PATH)
    table.put("ns", "k", "a long value " * 100)
    table.put("ns", "k", "v")
    assert reopened(disk).namespace("ns") == {"k": "v"}
    table.delete("ns", "k")
    assert reopened(disk).namespace("ns") == {}


def test_a_change_that_cannot_be_stored_is_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = SimulatedDisk()
    table = KvTable(disk, PATH)
    table.put("ns", "k", "v")

    def refuse(path: str, target: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(disk, "rename", refuse)
    with pytest.raises(StoreError, match="No space left"):
        table.put("ns", "k", "w")
    assert table.get("ns", "k") == "v" and reopened(disk).get("ns", "k") == "v"


def test_a_damaged_file_is_reported_not_replaced() -> None:
    disk = SimulatedDisk()
    KvTable(disk, PATH).put("ns", "k", "v")
    disk.open(PATH).write_at(0, b"garbage")
    with pytest.raises(StoreCorruptError, match=PATH):
        reopened(disk)
