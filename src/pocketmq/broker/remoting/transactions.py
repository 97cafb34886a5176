"""END_TRANSACTION 37, RESUME_CHECK_HALF_MESSAGE 323, and the question CHECK_TRANSACTION_STATE 39 to producers."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.membership import ProducerMember
from pocketmq.broker.remoting.answers import success
from pocketmq.broker.transaction_checks import Check
from pocketmq.model.errors import ConnectionClosedError
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.messages import ResumeCheckHalfMessageRequestHeader
from pocketmq.wire.headers.transactions import CheckTransactionStateRequestHeader, EndTransactionRequestHeader
from pocketmq.wire.ids import encode_offset_id
from pocketmq.wire.properties import PropertyKey, find_property, with_property
from pocketmq.wire.record import SysFlag, decode_record, encode_record

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

_CHECK_TIMES = PropertyKey.TRANSACTION_CHECK_TIMES.encode()
_UNIQUE_KEY = PropertyKey.UNIQUE_KEY.encode()
_REAL_TOPIC = PropertyKey.REAL_TOPIC.encode()
_REAL_QUEUE_ID = PropertyKey.REAL_QUEUE_ID.encode()


class TransactionRequests:
    """Translates requests for `TransactionService`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._service = broker.transaction_service
        self._upkeep = broker.transaction_upkeep
        self._gate = broker.gate

    def end(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 37. Producers send it one-way; who asks for an answer gets it when the decision is in the log."""
        header = command.header(EndTransactionRequestHeader)
        decision = header.commit_or_rollback
        if decision not in (SysFlag.TRANSACTION_COMMIT, SysFlag.TRANSACTION_ROLLBACK):
            # Not known yet: nothing to do, and by the protocol nothing to say.
            return None
        self._service.end(
            header.commit_log_offset,
            header.tran_state_table_offset,
            header.producer_group,
            commit=decision == SysFlag.TRANSACTION_COMMIT,
        )
        if command.flag & 2:
            self._gate.admitted.append(command)
            return None
        return self._gate.admit(command, success(command))

    async def resume(self, connection: RemotingConnection, command: Command) -> Answer:
        """Code 323."""
        header = command.header(ResumeCheckHalfMessageRequestHeader)
        record = decode_record(self._broker.queries.by_offset_id(header.msg_id or ""))
        await self._upkeep.resume(record)
        return success(command)


def ready(member: ProducerMember) -> bool | None:
    """Whether a producer can be asked now; None: not before it has read what it was sent."""
    connection = member.connection
    if not isinstance(connection, RemotingConnection) or connection.closed:
        return False
    return None if connection.congested else True


class CheckSender:
    """Asks producers that speak this protocol (code 39, one-way; the answer is a 37)."""

    def __init__(self, broker_name: str) -> None:
        self._broker_name = broker_name

    def send(self, member: ProducerMember, check: Check) -> None:
        """Ask one producer."""
        connection = member.connection
        assert isinstance(connection, RemotingConnection)
        half, record = check.half, check.record
        topic = (find_property(record.properties, _REAL_TOPIC) or b"").decode(errors="replace")
        queue_id = find_property(record.properties, _REAL_QUEUE_ID) or b"0"
        unique_key = (find_property(record.properties, _UNIQUE_KEY) or b"").decode(errors="replace")
        header = CheckTransactionStateRequestHeader(
            tran_state_table_offset=half.known_offset,
            commit_log_offset=half.known_position,
            topic=topic,
            msg_id=unique_key,
            transaction_id=unique_key,
            offset_msg_id=encode_offset_id(record.store_host, half.position),
            target_broker=self._broker_name,
        )
        body = encode_record(
            topic,
            record.body,
            with_property(record.properties, _CHECK_TIMES, b"%d" % check.number),
            queue_id=int(queue_id),
            queue_offset=half.known_offset,
            physical_offset=half.known_position,
            born_timestamp=record.born_timestamp,
            born_host=record.born_host,
            store_timestamp=record.store_timestamp,
            store_host=record.store_host,
            flag=record.flag,
            sys_flag=record.sys_flag,
            reconsume_times=record.reconsume_times,
        )
        try:
            connection.request_oneway(RequestCode.CHECK_TRANSACTION_STATE, header, body)
        except ConnectionClosedError:
            # It went in this very moment; another one is asked in the next round.
            pass


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about transactions."""
    requests = TransactionRequests(broker)
    dispatcher.on(RequestCode.END_TRANSACTION, requests.end)
    dispatcher.on_async(RequestCode.RESUME_CHECK_HALF_MESSAGE, requests.resume)
