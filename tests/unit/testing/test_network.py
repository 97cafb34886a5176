"""The simulated network behaves as TCP between machines does, faults included."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pocketmq.model.seams import Network
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.loop import run
from pocketmq.testing.network import SimulatedHost, SimulatedNetwork
from pocketmq.testing.transport import READ_BYTES_MAX, WINDOW_BYTES


class Recorder(asyncio.Protocol):
    """Writes down all that happens to a connection; echoes what it receives when asked to."""

    def __init__(self, *, echo: bool = False) -> None:
        self.echo = echo
        self.events: list[Any] = []
        self.received = bytearray()
        self.pieces: list[int] = []
        self.ended = asyncio.Event()
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.pieces.append(len(data))
        if self.echo:
            self.transport.write(data)

    def eof_received(self) -> None:
        self.events.append("eof")

    def pause_writing(self) -> None:
        self.events.append("pause")

    def resume_writing(self) -> None:
        self.events.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append(("lost", type(exc)))
        self.ended.set()


class World:
    """Two machines; a server with an echo on the second."""

    def __init__(self, **settings: Any) -> None:
        self.clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, **settings)
        self.near: SimulatedHost = self.network.host("10.0.0.1")
        self.far: SimulatedHost = self.network.host("10.0.0.2")
        self.accepted: list[Recorder] = []

    def accept(self) -> Recorder:
        self.accepted.append(Recorder(echo=True))
        return self.accepted[-1]

    async def connect(self, timeout: float = 3.0) -> Recorder:
        connection = await self.near.connect("10.0.0.2", 9876, Recorder, timeout=timeout)
        assert isinstance(connection, Recorder)
        return connection


def played(scenario: Callable[[World], Awaitable[None]], **settings: Any) -> World:
    """The world after a scenario was played in it, on virtual time."""

    async def main() -> World:
        world = World(**settings)
        await world.far.listen("0.0.0.0", 9876, world.accept)
        await scenario(world)
        return world

    return run(main())


def test_bytes_go_there_and_back_in_order() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        for number in range(100):
            near.transport.write(b"%d," % number)
        await world.clock.sleep(1)
        assert near.received == b"".join(b"%d," % number for number in range(100))
        assert near.transport.get_extra_info("peername") == ("10.0.0.2", 9876)
        assert world.accepted[0].transport.get_extra_info("peername")[0] == "10.0.0.1"
        assert near.events == world.accepted[0].events == ["made"]

    played(scenario)


def test_it_takes_time_between_machines_and_none_within_one() -> None:
    async def scenario(world: World) -> None:
        begun = world.clock.monotonic()
        await world.connect()
        assert world.clock.monotonic() - begun == pytest.approx(0.02)
        begun = world.clock.monotonic()
        await world.far.connect("127.0.0.1", 9876, Recorder, timeout=1)
        assert world.clock.monotonic() == begun

    played(scenario, delay_s=(0.01, 0.01))


def test_closing_delivers_what_was_written_before() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        near.transport.write(b"last words")
        near.transport.close()
        near.transport.write(b"nobody hears this")
        await world.clock.sleep(1)
        assert world.accepted[0].received == b"last words"
        assert world.accepted[0].events == ["made", "eof", ("lost", type(None))]
        assert near.events == ["made", ("lost", type(None))]

    played(scenario)


def test_aborting_resets_the_other_end() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        near.transport.abort()
        await world.clock.sleep(1)
        assert world.accepted[0].events == ["made", ("lost", ConnectionResetError)]
        assert near.events == ["made", ("lost", type(None))]

    played(scenario)


def test_half_a_connection_can_be_closed() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        near.transport.write(b"question")
        near.transport.write_eof()
        await world.clock.sleep(1)
        assert near.received == b"question"
        assert near.events == ["made", "eof", ("lost", type(None))]

    played(scenario)


def test_a_port_where_nobody_listens_refuses() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(ConnectionRefusedError):
            await world.near.connect("10.0.0.2", 1, Recorder, timeout=1)

    played(scenario)


def test_a_machine_that_does_not_exist_answers_never() -> None:
    async def scenario(world: World) -> None:
        with pytest.raises(TimeoutError):
            await world.near.connect("10.0.0.77", 1, Recorder, timeout=7)
        assert world.clock.monotonic() == 7

    played(scenario)


def test_ports_are_taken_free_and_given_back() -> None:
    async def scenario(world: World) -> None:
        network: Network = world.far
        with pytest.raises(OSError, match="in use") as caught:
            await network.listen("0.0.0.0", 9876, Recorder)
        assert caught.value.errno == errno.EADDRINUSE
        with pytest.raises(OSError, match="not an address"):
            await network.listen("10.0.0.1", 9876, Recorder)
        one, other = [await network.listen("0.0.0.0", 0, Recorder) for _ in range(2)]
        assert one.port != other.port
        one.close()
        await network.listen("0.0.0.0", one.port, Recorder)

    played(scenario)


def test_a_port_on_loopback_is_for_its_own_machine() -> None:
    async def scenario(world: World) -> None:
        await world.far.listen("127.0.0.1", 5000, Recorder)
        await world.far.connect("localhost", 5000, Recorder, timeout=1)
        with pytest.raises(ConnectionRefusedError):
            await world.near.connect("10.0.0.2", 5000, Recorder, timeout=1)

    played(scenario)


def test_the_network_itself_is_the_first_machine() -> None:
    async def scenario(world: World) -> None:
        listener = await world.network.listen("127.0.0.1", 0, Recorder)
        connection = await world.network.connect("127.0.0.1", listener.port, Recorder, timeout=1)
        assert connection.transport.get_extra_info("sockname")[0] == "10.0.0.1"
        assert world.network.host().address == "10.0.0.3"

    played(scenario)


def test_a_reader_that_pauses_makes_the_writer_pause() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        world.accepted[0].echo = False
        world.accepted[0].transport.pause_reading()
        near.transport.write(b"x" * WINDOW_BYTES)
        await world.clock.sleep(1)
        assert near.events == ["made"]
        near.transport.write(b"x" * 100_000)
        await world.clock.sleep(1)
        assert near.transport.get_write_buffer_size() == 100_000
        assert near.events == ["made", "pause"]
        near.transport.close()
        await world.clock.sleep(1)
        assert not near.ended.is_set()
        world.accepted[0].transport.resume_reading()
        await world.clock.sleep(1)
        assert len(world.accepted[0].received) == WINDOW_BYTES + 100_000
        assert max(world.accepted[0].pieces) <= READ_BYTES_MAX
        assert near.events == ["made", "pause", "resume", ("lost", type(None))]

    played(scenario)


def test_a_partition_holds_bytes_back_until_it_is_healed() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        world.network.partition(["10.0.0.1"], ["10.0.0.2"])
        near.transport.write(b"hello")
        await world.clock.sleep(600)
        assert world.accepted[0].received == b""
        with pytest.raises(TimeoutError):
            await world.connect()
        late = asyncio.create_task(world.connect(timeout=60))
        await world.clock.sleep(30)
        world.network.heal()
        await world.clock.sleep(1)
        assert near.received == b"hello"
        assert (await late).events == ["made"]

    played(scenario)


def test_a_partition_can_be_of_one_direction() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        world.network.partition(["10.0.0.2"], ["10.0.0.1"], one_way=True)
        near.transport.write(b"hello")
        await world.clock.sleep(10)
        assert world.accepted[0].received == b"hello"
        assert near.received == b""

    played(scenario)


def test_a_broken_connection_is_heard_of_at_both_ends() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        near.transport.write(b"lost on the way")
        assert world.network.break_connections("10.0.0.1", "10.0.0.9") == 0
        assert world.network.break_connections("10.0.0.1", "10.0.0.2") == 1
        await world.clock.sleep(1)
        assert near.events == world.accepted[0].events == ["made", ("lost", ConnectionResetError)]
        assert world.accepted[0].received == b""

    played(scenario)


def test_a_killed_process_resets_its_connections_and_hears_nothing() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        world.network.crash("10.0.0.2")
        await world.clock.sleep(1)
        assert near.events == ["made", ("lost", ConnectionResetError)]
        assert world.accepted[0].events == ["made"]
        with pytest.raises(ConnectionRefusedError):
            await world.connect()

    played(scenario)


def test_a_machine_without_power_says_nothing_until_it_is_back() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        world.network.crash("10.0.0.2", silently=True)
        near.transport.write(b"are you there?")
        with pytest.raises(TimeoutError):
            await world.connect()
        await world.clock.sleep(100)
        assert near.events == ["made"]
        world.network.restart("10.0.0.2")
        await world.clock.sleep(1)
        assert near.events == ["made", ("lost", ConnectionResetError)]

    played(scenario)


def test_lost_pieces_come_later_and_in_order_and_pieces_may_be_cut() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        sent = b"".join(b"%05d" % number for number in range(1000))
        for number in range(1000):
            near.transport.write(sent[number * 5 : number * 5 + 5])
            await world.clock.sleep(0.01)
        await world.clock.sleep(5)
        assert near.received == sent
        assert set(world.accepted[0].pieces) > {1, 2, 3, 4, 5}

    played(scenario, loss_rate=0.05, cut_rate=0.5)


def test_connections_break_at_random_when_asked_to() -> None:
    async def scenario(world: World) -> None:
        near = await world.connect()
        while not near.ended.is_set():
            near.transport.write(b"x")
            await world.clock.sleep(0.01)
        assert near.events[-1] == ("lost", ConnectionResetError)

    played(scenario, reset_rate=0.01)


def test_a_protocol_that_fails_loses_its_connection() -> None:
    async def scenario(world: World) -> None:
        reported: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context["exception"]))
        near = await world.connect()
        world.accepted[0].data_received = lambda data: 1 / 0  # type: ignore[method-assign,assignment]
        near.transport.write(b"x")
        await world.clock.sleep(1)
        assert [type(error) for error in reported] == [ZeroDivisionError]
        assert world.accepted[0].events == ["made", ("lost", ZeroDivisionError)]
        assert near.events == ["made", ("lost", ConnectionResetError)]

    played(scenario)


def test_the_same_seed_gives_the_same_run() -> None:
    def pieces(seed: int) -> list[int]:
        async def scenario(world: World) -> None:
            near = await world.connect()
            for _ in range(200):
                near.transport.write(b"12345")
                await world.clock.sleep(0.001)
            await world.clock.sleep(5)

        return played(scenario, seed=seed, cut_rate=0.3, loss_rate=0.1).accepted[0].pieces

    assert pieces(1) == pieces(1)
    assert pieces(1) != pieces(2)
