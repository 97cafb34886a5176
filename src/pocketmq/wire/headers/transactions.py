"""Ending and checking transactions."""

from pocketmq.wire.headers.base import Int32, Int64, RpcHeader


class EndTransactionRequestHeader(RpcHeader):
    """END_TRANSACTION 37."""

    producer_group: str
    tran_state_table_offset: Int64
    commit_log_offset: Int64
    commit_or_rollback: Int32
    msg_id: str
    topic: str | None = None
    from_transaction_check: bool = False
    transaction_id: str | None = None


class CheckTransactionStateRequestHeader(RpcHeader):
    """CHECK_TRANSACTION_STATE 39."""

    tran_state_table_offset: Int64
    commit_log_offset: Int64
    topic: str | None = None
    msg_id: str | None = None
    transaction_id: str | None = None
    offset_msg_id: str | None = None
