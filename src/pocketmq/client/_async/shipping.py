"""What a lane sends: entries with those who wait for receipts, shipments that take their answers, departures."""

import asyncio
from typing import Protocol

import msgspec

from pocketmq.model.message import Message, SendReceipt
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import Header


class Lane(Protocol):
    """What a shipment and a departure need of the lane they belong to."""

    def depart(self) -> RemotingConnection | None:
        """Queue what may leave now; the connection that must be flushed then."""

    def abandon(self, error: Exception) -> None:
        """Departing failed for a reason that nobody thought of: nothing may wait for ever."""

    def arrived(self, shipment: "Shipment", answer: Command) -> None:
        """A request was answered."""

    def lost(self, shipment: "Shipment", error: BaseException) -> None:
        """A request will not be answered."""


class ReadyHeader(Header):
    """A header that is JSON already, put together from what is the same for all messages of a queue and what is not."""

    json: str

    def ext_json(self) -> str:
        """The JSON."""
        return self.json

    def to_ext(self) -> dict[str, str]:
        """The fields, for a binary header."""
        return msgspec.json.decode(self.json, type=dict[str, str])


class Entry(msgspec.Struct):
    """One message in a lane."""

    message: Message
    body: bytes
    properties: str
    properties_bytes: bytes
    sys_flag: int
    mergeable: bool
    deadline: float
    receipt: "asyncio.Future[SendReceipt]"


class Shipment:
    """The messages of one request that is on its way; takes its answer."""

    __slots__ = ("address", "entries", "lane")

    def __init__(self, lane: Lane, entries: list[Entry], address: str) -> None:
        self.lane = lane
        self.entries = entries
        self.address = address

    def done(self) -> bool:
        """An answer is always wanted: the lane waits for it to go on."""
        return False

    def set_result(self, answer: Command, /) -> None:
        """The broker answered."""
        self.lane.arrived(self, answer)

    def set_exception(self, error: BaseException, /) -> None:
        """There will be no answer."""
        self.lane.lost(self, error)


class Departures:
    """Lanes with something to send: all depart at the end of the loop turn, in one write to each connection."""

    __slots__ = ("_lanes", "_loop")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._lanes: list[Lane] = []

    def add(self, lane: Lane) -> None:
        """The lane departs with the others."""
        if not self._lanes:
            self._loop.call_soon(self._go)
        self._lanes.append(lane)

    def _go(self) -> None:
        lanes, self._lanes = self._lanes, []
        connections = []
        for lane in lanes:
            try:
                connections.append(lane.depart())
            except Exception as error:
                lane.abandon(error)
        for connection in connections:
            if connection is not None:
                connection.flush()
