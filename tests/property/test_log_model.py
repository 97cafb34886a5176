"""A log does what a dict of lists does, whatever is appended, read, failed, deleted and reopened in which order."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pocketmq.log.log import Log
from pocketmq.model.errors import StoreFullError
from pocketmq.model.settings import StoreSettings
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.disk import SimulatedDisk
from pocketmq.testing.loop import run
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.record import decode_records

HOST = pack_host("10.0.0.1", 10911)
TOPICS = ["orders", "b" * 130, "%RETRY%g"]

Step = tuple[Any, ...]

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.sampled_from(TOPICS),
            st.integers(0, 2),
            st.integers(0, 900),
            st.booleans(),
        ),
        st.tuples(st.just("write")),
        st.tuples(st.just("fail")),
        st.tuples(st.just("wait"), st.sampled_from([0.01, 1.0, 30.0])),
        st.tuples(st.just("close")),
        st.tuples(st.just("kill")),
        st.tuples(st.just("delete oldest")),
        st.tuples(st.just("drop"), st.sampled_from(TOPICS)),
        st.tuples(st.just("read"), st.sampled_from(TOPICS), st.integers(0, 2), st.integers(0, 40), st.integers(1, 40)),
    ),
    max_size=60,
)


@dataclass
class Model:
    """What the log must hold."""

    written: dict[tuple[str, int], list[bytes]] = field(default_factory=dict)
    staged: list[tuple[tuple[str, int], bytes]] = field(default_factory=list)
    first: dict[tuple[str, int], int] = field(default_factory=dict)
    positions: dict[tuple[str, int], list[int]] = field(default_factory=dict)
    count: int = 0

    def write(self) -> None:
        for name, body in self.staged:
            self.written.setdefault(name, []).append(body)
        self.staged.clear()


class Run:
    """One sequence of steps over a log and its model."""

    def __init__(self, store: StoreSettings) -> None:
        self.store = store
        self.disk = SimulatedDisk(7)
        self.model = Model()
        self.log: Log

    async def open(self) -> None:
        self.log = await Log.open(self.disk, VirtualClock(), self.store)

    async def step(self, step: Step) -> None:
        model, log = self.model, self.log
        match step:
            case ("append", topic, queue_id, size, write):
                queue = log.ensure_queue(topic, queue_id)
                body = b"%d " % model.count + b"x" * size
                model.count += 1
                log.append(queue, body, b"KEYS\x01k%d\x02" % model.count, 0, 0, 0, HOST, HOST)
                model.staged.append(((topic, queue_id), body))
                if write:
                    log.write()
                    model.write()
            case ("write",):
                log.write()
                model.write()
            case ("fail",) if model.staged:
                self.disk.fail("write", path="commitlog")
                try:
                    log.write()
                except StoreFullError:
                    model.staged.clear()
                else:
                    raise AssertionError("a write that failed was not reported")
            case ("wait", seconds):
                await log.clock.sleep(seconds)
            case ("close",):
                await log.close()
                model.write()
                await self.open()
            case ("delete oldest",):
                log.write()
                model.write()
                await log.clock.sleep(1)
                if await log.retention.delete_oldest():
                    for name in model.written:
                        found = log.queue(*name)
                        if found is not None:
                            model.first[name] = found.min_offset
            case ("drop", topic):
                log.drop_topic(topic)
                model.write()
                for name, bodies in model.written.items():
                    if name[0] == topic:
                        model.first[name] = len(bodies)
                await log.clock.sleep(1)
            case ("read", topic, queue_id, offset, count):
                self.check_read(topic, queue_id, offset, count)
            case _:
                pass

    def check_read(self, topic: str, queue_id: int, offset: int, count: int) -> None:
        queue = self.log.queue(topic, queue_id)
        name = (topic, queue_id)
        if queue is None:
            assert len(self.model.written.get(name, [])) == self.model.first.get(name, 0), name
            return
        self.model.write()  # a read writes what is staged
        first = self.model.first.get(name, 0)
        bodies = self.model.written.get(name, [])
        found = self.log.read(queue, offset, count, 1 << 20)
        assert (found.min_offset, found.max_offset) == (first, len(bodies))
        records = [record for view in found.records for record in decode_records(view, check_crc=True)]
        expected = bodies[offset : offset + count] if first <= offset else []
        assert [record.body for record in records] == expected
        assert [record.queue_offset for record in records] == list(range(offset, offset + len(expected)))

    def check_all(self) -> None:
        self.log.write()
        self.model.write()
        for topic, queue_id in self.model.written:
            for offset in range(0, 100, 7):
                self.check_read(topic, queue_id, offset, 100)


@given(steps, st.sampled_from([4096, 16_384]), st.sampled_from([2048, 100_000]))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_log_is_a_dict_of_lists(script: list[Step], segment_bytes: int, stretch_bytes: int) -> None:
    world = Run(StoreSettings(data_dir="data", segment_bytes=segment_bytes, index_stretch_bytes=stretch_bytes))
    lives: list[list[Step]] = [[]]
    for step in script:
        if step == ("kill",):
            lives.append([])
        else:
            lives[-1].append(step)

    async def live(part: list[Step], *, last: bool) -> None:
        await world.open()
        world.check_all()
        for step in part:
            await world.step(step)
        world.check_all()
        if last:
            await world.log.close()
            await world.open()
            world.check_all()
            await world.log.close()

    for number, part in enumerate(lives):
        run(live(part, last=number == len(lives) - 1))
        world.disk = world.disk.kill()
