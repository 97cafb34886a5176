"""What a consumer could not process: back to it later, or to the dead letters.

The copy goes to `%RETRY%<group>` through a delay level that grows with every attempt, and after the last attempt to
`%DLQ%<group>`. It keeps body, properties and origin, and counts one attempt more.
"""

import random
from typing import TYPE_CHECKING

from pocketmq.broker.delays import plan_delay
from pocketmq.model.config import Permission
from pocketmq.model.errors import PocketMQError, RecordError
from pocketmq.model.hashing import tag_code
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.ids import encode_offset_id
from pocketmq.wire.properties import PropertyKey, decode_properties, encode_properties
from pocketmq.wire.record import Record, decode_record

if TYPE_CHECKING:
    from pocketmq.broker.origins import Origin
    from pocketmq.broker.statistics import Statistics
    from pocketmq.broker.timers import TimerService
    from pocketmq.broker.topics import TopicService
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import BrokerSettings

FIRST_RETRY_LEVEL = 3
"""The first retry waits this delay level (10 s), each further one a level more."""


class Retry:
    """Sends messages back to their group."""

    def __init__(
        self,
        settings: "BrokerSettings",
        clock: "Clock",
        log: "Log",
        *,
        topic_service: "TopicService",
        timers: "TimerService",
        statistics: "Statistics",
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._topic_service = topic_service
        self._timers = timers
        self._statistics = statistics
        self._random_below = random.Random().randrange

    def send_back(
        self,
        group_name: str,
        position: int,
        delay_level: int,
        origin: "Origin",
        *,
        max_reconsume_times: int | None = None,
    ) -> None:
        """Stage a copy of the record at `position` for another attempt of the group.

        `delay_level` 0 lets the broker choose, below 0 means: to the dead letters. Raises PocketMQError 26, 16, 1.
        """
        group = self._topic_service.group_for(group_name)
        if group is None:
            raise PocketMQError(
                f"subscription group not exist, {group_name}; create it with `pocketmq group create {group_name}`",
                code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST,
            )
        if not self._settings.permission & Permission.WRITE:
            raise PocketMQError(
                "this broker takes no messages now (setting broker.permission)", code=ResponseCode.NO_PERMISSION
            )
        if group.retry_queue_nums <= 0:
            return
        retry_topic = self._topic_service.ensure_retry_topic(group)
        record = self._read(position)
        properties = decode_properties(record.properties.decode(errors="replace"))
        properties.setdefault(PropertyKey.RETRY_TOPIC, record.topic)
        properties.setdefault(PropertyKey.ORIGIN_MESSAGE_ID, encode_offset_id(record.store_host, position))
        properties[PropertyKey.WAIT] = "false"
        attempts_max = group.retry_max_times if max_reconsume_times is None else max_reconsume_times
        if attempts_max == -1:
            attempts_max = 16
        due_ms = None
        dead = delay_level < 0 or record.reconsume_times >= attempts_max
        if dead:
            topic, queue_id = self._topic_service.ensure_dead_letter_topic(group_name).topic_name, 0
            properties[PropertyKey.DELAY] = "0"
        else:
            queue_id = self._random_below(retry_topic.write_queue_nums)
            properties[PropertyKey.DELAY] = str(delay_level or FIRST_RETRY_LEVEL + record.reconsume_times)
            plan = plan_delay(
                properties,
                retry_topic.topic_name,
                queue_id,
                now_ms=self._clock.time_ms(),
                levels=self._timers.levels,
                delay_max_ms=int(self._settings.delay_max_s * 1000),
            )
            topic = retry_topic.topic_name
            if plan is not None:
                topic, queue_id, due_ms = plan
        stored_at = self._log.append(
            self._log.ensure_queue(topic, queue_id),
            record.body,
            encode_properties(properties).encode(),
            record.flag,
            record.sys_flag,
            record.born_timestamp,
            record.born_host,
            origin.store_host,
            record.reconsume_times + 1,
            0,
            tag_code(properties.get(PropertyKey.TAGS)),
        )
        if due_ms is not None:
            self._timers.stage(due_ms, stored_at)
        self._statistics.count_sent_back(properties[PropertyKey.RETRY_TOPIC], group_name, dead=dead)

    def _read(self, position: int) -> Record:
        data = self._log.record_at(position)
        try:
            if data is not None:
                return decode_record(data)
        except RecordError:
            pass
        raise PocketMQError(
            f"look message by offset failed, {position}: the message is not in this broker's log (any more)",
            code=ResponseCode.SYSTEM_ERROR,
        )
