"""Cursors and queue offsets: 14, 15, 29 to 32, 43, 222, 308, 314."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.model.message import MessageQueue
from pocketmq.views.journal import CursorReset, Entry
from pocketmq.wire.bodies.offsets import ConsumerOffsetSerializeWrapper, QueryCorrectionOffsetBody, ResetOffsetBody
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.offsets import (
    CloneGroupOffsetRequestHeader,
    GetEarliestMsgStoretimeRequestHeader,
    GetEarliestMsgStoretimeResponseHeader,
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    QueryCorrectionOffsetRequestHeader,
    ResetOffsetRequestHeader,
    SearchOffsetRequestHeader,
    SearchOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


class OffsetRequests:
    """Translates requests about offsets for `Offsets`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._offsets = broker.offsets

    def query(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_CONSUMER_OFFSET 14."""
        header = command.header(QueryConsumerOffsetRequestHeader)
        offset = self._offsets.query(
            header.consumer_group,
            header.topic,
            header.queue_id,
            zero_if_not_found=header.set_zero_if_not_found is not False,
        )
        return success(command, QueryConsumerOffsetResponseHeader(offset))

    def update(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_CONSUMER_OFFSET 15. Consumers send it one-way; who waits for the answer means what it says."""
        header = command.header(UpdateConsumerOffsetRequestHeader)
        arguments = header.consumer_group, header.topic, header.queue_id, header.commit_offset
        if command.is_oneway:
            self._offsets.commit(*arguments)
            return None
        remark = None if self._offsets.set(*arguments) else "Offset has been previously reset"
        return self._broker.gate.admit(command, success(command, remark=remark))

    def search(self, connection: "RemotingConnection", command: Command) -> Answer:
        """SEARCH_OFFSET_BY_TIMESTAMP 29."""
        header = command.header(SearchOffsetRequestHeader)
        offset = self._offsets.offset_by_time(
            header.topic,
            header.queue_id,
            header.timestamp,
            upper=(header.boundary_type or "").lower() == "upper",
        )
        return success(command, SearchOffsetResponseHeader(offset))

    def max_offset(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_MAX_OFFSET 30."""
        header = command.header(GetMaxOffsetRequestHeader)
        return success(command, GetMaxOffsetResponseHeader(self._offsets.max_offset(header.topic, header.queue_id)))

    def min_offset(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_MIN_OFFSET 31."""
        header = command.header(GetMinOffsetRequestHeader)
        return success(command, GetMinOffsetResponseHeader(self._offsets.min_offset(header.topic, header.queue_id)))

    def earliest(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_EARLIEST_MSG_STORETIME 32."""
        header = command.header(GetEarliestMsgStoretimeRequestHeader)
        timestamp = self._offsets.earliest_timestamp(header.topic, header.queue_id)
        return success(command, GetEarliestMsgStoretimeResponseHeader(timestamp))

    def all_cursors(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_ALL_CONSUMER_OFFSET 43."""
        table: dict[str, dict[int, int]] = {}
        for cursor in self._broker.cursors.listing():
            table.setdefault(f"{cursor.topic}@{cursor.group}", {})[cursor.queue_id] = cursor.offset
        return success_body(command, ConsumerOffsetSerializeWrapper(offset_table=table))

    async def reset(self, connection: "RemotingConnection", command: Command) -> Answer:
        """INVOKE_BROKER_TO_RESET_OFFSET 222: the broker sets the cursors and tells the next pull of each queue."""
        header = command.header(ResetOffsetRequestHeader)
        targets = await self._offsets.reset(
            header.group,
            header.topic,
            queue_id=header.queue_id,
            offset=header.offset,
            timestamp_ms=header.timestamp,
        )
        name = self._broker.settings.broker.name
        body = ResetOffsetBody(
            {MessageQueue(header.topic, name, queue_id): offset for queue_id, offset in targets.items()}
        )
        return success_body(command, body)

    def answer_held(self, entry: Entry) -> None:
        """A reset is waiting to be told: the pulls that are held come back at once, and the next ones are told."""
        if isinstance(entry, CursorReset) and entry.announce:
            queue = self._broker.log.queue(entry.cursor.topic, entry.cursor.queue_id)
            if queue is not None:
                self._broker.holds.answer_all(queue)

    def corrections(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_CORRECTION_OFFSET 308."""
        header = command.header(QueryCorrectionOffsetRequestHeader)
        ignored = [group for group in (header.filter_groups or "").split(",") if group]
        found = self._offsets.corrections(header.compare_group, header.topic, ignored)
        return success_body(command, QueryCorrectionOffsetBody(found))

    async def clone(self, connection: "RemotingConnection", command: Command) -> Answer:
        """CLONE_GROUP_OFFSET 314."""
        header = command.header(CloneGroupOffsetRequestHeader)
        await self._offsets.clone(header.src_group, header.dest_group, header.topic, offline=header.offline is True)
        return success(command)


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about offsets."""
    requests = OffsetRequests(broker)
    broker.journal.listeners.append(requests.answer_held)
    dispatcher.on(RequestCode.QUERY_CONSUMER_OFFSET, requests.query)
    dispatcher.on(RequestCode.UPDATE_CONSUMER_OFFSET, requests.update)
    dispatcher.on(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, requests.search)
    dispatcher.on(RequestCode.GET_MAX_OFFSET, requests.max_offset)
    dispatcher.on(RequestCode.GET_MIN_OFFSET, requests.min_offset)
    dispatcher.on(RequestCode.GET_EARLIEST_MSG_STORETIME, requests.earliest)
    dispatcher.on(RequestCode.GET_ALL_CONSUMER_OFFSET, requests.all_cursors)
    dispatcher.on_async(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, requests.reset)
    dispatcher.on(RequestCode.QUERY_CORRECTION_OFFSET, requests.corrections)
    dispatcher.on_async(RequestCode.CLONE_GROUP_OFFSET, requests.clone)
