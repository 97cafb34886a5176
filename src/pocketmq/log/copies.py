"""Finding the committed messages in a part of the log, whatever their topics are.

Each record of a transaction that was committed says in its sys flag what it is, and which half message it comes from.
Looking at these two fields takes a fraction of what a whole record costs; nothing is checked, since the records were
when the log was opened.
"""

import struct
from collections.abc import Callable
from typing import TYPE_CHECKING

from pocketmq.log.rebuild import next_valid
from pocketmq.log.segments import Segment
from pocketmq.wire.record import BLANK_BYTES, INT64, MAGIC_V1, MAGIC_V2, SysFlag

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock

YIELD_BYTES = 4 * 1024 * 1024
"""How much is read before other tasks get a turn."""

_FIELDS = struct.Struct(">iI28xi")
"""Of a record: the size, the magic, the sys flag."""
_PREPARED_AT = 76
_V6_BYTES = 12
"""How much longer an IPv6 host is."""


async def find_copies(log: "Log", clock: "Clock", start: int, found: Callable[[int], None]) -> None:
    """Call `found` with the prepared transaction offset of each committed message from position `start` on.

    A record must begin at `start`.
    """
    position = start
    while True:
        segment = log.segments.find(position)
        end = log.written_position
        if segment is None or segment.view is None or position >= end:
            return
        position = _look(segment, position, min(end, segment.end, position + YIELD_BYTES), found)
        await clock.sleep(0)


def _look(segment: Segment, position: int, end: int, found: Callable[[int], None]) -> int:
    """Look at the records that begin before `end`; returns where the next one begins."""
    view = segment.view
    assert view is not None
    unpack, base = _FIELDS.unpack_from, segment.start
    while position < end:
        if segment.end - position <= BLANK_BYTES:
            return segment.end
        size, magic, sys_flag = unpack(view, position - base) if segment.end - position > _FIELDS.size else (0, 0, 0)
        if size <= 0 or magic not in (MAGIC_V1, MAGIC_V2):
            # The end of a segment, or a damaged part that the operator has accepted.
            return next_valid(segment, position + 1) or segment.end
        if sys_flag & SysFlag.TRANSACTION_MASK == SysFlag.TRANSACTION_COMMIT:
            at = position - base + _PREPARED_AT
            at += _V6_BYTES * (bool(sys_flag & SysFlag.BORN_HOST_V6) + bool(sys_flag & SysFlag.STORE_HOST_V6))
            found(INT64.unpack_from(view, at)[0])
        position += size
    return position
