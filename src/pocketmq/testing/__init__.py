"""What a test of anything that talks to a broker needs. Public API.

An embedded server (`EmbeddedServer`), time that a test owns (`VirtualLoop`, `VirtualClock`, `AdvanceableClock`), a disk
and a network that fail on demand (`SimulatedDisk`, `SimulatedNetwork`), every crash point of a run (`explore`), and a
fake for each replaceable part of the SDK (`pocketmq.testing.fakes`).

Names are loaded when they are first used: the pytest plugin lives here and is imported by every pytest run.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.testing.clock import AdvanceableClock as AdvanceableClock
    from pocketmq.testing.clock import VirtualClock as VirtualClock
    from pocketmq.testing.crash import BrokenPromiseError as BrokenPromiseError
    from pocketmq.testing.crash import explore as explore
    from pocketmq.testing.disk import PowerLoss as PowerLoss
    from pocketmq.testing.disk import SimulatedDisk as SimulatedDisk
    from pocketmq.testing.embedded import AsyncEmbeddedServer as AsyncEmbeddedServer
    from pocketmq.testing.embedded import EmbeddedServer as EmbeddedServer
    from pocketmq.testing.loop import DeadlockError as DeadlockError
    from pocketmq.testing.loop import VirtualLoop as VirtualLoop
    from pocketmq.testing.loop import run as run
    from pocketmq.testing.machine import Machine as Machine
    from pocketmq.testing.network import SimulatedNetwork as SimulatedNetwork
    from pocketmq.testing.process import ServerProcess as ServerProcess
    from pocketmq.testing.program import Program as Program
    from pocketmq.testing.raw import RawClient as RawClient

_HOMES = {
    "AdvanceableClock": "clock",
    "AsyncEmbeddedServer": "embedded",
    "BrokenPromiseError": "crash",
    "DeadlockError": "loop",
    "EmbeddedServer": "embedded",
    "Machine": "machine",
    "PowerLoss": "disk",
    "Program": "program",
    "RawClient": "raw",
    "ServerProcess": "process",
    "SimulatedDisk": "disk",
    "SimulatedNetwork": "network",
    "VirtualClock": "clock",
    "VirtualLoop": "loop",
    "explore": "crash",
    "run": "loop",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
