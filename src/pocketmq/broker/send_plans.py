"""What is known of a send before its message is looked at, because sends of the same shape were looked at before.

A shape fixes everything but queue, time, unique key and body (see `wire/binary_send.py`); so what its properties ask
for, their length and the tag's code are found out once.
"""

from typing import NamedTuple

from pocketmq.model.hashing import tag_code
from pocketmq.model.limits import PROPERTIES_BYTES_MAX
from pocketmq.wire.binary_send import SendShape
from pocketmq.wire.properties import PropertyKey, decode_properties
from pocketmq.wire.record import SysFlag

SLOW_WORDS = ("DELAY", "TIMER_", "TRAN_MSG", "MSG_REGION", "POP_CK")
"""A property string that has one of them may need more than appending."""
NO_TRANSACTION = ~SysFlag.TRANSACTION_MASK
"""Bits of a sys flag that a client may set; what a record is in a transaction is for the broker to say."""


class SendPlan(NamedTuple):
    """How to store messages of one shape; their properties are `key_mark`, the unique key and `behind_key`."""

    topic: str
    flag: int
    sys_flag: int
    reconsume_times: int
    key_mark: bytes
    behind_key: bytes
    tag_code: int
    waits: bool
    """Whether the sender wants to wait for the disk."""


def plan_sends(shape: SendShape, added: bytes) -> SendPlan | None:
    """The plan for a shape; None when its messages must be looked at one by one."""
    header = shape.template
    usual = (shape.key_mark + b"\x02" + shape.behind_key).decode()
    if not shape.key_bytes or header.batch or any(word in usual for word in SLOW_WORDS):
        return None
    if shape.behind_key[-1:] != b"\x02":
        added = b"\x02" + added
    behind_key = shape.behind_key + added
    if len(shape.key_mark) + shape.key_bytes + len(behind_key) > PROPERTIES_BYTES_MAX:
        return None
    return SendPlan(
        header.topic,
        header.flag,
        header.sys_flag & NO_TRANSACTION,
        header.reconsume_times or 0,
        shape.key_mark,
        behind_key,
        tag_code(decode_properties(usual).get(PropertyKey.TAGS)),
        "WAIT\x01false" not in usual,
    )
