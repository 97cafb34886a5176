"""Where a scenario is played: the simulation, or a cluster that runs somewhere.

In the simulation the name server, the broker and every client have a machine of their own, all on one virtual loop: so
each can be killed, lose its power or stand still. On a real cluster there are only clients, time passes as it does, and
names of topics and groups get an ending of their own for each run.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any, Protocol, TypeVar

import pocketmq
from pocketmq.admin import Admin, connect_admin
from pocketmq.broker.broker import Broker
from pocketmq.client import Client
from pocketmq.client.parts import Cursors
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.model.seams import Clock
from pocketmq.model.setting_table import find, read_value, set_value
from pocketmq.model.settings import Settings
from pocketmq.namesrv.server import NameServer
from pocketmq.net.clock import SystemClock
from pocketmq.testing.clock import VirtualClock
from pocketmq.testing.machine import Machine
from pocketmq.testing.network import SimulatedNetwork

Result = TypeVar("Result")

NAME_SERVER, BROKER = "nameserver", "broker"
PRODUCER_GROUP = "producers"
SEGMENT_BYTES = 16 * 1024 * 1024
_SYSTEM_TOPICS = frozenset({"TRANS_CHECK_MAX_TIME_TOPIC", "SCHEDULE_TOPIC_XXXX", "TBW102"})


class Stage(Protocol):
    """What the steps need of the place where they are played."""

    clock: Clock
    admin: Admin
    tolerance_s: float
    """How much later than expected something may happen."""

    def real(self, name: str) -> str:
        """The name that a topic or group of the scenario has there."""

    def client(self, name: str) -> Client:
        """The client of that name; made when it is first asked for."""

    def has_client(self, name: str) -> bool:
        """Whether there is a client of that name."""

    async def call(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        """Run something as a part of the client of that name."""

    async def close_client(self, name: str) -> None:
        """Close a client in good order."""


class RealStage:
    """A cluster that runs somewhere."""

    tolerance_s = 5.0

    def __init__(self, namesrv: str, ending: str) -> None:
        self.clock: Clock = SystemClock()
        self.admin = connect_admin(namesrv)
        self._namesrv = namesrv
        self._ending = ending
        self._clients: dict[str, Client] = {}

    def real(self, name: str) -> str:
        return name if name in _SYSTEM_TOPICS else f"{name}-{self._ending}"

    def client(self, name: str) -> Client:
        if name not in self._clients:
            self._clients[name] = pocketmq.connect(self._namesrv, producer_group=self.real(PRODUCER_GROUP))
        return self._clients[name]

    def has_client(self, name: str) -> bool:
        return name in self._clients

    async def call(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        return await work

    async def close_client(self, name: str) -> None:
        await self._clients.pop(name).close()

    async def close(self) -> None:
        """Close everything."""
        for name in list(self._clients):
            await self.close_client(name)
        await self.admin.close()


class SimulatedStage:
    """A cluster on virtual time, on the running `VirtualLoop`. Its machines are in `machines`, by name.

    Raises SettingError for a setting that does not exist or a value that it cannot take.
    """

    tolerance_s = 1.5

    def __init__(self, settings: Mapping[str, str], seed: int) -> None:
        self.settings = _settings(settings)
        self.seed = seed
        self.clock: Clock = VirtualClock()
        self.network = SimulatedNetwork(self.clock, seed=seed)
        self.machines = {
            NAME_SERVER: Machine(self.network, "10.0.0.1", seed=seed),
            BROKER: Machine(self.network, "10.0.0.2", seed=seed + 1),
        }
        driver = Machine(self.network, "10.0.0.3", seed=seed)
        self.admin = connect_admin("10.0.0.1:9876", clock=driver.clock, network=driver.network)
        self.broker: Broker | None = None
        self._running: dict[str, NameServer | Broker | Client] = {}

    # -- servers -----------------------------------------------------------------------------------------------------

    async def start(self, name: str) -> None:
        """Start the name server or the broker, with power if it has none, and wait until it serves."""
        machine = self.machine(name)
        if not machine.is_on:
            machine.power_on()
        await machine.start(self._serve_names if name == NAME_SERVER else self._serve)

    async def stop(self, name: str) -> None:
        """Stop a server or close a client, in good order."""
        running = self._running.pop(name, None)
        if isinstance(running, NameServer | Broker):
            await self.call(name, running.stop())
        elif running is not None:
            await self.call(name, running.close())

    def machine(self, name: str) -> Machine:
        """The machine of a server or client. Raises ValueError."""
        if name not in self.machines:
            raise ValueError(f"there is no {name!r} in this scenario; there are {', '.join(self.machines)}")
        return self.machines[name]

    def kill(self, name: str) -> None:
        """End it as SIGKILL does."""
        self._running.pop(name, None)
        self.machine(name).kill()

    def power_off(self, name: str) -> None:
        """Take its power away."""
        self._running.pop(name, None)
        self.machine(name).power_off()

    async def _serve_names(self, machine: Machine) -> None:
        server = NameServer(self.settings, clock=machine.clock, network=machine.network, disk=machine.disk)
        await server.start()
        self._running[NAME_SERVER] = server

    async def _serve(self, machine: Machine) -> None:
        machine.disk.clock = machine.clock
        broker = Broker(self.settings, clock=machine.clock, network=machine.network, disk=machine.disk)
        await broker.start()
        self._running[BROKER] = self.broker = broker

    # -- clients -----------------------------------------------------------------------------------------------------

    def real(self, name: str) -> str:
        return name

    def client(self, name: str) -> Client:
        found = self._running.get(name)
        if isinstance(found, Client):
            return found
        if name not in self.machines:
            self.machines[name] = Machine(self.network, seed=self.seed)
        machine = self.machines[name]
        if not machine.is_on:
            machine.power_on()
        client = self._running[name] = pocketmq.connect(
            "10.0.0.1:9876",
            clock=machine.clock,
            network=machine.network,
            producer_group=PRODUCER_GROUP,
            random_source=Random(f"{self.seed} {name} {machine.clock.time_ms()}"),
        )
        return client

    def has_client(self, name: str) -> bool:
        return isinstance(self._running.get(name), Client)

    async def call(self, name: str, work: Coroutine[Any, Any, Result]) -> Result:
        async def main(machine: Machine) -> Result:
            return await work

        return await self.machine(name).start(main)

    async def close_client(self, name: str) -> None:
        await self.stop(name)

    async def close(self) -> None:
        """Close everything that runs."""
        for name in reversed(list(self._running)):
            await self.stop(name)
        await self.admin.close()


class MemoryCursors(Cursors):
    """Positions of a broadcasting consumer, in memory: a scenario writes no files."""

    def __init__(self) -> None:
        self._positions: dict[tuple[str, Any], int] = {}

    async def load(self, group: str, queue: Any) -> int | None:
        return self._positions.get((group, queue))

    async def store(self, group: str, positions: Mapping[Any, int], *, final: bool) -> None:
        self._positions.update({(group, queue): position for queue, position in positions.items()})


def plain(name: str) -> str:
    """The group of a retry or dead-letter topic, or the name itself."""
    return name.removeprefix(RETRY_PREFIX).removeprefix(DLQ_PREFIX)


def moment(time_ms: int) -> datetime:
    """Milliseconds since the epoch, as the SDK takes times."""
    return datetime.fromtimestamp(time_ms / 1000, UTC)


def _settings(changes: Mapping[str, str]) -> Settings:
    settings = Settings()
    settings.namesrv.host = settings.broker.host = "0.0.0.0"
    settings.broker.namesrv = "10.0.0.1:9876"
    settings.broker.advertise = "10.0.0.2"
    settings.store.data_dir = "data"
    settings.store.segment_bytes = SEGMENT_BYTES
    for name, value in changes.items():
        row, java = find(name)
        set_value(settings, row, read_value(row, value, java=java))
    return settings


async def pause(stage: Stage, seconds: float) -> None:
    """Let time pass on the stage."""
    await stage.clock.sleep(seconds)
    await asyncio.sleep(0)
