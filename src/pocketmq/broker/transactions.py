"""Transactions: messages that nobody sees before their producer has decided.

Theory of operation. A transactional message is stored in the half topic, with the topic and queue it is meant for as
properties; the view `transactions` knows it as open. Its producer then says commit or rollback, or is asked
(`pocketmq.broker.transaction_checks`). Ending a half stages what the decision needs:

- commit: a copy of the message in its real topic, which carries the position of the half. It is what consumers get.
- both: the half is named in the *mark* of the batch, one record of the op topic for all halves that end in it.

Both are written together with the rest of the batch, copies first. The half counts as open until that was written, and
as ended for everybody who asks in between. A power failure that takes the mark and leaves the copy ends the half all
the same, because the copy says where it comes from; the mark is then written when the log is opened again, before
anything else is (`pocketmq.broker.transaction_upkeep`). So for every half there is one copy or none, whatever happens
when.

The records are those that RocketMQ's broker writes; one that takes over the directory finds what it needs.
"""

import logging
import os
import random
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pocketmq.broker.delays import plan_delay
from pocketmq.broker.halves import half_tag_code, target_of
from pocketmq.model.errors import MessageTooLargeError, PocketMQError, RecordError, StoreError, UsageError
from pocketmq.model.hashing import java_string_hash
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.model.names import CHECK_MAX_TOPIC, HALF_OP_TOPIC, HALF_TOPIC
from pocketmq.views.transactions import KNOWN_POSITION, NO_IMMUNITY, Half, immunity_of
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.ids import UniqueKeys
from pocketmq.wire.properties import (
    PropertyKey,
    decode_properties,
    encode_properties,
    property_finder,
    with_property,
    without_property,
)
from pocketmq.wire.record import HEAD_BYTES, MAGIC_V1, RECORD_HEAD, Record, SysFlag, decode_record

if TYPE_CHECKING:
    from pocketmq.broker.origins import Origin
    from pocketmq.broker.statistics import Statistics
    from pocketmq.log.log import Log
    from pocketmq.log.queues import LogQueue
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import BrokerSettings
    from pocketmq.views.transactions import Transactions

logger = logging.getLogger(__name__)

CHECKS_GROUP = "CID_RMQ_SYS_TRANS"
"""With this group's cursor a RocketMQ broker goes through the half topic."""
OPEN_MAX = 1_000_000
"""Most open transactions; above, new ones are refused."""
ROOM_BYTES = 128
"""Left in the properties of a half for what is added when it is asked about or carried forward."""

_UNIQUE_KEY = PropertyKey.UNIQUE_KEY + "\x01"
_TAGS = PropertyKey.TAGS + "\x01"
_REAL_TOPIC = PropertyKey.REAL_TOPIC + "\x01"
_REAL_QUEUE_ID = "\x02" + PropertyKey.REAL_QUEUE_ID + "\x01"
_TRANSACTION_ID = "\x02" + PropertyKey.TRANSACTION_ID + "\x01"
_KNOWN_OFFSET = PropertyKey.TRANSACTION_PREPARED_QUEUE_OFFSET.encode()
_KNOWN_POSITION = KNOWN_POSITION.encode()
_CHECK_TIMES = PropertyKey.TRANSACTION_CHECK_TIMES.encode()
_MARK_PROPERTIES = b"WAIT\x01true\x02TAGS\x01d\x02"
_MARK_TAG_CODE = java_string_hash("d")
_NOT_A_TRANSACTION_TYPE = ~SysFlag.TRANSACTION_MASK
_HOSTS_V6 = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6
_HALF_TOPIC_BYTES = 1 + len(HALF_TOPIC) + 2
"""What stands between the body and the properties of a half: two lengths and the topic."""

_find_group = property_finder(PropertyKey.PRODUCER_GROUP.encode())

_Content = tuple[bytes | memoryview, bytes, int, int, int, bytes, bytes, int]
"""Body, properties, flag, sys flag, born timestamp, born host, store host, reconsume times."""


class TransactionService:
    """Stores half messages and ends them."""

    def __init__(
        self,
        settings: "BrokerSettings",
        clock: "Clock",
        log: "Log",
        view: "Transactions",
        *,
        statistics: "Statistics",
        levels: Sequence[int],
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._log = log
        self._view = view
        self._statistics = statistics
        self._series = statistics.topic(HALF_TOPIC)
        self._levels = levels
        self._unique_keys = UniqueKeys(bytes(4), os.getpid(), random.getrandbits(32))
        self._staged: list[tuple[int, int, int, int]] = []
        """Halves that are stored with this batch."""
        self._ending: dict[int, Half] = {}
        """Halves that end with this batch, by position."""
        self._mark_position = 0
        self.busy = False
        """Whether this batch stores or ends any. Whoever writes the log then calls `append_marks` before that, and
        `commit_staged` or `drop_staged` after it."""
        self._added = encode_properties(
            {
                PropertyKey.MESSAGE_REGION: settings.region,
                PropertyKey.TRACE_ON: "true" if settings.trace_on else "false",
                PropertyKey.CLUSTER: settings.cluster,
            }
        )

    # -- storing -----------------------------------------------------------------------------------------------------

    def send_half(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        properties: str,
        origin: "Origin",
        flag: int,
        sys_flag: int,
        born_timestamp: int,
        reconsume_times: int,
    ) -> tuple[int, int, int, bytes]:
        """Stage the half of a message for `topic`; returns the queue id, where the half is (queue offset, log
        position), and its unique key.

        Raises PocketMQError: 13 it has a delay or too many properties, 16 transactions are switched off, 2 too many
        are open.
        """
        if self._settings.reject_transactions:
            raise PocketMQError(
                "this broker takes no transactional messages (setting broker.reject_transactions)",
                code=ResponseCode.NO_PERMISSION,
            )
        if self._view.count + len(self._staged) >= OPEN_MAX:
            raise PocketMQError(
                f"{OPEN_MAX} transactions are open on this broker; it takes new ones when some have ended",
                code=ResponseCode.SYSTEM_BUSY,
                retryable=True,
            )
        before, _, rest = properties.partition(_UNIQUE_KEY)
        if (
            not rest
            or (before and before[-1] != "\x02")
            or "DELAY" in properties
            or "TIMER_" in properties
            or "MSG_REGION" in properties
            or "POP_CK" in properties
            or "TRAN_PREPARED" in properties
            or KNOWN_POSITION in properties
        ):
            properties = self._clean(properties)
            rest = properties.partition(_UNIQUE_KEY)[2]
        unique_key = rest.partition("\x02")[0]
        if properties[-1] != "\x02":
            properties += "\x02"
        encoded = (
            f"{properties}{_REAL_TOPIC}{topic}{_REAL_QUEUE_ID}{queue_id}{_TRANSACTION_ID}{unique_key}\x02{self._added}"
        ).encode()
        if len(encoded) > PROPERTIES_BYTES_MAX - ROOM_BYTES:
            raise MessageTooLargeError(
                f"the properties have {len(encoded)} bytes with what the broker adds; "
                f"at most {PROPERTIES_BYTES_MAX - ROOM_BYTES} are allowed in a transaction"
            )
        log = self._log
        queue = log.ensure_queue(HALF_TOPIC, 0)
        position = log.append(
            queue,
            body,
            encoded,
            flag,
            (sys_flag & _NOT_A_TRANSACTION_TYPE) | origin.host_flags,
            born_timestamp,
            origin.born_host,
            origin.store_host,
            reconsume_times,
            0,
            half_tag_code(encoded) if _TAGS in properties else 0,
        )
        queue_offset = queue.next_offset - 1
        immunity_ms = immunity_of(encoded) if PropertyKey.CHECK_IMMUNITY_TIME in properties else NO_IMMUNITY
        self._staged.append((position, queue_offset, log.last_timestamp, immunity_ms))
        self.busy = True
        self._series.add(1, len(body))
        return queue_id, queue_offset, position, unique_key.encode()

    def _clean(self, text: str) -> str:
        """The properties of an unusual half: a unique key for it, nothing that only brokers may say, no delay."""
        properties = decode_properties(text)
        now = self._clock.time_ms()
        plan = plan_delay(
            dict(properties),
            "",
            0,
            now_ms=now,
            levels=self._levels,
            delay_max_ms=int(self._settings.delay_max_s * 1000),
        )
        if plan is not None:
            raise PocketMQError(
                "a transactional message cannot have a delay: it would not be known when it is to be counted from; "
                "send it without one, or without a transaction",
                code=ResponseCode.MESSAGE_ILLEGAL,
            )
        for name in (
            PropertyKey.MESSAGE_REGION,
            PropertyKey.TRACE_ON,
            PropertyKey.CLUSTER,
            PropertyKey.POP_CHECK_POINT,
            PropertyKey.TRANSACTION_PREPARED_QUEUE_OFFSET,
            KNOWN_POSITION,
        ):
            properties.pop(name, None)
        if PropertyKey.UNIQUE_KEY not in properties:
            properties[PropertyKey.UNIQUE_KEY] = self._unique_keys.next(now)
        return encode_properties(properties)

    # -- ending ------------------------------------------------------------------------------------------------------

    def end(self, position: int, queue_offset: int, group: str, *, commit: bool) -> None:
        """Stage the end of a transaction, as the producer decided that knows its half by these two numbers.

        Raises PocketMQError 1 without any effect when there is no such open transaction of this group; StoreError.
        """
        half = self._view.find(position)
        if half is None or half.position in self._ending:
            raise PocketMQError(
                f"there is no open transaction at {position}: it was committed, rolled back or given up already, or "
                "never was",
                code=ResponseCode.SYSTEM_ERROR,
            )
        if queue_offset not in (half.known_offset, half.queue_offset):
            raise PocketMQError(
                f"the transaction at {position} has the offset {half.known_offset}, not {queue_offset}",
                code=ResponseCode.SYSTEM_ERROR,
            )
        content = self._content(half)
        if content is None:
            raise PocketMQError(
                f"the half message at {half.position} cannot be read; its transaction cannot end",
                code=ResponseCode.SYSTEM_ERROR,
            )
        properties = content[1]
        owner = group.encode()
        if b"\x02PGROUP\x01%b\x02" % owner not in properties and _find_group(properties) != owner:
            raise PocketMQError(
                f"the transaction at {position} belongs to the producer group "
                f"{(_find_group(properties) or b'').decode(errors='replace')}, not to {group}",
                code=ResponseCode.SYSTEM_ERROR,
            )
        if commit:
            topic, queue_id, properties = target_of(half.position, properties)
            try:
                queue = self._log.ensure_queue(topic, queue_id)
            except UsageError as error:
                raise PocketMQError(error.message, code=ResponseCode.SYSTEM_ERROR, cause=error) from error
            self._append_copy(queue, half, content, properties, SysFlag.TRANSACTION_COMMIT)
            self._statistics.topic(topic).add(1, len(content[0]))
        self._ending[half.position] = half
        self.busy = True

    def _append_copy(
        self, queue: "LogQueue", half: Half, content: "_Content", properties: bytes, more_flags: int
    ) -> None:
        body, _, flag, sys_flag, born_timestamp, born_host, store_host, reconsume_times = content
        if half.known_position != half.position:
            properties = without_property(without_property(properties, _KNOWN_OFFSET), _KNOWN_POSITION)
        if half.checks:
            properties = with_property(properties, _CHECK_TIMES, b"%d" % half.checks)
        self._log.append(
            queue,
            body,
            properties,
            flag,
            sys_flag | more_flags,
            born_timestamp,
            born_host,
            store_host,
            reconsume_times,
            half.position,
            half_tag_code(properties),
        )

    def give_up(self, halves: Iterable[Half]) -> None:
        """Nobody decides about these: move their messages to the topic that operators look into.

        Raises StoreError, and then they are still open.
        """
        queue = self._log.ensure_queue(CHECK_MAX_TOPIC, 0)
        try:
            for half in halves:
                content = self._content(half)
                if content is not None:
                    self._append_copy(queue, half, content, content[1], 0)
                self._ending[half.position] = half
                self.busy = True
        except StoreError:
            self.drop_staged()
            raise
        self.write()

    def _content(self, half: Half) -> "_Content | None":
        """What a copy of a half takes from it. A record of the usual kind is not taken apart further than that."""
        position = half.position
        segment = self._log.segments.find(position)
        if segment is not None and segment.view is not None:
            view, at = segment.view, position - segment.start
            fields = RECORD_HEAD.unpack_from(view, at)
            size, magic, _, _, flag, _, own_position, sys_flag, born_timestamp, born_host = fields[:10]
            if own_position == position and magic == MAGIC_V1 and not sys_flag & _HOSTS_V6:
                body_at = at + HEAD_BYTES
                body_end = body_at + fields[14]
                properties = bytes(view[body_end + _HALF_TOPIC_BYTES : at + size])
                return view[body_at:body_end], properties, flag, sys_flag, born_timestamp, born_host, *fields[11:13]
        record = self.read(half)
        if record is None:
            return None
        return (
            record.body,
            record.properties,
            record.flag,
            record.sys_flag,
            record.born_timestamp,
            record.born_host,
            record.store_host,
            record.reconsume_times,
        )

    def group_of(self, half: Half) -> str:
        """The producer group that a half belongs to; empty when it cannot be read."""
        content = self._content(half)
        return (_find_group(content[1]) or b"").decode(errors="replace") if content is not None else ""

    def read(self, half: Half) -> Record | None:
        """The record of a half; None, with a line in the log, when it cannot be read."""
        data = self._log.written_record_at(half.position)
        try:
            if data is not None:
                return decode_record(data)
            reason = "it is not in the log any more"
        except RecordError as error:
            reason = str(error)
        logger.error("the half message at %d cannot be read: %s", half.position, reason)
        return None

    # -- writing -----------------------------------------------------------------------------------------------------

    def append_marks(self) -> None:
        """Stage the mark of what ends in this batch, behind all of its copies. Raises StoreError."""
        if self._ending:
            self._mark_position = self.append_mark(half.queue_offset for half in self._ending.values())

    def append_mark(self, offsets: Iterable[int]) -> int:
        # One mark for all: whoever looks for copies without a mark need not look before the last one.
        body = b"".join([b"%d," % offset for offset in offsets])
        host = bytes(8)
        queue = self._log.ensure_queue(HALF_OP_TOPIC, 0)
        now = self._clock.time_ms()
        return self._log.append(queue, body, _MARK_PROPERTIES, 0, 0, now, host, host, 0, 0, _MARK_TAG_CODE)

    def commit_staged(self) -> None:
        """What was staged is written now."""
        self.busy = False
        for position, queue_offset, stored_ms, immunity_ms in self._staged:
            self._view.add(position, queue_offset, stored_ms, immunity_ms)
        self._staged.clear()
        if self._ending:
            self._view.end(self._ending.values(), self._mark_position)
            self._ending.clear()

    def drop_staged(self) -> None:
        """What was staged is not in the log: nothing was stored, nothing has ended."""
        self.busy = False
        self._staged.clear()
        self._ending.clear()

    def write(self) -> None:
        """Write what was staged here, outside of a batch. Raises StoreError, and then nothing has changed."""
        try:
            self.append_marks()
            self._log.write()
        except StoreError:
            self.drop_staged()
            raise
        self.commit_staged()
