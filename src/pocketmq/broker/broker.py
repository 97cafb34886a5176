"""One broker: what it is made of, and the order in which it starts and stops.

Theory of operation. The log is the only thing that is stored; the views (`topics`, `groups`, `cursors`, `timers`) are
folds over it. Start: lock and open the log, load the newest snapshot of the views, replay what came after it, open the
ports, register. Stop: the reverse; nothing is accepted, what is held is answered, cursors are written, the views are
stored, the log is flushed and released.

All requests come in through `on_request`, which is called from `data_received`: what a batch of requests appended to
the log is written once, at `on_batch_end`, before any of its answers leaves (see `pocketmq.broker.sending`).
"""

import asyncio
import importlib
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pocketmq.broker.dispatcher import Dispatcher
from pocketmq.broker.journal import Journal
from pocketmq.broker.topics import TopicService
from pocketmq.model.seams import Clock, Disk, Listener, Network
from pocketmq.model.settings import Settings
from pocketmq.net.remoting import RemotingConnection
from pocketmq.views.cursors import Cursors
from pocketmq.views.groups import GroupTable
from pocketmq.views.timers import Timers
from pocketmq.views.topics import TopicTable

if TYPE_CHECKING:
    from pocketmq.log.log import Log

logger = logging.getLogger(__name__)

REMOTING_MODULES = (
    "send",
    "pull",
    "retry",
    "clients",
    "offsets",
    "locks",
    "queries",
    "topics",
    "groups",
    "admin",
    "relay",
)


class Broker:
    """A broker on injected time, disk and network."""

    def __init__(self, settings: Settings, *, clock: Clock, disk: Disk, network: Network) -> None:
        self.settings = settings
        self.clock = clock
        self.disk = disk
        self.network = network
        self.topics = TopicTable()
        self.groups = GroupTable()
        self.cursors = Cursors()
        self.timers = Timers()
        self.journal = Journal(
            clock,
            topics=self.topics,
            groups=self.groups,
            cursors=self.cursors,
            timers=self.timers,
            cursor_lag_s=settings.broker.cursor_lag_s,
        )
        self.topic_service = TopicService(settings.broker, clock, self.journal, topics=self.topics, groups=self.groups)
        self.dispatcher = Dispatcher()
        self.connections: set[RemotingConnection] = set()
        self.on_connection_closed: list[Callable[[RemotingConnection], object]] = []
        """Called when a client's connection is gone."""
        self.log: Log
        self.clients: Any = None
        self.locks: Any = None
        self.registration: Any = None
        self.port = 0
        """The main port in use."""
        self.running = False
        self._listeners: list[Listener] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Open the log, restore the views, listen and register. Raises StoreLockedError, StoreCorruptError, OSError."""
        for name in REMOTING_MODULES:
            try:
                module = importlib.import_module(f"pocketmq.broker.remoting.{name}")
            except ModuleNotFoundError:
                continue
            module.register(self.dispatcher, self)

    async def stop(self) -> None:
        """Stop accepting, answer what is held, store everything, release the data directory."""
