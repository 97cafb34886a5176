"""Trying every crash point finds what forgets a sync, and finds nothing in what forgets none."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import BrokenPromiseError, explore, play
from pocketmq.testing.disk import SimulatedDisk

Step = Callable[[SimulatedDisk, VirtualClock, list[str]], Coroutine[Any, Any, None]]


async def replace_file(disk: SimulatedDisk, *, sync_file: bool = True, sync_folder: bool = True) -> None:
    """Replaces a settings file as it should be done, or with a step left out."""
    beside = disk.open("data/settings.new", create_size=0)
    beside.write_at(0, b"new settings" * 100)
    if sync_file:
        await disk.sync(beside)
    disk.rename("data/settings.new", "data/settings")
    if sync_folder:
        disk.sync_folder("data")


def scenario(**left_out: bool) -> Step:
    async def run(disk: SimulatedDisk, clock: VirtualClock, promises: list[str]) -> None:
        disk.make_folder("data")
        disk.sync_folder("")
        file = disk.open("data/settings", create_size=0)
        file.write_at(0, b"old settings" * 100)
        disk.sync_now(file)
        disk.sync_folder("data")
        promises.append("old")
        await clock.sleep(60)
        await replace_file(disk, **left_out)
        promises.append("new")

    return run


async def check(disk: SimulatedDisk, clock: VirtualClock, promises: list[str]) -> None:
    if not promises:
        return
    file = disk.open("data/settings")
    content = file.read_at(0, file.size)
    allowed = {b"new settings" * 100} if "new" in promises else {b"new settings" * 100, b"old settings" * 100}
    assert content in allowed, f"settings are {content[:20]!r}"


def test_what_syncs_in_the_right_order_survives_every_crash_point() -> None:
    assert explore(scenario(), check, history=list, seeds=range(10)) > 100


@pytest.mark.parametrize("step", ["sync_file", "sync_folder"])
def test_a_sync_that_was_forgotten_is_found_and_its_place_is_named(step: str) -> None:
    with pytest.raises(BrokenPromiseError, match=r"power loss .*Operation\(number=\d+.*seed \d+.*settings are"):
        explore(scenario(**{step: False}), check, history=list, seeds=range(10))


def test_an_error_of_the_scenario_itself_is_not_hidden() -> None:
    async def fails(disk: SimulatedDisk, clock: VirtualClock, promises: list[str]) -> None:
        raise ValueError("my own fault")

    with pytest.raises(ValueError, match="my own fault"):
        play(fails, SimulatedDisk(), [])
