"""Messages are found by key, wherever their keys are kept at the moment."""

from typing import Any

import pytest

from pocketmq.log.index import COLLECT_BYTES
from pocketmq.log.key_index import collect_keys
from pocketmq.log.log import Log
from pocketmq.model.errors import StoreCorruptError
from pocketmq.testing.clock import VirtualClock


def properties(number: int) -> bytes:
    return b"UNIQ_KEY\x01%032d\x02KEYS\x01order-%d customer-%d\x02" % (number, number, number % 7)


@pytest.fixture(params=["not collected", "collected", "in runs", "reopened"])
async def filled(request: pytest.FixtureRequest, open_log: Any, settings: Any, tools: Any, clock: VirtualClock) -> Log:
    settings.segment_bytes = 65_536
    settings.index_stretch_bytes = {"in runs": 16_384, "reopened": 16_384}.get(request.param, 1 << 30)
    log: Log = await open_log()
    for number in range(200):
        tools.send(log, "orders", number % 2, b"b" * 100, properties=properties(number))
        tools.send(log, "bills", 0, b"KEYS\x01order-%d\x02" % number, properties=b"KEYS\x01bill-%d\x02" % number)
        await clock.sleep(0.01)
    if request.param != "not collected":
        log.index.wake()
        await clock.sleep(2)
    if request.param == "reopened":
        await log.close()
        log = await open_log()
    return log


def test_each_word_of_the_keys_and_the_unique_key_lead_to_the_message(filled: Log, tools: Any) -> None:
    records = {record.properties: record.physical_offset for record in tools.records(filled, filled.queue("orders", 1))}
    for number in (1, 77, 199):
        position = records[properties(number)]
        assert filled.find_by_key("orders", f"order-{number}", 10) == [position]
        assert filled.find_by_key("orders", f"{number:032d}", 10) == [position]


def test_the_newest_comes_first_and_only_so_many(filled: Log) -> None:
    found = filled.find_by_key("orders", "customer-3", 64)
    assert len(found) == len([number for number in range(200) if number % 7 == 3])
    assert found == sorted(found, reverse=True)
    assert filled.find_by_key("orders", "customer-3", 5) == found[:5]


def test_only_real_keys_of_the_topic_count(filled: Log) -> None:
    assert filled.find_by_key("bills", "order-5", 10) == []
    assert filled.find_by_key("bills", "bill-5", 10) != []
    assert filled.find_by_key("orders", "order", 10) == []
    assert filled.find_by_key("orders", "", 10) == []
    assert filled.find_by_key("nothing", "order-5", 10) == []


def test_the_time_of_storing_limits_the_search(filled: Log) -> None:
    everything = filled.find_by_key("orders", "customer-3", 64)
    times = [filled.segments.find(position).timestamp_at(position) for position in everything]  # type: ignore[union-attr]
    begin, end = times[10], times[5]
    assert begin is not None
    assert end is not None
    assert filled.find_by_key("orders", "customer-3", 64, begin, end) == everything[5:11]
    assert filled.find_by_key("orders", "customer-3", 64, 0, times[-1] - 1) == []  # type: ignore[operator]


def test_keys_stay_findable_over_many_segments(filled: Log, tools: Any) -> None:
    for number in range(200, 1200):
        tools.send(filled, "orders", 0, b"b" * 100, properties=properties(number))
    assert len(filled.segments) > 4
    for number in (0, 199, 200, 600, 1199):
        assert len(filled.find_by_key("orders", f"order-{number}", 10)) == 1
    assert len(filled.find_by_key("orders", "customer-3", 1000)) == len([n for n in range(1200) if n % 7 == 3])


async def test_a_clock_that_is_set_back_hides_no_key(
    open_log: Any, settings: Any, tools: Any, clock: VirtualClock
) -> None:
    settings.segment_bytes = 65_536
    settings.index_stretch_bytes = 8_192
    log: Log = await open_log()
    for number in range(300):
        if number in {100, 200}:
            clock.jump(-10 * 60_000)
        tools.send(log, "orders", 0, b"b" * 100, properties=properties(number))
        await clock.sleep(0.01)
    for _ in range(2):
        for number in (0, 99, 100, 199, 200, 299):
            position = log.find_by_key("orders", f"order-{number}", 10)[0]
            time = log.segments.find(position).timestamp_at(position)  # type: ignore[union-attr]
            assert time is not None
            assert log.find_by_key("orders", f"order-{number}", 10, time, time) == [position]
        await log.close()
        log = await open_log()


async def test_keys_are_collected_beside_the_log(log: Log, tools: Any, clock: VirtualClock) -> None:
    log.index.stretch_bytes = 1 << 30
    log.segment_bytes = 8 * COLLECT_BYTES
    while log.max_position < 4 * COLLECT_BYTES:
        for _ in range(50):
            tools.stage(log, body=b"x" * 1000, properties=b"KEYS\x01k\x02")
        log.write()
    await clock.sleep(1)
    assert log.index.keys.collected_position > log.max_position - COLLECT_BYTES - 200_000


async def test_a_damaged_key_list_is_noticed_and_made_again(
    open_log: Any, settings: Any, tools: Any, clock: VirtualClock
) -> None:
    settings.segment_bytes = 65_536
    settings.index_stretch_bytes = 16_384
    log: Log = await open_log()
    for number in range(600):
        tools.send(log, "orders", 0, b"b" * 100, properties=properties(number))
        await clock.sleep(0.01)
    file = log.runs.files[0]
    run = log.runs.open(file)
    at = 128 + run.header.unit_count * 20 + 40
    disk_file = log.disk.open(file.path)
    disk_file.write_at(at, bytes([disk_file.read_at(at, 1)[0] ^ 1]))
    disk_file.close()
    log.runs.close()
    with pytest.raises(StoreCorruptError) as caught:
        log.find_by_key("orders", "order-5", 10)
    assert caught.value.retryable
    log.index.wake()
    await clock.sleep(1)
    assert len(log.find_by_key("orders", "order-5", 10)) == 1


def test_collecting_finds_every_word_and_stops_at_the_next_record() -> None:
    data = b"..\x00\x10UNIQ_KEY\x01abc\x02KEYS\x01k1  k2\x02TAGS\x01t\x02" + b"KEYS\x01open\x00\x00\x00\x77KEY\x01last"
    assert len(collect_keys(data, 9)) == 5
    assert {key & 0xFFFFFFFF for key in collect_keys(data, 9)} == {9}
