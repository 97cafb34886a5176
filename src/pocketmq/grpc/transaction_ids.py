"""Transaction ids that carry all that is needed to end the transaction: any broker process that has the log can."""

from typing import NamedTuple

from pocketmq.wire.grpc.codes import Code, CodedError


class TransactionId(NamedTuple):
    """Where the half of a transaction is: log position and queue offset, as its producer was told; its unique key."""

    position: int
    queue_offset: int
    message_id: str


def encode_transaction_id(position: int, queue_offset: int, message_id: str) -> str:
    """The id as text."""
    return f"{position:X}.{queue_offset:X}.{message_id}"


def decode_transaction_id(text: str) -> TransactionId:
    """Read an id. Raises CodedError INVALID_TRANSACTION_ID."""
    position, _, rest = text.partition(".")
    queue_offset, _, message_id = rest.partition(".")
    try:
        return TransactionId(int(position, 16), int(queue_offset, 16), message_id)
    except ValueError:
        raise CodedError(
            Code.INVALID_TRANSACTION_ID, f"the transaction id {text[:120]!r} is not one of this broker"
        ) from None
