"""Stored states: the newest that is whole is loaded, and a crash never leaves none."""

import pytest

from pocketmq.log.disk import MemoryDisk
from pocketmq.log.snapshots import HEADER, SnapshotStore
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings


@pytest.fixture
def folder(settings: StoreSettings) -> str:
    return f"{settings.data_dir}/views"


@pytest.fixture
def snapshots(disk: Disk, folder: str) -> SnapshotStore:
    return SnapshotStore(disk, folder)


def test_what_was_saved_last_is_loaded(snapshots: SnapshotStore) -> None:
    assert snapshots.load("topics") is None
    snapshots.save("topics", 10, b"ten")
    snapshots.save("topics", 20, b"twenty")
    snapshots.save("groups", 15, b"")
    assert snapshots.load("topics") == (20, b"twenty")
    assert snapshots.load("groups") == (15, b"")


def test_the_same_position_can_be_saved_again(snapshots: SnapshotStore) -> None:
    snapshots.save("topics", 10, b"first")
    snapshots.save("topics", 10, b"second")
    assert snapshots.load("topics") == (10, b"second")


async def test_saving_beside_the_loop_is_the_same(snapshots: SnapshotStore) -> None:
    await snapshots.save_beside("topics", 10, b"ten")
    assert snapshots.load("topics") == (10, b"ten")


def test_two_are_kept(snapshots: SnapshotStore, disk: Disk, folder: str) -> None:
    for position in range(1, 6):
        snapshots.save("topics", position, b"x")
    assert snapshots.positions("topics") == [4, 5]
    assert len(disk.list_folder(folder)) == 2


@pytest.mark.parametrize("at", [0, 8, 16, 24, HEADER.size, -1])
def test_a_damaged_one_is_passed_over_for_the_older(snapshots: SnapshotStore, disk: Disk, folder: str, at: int) -> None:
    snapshots.save("topics", 10, b"the older state")
    snapshots.save("topics", 20, b"the newer state")
    file = disk.open(f"{folder}/topics-{20:020d}")
    offset = at % file.size
    file.write_at(offset, bytes([file.read_at(offset, 1)[0] ^ 1]))
    file.close()
    assert snapshots.load("topics") == (10, b"the older state")


@pytest.mark.parametrize("size", [0, 5, HEADER.size, HEADER.size + 3])
def test_one_that_is_cut_off_is_passed_over(snapshots: SnapshotStore, disk: Disk, folder: str, size: int) -> None:
    snapshots.save("topics", 10, b"the older state")
    snapshots.save("topics", 20, b"the newer state")
    file = disk.open(f"{folder}/topics-{20:020d}")
    file.resize(size)
    file.close()
    assert snapshots.load("topics") == (10, b"the older state")


def test_one_that_covers_more_than_there_is_can_be_passed_over(snapshots: SnapshotStore) -> None:
    snapshots.save("topics", 10, b"ten")
    snapshots.save("topics", 20, b"twenty")
    assert snapshots.load("topics", position_max=19) == (10, b"ten")
    assert snapshots.load("topics", position_max=5) is None


def test_what_a_crash_left_behind_is_not_taken_for_a_state(snapshots: SnapshotStore, disk: Disk, folder: str) -> None:
    snapshots.save("topics", 10, b"ten")
    disk.open(f"{folder}/topics.new", create_size=100).close()
    disk.open(f"{folder}/topics-notes", create_size=100).close()
    assert snapshots.load("topics") == (10, b"ten")
    snapshots.save("topics", 20, b"twenty")
    assert snapshots.load("topics") == (20, b"twenty")


def test_a_full_disk_leaves_the_old_state(folder: str) -> None:
    disk = MemoryDisk(capacity_bytes=500)
    snapshots = SnapshotStore(disk, folder)
    snapshots.save("topics", 10, b"ten")
    with pytest.raises(OSError, match="No space"):
        snapshots.save("topics", 20, b"x" * 1000)
    assert snapshots.load("topics") == (10, b"ten")
