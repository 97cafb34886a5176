"""Message traces: what clients write to the trace topic about messages that they sent and consumed. Pure.

One message holds several records; a record ends with 0x02, its fields are separated by 0x01. The kinds of records and
their fields are those of RocketMQ's clients; older ones leave out the last fields of some. What a client did not know
is the word `null`, or nothing.
"""

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Final

import msgspec

FIELD_SEPARATOR: Final = "\x01"
RECORD_SEPARATOR: Final = "\x02"
NOTHING: Final = "null"


class TraceType(IntEnum):
    """What kind of message was sent."""

    NORMAL = 0
    TRANSACTION_HALF = 1
    TRANSACTION_COMMIT = 2
    DELAY = 3
    ORDER = 4


class ConsumeOutcome(IntEnum):
    """How the handling of a message ended."""

    SUCCESS = 0
    TIME_OUT = 1
    EXCEPTION = 2
    RETURNED_NULL = 3
    FAILED = 4


class PubTrace(msgspec.Struct, kw_only=True):
    """A message was sent, or could not be. `time_ms` is when that began."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    message_tag: str | None = None
    keys: str | None = None
    store_host: str = ""
    body_bytes: int = 0
    cost_ms: int = 0
    type: int = TraceType.NORMAL
    offset_message_id: str = ""
    success: bool = True
    client_host: str = ""

    def encode(self) -> str:
        """The record."""
        return _record(
            "Pub",
            self.time_ms,
            self.region,
            self.group,
            self.topic,
            self.message_id,
            self.message_tag,
            self.keys,
            self.store_host,
            self.body_bytes,
            self.cost_ms,
            int(self.type),
            self.offset_message_id,
            self.success,
        )


class SubBeforeTrace(msgspec.Struct, kw_only=True):
    """The handling of a message began. `request_id` joins it with its end."""

    time_ms: int
    region: str
    group: str
    request_id: str
    message_id: str
    retry_times: int = 0
    keys: str | None = None
    client_host: str = ""

    def encode(self) -> str:
        """The record."""
        return _record(
            "SubBefore",
            self.time_ms,
            self.region,
            self.group,
            self.request_id,
            self.message_id,
            self.retry_times,
            self.keys,
        )


class SubAfterTrace(msgspec.Struct, kw_only=True):
    """The handling of a message ended. Older clients say neither when nor in which group: 0 and nothing."""

    request_id: str
    message_id: str
    cost_ms: int
    success: bool
    keys: str | None = None
    outcome: int = ConsumeOutcome.SUCCESS
    time_ms: int = 0
    group: str = ""
    client_host: str = ""

    def encode(self) -> str:
        """The record."""
        return _record(
            "SubAfter",
            self.request_id,
            self.message_id,
            self.cost_ms,
            self.success,
            self.keys,
            int(self.outcome),
            self.time_ms,
            self.group,
        )


class EndTransactionTrace(msgspec.Struct, kw_only=True):
    """A transaction was decided; `from_check`: because a broker had asked."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    message_tag: str | None = None
    keys: str | None = None
    store_host: str = ""
    type: int = TraceType.TRANSACTION_COMMIT
    transaction_id: str = ""
    state: str = ""
    from_check: bool = False
    client_host: str = ""

    def encode(self) -> str:
        """The record."""
        return _record(
            "EndTransaction",
            self.time_ms,
            self.region,
            self.group,
            self.topic,
            self.message_id,
            self.message_tag,
            self.keys,
            self.store_host,
            int(self.type),
            self.transaction_id,
            self.state,
            self.from_check,
        )


class RecallTrace(msgspec.Struct, kw_only=True):
    """A delayed message was recalled before its time."""

    time_ms: int
    region: str
    group: str
    topic: str
    message_id: str
    success: bool = True
    keys: str | None = None
    client_host: str = ""

    def encode(self) -> str:
        """The record."""
        return _record("Recall", self.time_ms, self.region, self.group, self.topic, self.message_id, self.success)


Trace = PubTrace | SubBeforeTrace | SubAfterTrace | EndTransactionTrace | RecallTrace


def _record(*fields: str | int | bool | None) -> str:
    return FIELD_SEPARATOR.join(map(_text, fields)) + RECORD_SEPARATOR


def _text(value: str | int | bool | None) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "true" if value else "false"
    text = str(value)
    # A separator in a value would end its field.
    return text.replace(FIELD_SEPARATOR, " ").replace(RECORD_SEPARATOR, " ")


def trace_keys(trace: Trace) -> list[str]:
    """What the message that holds a trace is to be found by: the id and the keys of the message it is about."""
    keys = (trace.keys or "").split()
    return [trace.message_id, *keys] if trace.message_id else keys


def decode_traces(body: bytes) -> Iterator[Trace]:
    """The records in the body of a message of the trace topic; those that cannot be read are left out."""
    for line in body.decode(errors="replace").split(RECORD_SEPARATOR):
        fields = line.split(FIELD_SEPARATOR)
        read = _READERS.get(fields[0])
        if read is None:
            continue
        try:
            trace = read(fields)
        except (IndexError, ValueError):
            continue
        yield trace


def _optional(text: str) -> str | None:
    return None if text in ("", NOTHING) else text


def _at(fields: list[str], index: int) -> str:
    return (_optional(fields[index]) or "") if len(fields) > index else ""


def _pub(fields: list[str]) -> PubTrace:
    # Three forms: without the offset id, with it, and with the client's host behind.
    offset_id, success = ("", fields[12]) if len(fields) == 13 else (fields[12], fields[13])
    return PubTrace(
        time_ms=int(fields[1]),
        region=_at(fields, 2),
        group=_at(fields, 3),
        topic=fields[4],
        message_id=fields[5],
        message_tag=_optional(fields[6]),
        keys=_optional(fields[7]),
        store_host=_at(fields, 8),
        body_bytes=int(fields[9]),
        cost_ms=int(fields[10]),
        type=int(fields[11]),
        offset_message_id=_optional(offset_id) or "",
        success=success == "true",
        client_host=_at(fields, 14),
    )


def _sub_before(fields: list[str]) -> SubBeforeTrace:
    return SubBeforeTrace(
        time_ms=int(fields[1]),
        region=_at(fields, 2),
        group=_at(fields, 3),
        request_id=fields[4],
        message_id=fields[5],
        retry_times=int(fields[6]),
        keys=_at(fields, 7) or None,
        client_host=_at(fields, 8),
    )


def _sub_after(fields: list[str]) -> SubAfterTrace:
    return SubAfterTrace(
        request_id=fields[1],
        message_id=fields[2],
        cost_ms=int(fields[3]),
        success=fields[4] == "true",
        keys=_at(fields, 5) or None,
        outcome=int(_at(fields, 6) or 0),
        time_ms=int(_at(fields, 7) or 0),
        group=_at(fields, 8),
        client_host=_at(fields, 9),
    )


def _end_transaction(fields: list[str]) -> EndTransactionTrace:
    return EndTransactionTrace(
        time_ms=int(fields[1]),
        region=_at(fields, 2),
        group=_at(fields, 3),
        topic=fields[4],
        message_id=fields[5],
        message_tag=_optional(fields[6]),
        keys=_optional(fields[7]),
        store_host=_at(fields, 8),
        type=int(fields[9]),
        transaction_id=_at(fields, 10),
        state=_at(fields, 11),
        from_check=_at(fields, 12) == "true",
        client_host=_at(fields, 13),
    )


def _recall(fields: list[str]) -> RecallTrace:
    return RecallTrace(
        time_ms=int(fields[1]),
        region=_at(fields, 2),
        group=_at(fields, 3),
        topic=fields[4],
        message_id=fields[5],
        success=fields[6] == "true",
    )


_READERS: Final[dict[str, Callable[[list[str]], Trace]]] = {
    "Pub": _pub,
    "SubBefore": _sub_before,
    "SubAfter": _sub_after,
    "EndTransaction": _end_transaction,
    "Recall": _recall,
}
