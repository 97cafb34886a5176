"""What happens between an opened data directory and an open port: replay, import, system topics."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from pocketmq.broker.halves import fold_transaction_record
from pocketmq.broker.java_config import delivered_positions, import_entries, infer_topics
from pocketmq.broker.timers import fold_record
from pocketmq.broker.transactions import CHECKS_GROUP
from pocketmq.log.log import Log
from pocketmq.log.recovery import Progress, RecoveryReport
from pocketmq.log.scanner import ReplayedRecord
from pocketmq.model.config import Permission, TopicConfig
from pocketmq.model.errors import StoreCorruptError
from pocketmq.model.names import (
    AUTO_CREATE_TOPIC,
    BENCHMARK_TOPIC,
    CHECK_MAX_TOPIC,
    HALF_OP_TOPIC,
    HALF_TOPIC,
    JOURNAL_TOPIC,
    OFFSET_MOVED_TOPIC,
    SCHEDULE_TOPIC,
    SELF_TEST_TOPIC,
    TIMER_TOPIC,
)
from pocketmq.views.journal import CursorReset, Entry, HalvesEnded, TimersFired, TopicPut

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.broker.journal import Journal
    from pocketmq.broker.snapshots import Snapshots
    from pocketmq.model.seams import Clock, Disk
    from pocketmq.model.settings import StoreSettings
    from pocketmq.views.timers import Timers
    from pocketmq.views.transactions import Transactions

logger = logging.getLogger(__name__)

TRANSACTION_TOPICS = frozenset({HALF_TOPIC, HALF_OP_TOPIC, CHECK_MAX_TOPIC})
REPLAYED_TOPICS = TRANSACTION_TOPICS | {JOURNAL_TOPIC, SCHEDULE_TOPIC, TIMER_TOPIC}
BENCHMARK_QUEUES = 1024
CLUSTER_QUEUES = 16


async def open_log(
    disk: "Disk",
    clock: "Clock",
    settings: "StoreSettings",
    snapshots: "Snapshots",
    journal: "Journal",
    timers: "Timers",
    transactions: "Transactions",
    levels: Sequence[int],
    progress: Callable[[Progress], None] | None,
) -> Log:
    """Open the log and bring the views to its end: the newest snapshot, then what was written after it."""

    def replay(replayed: ReplayedRecord) -> None:
        record = replayed.record
        if replayed.topic == JOURNAL_TOPIC:
            try:
                journal.replay(record.body)
            except msgspec.MsgspecError as error:
                message = (
                    f"the journal record at position {replayed.position} cannot be read ({error}); it was written by "
                    "a newer version, or is damaged"
                )
                if not settings.accept_damage:
                    raise StoreCorruptError(message, cause=error) from error
                logger.error("%s; what it says is left out", message)
            return
        if replayed.topic in TRANSACTION_TOPICS:
            fold_transaction_record(transactions, record)
            return
        fold_record(
            timers,
            topic=replayed.topic,
            queue_id=replayed.queue_id,
            position=replayed.position,
            store_timestamp=record.store_timestamp,
            properties=record.properties,
            levels=levels,
        )

    log = await Log.open(
        disk,
        clock,
        settings,
        replay=replay,
        replay_from=snapshots.restore(),
        replay_topics=REPLAYED_TOPICS,
        progress=progress,
    )
    for note in log.recovery.notes:
        logger.warning("%s", note)
    _tell_of_cut(log.recovery)
    return log


def _tell_of_cut(report: RecoveryReport) -> None:
    if report.cut_position is not None:
        logger.log(
            logging.WARNING if report.cut_records else logging.INFO,
            "the log ended in what was not completely written at position %d (%s) and goes on there%s",
            report.cut_position,
            report.cut_reason,
            f"; {report.cut_records} whole messages behind it are kept in {report.cut_file}" if report.cut_file else "",
        )


def import_or_infer(broker: "Broker") -> None:
    """On a directory without any state of ours: take over a Java broker's, and infer what it lacks from the log."""
    now = broker.clock.time_ms()
    data_dir = broker.settings.store.data_dir
    if not len(broker.topics) and broker.log.queue(JOURNAL_TOPIC, 0) is None:
        entries = import_entries(broker.disk, data_dir, now)
        if entries:
            outdated = broker.transaction_upkeep.outdated(max(map(_offset_of_checks, entries)))
            broker.journal.write([HalvesEnded(outdated), *entries] if outdated else entries)
            logger.info("took over %d settings and cursors of a RocketMQ broker from %s/config", len(entries), data_dir)
        delivered = set(delivered_positions(broker.disk, data_dir, broker.log))
        fired = [position for _, position in broker.timers.pending() if position in delivered]
        if fired:
            broker.journal.write([TimersFired(fired)])
    inferred = infer_topics(broker.log, broker.topics, now)
    if inferred:
        broker.journal.write(inferred)


def _offset_of_checks(entry: Entry) -> int:
    """How far the broker before had come in the half topic, when the entry says that; else 0."""
    if isinstance(entry, CursorReset):
        cursor = entry.cursor
        if (cursor.group, cursor.topic, cursor.queue_id) == (CHECKS_GROUP, HALF_TOPIC, 0):
            return cursor.offset
    return 0


def create_system_topics(broker: "Broker") -> None:
    """The topics that every broker has, those that are missing."""
    settings = broker.settings.broker
    inherited = int(Permission.READ_WRITE | Permission.INHERIT)
    wanted = [
        _topic(AUTO_CREATE_TOPIC, settings.default_topic_queues, inherited),
        _topic(SCHEDULE_TOPIC, len(broker.levels)),
        _topic(BENCHMARK_TOPIC, BENCHMARK_QUEUES),
        _topic(settings.cluster, CLUSTER_QUEUES, inherited),
        _topic(settings.name, 1, inherited),
        _topic(f"{settings.cluster}_REPLY_TOPIC", 1),
        *(
            _topic(name, 1)
            for name in (
                SELF_TEST_TOPIC,
                OFFSET_MOVED_TOPIC,
                HALF_TOPIC,
                HALF_OP_TOPIC,
                CHECK_MAX_TOPIC,
                TIMER_TOPIC,
                *([settings.trace_topic_name] if settings.trace_topic else []),
            )
        ),
    ]
    now = broker.clock.time_ms()
    missing: list[Entry] = [TopicPut(config, now) for config in wanted if config.topic_name not in broker.topics]
    if missing:
        broker.journal.write(missing)


def _topic(name: str, queues: int, permission: int = int(Permission.READ_WRITE)) -> TopicConfig:
    return TopicConfig(topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=permission)
