"""A network in memory: machines with addresses 10.0.0.x, delays, lost connections and partitions; from one seed.

    network = SimulatedNetwork(clock, seed=7)
    broker = Broker(settings, clock=clock, disk=disk, network=network.host("10.0.0.2"))
    network.partition({"10.0.0.2"}, {"10.0.0.3"})

Connections behave as TCP does: bytes arrive in order and whole or not at all; a partition holds them back until it is
healed; a process that is killed resets its connections, a machine that loses its power says nothing.
"""

import asyncio
import contextvars
import errno
import itertools
import os
from collections.abc import Callable, Iterable
from random import Random
from typing import Any

from pocketmq.model.seams import Cancellable, Clock, Network
from pocketmq.testing.transport import SimulatedTransport

DEFAULT_HOST = "10.0.0.1"
RETRANSMIT_SECONDS = 0.2
"""How much later a lost piece arrives."""

_ANY = frozenset({"", "0.0.0.0", "::"})
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_FIRST_FREE_PORT = 20_000
_FIRST_CLIENT_PORT = 40_000
_PORTS = 20_000


class SimulatedListener:
    """An open port of a simulated machine."""

    def __init__(self, machine: "SimulatedHost", host: str, port: int, protocol_factory: Callable[[], Any]) -> None:
        self.host = host
        self.port = port
        self.protocol_factory = protocol_factory
        self.context = contextvars.copy_context()
        self._machine = machine

    def close(self) -> None:
        """Accept no more; connections already open stay."""
        self._machine.close_port(self)


class SimulatedHost(Network):
    """One machine on a simulated network: the `Network` that its programs use."""

    def __init__(self, network: "SimulatedNetwork", address: str) -> None:
        self.address = address
        self.is_up = True
        self._network = network
        self._listeners: dict[int, SimulatedListener] = {}
        self._client_ports = itertools.cycle(range(_FIRST_CLIENT_PORT, _FIRST_CLIENT_PORT + _PORTS))
        self._free_ports = itertools.cycle(range(_FIRST_FREE_PORT, _FIRST_FREE_PORT + _PORTS))

    async def listen(self, host: str, port: int, protocol_factory: Callable[[], Any]) -> SimulatedListener:
        if host not in _ANY and host not in _LOOPBACK and host != self.address:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} is not an address of {self.address}")
        if port == 0:
            port = next(free for free in itertools.islice(self._free_ports, _PORTS) if free not in self._listeners)
        if port in self._listeners:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE), f"{host}:{port}")
        listener = self._listeners[port] = SimulatedListener(self, host, port, protocol_factory)
        return listener

    async def connect(self, host: str, port: int, protocol_factory: Callable[[], Any], *, timeout: float) -> Any:
        remote = self.address if host in _LOOPBACK or host in _ANY else host
        attempt = _Attempt(self._network, self, (remote, port), host in _LOOPBACK, protocol_factory)
        return await attempt.run(timeout)

    def close_port(self, listener: SimulatedListener) -> None:
        """Listen no more on the port of `listener`."""
        if self._listeners.get(listener.port) is listener:
            del self._listeners[listener.port]

    def close_ports(self) -> None:
        """Listen on no port any more."""
        self._listeners.clear()

    def listener(self, port: int, *, over_loopback: bool) -> SimulatedListener | None:
        """Who answers on that port."""
        listener = self._listeners.get(port)
        if listener is not None and listener.host in _LOOPBACK and not over_loopback:
            return None
        return listener

    def client_port(self) -> int:
        """A port for the near end of a new connection."""
        return next(self._client_ports)


class SimulatedNetwork(Network):
    """All machines and the wires between them. It is itself the `Network` of the first machine, 10.0.0.1.

    Args:
        clock: what delays wait on.
        seed: decides delays, losses and cuts.
        delay_s: shortest and longest time that a piece travels between two machines, in seconds; 0 within one.
        loss_rate: chance that a piece is lost and comes again after `RETRANSMIT_SECONDS`.
        reset_rate: chance that a piece breaks its connection.
        cut_rate: chance that a piece arrives as two.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        seed: int = 0,
        delay_s: tuple[float, float] = (0.0001, 0.001),
        loss_rate: float = 0.0,
        reset_rate: float = 0.0,
        cut_rate: float = 0.0,
    ) -> None:
        self.clock = clock
        self.delay_s = delay_s
        self.loss_rate = loss_rate
        self.reset_rate = reset_rate
        self.cut_rate = cut_rate
        self._random = Random(f"network {seed}")
        self._hosts: dict[str, SimulatedHost] = {}
        self._blocked: set[tuple[str, str]] = set()
        self._transports: dict[SimulatedTransport, SimulatedTransport] = {}
        self._waiting: list[Callable[[], None]] = []
        self._context = contextvars.copy_context()

    def host(self, address: str | None = None) -> SimulatedHost:
        """The machine of that address, made when it is first asked for; without an address, a new one."""
        if address is None:
            address = next(free for n in itertools.count(1) if (free := _address(n)) not in self._hosts)
        return self._hosts.setdefault(address, SimulatedHost(self, address))

    async def listen(self, host: str, port: int, protocol_factory: Callable[[], Any]) -> SimulatedListener:
        return await self.host(DEFAULT_HOST).listen(host, port, protocol_factory)

    async def connect(self, host: str, port: int, protocol_factory: Callable[[], Any], *, timeout: float) -> Any:
        return await self.host(DEFAULT_HOST).connect(host, port, protocol_factory, timeout=timeout)

    # Faults.

    def partition(self, some: Iterable[str], others: Iterable[str], *, one_way: bool = False) -> None:
        """Let nothing through from some machines to others, nor back unless it is `one_way`, until `heal`."""
        others = list(others)
        for one in some:
            for other in others:
                self._blocked.add((one, other))
                if not one_way:
                    self._blocked.add((other, one))

    def heal(self) -> None:
        """End every partition: what was held back arrives."""
        self._blocked.clear()
        self._go_on()

    def break_connections(self, one: str | None = None, other: str | None = None) -> int:
        """Break every connection (between two machines, or of one); both ends hear of it. Returns how many."""
        broken = 0
        for transport, peer in list(self._transports.items()):
            ends = {transport.host, peer.host}
            if transport in self._transports and (one is None or one in ends) and (other is None or other in ends):
                broken += 1
                self._break(transport, peer)
        return broken

    def crash(self, address: str, *, silently: bool = False) -> None:
        """End the programs of a machine: its ports close, and nobody there hears of it.

        The other ends of its connections get a reset, or, when it happens `silently` (a power loss), nothing: the
        machine answers nobody until `restart`.
        """
        machine = self.host(address)
        machine.close_ports()
        machine.is_up = not silently
        for transport, peer in list(self._transports.items()):
            if transport.host == address:
                del self._transports[transport]
                if not silently:
                    transport.reset_peer()
                transport.vanish()
                if peer.host == address:
                    peer.vanish()

    def restart(self, address: str) -> None:
        """Power the machine on again; its programs must listen anew."""
        self.host(address).is_up = True
        self._go_on()

    # What connections need; see `Wire`.

    def schedule(self, delay: float, callback: Callable[..., object], *args: Any) -> Cancellable:
        """Run a call in the network's own name."""
        return self._context.run(self.clock.call_later, delay, callback, *args)

    def now(self) -> float:
        """Seconds on the network's clock."""
        return self.clock.monotonic()

    def travel_seconds(self, source: str, target: str) -> float:
        """How long the next piece travels."""
        if source == target:
            return 0.0
        seconds = self._random.uniform(*self.delay_s)
        if self.loss_rate and self._random.random() < self.loss_rate:
            seconds += RETRANSMIT_SECONDS
        return seconds

    def is_blocked(self, source: str, target: str) -> bool:
        """Whether a partition, or a machine without power, lets nothing through."""
        if (source, target) in self._blocked:
            return True
        machine = self._hosts.get(target)
        return machine is None or not machine.is_up

    def cut(self, data: bytes) -> list[bytes]:
        """The pieces in which `data` arrives."""
        if self.cut_rate and len(data) > 1 and self._random.random() < self.cut_rate:
            place = self._random.randrange(1, len(data))
            return [data[:place], data[place:]]
        return [data]

    def forget(self, transport: SimulatedTransport) -> None:
        """An end is gone."""
        self._transports.pop(transport, None)

    def join(self, near: SimulatedTransport, far: SimulatedTransport) -> None:
        """Make two ends one connection."""
        near.join(far)
        far.join(near)
        self._transports[near] = far
        self._transports[far] = near

    def wait_for_heal(self, step: Callable[[], None]) -> None:
        """Call `step` when something changes in what is blocked."""
        self._waiting.append(step)

    def breaks(self, transport: SimulatedTransport) -> bool:
        """Whether the piece that arrives from `transport` breaks the connection; then it is broken."""
        if not self.reset_rate or self._random.random() >= self.reset_rate:
            return False
        self._break(transport, self._transports.get(transport))
        return True

    def _go_on(self) -> None:
        waiting, self._waiting = self._waiting, []
        for step in waiting:
            self.schedule(0, step)
        for transport in list(self._transports):
            transport.resume()

    def _break(self, *ends: SimulatedTransport | None) -> None:
        for end in ends:
            if end is not None:
                self._transports.pop(end, None)
                end.lose(ConnectionResetError("the simulated network broke the connection"))


class _Attempt:
    """One try to connect: the way there, the answer, the way back; each held back while it is blocked."""

    def __init__(
        self,
        network: SimulatedNetwork,
        near: SimulatedHost,
        remote: tuple[str, int],
        over_loopback: bool,
        protocol_factory: Callable[[], Any],
    ) -> None:
        self._network = network
        self._near = near
        self._remote = remote
        self._over_loopback = over_loopback
        self._protocol_factory = protocol_factory
        self._context = contextvars.copy_context()
        self._done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._ends: tuple[SimulatedTransport, ...] = ()

    async def run(self, timeout: float) -> Any:
        timer = self._network.schedule(timeout, self._fail, TimeoutError(f"no answer from {self._remote} in time"))
        self._travel(self._near.address, self._remote[0], self._arrive)
        try:
            return await self._done
        except BaseException:
            for end in self._ends:
                end.lose(ConnectionResetError("Connection reset by peer"))
            raise
        finally:
            timer.cancel()

    def _travel(self, source: str, target: str, step: Callable[[], None]) -> None:
        self._network.schedule(self._network.travel_seconds(source, target), self._pass, source, target, step)

    def _pass(self, source: str, target: str, step: Callable[[], None]) -> None:
        if self._done.done():
            return
        if self._network.is_blocked(source, target):
            self._network.wait_for_heal(lambda: self._travel(source, target, step))
        else:
            step()

    def _fail(self, error: OSError) -> None:
        if not self._done.done():
            self._done.set_exception(error)

    def _arrive(self) -> None:
        host, port = self._remote
        far = self._network.host(host)
        listener = far.listener(port, over_loopback=self._over_loopback)
        if listener is None:
            error = ConnectionRefusedError(errno.ECONNREFUSED, f"nobody listens on {host}:{port}")
            self._travel(host, self._near.address, lambda: self._fail(error))
            return
        protocol = listener.context.copy().run(listener.protocol_factory)
        local = (self._near.address, self._near.client_port())
        far_end = SimulatedTransport(
            self._network, protocol, local=self._remote, remote=local, context=listener.context
        )
        near_end = SimulatedTransport(self._network, None, local=local, remote=self._remote, context=self._context)
        self._network.join(near_end, far_end)
        self._ends = (near_end, far_end)
        near_end.pause_reading()
        far_end.open()
        self._travel(host, self._near.address, lambda: self._complete(near_end))

    def _complete(self, near_end: SimulatedTransport) -> None:
        if self._done.done() or near_end.is_closing():
            self._fail(ConnectionResetError("Connection reset by peer"))
            return
        protocol = self._context.copy().run(self._protocol_factory)
        near_end.set_protocol(protocol)
        near_end.open()
        near_end.resume_reading()
        self._done.set_result(protocol)


def _address(number: int) -> str:
    return f"10.0.{number // 255}.{number % 255}"
