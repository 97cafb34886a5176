"""A stored state survives a power loss at every moment of storing the next one."""

from pocketmq.log.snapshots import SnapshotStore
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.crash import explore
from pocketmq.testing.disk import SimulatedDisk

STATES = [(position * 1000, bytes([position]) * 1500 * position) for position in range(1, 6)]


async def store_states(disk: SimulatedDisk, clock: VirtualClock, stored: list[int]) -> None:
    snapshots = SnapshotStore(disk, "data/views")
    for number, (position, payload) in enumerate(STATES):
        if number % 2:
            snapshots.save("cursors", position, payload)
        else:
            await snapshots.save_beside("cursors", position, payload)
        stored.append(position)


async def check(disk: SimulatedDisk, clock: VirtualClock, stored: list[int]) -> None:
    found = SnapshotStore(disk, "data/views").load("cursors")
    if found is None:
        assert not stored
        return
    assert found in STATES
    assert found[0] >= max(stored, default=0)


def test_the_newest_stored_state_survives_and_is_whole() -> None:
    assert explore(store_states, check, history=list, seeds=range(5)) > 150
