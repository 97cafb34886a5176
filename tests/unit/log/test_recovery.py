"""Whatever the end of the log looks like, it opens to what was whole; damage before the end is never hidden."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.log.disk import MemoryDisk
from pocketmq.log.log import Log
from pocketmq.log.reading import ReadStatus
from pocketmq.log.recovery import Progress
from pocketmq.log.scanner import ReplayedRecord
from pocketmq.model.errors import StoreCorruptError, StoreLockedError
from pocketmq.model.seams import Disk
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.loop import run
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import SysFlag, blank, encode_record

OpenLog = Callable[..., Any]
HOST = pack_host("10.0.0.1", 10911)


def foreign_record(
    position: int, *, topic: str = "orders", queue_id: int = 0, offset: int = 0, **options: Any
) -> bytes:
    """A record as another broker wrote it."""
    return encode_record(
        topic,
        options.pop("body", b"hello"),
        options.pop("properties", b""),
        queue_id=queue_id,
        queue_offset=offset,
        physical_offset=position,
        born_timestamp=1_700_000_000_000,
        born_host=HOST,
        store_timestamp=1_700_000_000_000 + position,
        store_host=HOST,
        **options,
    )


class Store:
    """A commit log made by hand."""

    def __init__(self, disk: Disk, settings: StoreSettings) -> None:
        self.disk = disk
        self.folder = f"{settings.data_dir}/commitlog"
        self.size = settings.segment_bytes
        disk.make_folder(self.folder)
        self.position = 0

    def put(self, data: bytes) -> int:
        """Write bytes at the end; returns where they begin."""
        start = self.position // self.size * self.size
        file = self.disk.open(f"{self.folder}/{start:020d}", create_size=self.size)
        file.write_at(self.position - start, data)
        file.close()
        position, self.position = self.position, self.position + len(data)
        return position

    def add(self, **options: Any) -> int:
        """A record, and a blank before it when it does not fit."""
        record = foreign_record(self.position, **options)
        left = self.size - self.position % self.size
        if len(record) + 8 > left:
            self.put(blank(left))
            self.position += left - 8
            record = foreign_record(self.position, **options)
        return self.put(record)

    def flip(self, position: int, mask: int = 0x20) -> None:
        """Damage one byte."""
        start = position // self.size * self.size
        file = self.disk.open(f"{self.folder}/{start:020d}")
        file.write_at(position - start, bytes([file.read_at(position - start, 1)[0] ^ mask]))
        file.close()


@pytest.fixture
def store(disk: Disk, settings: StoreSettings) -> Store:
    return Store(disk, settings)


async def test_a_second_log_on_the_same_directory_is_refused(open_log: OpenLog, settings: StoreSettings) -> None:
    log = await open_log()
    with pytest.raises(StoreLockedError, match=settings.data_dir):
        await open_log()
    await log.close()
    await open_log()


async def test_a_store_of_another_broker_opens_with_all_its_messages(
    open_log: OpenLog, store: Store, tools: Any
) -> None:
    for number in range(100):
        store.add(
            queue_id=number % 2, offset=number // 2, body=b"%d" % number, properties=b"TAGS\x01t\x02KEYS\x01k\x02"
        )
    store.add(topic="t" * 200, offset=7, body=b"long name")
    store.add(topic="half", offset=0, sys_flag=SysFlag.TRANSACTION_PREPARED)
    store.add(topic="half", offset=0, sys_flag=SysFlag.TRANSACTION_ROLLBACK)
    store.add(topic="half", offset=0, sys_flag=SysFlag.TRANSACTION_COMMIT, body=b"committed")
    progress: list[Progress] = []
    log = await open_log(progress=progress.append)
    assert tools.bodies(log, "orders", 0) == [b"%d" % number for number in range(0, 100, 2)]
    assert tools.bodies(log, "orders", 1) == [b"%d" % number for number in range(1, 100, 2)]
    assert tools.bodies(log, "t" * 200) == [b"long name"]
    assert log.queue("t" * 200, 0).min_offset == 7
    assert tools.bodies(log, "half") == [b"committed"]
    assert next(log.units(log.queue("orders", 0), 0, 1))[2] == 116
    assert len(log.find_by_key("orders", "k", 200)) == 100
    assert log.recovery.cut_position is None
    tools.send(log, "orders", 0, b"ours")
    assert tools.bodies(log, "orders", 0)[-1] == b"ours"


async def test_a_file_made_in_advance_does_not_count(open_log: OpenLog, store: Store, disk: Disk, tools: Any) -> None:
    store.add(body=b"x")
    disk.open(f"{store.folder}/{8192:020d}", create_size=8192).close()
    log = await open_log()
    assert tools.bodies(log) == [b"x"]
    for _ in range(20):
        tools.send(log, body=b"y" * 1000)
    assert len(tools.bodies(log)) == 21


async def test_the_log_may_begin_anywhere_and_queues_with_it(open_log: OpenLog, store: Store, tools: Any) -> None:
    store.position = 3 * 8192
    store.add(offset=500, body=b"a")
    store.add(offset=501, body=b"b")
    log = await open_log()
    assert log.min_position == 3 * 8192
    assert (log.min_offset(log.queue("orders", 0)), log.max_offset(log.queue("orders", 0))) == (500, 502)
    assert tools.bodies(log) == [b"a", b"b"]


async def test_missing_offsets_of_a_queue_stay_missing(open_log: OpenLog, store: Store, tools: Any) -> None:
    for offset in (0, 1, 5, 6):
        store.add(offset=offset, body=b"%d" % offset)
    log = await open_log()
    queue = log.queue("orders", 0)
    assert [record.queue_offset for record in tools.records(log, queue)] == [0, 1, 5, 6]
    assert log.read(queue, 2, 32, 1000).next_offset == 7
    assert log.offset_by_time(queue, 0) == 0
    assert "no records at the offsets 2 to 4" in log.recovery.notes[0]


async def test_a_queue_that_began_again_shows_its_present_life(
    open_log: OpenLog, store: Store, tools: Any, clock: VirtualClock
) -> None:
    for offset in [*range(100), *range(10)]:
        store.add(offset=offset, body=b"%d" % offset + b"x" * 100)
    log = await open_log()
    for _ in range(2):
        queue = log.queue("orders", 0)
        assert [record.queue_offset for record in tools.records(log, queue)] == list(range(10))
        await clock.sleep(1)
        assert [record.queue_offset for record in tools.records(log, queue)] == list(range(10))
        await log.close()
        log = await open_log()


# -- torn tails ---------------------------------------------------------------------------------------------------


async def small_log(disk: Disk, settings: StoreSettings, clock: VirtualClock, tools: Any) -> tuple[bytes, list[int]]:
    """The bytes of a log of a few records, and where each one begins, then where the last one ends."""
    log = await Log.open(disk, clock, settings)
    positions = []
    for number in range(6):
        properties = b"KEYS\x01key-%d\x02TAGS\x01tag\x02" % number
        positions.append(tools.send(log, "orders", number % 2, b"body %d" % number, properties=properties))
    positions.append(log.max_position)
    view = log.segments[0].view
    assert view is not None
    data = bytes(view[: log.max_position])
    await log.close()
    return data, positions


async def reopened_with(
    data: bytes, settings: StoreSettings, clock: VirtualClock, tools: Any
) -> tuple[dict[tuple[str, int], Any], Log]:
    """What a log opens to whose only segment holds these bytes, without any index; and that it can go on."""
    disk = MemoryDisk()
    Store(disk, settings).put(data)
    log = await Log.open(disk, clock, settings)
    content = tools.content(log)
    tools.send(log, "orders", 0, b"later")
    assert tools.bodies(log, "orders", 0)[-1] == b"later"
    await log.close()
    return content, log


def content_before(position: int, data: bytes, whole: dict[Any, Any]) -> dict[Any, Any]:
    """The part of a log's content that ends at or before `position`."""
    sizes = {}
    at = 0
    while at < len(data):
        sizes[at] = int.from_bytes(data[at : at + 4], "big")
        at += sizes[at]
    content = {
        name: [found for found in records if found[1] + sizes[found[1]] <= position] for name, records in whole.items()
    }
    return {name: records for name, records in content.items() if records}


async def test_a_log_cut_off_at_any_byte_opens_to_its_whole_records(
    settings: StoreSettings, clock: VirtualClock, tools: Any
) -> None:
    data, positions = await small_log(MemoryDisk(), settings, clock, tools)
    whole, _ = await reopened_with(data, settings, clock, tools)
    assert sum(map(len, whole.values())) == 6
    for length in range(positions[3], len(data)):
        content, log = await reopened_with(data[:length], settings, clock, tools)
        assert content == content_before(length, data, whole), f"cut off at {length}"
        torn = data[max(position for position in positions if position <= length) : length]
        assert (log.recovery.cut_position is None) == (not any(torn))


async def test_a_log_with_any_byte_lost_to_zeros_opens_to_the_records_before(
    settings: StoreSettings, clock: VirtualClock, tools: Any
) -> None:
    data, positions = await small_log(MemoryDisk(), settings, clock, tools)
    whole, _ = await reopened_with(data, settings, clock, tools)
    start, end = positions[4], positions[5]
    for hole in range(start, end):
        torn = data[:hole] + bytes(end - hole) + data[end:]
        if torn == data:
            continue
        content, log = await reopened_with(torn, settings, clock, tools)
        assert content == content_before(start, data, whole), f"zeros from {hole}"
        assert log.recovery.cut_records == 1
        assert log.recovery.cut_file is not None


async def test_a_flipped_bit_never_gives_a_record_that_was_not_sent(
    settings: StoreSettings, clock: VirtualClock, tools: Any
) -> None:
    """Queue id, flags, hosts and times have no checksum by default; with one, every bit counts."""
    settings.record_crc = True
    data, positions = await small_log(MemoryDisk(), settings, clock, tools)
    whole, _ = await reopened_with(data, settings, clock, tools)
    for position in range(positions[4], len(data)):
        if data[position:].startswith(b"__CRC32#") or b"__CRC32#" in data[position - 8 : position + 8]:
            continue  # without its name, the checksum is a property like any other
        damaged = data[:position] + bytes([data[position] ^ 0x10]) + data[position + 1 :]
        content, _ = await reopened_with(damaged, settings, clock, tools)
        start = positions[4] if position < positions[5] else positions[5]
        assert content == content_before(start, data, whole), f"flipped at {position}"


async def test_nothing_stale_comes_back_behind_a_cut(open_log: OpenLog, store: Store, tools: Any, disk: Disk) -> None:
    records = [store.add(offset=offset, body=b"old %d" % offset) for offset in range(6)]
    store.flip(records[2] + 90)
    log = await open_log()
    assert tools.bodies(log) == [b"old 0", b"old 1"]
    assert log.recovery.cut_position == records[2]
    assert log.recovery.cut_records == 3
    kept = disk.open(log.recovery.cut_file)
    assert kept.read_at(0, 1 << 20)[:4] == (records[3] - records[2]).to_bytes(4, "big")
    tools.send(log, body=b"new 2")
    await log.close()
    for name in disk.list_folder(log.runs.folder):
        disk.remove(f"{log.runs.folder}/{name}")
    again = await open_log()
    assert tools.bodies(again) == [b"old 0", b"old 1", b"new 2"]


# -- damage -------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(store: Store, settings: StoreSettings, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A store of five segments with a bad record in the first one; returns where the records are."""
    monkeypatch.setattr("pocketmq.log.log.TORN_BYTES_MAX", 8192)
    records = [store.add(offset=offset, body=b"%d" % offset + b"x" * 200) for offset in range(130)]
    store.flip(records[7] + 100)
    return records


async def test_damage_before_the_tail_is_an_error_that_says_where_and_what(
    open_log: OpenLog, damaged: list[int]
) -> None:
    with pytest.raises(StoreCorruptError) as caught:
        await open_log()
    message = str(caught.value)
    assert f"damaged at position {damaged[7]}" in message
    assert f"{130 - 8} valid records follow from position {damaged[8]} on" in message
    assert "does not match its checksum" in message
    assert "accept_damage" in message


async def test_damage_under_records_of_a_longer_time_is_an_error_too(
    open_log: OpenLog, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.log.end_of_log.TORN_MS_MAX", 200)
    records = [store.add(offset=offset) for offset in range(6)]
    store.flip(records[1] + 90)
    with pytest.raises(StoreCorruptError, match=f"damaged at position {records[1]}"):
        await open_log()


async def test_accepted_damage_is_left_out_and_reported(
    open_log: OpenLog, damaged: list[int], settings: StoreSettings, tools: Any
) -> None:
    settings.accept_damage = True
    log = await open_log()
    assert [record.queue_offset for record in tools.records(log, log.queue("orders", 0))] == [
        *range(7),
        *range(8, 130),
    ]
    assert [(damage.position, damage.end) for damage in log.recovery.damages] == [(damaged[7], damaged[8])]
    await log.close()
    settings.accept_damage = False
    again = await open_log()
    assert len(tools.bodies(again)) == 129


async def test_damage_where_the_log_was_durable_is_an_error_even_at_its_end(open_log: OpenLog, store: Store) -> None:
    records = [store.add(offset=offset) for offset in range(3)]
    store.flip(records[2] + 90)
    with pytest.raises(StoreCorruptError, match="were durable are missing"):
        await open_log(replay_from=store.position)


async def test_a_log_that_lost_what_its_index_covers_is_an_error(
    open_log: OpenLog, tools: Any, disk: Disk, clock: VirtualClock
) -> None:
    log = await open_log()
    for _ in range(50):
        tools.send(log, body=b"x" * 500)
    await log.close()
    for name in list(disk.list_folder(log.segments.folder))[1:]:
        disk.remove(f"{log.segments.folder}/{name}")
    with pytest.raises(StoreCorruptError, match="are missing"):
        await open_log()


async def test_a_missing_segment_is_an_error_when_much_follows(
    open_log: OpenLog, store: Store, disk: Disk, settings: StoreSettings, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pocketmq.log.log.TORN_BYTES_MAX", 8192)
    for offset in range(130):
        store.add(offset=offset, body=b"%d" % offset + b"x" * 200)
    disk.remove(f"{store.folder}/{8192:020d}")
    with pytest.raises(StoreCorruptError, match="00000000000000008192 is missing"):
        await open_log()
    settings.accept_damage = True
    log = await open_log()
    offsets = [record.queue_offset for record in tools.records(log, log.queue("orders", 0))]
    assert offsets[0] == 0
    assert offsets[-1] == 129
    assert len(offsets) < 110


async def test_a_log_whose_oldest_file_was_removed_by_hand_begins_with_the_next(
    open_log: OpenLog, tools: Any, disk: Disk
) -> None:
    log = await open_log()
    tools.send(log, "quiet", body=b"old")
    for number in range(50):
        tools.send(log, body=b"%d " % number + b"x" * 500)
    await log.close()
    disk.remove(log.segments[0].path)
    again = await open_log()
    orders, quiet = again.queue("orders", 0), again.queue("quiet", 0)
    assert (quiet.min_offset, quiet.next_offset) == (1, 1)
    assert 0 < orders.min_offset < orders.next_offset == 50
    assert tools.bodies(again)[0].startswith(b"%d " % orders.min_offset)
    assert again.read(orders, 0, 32, 1000).status is ReadStatus.TOO_SMALL


# -- replay -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("closed", [True, False])
def test_views_get_their_records_again_from_the_position_they_cover(
    tools: Any, settings: StoreSettings, closed: bool
) -> None:
    disk = SimulatedDisk(1)
    journal: list[tuple[int, bytes]] = []

    async def first_life() -> None:
        clock = VirtualClock()
        log = await Log.open(disk, clock, settings)
        for number in range(100):
            tools.send(log, "orders", 0, b"x" * 300)
            journal.append((tools.send(log, "journal", 0, b"%d" % number), b"%d" % number))
            tools.send(log, "timers", number % 2, b"t%d" % number)
            await clock.sleep(0.1)
        if closed:
            await log.close()

    async def second_life(disk: SimulatedDisk) -> list[ReplayedRecord]:
        again: list[ReplayedRecord] = []
        topics = {"journal", "timers"}
        log = await Log.open(
            disk, VirtualClock(), settings, replay=again.append, replay_from=journal[30][0], replay_topics=topics
        )
        assert again[-1].end == log.max_position
        await log.close()
        return again

    run(first_life())
    again = run(second_life(disk.kill()))
    found = [(found.position, found.record.body, found.queue_offset) for found in again if found.topic == "journal"]
    assert found == [(position, body, number + 30) for number, (position, body) in enumerate(journal[30:])]
    assert [found.record.body for found in again if found.topic == "timers"] == [b"t%d" % n for n in range(30, 100)]
    assert [found.position for found in again] == sorted(found.position for found in again)


def test_after_a_kill_only_the_stretch_in_memory_is_read_again(tools: Any, settings: StoreSettings) -> None:
    disk = SimulatedDisk(1)

    async def first_life() -> dict[Any, Any]:
        clock = VirtualClock()
        log = await Log.open(disk, clock, settings)
        for _ in range(200):
            tools.send(log, body=b"x" * 300)
            await clock.sleep(0.1)
        content: dict[Any, Any] = tools.content(log)
        return content

    async def second_life(disk: SimulatedDisk) -> dict[Any, Any]:
        log = await Log.open(disk, VirtualClock(), settings)
        assert log.recovery.scanned_bytes <= 2 * settings.index_stretch_bytes
        content: dict[Any, Any] = tools.content(log)
        await log.close()
        return content

    content = run(first_life())
    assert run(second_life(disk.kill())) == content


async def test_a_record_larger_than_what_is_read_at_once_is_found(
    open_log: OpenLog, store: Store, settings: StoreSettings, tools: Any
) -> None:
    settings.segment_bytes = store.size = 1 << 20
    store.add(offset=0, body=b"x" * 300_000)
    store.add(offset=1, body=b"small")
    large = store.add(offset=2, body=b"y" * 200_000)
    store.add(offset=3, body=b"z" * 100_000)
    store.flip(large + 100_000)
    log = await open_log()
    assert [len(body) for body in tools.bodies(log)] == [300_000, 5]


async def test_what_was_never_written_is_not_touched_through_the_mapping(
    open_log: OpenLog, store: Store, settings: StoreSettings, disk: Disk, tools: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system in memory gives a page room when it is read through a mapping; a full one ends the process then."""
    for number in range(20):
        store.add(offset=number, body=b"x" * 500)
    written = store.position % store.size
    last = f"{store.folder}/{store.position // store.size * store.size:020d}"
    whole_view = type(disk.open(last)).view

    def view_of_what_was_written(file: Any) -> memoryview:
        return whole_view(file)[:written] if file.path == last else whole_view(file)

    monkeypatch.setattr(type(disk.open(last)), "view", view_of_what_was_written)
    log = await open_log()
    assert len(tools.bodies(log)) == 20
    assert log.record_at(store.position) is None
