"""What brokers ask of a client: notices (40), resets (220), questions (221, 307, 39), a message to try (309), replies
(326).

A handler is a plain function that answers at once, or says nothing and answers later. What nobody handles is answered
with 3.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pocketmq.client._async.delivery import Delivery
from pocketmq.client._async.status import consumer_status, running_info
from pocketmq.client.decoding import to_delivery
from pocketmq.client.names import shown_topic
from pocketmq.model.errors import DecodeError
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.bodies import ConsumeMessageDirectlyResult, ResetOffsetBody, decode_body, encode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.clients import (
    ConsumeMessageDirectlyResultRequestHeader,
    GetConsumerRunningInfoRequestHeader,
    GetConsumerStatusRequestHeader,
    NotifyConsumerIdsChangedRequestHeader,
)
from pocketmq.wire.headers.offsets import ResetOffsetRequestHeader
from pocketmq.wire.properties import decode_properties
from pocketmq.wire.record import decode_record

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core
    from pocketmq.client._async.member import Member

logger = logging.getLogger("pocketmq.client")

Answer = bytes | None
DIRECT_TIMEOUT_S = 9.0
"""A broker waits ten seconds for what came of a message that it asked us to try."""
DIRECT_MAX = 64


class Inbound:
    """Answers the requests of brokers."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._handlers: dict[int, Callable[[RemotingConnection, Command], Answer]] = {
            RequestCode.NOTIFY_CONSUMER_IDS_CHANGED: self._consumers_changed,
            RequestCode.RESET_CONSUMER_CLIENT_OFFSET: self._reset_offset,
            RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT: self._consumer_status,
            RequestCode.GET_CONSUMER_RUNNING_INFO: self._running_info,
            RequestCode.CONSUME_MESSAGE_DIRECTLY: self._consume_directly,
            RequestCode.CHECK_TRANSACTION_STATE: core.decisions.asked,
            RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT: core.requests.arrived,
        }
        self._trials: set[asyncio.Task[None]] = set()

    def handle(self, connection: RemotingConnection, command: Command) -> Answer:
        """Answer one request."""
        handler = self._handlers.get(command.code)
        if handler is None:
            return _answer(
                command, ResponseCode.REQUEST_CODE_NOT_SUPPORTED, f"request type {command.code} not supported"
            )
        return handler(connection, command)

    def _consumers_changed(self, connection: RemotingConnection, command: Command) -> Answer:
        header = command.header(NotifyConsumerIdsChangedRequestHeader)
        member = self._core.member(header.consumer_group)
        if member is not None and not member.broadcasting:
            member.assignment.soon()
        return _answer(command)

    def _reset_offset(self, connection: RemotingConnection, command: Command) -> Answer:
        header = command.header(ResetOffsetRequestHeader)
        member = self._core.member(header.group)
        if member is None:
            return _not_here(command, header.group)
        table = decode_body(command.body, ResetOffsetBody).offset_table
        logger.info("%s is reset by an operator: %s", header.group, table)
        for queue, offset in table.items():
            reader = member.assignment.reader(queue)
            if reader is not None:
                reader.seek(offset)
                member.store_soon(reader)
        return _answer(command)

    def _consumer_status(self, connection: RemotingConnection, command: Command) -> Answer:
        header = command.header(GetConsumerStatusRequestHeader)
        member = self._core.member(header.group)
        if member is None:
            return _not_here(command, header.group)
        return _answer(command, body=encode_body(consumer_status(member, header.topic)))

    def _running_info(self, connection: RemotingConnection, command: Command) -> Answer:
        header = command.header(GetConsumerRunningInfoRequestHeader)
        member = self._core.member(header.consumer_group)
        if member is None:
            return _not_here(command, header.consumer_group)
        return _answer(command, body=encode_body(running_info(self._core, member)))

    # -- a message to try --------------------------------------------------------------------------------------------

    def _consume_directly(self, connection: RemotingConnection, command: Command) -> Answer:
        header = command.header(ConsumeMessageDirectlyResultRequestHeader)
        member = self._core.member(header.consumer_group)
        if member is None or len(self._trials) >= DIRECT_MAX:
            return _not_here(command, header.consumer_group)
        try:
            record = decode_record(command.body)
            properties = decode_properties(record.properties.decode())
        except (DecodeError, UnicodeDecodeError) as error:
            return _answer(command, ResponseCode.SYSTEM_ERROR, f"the message cannot be read: {error}")
        message = to_delivery(record, properties, header.broker_name or "")
        message.topic = shown_topic(message, self._core.options.namespace)
        trial = asyncio.get_running_loop().create_task(self._try(connection, command, member, message))
        self._trials.add(trial)
        trial.add_done_callback(self._trials.discard)
        return None

    async def _try(self, connection: RemotingConnection, command: Command, member: "Member", message: Delivery) -> None:
        clock = self._core.clock
        began = clock.monotonic()
        trial = Trial(member)
        message.context = trial
        member.deliver_directly(message)
        timer = clock.call_later(DIRECT_TIMEOUT_S, trial.give_up)
        try:
            result, remark = await trial.outcome
        finally:
            timer.cancel()
        body = ConsumeMessageDirectlyResult(
            consume_result=result,
            order=member.orderly,
            auto_commit=True,
            remark=remark,
            spent_time_mills=round((clock.monotonic() - began) * 1000),
        )
        answer = _answer(command, body=encode_body(body))
        if answer is not None:
            connection.write(answer)

    async def close(self) -> None:
        """Give up the trials."""
        for trial in self._trials:
            trial.cancel()
        await asyncio.gather(*self._trials, return_exceptions=True)


class Trial:
    """Settles a message that an operator sent for a try: the outcome goes back to him, nothing is stored."""

    def __init__(self, member: "Member") -> None:
        self.reraise = member.reraise
        self.core = member.core
        self.chain = member.chain
        self.out = 0
        self._serializer = member.core.options.serializer
        self.outcome: asyncio.Future[tuple[str, str | None]] = asyncio.get_running_loop().create_future()

    def ack(self, message: Delivery) -> bool:
        """It went well."""
        return self._settle("CR_SUCCESS", None)

    async def nack(self, message: Delivery, delay_s: float | None, dead: bool, reason: BaseException | None) -> bool:
        """It did not."""
        if reason is not None:
            return self._settle("CR_THROW_EXCEPTION", repr(reason))
        return self._settle("CR_LATER", None)

    def put_back(self, message: Delivery) -> None:
        """It was given up."""
        self._settle("CR_LATER", None)

    def value_of(self, message: Delivery) -> Any:
        """What the serializer makes of the body."""
        return self._serializer.decode(message.body, message.properties)

    def give_up(self) -> None:
        """Nobody took it, or it takes too long."""
        self._settle("CR_RETURN_NULL", f"not settled within {DIRECT_TIMEOUT_S:g} s")

    def _settle(self, result: str, remark: str | None) -> bool:
        if self.outcome.done():
            return False
        self.outcome.set_result((result, remark))
        return True


def _answer(command: Command, code: int = 0, remark: str | None = None, body: bytes = b"") -> Answer:
    if command.is_oneway:
        return None
    return encode_response(command.opaque, code, remark, None, body, serialize_type=command.serialize_type)


def _not_here(command: Command, group: str) -> Answer:
    return _answer(command, ResponseCode.SYSTEM_ERROR, f"this client has no member of the group {group}")
