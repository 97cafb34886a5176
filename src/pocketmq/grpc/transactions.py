"""EndTransaction, and the question to producers about transactions that they left open."""

from typing import TYPE_CHECKING

from pocketmq.grpc.calls import Call, set_ok
from pocketmq.grpc.durability import written
from pocketmq.grpc.names import topic_of
from pocketmq.grpc.outgoing import fill_message
from pocketmq.grpc.transaction_ids import decode_transaction_id, encode_transaction_id
from pocketmq.model.errors import PocketMQError, StoreError
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto, Schema
from pocketmq.wire.properties import PropertyKey, find_property

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.broker.transaction_checks import Check

COMMIT, ROLLBACK = 1, 2

_REAL_TOPIC = PropertyKey.REAL_TOPIC.encode()
_UNIQUE_KEY = PropertyKey.UNIQUE_KEY.encode()


class TransactionProcedures:
    """Translates decisions about transactions for `TransactionService`."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self._broker = broker
        self._schema = schema

    async def end(self, call: Call, request: Proto) -> Proto:
        """Commit or roll back; what is neither leaves the transaction open, to be asked about later."""
        topic = topic_of(request.topic)
        if not request.transaction_id.strip():
            raise CodedError(Code.INVALID_TRANSACTION_ID, "the request has no transaction id")
        identity = decode_transaction_id(request.transaction_id)
        response = self._schema.EndTransactionResponse()
        if request.resolution in (COMMIT, ROLLBACK):
            try:
                self._broker.transaction_service.end(
                    identity.position, identity.queue_offset, topic, commit=request.resolution == COMMIT
                )
            except StoreError:
                raise
            except PocketMQError as error:
                # It has ended already, or never was.
                raise CodedError(Code.INVALID_TRANSACTION_ID, error.message) from error
            self._broker.sending.flush()
            error_or_none = await written(self._broker)
            if error_or_none is not None:
                raise error_or_none
        set_ok(response.status)
        return response

    def check_command(self, check: "Check") -> Proto:
        """The command that asks a producer about a transaction."""
        half, record = check.half, check.record
        topic = (find_property(record.properties, _REAL_TOPIC) or b"").decode(errors="replace")
        message_id = (find_property(record.properties, _UNIQUE_KEY) or b"").decode(errors="replace")
        command = self._schema.TelemetryCommand()
        set_ok(command.status)
        recover = command.recover_orphaned_transaction_command
        recover.transaction_id = encode_transaction_id(half.known_position, half.known_offset, message_id)
        fill_message(recover.message, self._schema.Resource(name=topic), record)
        recover.message.system_properties.delivery_attempt = check.number
        return command
