"""The simulated disk keeps what was synced, and loses anything else in every way a disk can."""

import errno
from collections.abc import Callable

import pytest

from pocketmq.model.seams import Disk
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import PowerLoss, SimulatedDisk
from pocketmq.testing.loop import run
from pocketmq.testing.medium import SECTOR_BYTES

SEEDS = range(200)


def make_disk(seed: int = 0, **settings: int) -> SimulatedDisk:
    disk = SimulatedDisk(seed, **settings)  # type: ignore[arg-type]
    disk.make_folder("data")
    return disk


def outcomes(scenario: Callable[[SimulatedDisk], object], path: str = "data/f") -> set[bytes | None]:
    """The contents of a file that a power loss after the scenario can leave; None when there is no file."""
    found: set[bytes | None] = set()
    for seed in SEEDS:
        disk = make_disk(seed)
        scenario(disk)
        after = disk.crash()
        if after.exists(path):
            file = after.open(path)
            found.add(file.read_at(0, file.size))
        else:
            found.add(None)
    return found


def write_durably(disk: SimulatedDisk, path: str, data: bytes) -> None:
    file = disk.open(path, create_size=len(data))
    file.write_at(0, data)
    disk.sync_now(file)
    disk.sync_folder("data")


def test_it_is_a_disk() -> None:
    disk: Disk = make_disk()
    file = disk.open("data/f", create_size=10)
    assert (file.path, file.size, file.read_at(0, 100)) == ("data/f", 10, bytes(10))
    file.write_at(2, b"hello")
    assert file.read_at(1, 7) == b"\0hello\0"
    assert disk.list_folder("data") == ["f"]
    assert disk.list_folder("nowhere") == []
    assert disk.exists("data/f")
    assert not disk.exists("data/g")
    disk.rename("data/f", "data/g")
    assert disk.open("data/g").read_at(2, 5) == b"hello"
    disk.remove("data/g")
    disk.remove("data/g")
    assert disk.list_folder("data") == []


def test_opening_what_is_not_there_fails() -> None:
    disk = make_disk()
    with pytest.raises(FileNotFoundError):
        disk.open("data/none")
    with pytest.raises(FileNotFoundError):
        disk.open("nowhere/f", create_size=1)
    with pytest.raises(FileNotFoundError):
        disk.rename("data/none", "data/f")
    with pytest.raises(IsADirectoryError):
        disk.open("data")


def test_opening_an_existing_file_keeps_its_size_and_content() -> None:
    disk = make_disk()
    write_durably(disk, "data/f", b"abc")
    assert disk.open("data/f", create_size=100).read_at(0, 100) == b"abc"


@pytest.mark.parametrize("size", [4096, 1 << 20])
def test_a_view_follows_writes_and_cannot_be_written(size: int) -> None:
    file = make_disk().open("data/f", create_size=size)
    view = file.view()
    file.write_at(100, b"abc")
    assert bytes(view[100:103]) == b"abc"
    assert len(view) == size
    assert view.readonly
    file.resize(size * 2)
    file.close()
    assert bytes(view[100:103]) == b"abc"


def test_what_is_cut_off_reads_as_zeros_when_the_file_grows_again() -> None:
    file = make_disk().open("data/f", create_size=2000)
    file.write_at(0, b"x" * 2000)
    file.resize(700)
    file.resize(2000)
    assert file.read_at(0, 2000) == b"x" * 700 + bytes(1300)
    file.clear_from(300)
    assert (file.size, file.read_at(0, 2000)) == (2000, b"x" * 300 + bytes(1700))


def test_a_closed_file_takes_nothing() -> None:
    file = make_disk().open("data/f", create_size=10)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.write_at(0, b"x")


def test_what_was_synced_survives_every_power_loss() -> None:
    assert outcomes(lambda disk: write_durably(disk, "data/f", b"a" * 3000)) == {b"a" * 3000}


def test_what_was_not_synced_is_kept_or_lost_sector_by_sector() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"-" * 3 * SECTOR_BYTES)
        disk.open("data/f").write_at(0, b"n" * 3 * SECTOR_BYTES)

    old, new = b"-" * SECTOR_BYTES, b"n" * SECTOR_BYTES
    assert outcomes(scenario) == {a + b + c for a in (old, new) for b in (old, new) for c in (old, new)}


def test_a_sector_written_several_times_keeps_any_of_its_states() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"0")
        for state in (b"1", b"2", b"3"):
            disk.open("data/f").write_at(0, state)

    assert outcomes(scenario) == {b"0", b"1", b"2", b"3"}


def test_a_write_to_part_of_a_sector_leaves_the_rest_of_it() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"abcdef")
        disk.open("data/f").write_at(2, b"XY")

    assert outcomes(scenario) == {b"abcdef", b"abXYef"}


def test_a_new_name_is_durable_only_after_its_folder_was_synced() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        file = disk.open("data/f", create_size=1)
        file.write_at(0, b"x")
        disk.sync_now(file)

    assert outcomes(scenario) == {None, b"x"}


def test_a_folder_is_durable_when_it_is_made() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        disk.make_folder("data/one/two")
        file = disk.open("data/one/two/f", create_size=1)
        disk.sync_now(file)
        disk.sync_folder("data/one/two")

    assert outcomes(scenario, "data/one/two/f") == {b"\0"}


def test_a_folder_sync_beside_the_loop_covers_what_was_named_before_it_began() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        sync = disk.sync_folder_beside("data")
        sync.send(None)
        disk.open("data/f", create_size=0)
        with pytest.raises(StopIteration):
            sync.send(None)

    assert outcomes(scenario) == {None, b""}


def test_a_file_that_a_crash_left_without_its_size_gets_it_when_it_is_opened_again() -> None:
    disk = make_disk()
    disk.open("data/f", create_size=0)
    assert disk.open("data/f", create_size=100).size == 100


def test_a_rename_happened_whole_or_not_at_all() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"old")
        write_durably(disk, "data/f.new", b"new")
        disk.rename("data/f.new", "data/f")

    assert outcomes(scenario) == {b"old", b"new"}
    assert outcomes(scenario, "data/f.new") == {b"new", None}


def test_a_rename_of_what_was_not_synced_can_leave_an_empty_file() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"old")
        disk.open("data/f.new", create_size=0).write_at(0, b"new")
        disk.rename("data/f.new", "data/f")
        disk.sync_folder("data")

    assert outcomes(scenario) == {b"", b"\0\0\0", b"new"}


def test_a_removed_file_can_come_back_until_the_folder_was_synced() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"x")
        disk.remove("data/f")

    assert outcomes(scenario) == {None, b"x"}


def test_unsynced_cuts_and_clears_may_not_have_happened() -> None:
    def cut(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"abc")
        disk.open("data/f").resize(1)

    def clear(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"abc")
        disk.open("data/f").clear_from(1)

    assert outcomes(cut) == {b"abc", b"a"}
    assert outcomes(clear) == {b"abc", b"a\0\0"}


def test_a_sync_covers_what_was_written_before_it_began() -> None:
    async def main(seed: int) -> bytes:
        disk = make_disk(seed)
        disk.clock = clock = VirtualClock()
        disk.sync_seconds_max = 1.0
        write_durably(disk, "data/f", b"--")
        file = disk.open("data/f")
        file.write_at(0, b"a")
        sync = disk.sync(file)
        clock.call_later(0, file.write_at, 1, b"b")
        await sync
        return disk.crash().open("data/f").read_at(0, 2)

    assert {run(main(seed)) for seed in SEEDS} == {b"a-", b"ab"}


def test_a_sync_in_flight_may_or_may_not_have_happened() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"-")
        file = disk.open("data/f")
        file.write_at(0, b"a")
        flight = disk.sync(file)
        flight.send(None)
        flight.close()

    assert outcomes(scenario) == {b"-", b"a"}


def test_a_failed_sync_covers_nothing_and_a_later_one_does_not_make_up_for_it() -> None:
    def scenario(disk: SimulatedDisk) -> None:
        write_durably(disk, "data/f", b"-")
        file = disk.open("data/f")
        file.write_at(0, b"a")
        disk.fail("sync", path="data/f")
        with pytest.raises(OSError, match="Input/output error"):
            disk.sync_now(file)
        disk.sync_now(file)
        assert file.read_at(0, 1) == b"a"

    assert outcomes(scenario) == {b"-", b"a"}


def test_a_full_disk_takes_part_of_a_write_and_has_room_again_when_something_is_removed() -> None:
    disk = make_disk(capacity_bytes=4 * SECTOR_BYTES)
    other = disk.open("data/other", create_size=1 << 20)
    other.write_at(0, b"x")
    file = disk.open("data/f", create_size=1 << 20)
    with pytest.raises(OSError, match="No space left") as caught:
        file.write_at(100, b"y" * 4 * SECTOR_BYTES)
    assert caught.value.errno == errno.ENOSPC
    assert file.read_at(100, 4 * SECTOR_BYTES) == b"y" * (3 * SECTOR_BYTES - 100) + bytes(SECTOR_BYTES + 100)
    assert (disk.usage("data").total_bytes, disk.usage("data").free_bytes) == (4 * SECTOR_BYTES, 0)
    file.write_at(0, b"in place")
    disk.remove("data/other")
    assert disk.usage("data").free_bytes == SECTOR_BYTES
    file.write_at(3 * SECTOR_BYTES, b"y" * SECTOR_BYTES)


def test_a_write_can_be_made_to_fail() -> None:
    disk = make_disk()
    file = disk.open("data/f", create_size=10)
    disk.fail("write", times=2)
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output error"):
            file.write_at(0, b"x")
    file.write_at(0, b"x")


def test_bits_rot_in_what_was_written() -> None:
    disk = make_disk()
    write_durably(disk, "data/f", b"\0" * 5000)
    offset = disk.rot("data/f")
    assert disk.open("data/f").read_at(offset, 1) != b"\0"
    assert disk.crash().open("data/f").read_at(offset, 1) != b"\0"


def test_after_the_power_went_nothing_works_any_more() -> None:
    disk = make_disk()
    file = disk.open("data/f", create_size=10)
    disk.stop_at = disk.operation_count + 1
    heard: list[PowerLoss] = []
    disk.on_power_loss = heard.append
    file.write_at(0, b"a")
    for _ in range(2):
        with pytest.raises(PowerLoss):
            file.write_at(1, b"b")
    with pytest.raises(PowerLoss):
        disk.exists("data/f")
    assert len(heard) == 1


def test_a_killed_process_leaves_every_write_but_not_yet_durable() -> None:
    found = set()
    for seed in SEEDS:
        disk = make_disk(seed)
        write_durably(disk, "data/f", b"-")
        disk.open("data/f").write_at(0, b"a")
        disk.lock("data/lock")
        after = disk.kill()
        assert after.open("data/f").read_at(0, 1) == b"a"
        after.lock("data/lock")
        found.add(after.crash().open("data/f").read_at(0, 1))
    assert found == {b"-", b"a"}


def test_a_lock_is_held_by_one_until_it_is_released_or_the_machine_stops() -> None:
    disk = make_disk()
    lock = disk.lock("data/lock")
    with pytest.raises(BlockingIOError):
        disk.lock("data/lock")
    lock.release()
    disk.lock("data/lock")
    disk.crash().lock("data/lock")


def test_the_same_seed_gives_the_same_disk() -> None:
    def after(seed: int) -> bytes:
        disk = make_disk(seed)
        file = disk.open("data/f", create_size=100 * SECTOR_BYTES)
        disk.sync_now(file)
        disk.sync_folder("data")
        file.write_at(0, b"x" * file.size)
        return disk.crash().open("data/f").read_at(0, file.size)

    assert [after(seed) for seed in range(20)] == [after(seed) for seed in range(20)]
    assert len({after(seed) for seed in range(20)}) > 3


def test_every_operation_is_logged() -> None:
    disk = make_disk()
    write_durably(disk, "data/f", b"abc")
    assert [operation.kind for operation in disk.operations] == [
        "make_folder",
        "sync_folder",
        "synced_folder",
        "create",
        "resize",
        "write",
        "sync",
        "synced",
        "sync_folder",
        "synced_folder",
    ]
    assert disk.unsynced() == []
    disk.open("data/f").write_at(0, b"x")
    disk.rename("data/f", "data/g")
    assert disk.unsynced() == ["data/g"]
