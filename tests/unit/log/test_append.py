"""Records are appended, written and read back as they were sent."""

from collections.abc import Callable
from typing import Any

import pytest

from pocketmq.log.log import Log
from pocketmq.log.reading import ReadStatus
from pocketmq.model.errors import MessageTooLargeError, UsageError
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import MAGIC_BLANK, SysFlag, decode_record, decode_records, encode_record


def test_a_record_is_what_the_record_codec_makes_of_it(log: Log, tools: Any, clock: VirtualClock) -> None:
    position = tools.send(
        log, "orders", 3, b"hello", properties=b"TAGS\x01new\x02", flag=7, reconsume_times=2, tag_code=5
    )
    view = log.record_at(position)
    assert view is not None
    record = decode_record(view, check_crc=True)
    assert bytes(view) == encode_record(
        "orders",
        b"hello",
        b"TAGS\x01new\x02",
        queue_id=3,
        queue_offset=0,
        physical_offset=position,
        born_timestamp=1_700_000_000_000,
        born_host=record.born_host,
        store_timestamp=clock.time_ms(),
        store_host=record.store_host,
        flag=7,
        reconsume_times=2,
    )


@pytest.mark.parametrize("born", ["10.0.0.1", "2001:db8::1"])
@pytest.mark.parametrize("store", ["10.0.0.2", "2001:db8::2"])
def test_hosts_of_both_families_are_kept(log: Log, tools: Any, born: str, store: str) -> None:
    sys_flag = (SysFlag.BORN_HOST_V6 if ":" in born else 0) | (SysFlag.STORE_HOST_V6 if ":" in store else 0)
    position = tools.send(
        log, sys_flag=sys_flag, born_host=pack_host(born, 1), store_host=pack_host(store, 2), body=b"x"
    )
    view = log.record_at(position)
    assert view is not None
    record = decode_record(view, check_crc=True)
    assert (record.born_host, record.store_host) == (pack_host(born, 1), pack_host(store, 2))
    assert record.sys_flag == sys_flag
    assert record.size == len(view)


@pytest.mark.parametrize("length", [1, 127, 128, 255])
def test_topics_of_any_length_are_kept(log: Log, tools: Any, length: int) -> None:
    topic = "t" * length
    tools.send(log, topic, 0, b"x")
    assert [record.topic for record in tools.records(log, log.queue(topic, 0))] == [topic]


def test_offsets_count_up_in_each_queue(log: Log, tools: Any) -> None:
    for number in range(6):
        tools.stage(log, "orders", number % 2, b"%d" % number)
    log.write()
    assert tools.bodies(log, "orders", 0) == [b"0", b"2", b"4"]
    assert tools.bodies(log, "orders", 1) == [b"1", b"3", b"5"]
    assert [log.max_offset(queue) for queue in log.queues_of("orders")] == [3, 3]


def test_a_batch_is_appended_as_single_records(log: Log, tools: Any) -> None:
    queue = log.ensure_queue("orders", 0)
    host = pack_host("10.0.0.1", 1)
    positions = log.append_batch(
        queue, [(1, b"a", b"KEYS\x01k\x02", 11), (2, b"bb", b"", 12)], 0, 1_700_000_000_000, host, host
    )
    log.write()
    records = tools.records(log, queue)
    assert [record.physical_offset for record in records] == positions
    assert [(record.flag, record.body, record.properties) for record in records] == [
        (1, b"a", b"KEYS\x01k\x02"),
        (2, b"bb", b""),
    ]
    assert [code for _, _, code in log.units(queue, 0, 10)] == [11, 12]


def test_staged_records_are_written_before_anybody_reads(log: Log, tools: Any) -> None:
    tools.stage(log, body=b"staged")
    queue = log.queue("orders", 0)
    assert queue is not None
    assert log.read(queue, 0, 32, 1000).count == 1
    assert log.written_position == log.max_position


def test_what_lies_together_comes_as_one_slice(log: Log, tools: Any) -> None:
    for _ in range(3):
        tools.send(log, body=b"x")
    queue = log.queue("orders", 0)
    assert queue is not None
    found = log.read(queue, 0, 32, 1000)
    assert (found.status, found.count, found.next_offset) == (ReadStatus.FOUND, 3, 3)
    assert [len(decode_records(view)) for view in found.records] == [3]
    assert found.size_bytes == len(found.records[0])


def test_what_lies_apart_comes_in_several(log: Log, tools: Any) -> None:
    for queue_id in (0, 0, 1, 0):
        tools.send(log, "orders", queue_id, b"x")
    queue = log.queue("orders", 0)
    assert queue is not None
    found = log.read(queue, 0, 32, 1000)
    assert found.count == sum(len(decode_records(view)) for view in found.records) == 3
    assert found.size_bytes == sum(len(view) for view in found.records)


def test_a_read_is_limited_by_count_and_by_bytes_but_gives_at_least_one(log: Log, tools: Any) -> None:
    for _ in range(10):
        tools.send(log, body=b"x" * 100)
    queue = log.queue("orders", 0)
    assert queue is not None
    size = log.read(queue, 0, 1, 1 << 20).size_bytes
    assert log.read(queue, 0, 4, 1 << 20).count == 4
    assert log.read(queue, 0, 32, 3 * size + 1).count == 3
    assert log.read(queue, 0, 32, 1).count == 1
    assert log.read(queue, 8, 32, 1 << 20).next_offset == 10


def test_a_filter_skips_records_and_moves_on(log: Log, tools: Any) -> None:
    for number in range(6):
        tools.send(log, body=b"%d" % number, tag_code=number % 2)
    queue = log.queue("orders", 0)
    assert queue is not None
    found = log.read(queue, 0, 2, 1 << 20, lambda code, position, size: code == 1)
    assert [record.body for view in found.records for record in decode_records(view)] == [b"1", b"3"]
    assert found.next_offset == 4
    nothing = log.read(queue, 0, 32, 1 << 20, lambda code, position, size: False)
    assert (nothing.status, nothing.next_offset, nothing.count) == (ReadStatus.NO_MATCH, 6, 0)


@pytest.mark.parametrize(
    ("offset", "status", "next_offset"),
    [(3, ReadStatus.AT_END, 3), (4, ReadStatus.BEYOND_END, 3), (-1, ReadStatus.TOO_SMALL, 0)],
)
def test_a_read_outside_of_a_queue_says_where_to_go(
    log: Log, tools: Any, offset: int, status: ReadStatus, next_offset: int
) -> None:
    for _ in range(3):
        tools.send(log)
    queue = log.queue("orders", 0)
    assert queue is not None
    found = log.read(queue, offset, 32, 1000)
    assert (found.status, found.next_offset, found.min_offset, found.max_offset) == (status, next_offset, 0, 3)


def test_an_empty_queue_says_so(log: Log) -> None:
    queue = log.ensure_queue("orders", 0)
    found = log.read(queue, 5, 32, 1000)
    assert (found.status, found.next_offset) == (ReadStatus.EMPTY, 0)
    assert log.queue("orders", 1) is None
    assert log.queue("bills", 0) is None


def test_readers_see_nothing_beyond_the_readable_limit(log: Log, tools: Any) -> None:
    positions = [tools.send(log, body=b"%d" % number) for number in range(4)]
    log.readable_limit = positions[2]
    assert tools.bodies(log) == [b"0", b"1"]
    queue = log.queue("orders", 0)
    assert queue is not None
    assert log.read(queue, 2, 32, 1000).status is ReadStatus.AT_END
    assert log.record_at(positions[2]) is None
    log.readable_limit = log.written_position
    assert tools.bodies(log) == [b"0", b"1", b"2", b"3"]


def test_a_full_segment_ends_with_a_blank_and_nothing_crosses_it(log: Log, tools: Any, settings: StoreSettings) -> None:
    positions = [tools.send(log, body=bytes([number]) * 1000) for number in range(20)]
    starts = {position // settings.segment_bytes for position in positions}
    assert len(starts) == 3
    for first, second in zip(log.segments, list(log.segments)[1:], strict=False):
        view = log.segments.find(first.start).view  # type: ignore[union-attr]
        assert view is not None
        last = max(position for position in positions if position < second.start)
        end = last + len(log.record_at(last) or b"") - first.start
        assert int.from_bytes(view[end : end + 4], "big") == first.size - end >= 8
        assert int.from_bytes(view[end + 4 : end + 8], "big") == MAGIC_BLANK
    assert tools.bodies(log) == [bytes([number]) * 1000 for number in range(20)]


def test_one_write_may_fill_several_segments(log: Log, tools: Any) -> None:
    for number in range(40):
        tools.stage(log, body=bytes([number]) * 1000)
    log.write()
    assert tools.bodies(log) == [bytes([number]) * 1000 for number in range(40)]
    assert len(log.segments) == 6


def test_what_cannot_be_stored_is_refused_and_leaves_nothing(log: Log, tools: Any) -> None:
    with pytest.raises(MessageTooLargeError):
        tools.stage(log, body=b"x" * 8192)
    with pytest.raises(MessageTooLargeError):
        tools.stage(log, properties=b"x" * 32_768)
    with pytest.raises(UsageError):
        tools.stage(log, properties=b"KEYS\x01a\0b\x02")
    with pytest.raises(UsageError):
        log.ensure_queue("orders", 70_000)
    assert log.max_position == 0
    tools.send(log, body=b"fine")
    assert tools.bodies(log) == [b"fine"]


def test_store_timestamps_do_not_follow_a_small_step_back_of_the_clock(
    log: Log, tools: Any, clock: VirtualClock
) -> None:
    tools.send(log)
    clock.jump(-5_000)
    tools.send(log)
    clock.jump(-3_600_000)
    tools.send(log)
    first, second, third = (record.store_timestamp for record in tools.records(log, log.queue("orders", 0)))
    assert first == second
    assert third == first - 3_605_000


def test_waiters_of_a_queue_are_told_once_per_write(log: Log, tools: Any) -> None:
    told: list[set[str]] = []
    log.on_written = lambda queues: told.append({queue.topic for queue in queues})
    log.ensure_queue("orders", 0).waiters = ["somebody"]
    tools.stage(log, "orders")
    tools.stage(log, "orders")
    tools.stage(log, "bills")
    assert told == []
    log.write()
    log.write()
    assert told == [{"orders"}]


async def test_a_record_checksum_covers_the_whole_record(
    open_log: Callable[..., Any], settings: StoreSettings, tools: Any
) -> None:
    settings.record_crc = True
    log = await open_log()
    tools.send(log, properties=b"KEYS\x01a", body=b"x")
    record = tools.records(log, log.queue("orders", 0))[0]
    assert record.properties.startswith(b"KEYS\x01a\x02__CRC32#\x01")
    assert len(record.properties) == len(b"KEYS\x01a\x02") + 20


def test_a_checksum_from_elsewhere_is_left_out(log: Log, tools: Any) -> None:
    tools.send(log, properties=b"KEYS\x01a\x02__CRC32#\x010123456789\x02")
    tools.send(log, properties=b"note\x01something with # in it \x02")
    first, second = tools.records(log, log.queue("orders", 0))
    assert first.properties == b"KEYS\x01a\x02"
    assert second.properties == b"note\x01something with # in it \x02"


def test_a_dropped_topic_is_gone_and_goes_on_behind_its_end(log: Log, tools: Any) -> None:
    for _ in range(3):
        tools.send(log)
    log.drop_topic("orders")
    assert log.topics() == []
    assert log.queue("orders", 0) is None
    tools.send(log, body=b"new")
    queue = log.queue("orders", 0)
    assert queue is not None
    assert (log.min_offset(queue), log.max_offset(queue)) == (3, 4)
    assert tools.bodies(log) == [b"new"]


def test_the_record_at_a_position_is_found_only_where_one_begins(log: Log, tools: Any) -> None:
    position = tools.send(log)
    assert log.record_at(position) is not None
    for wrong in (position + 1, log.max_position, -1, 1 << 40):
        assert log.record_at(wrong) is None
