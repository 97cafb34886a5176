"""Taking messages in: checks, properties, the record in the log.

Theory of operation. `send` and `send_batch` check one request and append its records to the log, *staged*: nothing is
on disk yet, no reader sees it. Whoever calls them calls `flush` once for all that belongs together (the requests that
arrived in one read of a connection), and answers only after that. When the log could not take what was staged, `flush`
raises and everything staged since the last flush is gone, as if never sent.

What a topic needs to take messages (its settings, its queues in the log, its counters) is looked up once and kept in a
`Target`, until the topic changes. Messages that need more than appending (delays, retry topics, transactions) are told
from their property string by substring tests, and take the slow road.

The order of the checks and their codes is RocketMQ's.
"""

import os
import random
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from pocketmq.broker.delays import plan_delay
from pocketmq.broker.halves import is_half
from pocketmq.broker.origins import Origin
from pocketmq.broker.send_plans import NO_TRANSACTION, SendPlan, plan_sends
from pocketmq.broker.targets import Target, bad_body, no_such_queue, properties_too_long
from pocketmq.model.config import Permission
from pocketmq.model.errors import BodyError, PocketMQError, StoreError
from pocketmq.model.hashing import java_string_hash, tag_code
from pocketmq.model.limits import PROPERTIES_BYTES_MAX, TOPIC_CHARS_MAX
from pocketmq.model.names import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS, check_topic
from pocketmq.views.journal import Entry, TopicDelete, TopicPut
from pocketmq.wire.batch import split_batch
from pocketmq.wire.binary_send import SendShape
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.ids import UniqueKeys
from pocketmq.wire.properties import PropertyKey, decode_properties, encode_properties, find_property
from pocketmq.wire.record import SysFlag

if TYPE_CHECKING:
    from pocketmq.broker.statistics import Statistics
    from pocketmq.broker.timers import TimerService
    from pocketmq.broker.topics import TopicService
    from pocketmq.broker.transactions import TransactionService
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import Settings
    from pocketmq.views.topics import TopicTable

UNIQUE_KEY_MARK = PropertyKey.UNIQUE_KEY + "\x01"
TAGS_MARK = PropertyKey.TAGS + "\x01"
TAGS_MARK_BYTES = TAGS_MARK.encode()
TARGETS_MAX = 100_000
Stored = tuple[int, int, int, bytes]
"""What was appended: queue id as asked for, offset in the queue it was written to, log position, unique key."""


class Sending:
    """The send path of a broker."""

    def __init__(
        self,
        settings: "Settings",
        clock: "Clock",
        log: "Log",
        *,
        topics: "TopicTable",
        topic_service: "TopicService",
        timers: "TimerService",
        transactions: "TransactionService",
        statistics: "Statistics",
        group_holds_locks: Callable[[str], bool],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._append = log.append
        self._topics = topics
        self._topic_service = topic_service
        self._timers = timers
        self._transactions = transactions
        self._statistics = statistics
        self._unique_keys = UniqueKeys(bytes(4), os.getpid(), random.getrandbits(32))
        self._group_holds_locks = group_holds_locks
        self._targets: dict[str, Target] = {}
        self._random_below = random.Random().randrange
        self._added = encode_properties(
            {
                PropertyKey.MESSAGE_REGION: settings.broker.region,
                PropertyKey.TRACE_ON: "true" if settings.broker.trace_on else "false",
                PropertyKey.CLUSTER: settings.broker.cluster,
            }
        ).encode()

    def on_entry(self, entry: Entry) -> None:
        """A topic changed: look it up again."""
        if isinstance(entry, TopicPut):
            self._targets.pop(entry.config.topic_name, None)
        elif isinstance(entry, TopicDelete):
            self._targets.pop(entry.topic, None)

    # -- one message -------------------------------------------------------------------------------------------------

    def send(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: str,
        origin: Origin,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        reconsume_times: int,
        default_topic: str,
        default_queues: int,
        max_reconsume_times: int | None,
    ) -> Stored:
        """Stage one message; `queue_id` below 0 means any queue.

        Raises PocketMQError with the code that the protocol has for the reason; nothing is staged then.
        """
        target = self._targets.get(topic) or self._find_target(topic, default_topic, default_queues)
        if queue_id < 0:
            queue_id = self._random_below(target.write_queues) if target.write_queues else 0
        try:
            queue = target.queues[queue_id]
        except IndexError:
            raise no_such_queue(target, queue_id) from None
        if queue is None:
            queue = target.queues[queue_id] = self._log.ensure_queue(topic, queue_id)
        if not 0 < len(body) <= self._settings.store.message_bytes_max:
            raise bad_body(len(body), self._settings.store.message_bytes_max)
        before, _, unique_key = properties.partition(UNIQUE_KEY_MARK)
        if (
            not unique_key
            or (before and before[-1] != "\x02")
            or "DELAY" in properties
            or "TIMER_" in properties
            or "TRAN_MSG" in properties
            or "MSG_REGION" in properties
            or "POP_CK" in properties
            or target.special
        ):
            return self._send_special(
                target,
                queue_id,
                body,
                properties,
                origin,
                flag,
                sys_flag,
                born_timestamp,
                reconsume_times,
                max_reconsume_times,
            )
        if properties[-1] != "\x02":
            properties += "\x02"
        before, _, tag = properties.partition(TAGS_MARK)
        if not tag:
            code = 0
        elif not before or before[-1] == "\x02":
            code = java_string_hash(tag.partition("\x02")[0])
        else:
            code = tag_code(decode_properties(properties).get(PropertyKey.TAGS))
        encoded = properties.encode() + self._added
        if len(encoded) > PROPERTIES_BYTES_MAX:
            raise properties_too_long(len(encoded))
        position = self._append(
            queue,
            body,
            encoded,
            flag,
            sys_flag & NO_TRANSACTION | origin.host_flags,
            born_timestamp,
            origin.born_host,
            origin.store_host,
            reconsume_times,
            0,
            code,
        )
        series = target.series
        series.messages += 1
        series.size_bytes += len(body)
        return queue_id, queue.next_offset - 1, position, unique_key.partition("\x02")[0].encode()

    def plan(self, shape: SendShape) -> SendPlan | None:
        """How messages of this shape are stored; None when each must be looked at."""
        return plan_sends(shape, self._added)

    def send_planned(
        self, plan: SendPlan, queue_id: int, body: bytes, unique_key: bytes, origin: Origin, born_timestamp: int
    ) -> tuple[int, int] | None:
        """Stage one message by its plan; returns its offset in the queue and its log position.

        None when there is more to it than that, and nothing is staged: `send` knows what to do, or to refuse.
        """
        topic, flag, sys_flag, reconsume_times, key_mark, behind_key, code, _ = plan
        target = self._targets.get(topic)
        if (
            target is None
            or target.special
            or queue_id >= len(target.queues)
            or not 0 < len(body) <= self._settings.store.message_bytes_max
        ):
            return None
        queue = target.queues[queue_id]
        if queue is None:
            queue = target.queues[queue_id] = self._log.ensure_queue(topic, queue_id)
        position = self._append(
            queue,
            body,
            key_mark + unique_key + behind_key,
            flag,
            sys_flag | origin.host_flags,
            born_timestamp,
            origin.born_host,
            origin.store_host,
            reconsume_times,
            0,
            code,
        )
        series = target.series
        series.messages += 1
        series.size_bytes += len(body)
        return queue.next_offset - 1, position

    def _send_special(
        self,
        target: Target,
        queue_id: int,
        body: bytes,
        text: str,
        origin: Origin,
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        reconsume_times: int,
        max_reconsume_times: int | None,
    ) -> Stored:
        """The slow road: the same, for messages and topics that need more."""
        config = target.config
        if config.order and not self._settings.broker.permission & Permission.WRITE:
            raise PocketMQError(
                f"the broker takes no messages for the ordered topic {target.topic} now",
                code=ResponseCode.NO_PERMISSION,
            )
        if config.topic_filter_type == "MULTI_TAG":
            sys_flag |= SysFlag.MULTI_TAGS
        if "TRAN_MSG" in text and is_half(target.topic, text, reconsume_times):
            return self._transactions.send_half(
                target.topic, queue_id, body, text, origin, flag, sys_flag, born_timestamp, reconsume_times
            )
        properties = decode_properties(text)
        topic, stored_queue_id, due_ms = target.topic, queue_id, None
        if topic.startswith(RETRY_PREFIX):
            topic, stored_queue_id = self._retry_or_dead_letter(
                target, queue_id, properties, reconsume_times, max_reconsume_times
            )
        properties.pop(PropertyKey.POP_CHECK_POINT, None)
        now = self._clock.time_ms()
        if PropertyKey.UNIQUE_KEY not in properties:
            properties[PropertyKey.UNIQUE_KEY] = self._unique_keys.next(now)
        broker = self._settings.broker
        properties[PropertyKey.MESSAGE_REGION] = broker.region
        properties[PropertyKey.TRACE_ON] = "true" if broker.trace_on else "false"
        properties[PropertyKey.CLUSTER] = broker.cluster
        plan = plan_delay(
            properties,
            topic,
            stored_queue_id,
            now_ms=now,
            levels=self._timers.levels,
            delay_max_ms=int(broker.delay_max_s * 1000),
        )
        if plan is not None:
            topic, stored_queue_id, due_ms = plan
        encoded = encode_properties(properties).encode()
        if len(encoded) > PROPERTIES_BYTES_MAX:
            raise properties_too_long(len(encoded))
        queue = self._log.ensure_queue(topic, stored_queue_id)
        position = self._append(
            queue,
            body,
            encoded,
            flag,
            sys_flag & NO_TRANSACTION | origin.host_flags,
            born_timestamp,
            origin.born_host,
            origin.store_host,
            reconsume_times,
            0,
            tag_code(properties.get(PropertyKey.TAGS)),
        )
        if due_ms is not None:
            self._timers.stage(due_ms, position)
        target.series.add(1, len(body))
        return queue_id, queue.next_offset - 1, position, properties[PropertyKey.UNIQUE_KEY].encode()

    def _retry_or_dead_letter(
        self,
        target: Target,
        queue_id: int,
        properties: dict[str, str],
        reconsume_times: int,
        max_reconsume_times: int | None,
    ) -> tuple[str, int]:
        """Where a message goes that a consumer sends to its own retry topic: there, or to the dead letters."""
        name = target.topic.removeprefix(RETRY_PREFIX)
        group = self._topic_service.group_for(name)
        if group is None:
            raise PocketMQError(
                f"the consumer group {name} does not exist; create it with `pocketmq group create {name}`",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        most = group.retry_max_times if max_reconsume_times is None else max_reconsume_times
        if reconsume_times <= most and not self._group_holds_locks(name):
            return target.topic, queue_id
        properties[PropertyKey.DELAY] = "-1"
        return self._topic_service.ensure_dead_letter_topic(name).topic_name, 0

    # -- a batch -----------------------------------------------------------------------------------------------------

    def send_batch(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        origin: Origin,
        sys_flag: int,
        born_timestamp: int,
        default_topic: str,
        default_queues: int,
    ) -> tuple[int, int, list[int]]:
        """Stage the messages of one batch body; returns queue id, offset of the first, and all log positions.

        Raises PocketMQError as `send` does; either all of them are staged or none.
        """
        target = self._targets.get(topic) or self._find_target(topic, default_topic, default_queues)
        if topic.startswith(RETRY_PREFIX) or len(topic) > TOPIC_CHARS_MAX:
            raise PocketMQError(
                f"batches cannot be sent to {topic}; send its messages one by one", code=ResponseCode.MESSAGE_ILLEGAL
            )
        if target.config.order and not self._settings.broker.permission & Permission.WRITE:
            raise PocketMQError(
                f"the broker takes no messages for the ordered topic {topic} now", code=ResponseCode.NO_PERMISSION
            )
        if queue_id < 0:
            queue_id = self._random_below(target.write_queues) if target.write_queues else 0
        try:
            queue = target.queues[queue_id]
        except IndexError:
            raise no_such_queue(target, queue_id) from None
        if queue is None:
            queue = target.queues[queue_id] = self._log.ensure_queue(topic, queue_id)
        if not 0 < len(body) <= self._settings.store.message_bytes_max:
            raise bad_body(len(body), self._settings.store.message_bytes_max)
        try:
            messages = split_batch(body)
        except BodyError as error:
            raise PocketMQError(error.message, code=ResponseCode.MESSAGE_ILLEGAL, cause=error) from None
        coded = []
        last_tag, code = b"", 0
        for flag, each, properties in messages:
            if not each or 0 in properties:
                raise PocketMQError(
                    "a message of the batch has no body, or a NUL character in its properties",
                    code=ResponseCode.MESSAGE_ILLEGAL,
                )
            before, _, tag = properties.partition(TAGS_MARK_BYTES)
            if tag and before and before[-1] != 2:
                tag = find_property(properties, b"TAGS") or b""
            if tag != last_tag:
                # The messages of a batch mostly have the same tag, and it mostly comes last.
                last_tag, code = tag, _tag_code_of(tag.partition(b"\x02")[0])
            coded.append((flag, each, properties, code))
        first_offset = queue.next_offset
        positions = self._log.append_batch(
            queue,
            coded,
            sys_flag & NO_TRANSACTION | origin.host_flags,
            born_timestamp,
            origin.born_host,
            origin.store_host,
        )
        target.series.add(len(messages), len(body))
        return queue_id, first_offset, positions

    # -- what is staged ----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what is staged, so that readers see it. Raises StoreFullError, and then nothing of it exists."""
        transactions = self._transactions
        try:
            if transactions.busy:
                transactions.append_marks()
            self._log.write()
        except StoreError:
            self.drop_staged()
            raise
        self._timers.commit_staged()
        if transactions.busy:
            transactions.commit_staged()

    def drop_staged(self) -> None:
        """The log lost what was staged: nothing of it happened."""
        self._timers.drop_staged()
        self._transactions.drop_staged()

    # -- topics ------------------------------------------------------------------------------------------------------

    def _find_target(self, topic: str, default_topic: str, default_queues: int) -> Target:
        if topic in SEND_FORBIDDEN_TOPICS:
            raise PocketMQError(
                f"the topic {topic} belongs to the broker; messages cannot be sent to it",
                code=ResponseCode.NO_PERMISSION,
            )
        config = self._topics.get(topic)
        if config is None:
            check_topic(topic)
            config = self._topic_service.create_for_send(topic, default_topic, default_queues)
        if len(self._targets) >= TARGETS_MAX:
            self._targets.clear()
        target = self._targets[topic] = Target(config, self._statistics.topic(topic))
        return target


@lru_cache(maxsize=65_536)
def _tag_code_of(tag: bytes) -> int:
    return tag_code(tag.decode(errors="replace"))
