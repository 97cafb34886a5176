"""One broker: what it is made of, and the order in which it starts and stops.

Theory of operation. The log is the only thing that is stored; the views (`topics`, `groups`, `cursors`, `timers`) are
folds over it. Start: lock and open the log, load the newest snapshot of the views, replay what came after it, open the
ports, register. Stop: the reverse; nothing is accepted, what is held is answered, cursors are written, the views are
stored, the log is flushed and released.

All requests come in through `Dispatcher.handle`, which is called from `data_received`: what a batch of requests
appended to the log is written once, by the `AnswerGate` at the end of the batch, before any of its answers leaves.
"""

import asyncio
import importlib
import importlib.util
import logging
from collections.abc import Awaitable, Callable

from pocketmq.broker.clients import ClientRegistry
from pocketmq.broker.complaints import Complaints
from pocketmq.broker.delays import parse_levels
from pocketmq.broker.dispatcher import Dispatcher
from pocketmq.broker.gate import AnswerGate
from pocketmq.broker.handover import Handover
from pocketmq.broker.holds import Holds
from pocketmq.broker.journal import Journal
from pocketmq.broker.locks import QueueLocks
from pocketmq.broker.notices import ConsumerNotices
from pocketmq.broker.offsets import Offsets
from pocketmq.broker.origins import Origins
from pocketmq.broker.pulling import Pulling
from pocketmq.broker.queries import Queries
from pocketmq.broker.registration import Registration
from pocketmq.broker.remoting.clients import send_free_notice, send_notice
from pocketmq.broker.remoting.transactions import CheckSender, ready
from pocketmq.broker.retry import Retry
from pocketmq.broker.sending import Sending
from pocketmq.broker.snapshots import Snapshots
from pocketmq.broker.startup import create_system_topics, import_or_infer, open_log
from pocketmq.broker.statistics import Statistics
from pocketmq.broker.timers import TimerService
from pocketmq.broker.topics import TopicService
from pocketmq.broker.transaction_checks import TransactionChecks
from pocketmq.broker.transaction_upkeep import TransactionUpkeep
from pocketmq.broker.transactions import TransactionService
from pocketmq.log.recovery import Progress
from pocketmq.log.retention import Alarm, AlarmKind
from pocketmq.log.snapshots import SnapshotStore
from pocketmq.model.errors import StoreError
from pocketmq.model.seams import Clock, Disk, Network
from pocketmq.model.settings import Settings
from pocketmq.net.remoting import RemotingConnection
from pocketmq.net.server import RemotingServer
from pocketmq.views.cursors import Cursors
from pocketmq.views.groups import GroupTable
from pocketmq.views.journal import CursorReset, Entry, TopicDelete, TopicPut
from pocketmq.views.timers import Timers
from pocketmq.views.topics import TopicTable
from pocketmq.views.transactions import Transactions

logger = logging.getLogger(__name__)

REMOTING_MODULES = (
    "send",
    "pull",
    "retry",
    "replies",
    "clients",
    "offsets",
    "locks",
    "queries",
    "topics",
    "groups",
    "assignment",
    "admin",
    "relay",
    "transactions",
)
"""Modules of `pocketmq.broker.remoting`; each has `register(dispatcher, broker)`."""

HOUSEKEEPING_S = 10.0
VIP_PORT_DISTANCE = 2
"""The fast ("VIP") port is this much below the main port."""


class Broker:
    """A broker on injected time, disk and network.

    `progress` is called while the log is opened, with what the log says about how far it is.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        disk: Disk,
        network: Network,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.disk = disk
        self.network = network
        self._progress = progress
        self._complaints = Complaints(clock, logger)
        self.topics = TopicTable()
        self.groups = GroupTable()
        self.cursors = Cursors()
        self.timers = Timers()
        self.transactions = Transactions()
        self.statistics = Statistics(clock)
        self.clients = ClientRegistry(clock, expire_s=settings.broker.client_expire_s)
        self.locks = QueueLocks(settings.broker.queue_lock_s)
        self.holds = Holds(clock, settings.broker.held_pulls_max)
        self.notices = ConsumerNotices(clock, wanted=self._wants_notices, send=send_notice)
        self.clients.on_group_changed = self.notices.group_changed
        self.handover = Handover(clock, self.clients, self.locks, tell=send_free_notice)
        self.clients.on_consumer_joined = self.handover.joined
        self.clients.on_consumer_left = self.handover.left
        self.registration = Registration(settings.broker, self.topics, clock=clock, network=network)
        self.origins = Origins(settings.broker)
        self.dispatcher = Dispatcher()
        self.port = 0
        """The main port in use."""
        self.vip_port = 0
        self.running = False
        self.started_ms = 0
        self._opened = False
        self._listening = False
        self._tasks: set[asyncio.Task[None]] = set()

    # -- life --------------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Open the log, restore the views, listen and register.

        Raises StoreLockedError, StoreCorruptError, SettingError, OSError; nothing is left open then.
        """
        try:
            await self._open()
            await self._listen()
            self.running = True
            self.started_ms = self.clock.time_ms()
            self.delivery.start()
            self.statistics.start()
            self._run(self._snapshot_regularly)
            self._run(self._keep_house)
            self._run(self.transaction_checks.check_regularly)
            await self.registration.start(self.port)
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop accepting, answer what is held, store everything, release the data directory. Fine to call twice."""
        self.running = False
        if self._listening:
            self.server.stop_accepting()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.registration.stop()
        self.holds.close()
        self.notices.close()
        self.handover.close()
        self.statistics.close()
        await self.dispatcher.close()
        if self._listening:
            self._listening = False
            await self.server.stop()
        if self._opened:
            self._opened = False
            self.delivery.stop()
            await self._store_and_close()

    async def _store_and_close(self) -> None:
        try:
            self.journal.flush_cursors()
            await self.snapshots.save(self.log)
        except Exception as error:
            logger.error("the views could not be stored (%s); the next start replays more of the log", error)
        self.journal.close()
        await self.log.close()

    async def _open(self) -> None:
        settings = self.settings
        self.levels = parse_levels(settings.broker.delay_levels)
        self.journal = Journal(
            self.clock,
            topics=self.topics,
            groups=self.groups,
            cursors=self.cursors,
            timers=self.timers,
            transactions=self.transactions,
            cursor_lag_s=settings.broker.cursor_lag_s,
        )
        self.snapshots = Snapshots(
            SnapshotStore(self.disk, f"{settings.store.data_dir}/views"),
            topics=self.topics,
            groups=self.groups,
            cursors=self.cursors,
            timers=self.timers,
            transactions=self.transactions,
        )
        self.log = await open_log(
            self.disk,
            self.clock,
            settings.store,
            self.snapshots,
            self.journal,
            self.timers,
            self.transactions,
            self.levels,
            self._progress,
        )
        self.journal.attach(self.log)
        self._compose()
        self._opened = True
        await self.transaction_upkeep.mark_copies(self.snapshots.position)
        import_or_infer(self)
        create_system_topics(self)

    def _compose(self) -> None:
        """Everything that needs the log."""
        settings, log = self.settings, self.log
        self.topic_service = TopicService(
            settings.broker, self.clock, self.journal, log, topics=self.topics, groups=self.groups
        )
        self.delivery = TimerService(self.clock, log, self.journal, self.timers, self.levels)
        self.transaction_service = TransactionService(
            settings.broker, self.clock, log, self.transactions, statistics=self.statistics, levels=self.levels
        )
        self.transaction_upkeep = TransactionUpkeep(
            self.clock, log, self.journal, self.transactions, self.transaction_service
        )
        self.transaction_checks = TransactionChecks(
            settings.broker,
            self.clock,
            self.journal,
            self.transactions,
            self.transaction_service,
            self.clients,
            ready=ready,
            send=CheckSender(settings.broker.name).send,
        )
        self.offsets = Offsets(
            log,
            topics=self.topics,
            groups=self.groups,
            cursors=self.cursors,
            journal=self.journal,
            clients=self.clients,
        )
        self.queries = Queries(
            log,
            self.clock,
            topics=self.topics,
            cursors=self.cursors,
            clients=self.clients,
            offsets=self.offsets,
        )
        self.sending = Sending(
            settings,
            self.clock,
            log,
            topics=self.topics,
            topic_service=self.topic_service,
            timers=self.delivery,
            transactions=self.transaction_service,
            statistics=self.statistics,
            group_holds_locks=lambda group: self.locks.group_holds_locks(group, self.clock.monotonic()),
        )
        self.pulling = Pulling(
            settings,
            log,
            topics=self.topics,
            groups=self.groups,
            topic_service=self.topic_service,
            cursors=self.cursors,
            journal=self.journal,
            offsets=self.offsets,
        )
        self.retry = Retry(
            settings.broker,
            self.clock,
            log,
            topic_service=self.topic_service,
            timers=self.delivery,
            statistics=self.statistics,
        )
        self.gate = AnswerGate(log, self.sending, sync=settings.store.flush == "sync")
        self.journal.on_failed_write = self.gate.on_undone
        self.journal.listeners.append(self.sending.on_entry)
        self.journal.listeners.append(self._on_entry)
        log.on_written = self.holds.wake
        log.retention.before_delete = self._before_delete
        log.retention.on_alarm = self._on_alarm
        for name in REMOTING_MODULES:
            if importlib.util.find_spec(f"pocketmq.broker.remoting.{name}") is not None:
                importlib.import_module(f"pocketmq.broker.remoting.{name}").register(self.dispatcher, self)

    async def _listen(self) -> None:
        """Open the main port and the fast port below it; with port 0, any pair of free ones."""
        broker = self.settings.broker
        self.server = RemotingServer(
            self.clock,
            self.network,
            on_request=self.dispatcher.handle,
            on_batch_end=self.gate.end_batch,
            on_closed=self._closed,
            idle_s=broker.client_expire_s,
        )
        self._listening = True
        main = await self.server.listen(broker.host, broker.port)
        self.port = self.origins.port = main.port
        vip = await self.server.listen(broker.host, main.port - VIP_PORT_DISTANCE if broker.port else 0)
        self.vip_port = vip.port

    # -- connections -------------------------------------------------------------------------------------------------

    def _closed(self, connection: RemotingConnection) -> None:
        self.holds.drop_connection(connection)
        self.origins.forget(connection)
        self.clients.remove_connection(connection)

    def _wants_notices(self, group: str) -> bool:
        config = self.groups.get(group)
        return config is None or config.notify_consumer_ids_changed_enable

    # -- beside the requests -----------------------------------------------------------------------------------------

    def _on_entry(self, entry: Entry) -> None:
        if isinstance(entry, TopicPut):
            self.registration.topic_changed(entry.config.topic_name)
        elif isinstance(entry, TopicDelete):
            self.registration.topic_changed(entry.topic)
            for queue in self.log.queues_of(entry.topic):
                self.holds.answer_all(queue)
        elif isinstance(entry, CursorReset) and entry.announce:
            # Who waits at the end of the queue asks again at once, and is told.
            reset_queue = self.log.queue(entry.cursor.topic, entry.cursor.queue_id)
            if reset_queue is not None:
                self.holds.answer_all(reset_queue)

    def _on_alarm(self, alarm: Alarm) -> None:
        logger.log(logging.INFO if alarm.kind is AlarmKind.DISK_FINE else logging.WARNING, "%s", alarm.message)

    async def _before_delete(self, start: int, end: int) -> None:
        """The log is about to delete [start, end): keep what still lives there."""
        with self.log.retention.upkeep():
            self.delivery.carry_forward(start, end)
            self.transaction_upkeep.carry_forward(start, end)
        # What the journal says there must be in a stored state, since it cannot be replayed any more.
        if self.snapshots.position < end:
            await self.snapshots.save(self.log)
            if self.snapshots.position < end:
                raise StoreError("the stored views do not reach the end of the segment yet")

    def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        async def forever() -> None:
            while True:
                try:
                    await work()
                except Exception:
                    logger.exception("a background task of the broker failed; it goes on")

        task = asyncio.get_running_loop().create_task(forever())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _snapshot_regularly(self) -> None:
        await self.clock.sleep(self.settings.store.snapshot_interval_s)
        try:
            await self.snapshots.save(self.log)
        except OSError as error:
            self._complaints.warn(
                "views", f"the views cannot be stored ({error}); until they can, a restart takes longer"
            )

    async def _keep_house(self) -> None:
        await self.clock.sleep(HOUSEKEEPING_S)
        self.clients.expire()
        self.handover.expire()
        refusal = self.log.refusal
        for sentence in self.log.problems():
            if refusal is None or sentence != refusal.message:  # that was told when it began
                self._complaints.warn(sentence[:20], sentence)
