"""Both disks keep the contract of the seam."""

import errno
from pathlib import Path

import pytest

from pocketmq.log.disk import MemoryDisk, RealDisk, sync_folder
from pocketmq.model.seams import Disk


@pytest.fixture
def folder(tmp_path: Path, disk: Disk) -> str:
    path = str(tmp_path / "a" / "b")
    disk.make_folder(path)
    disk.make_folder(path)
    return path


def test_a_new_file_is_sparse_and_reads_as_zeros(disk: Disk, folder: str) -> None:
    file = disk.open(f"{folder}/f", create_size=1 << 30)
    assert file.size == len(file.view()) == 1 << 30
    assert file.read_at(1 << 29, 4) == bytes(4)
    before = disk.usage(folder).free_bytes
    file.write_at(1 << 29, b"data")
    assert before - disk.usage(folder).free_bytes < 1 << 30
    file.close()


def test_writes_are_seen_through_the_view_and_by_others(disk: Disk, folder: str) -> None:
    file = disk.open(f"{folder}/f", create_size=100)
    view = file.view()
    file.write_at(10, b"abc")
    file.write_at(13, memoryview(b"def"))
    assert bytes(view[10:16]) == b"abcdef"
    assert disk.open(f"{folder}/f").read_at(10, 6) == b"abcdef"
    assert file.read_at(98, 10) == bytes(2)
    assert view.readonly


def test_views_stay_readable_after_closing(disk: Disk, folder: str) -> None:
    file = disk.open(f"{folder}/f", create_size=100)
    file.write_at(0, b"abc")
    view = file.view()
    file.close()
    file.close()
    disk.remove(f"{folder}/f")
    assert bytes(view[:3]) == b"abc"


@pytest.mark.parametrize("offset", [0, 5, 4096, 5000])
def test_clearing_leaves_zeros_and_the_size(disk: Disk, folder: str, offset: int) -> None:
    file = disk.open(f"{folder}/f", create_size=20_000)
    file.write_at(0, b"x" * 15_000)
    view = file.view()
    file.clear_from(offset)
    assert file.size == 20_000
    assert bytes(view) == b"x" * offset + bytes(20_000 - offset)
    file.write_at(offset, b"new")
    assert bytes(view[offset : offset + 4]) == b"new\0"


def test_resizing_cuts_and_extends_with_zeros(disk: Disk, folder: str) -> None:
    file = disk.open(f"{folder}/f", create_size=10)
    file.write_at(0, b"0123456789")
    file.resize(4)
    file.resize(8)
    assert (file.size, bytes(file.view())) == (8, b"0123\0\0\0\0")
    file.write_at(8, b"more")
    assert (file.size, bytes(file.view())) == (12, b"0123\0\0\0\0more")


def test_names_are_listed_renamed_and_removed(disk: Disk, folder: str) -> None:
    for name in ("b", "a", "c"):
        disk.open(f"{folder}/{name}", create_size=1).close()
    assert list(disk.list_folder(folder)) == ["a", "b", "c"]
    disk.rename(f"{folder}/a", f"{folder}/b")
    disk.remove(f"{folder}/c")
    disk.remove(f"{folder}/c")
    assert list(disk.list_folder(folder)) == ["b"]
    assert disk.exists(f"{folder}/b")
    assert not disk.exists(f"{folder}/a")
    assert list(disk.list_folder(f"{folder}/nothing")) == []
    with pytest.raises(FileNotFoundError):
        disk.open(f"{folder}/a")


async def test_everything_can_be_synced(disk: Disk, folder: str) -> None:
    file = disk.open(f"{folder}/f", create_size=10)
    file.write_at(0, b"x")
    await disk.sync(file)
    disk.sync_now(file)
    disk.sync_folder(folder)
    await sync_folder(disk, folder)
    file.close()


def test_a_lock_is_held_by_one(disk: Disk, folder: str) -> None:
    lock = disk.lock(f"{folder}/lock")
    with pytest.raises(BlockingIOError):
        disk.lock(f"{folder}/lock")
    lock.release()
    lock.release()
    disk.lock(f"{folder}/lock").release()


def test_a_lock_is_held_against_other_disks_too(tmp_path: Path) -> None:
    lock = RealDisk().lock(str(tmp_path / "lock"))
    with pytest.raises(BlockingIOError):
        RealDisk().lock(str(tmp_path / "lock"))
    lock.release()
    RealDisk().lock(str(tmp_path / "lock")).release()


def test_usage_counts_what_may_be_used(tmp_path: Path) -> None:
    usage = RealDisk().usage(str(tmp_path))
    assert 0 < usage.free_bytes <= usage.total_bytes


def test_a_memory_disk_counts_and_gives_back_what_is_written(tmp_path: Path) -> None:
    disk = MemoryDisk(capacity_bytes=1000)
    file = disk.open("/d/f", create_size=1 << 20)
    file.write_at(0, b"x" * 600)
    with pytest.raises(OSError, match="No space") as caught:
        file.write_at(600, b"x" * 600)
    assert caught.value.errno == errno.ENOSPC
    assert disk.usage("/d").free_bytes == 400
    file.clear_from(100)
    assert disk.usage("/d").free_bytes == 900
    disk.remove("/d/f")
    assert disk.usage("/d").free_bytes == 1000
