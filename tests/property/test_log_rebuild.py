"""An index that is made again from the log is the index that was made while the log was written."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.log.log import Log
from pocketmq.log.memory_disk import MemoryDisk
from pocketmq.model.hashing import tag_code
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import run
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.properties import find_property
from pocketmq.wire.record import SysFlag

HOSTS = [pack_host("10.0.0.1", 1), pack_host("2001:db8::1", 1)]

entries = st.sampled_from(
    [
        b"TAGS\x01a\x02",
        b"TAGS\x01b\x02",
        b"TAGS\x01\x02",
        b"TAGS\x01\xc3\xa4\x02",
        b"MYTAGS\x01no\x02",
        b"note\x01TAGS\x02",
        b"KEYS\x01k1 k2\x02",
        b"UNIQ_KEY\x01u\x02",
        b"__CRC32#\x01not one\x02",
        b"__CRC32#\x010123456789\x02",
        b"long\x01" + b"v" * 600 + b"\x02",
    ]
)
properties = (
    st.lists(entries, max_size=5)
    .map(b"".join)
    .flatmap(lambda data: st.sampled_from([data, data.removesuffix(b"\x02")]))
)
records = st.tuples(
    st.sampled_from(["orders", "t" * 127, "t" * 128]),
    st.integers(0, 2),
    st.one_of(st.binary(max_size=200), st.sampled_from([b"", b"\xda\xa3\x20\xa7" * 30, b"\0" * 100, b"x" * 70_000])),
    properties,
    st.sampled_from([(0, 0), (0, 0), (0, 0), (0, 1), (1, 0), (1, 1)]),
    st.sampled_from([0, 0, SysFlag.TRANSACTION_COMMIT, SysFlag.COMPRESSED]),
)


def units_of(log: Log) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
    return {(queue.topic, queue.queue_id): list(log.units(queue, 0, 1000)) for queue in log.queues}


@given(st.lists(records, max_size=40), st.booleans())
@settings(max_examples=50, deadline=None)
def test_the_index_can_be_made_again_from_the_log(sent: list[Any], record_crc: bool) -> None:
    store = StoreSettings(data_dir="/data", segment_bytes=1 << 18, index_stretch_bytes=1 << 15, record_crc=record_crc)
    disk = MemoryDisk()

    async def write() -> dict[Any, Any]:
        log = await Log.open(disk, VirtualClock(), store)
        for topic, queue_id, body, text, (born, stored), flag in sent:
            queue = log.ensure_queue(topic, queue_id)
            code = tag_code((find_property(text, b"TAGS") or b"").decode())
            sys_flag = flag | (SysFlag.BORN_HOST_V6 if born else 0) | (SysFlag.STORE_HOST_V6 if stored else 0)
            log.append(queue, body, text, 0, sys_flag, 0, HOSTS[born], HOSTS[stored], 0, 0, code)
            log.write()
        units = units_of(log)
        await log.close()
        return units

    async def rebuild() -> dict[Any, Any]:
        for name in disk.list_folder("/data/index"):
            disk.remove(f"/data/index/{name}")
        log = await Log.open(disk, VirtualClock(), store)
        assert log.recovery.cut_position is None
        assert log.recovery.scanned_records == len(sent)
        units = units_of(log)
        await log.close()
        return units

    written = run(write())
    assert run(rebuild()) == written
