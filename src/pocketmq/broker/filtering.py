"""The filters of subscriptions at work: which kinds are served, and the properties of records for those that ask."""

import struct
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.views.filters import SQL92, Accept, Expression, compile_filter
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.record import MAGIC_V2, SysFlag

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.model.settings import BrokerSettings

_MAGIC_AT = 4
_FIELDS = struct.Struct(">I28xi44xi")
"""From a record's magic on: the magic, the sys flag, and the body's length when both hosts are IPv4."""
_AFTER_FIELDS = _MAGIC_AT + _FIELDS.size
_INT32 = struct.Struct(">i")
_V6_MORE_BYTES = 12
"""What an IPv6 host takes more than an IPv4 one."""
_HOSTS_V6 = SysFlag.BORN_HOST_V6 | SysFlag.STORE_HOST_V6


def properties_of(view: memoryview, at: int, size: int) -> bytes:
    """The encoded properties of the record that takes `size` bytes of `view` from `at` on."""
    magic, sys_flag, body_length = _FIELDS.unpack_from(view, at + _MAGIC_AT)
    topic_at = at + _AFTER_FIELDS
    if sys_flag & _HOSTS_V6:
        topic_at += _V6_MORE_BYTES * (sys_flag & _HOSTS_V6).bit_count()
        (body_length,) = _INT32.unpack_from(view, topic_at - _INT32.size)
    topic_at += body_length
    if magic == MAGIC_V2:
        return bytes(view[topic_at + 4 + (view[topic_at] << 8 | view[topic_at + 1]) : at + size])
    return bytes(view[topic_at + 3 + view[topic_at] : at + size])


class Filters:
    """Makes what subscriptions ask for fit to read the log with."""

    def __init__(self, settings: "BrokerSettings", log: "Log") -> None:
        self._settings = settings
        self._log = log

    def accept(self, topic: str, expression_type: str | None, expression: str | None) -> Accept | None:
        """What a reader of `topic` wants; None for everything.

        Raises PocketMQError 23 for what cannot be understood, 1 for SQL92 where it is switched off.
        """
        if expression_type == SQL92:
            check_served(self._settings)
        wanted = compile_filter(expression_type, expression)
        if not isinstance(wanted, Expression):
            return wanted
        # What failed was wanted once, and its properties are no longer all those it was chosen by.
        return None if topic.startswith(RETRY_PREFIX) else self._over_records(wanted)

    def _over_records(self, expression: Expression) -> Accept:
        find, matches = self._log.segments.find, expression.matches

        def accept(code: int, position: int, size: int) -> bool:
            segment = find(position)
            if segment is None or segment.view is None:
                # The reader is to find out that the record is gone.
                return True
            return matches(properties_of(segment.view, position - segment.start, size))

        return accept


def check_served(settings: "BrokerSettings") -> None:
    """Raises PocketMQError 1 when SQL92 filters are switched off."""
    if not settings.sql_filter:
        raise PocketMQError(
            "The broker does not support consumer to filter message by SQL92: set broker.sql_filter "
            "(enablePropertyFilter) to true",
            code=ResponseCode.SYSTEM_ERROR,
        )
