"""Moving in: settings and cursors of a data directory that Apache RocketMQ wrote.

A Java broker keeps them beside its log, in `config/*.json` as fastjson prints it, each with the copy before it as
`.bak`. They are read once, when the directory has no journal of ours yet, and become journal entries like any other;
the files are left as they are. Topics that have messages but no settings (a lost file) are inferred from the log.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.model.names import JOURNAL_TOPIC, SCHEDULE_TOPIC, SYSTEM_TOPICS
from pocketmq.views.journal import Cursor, CursorReset, Entry, GroupPut, TopicPut
from pocketmq.wire import fastjson

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Disk
    from pocketmq.views.topics import TopicTable

logger = logging.getLogger(__name__)

CONFIG_FOLDER = "config"
FILE_BYTES_MAX = 1 << 30

T = TypeVar("T")


def import_entries(disk: "Disk", data_dir: str, now_ms: int) -> list[Entry]:
    """The entries that a Java broker's configuration amounts to; empty when there is none."""
    topics = _configs(_load(disk, data_dir, "topics.json"), "topicConfigTable", TopicConfig)
    groups = _configs(_load(disk, data_dir, "subscriptionGroup.json"), "subscriptionGroupTable", GroupConfig)
    return [
        *(TopicPut(config, now_ms) for config in topics),
        *(GroupPut(config, now_ms) for config in groups),
        *_cursors(_load(disk, data_dir, "consumerOffset.json")),
    ]


def delivered_positions(disk: "Disk", data_dir: str, log: "Log") -> list[int]:
    """Log positions of the delayed messages that the Java broker had delivered already (`delayOffset.json`)."""
    table = _table(_load(disk, data_dir, "delayOffset.json"), "offsetTable")
    positions: list[int] = []
    for level, offset in table.items():
        queue = log.queue(SCHEDULE_TOPIC, int(level) - 1) if str(level).isdigit() else None
        if queue is None or not isinstance(offset, int):
            continue
        start = log.min_offset(queue)
        positions.extend(unit[0] for unit in log.units(queue, start, max(0, offset - start)))
    return positions


def infer_topics(log: "Log", topics: "TopicTable", now_ms: int) -> list[Entry]:
    """Settings for topics that have messages but no settings: as many queues as were written to."""
    entries: list[Entry] = []
    for topic in log.topics():
        if topic in topics or topic == JOURNAL_TOPIC or topic in SYSTEM_TOPICS:
            continue
        count = max((queue.queue_id for queue in log.queues_of(topic)), default=0) + 1
        logger.warning("the topic %s has messages but no settings; it gets %d queues", topic, count)
        entries.append(TopicPut(TopicConfig(topic_name=topic, read_queue_nums=count, write_queue_nums=count), now_ms))
    return entries


def _load(disk: "Disk", data_dir: str, name: str) -> dict[str, Any]:
    """One file, or its copy when the file is missing or damaged; empty when there is neither."""
    for path in (f"{data_dir}/{CONFIG_FOLDER}/{name}", f"{data_dir}/{CONFIG_FOLDER}/{name}.bak"):
        if not disk.exists(path):
            continue
        file = disk.open(path)
        try:
            content = fastjson.loads(file.read_at(0, min(file.size, FILE_BYTES_MAX)))
        except Exception as error:
            logger.warning("%s cannot be read (%s)", path, error)
            continue
        finally:
            file.close()
        if isinstance(content, dict):
            return content
    return {}


def _table(content: dict[str, Any], name: str) -> dict[Any, Any]:
    table = content.get(name)
    return table if isinstance(table, dict) else {}


def _configs(content: dict[str, Any], name: str, kind: type[T]) -> Iterable[T]:
    for key, value in _table(content, name).items():
        try:
            yield msgspec.convert(value, kind, strict=False)
        except msgspec.ValidationError as error:
            logger.warning("the settings of %s cannot be read and are left out: %s", key, error)


def _cursors(content: dict[str, Any]) -> Iterable[Entry]:
    for key, queues in _table(content, "offsetTable").items():
        # Group names hold no "@"; topics hold none either.
        topic, _, group = str(key).partition("@")
        if not group or not isinstance(queues, dict):
            continue
        for queue_id, offset in queues.items():
            try:
                yield CursorReset(Cursor(group, topic, int(queue_id), int(offset)))
            except (TypeError, ValueError):
                logger.warning("the cursor %s of queue %s cannot be read: %r", key, queue_id, offset)
