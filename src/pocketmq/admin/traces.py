"""What became of a message, put together from the traces that clients wrote about it."""

from collections.abc import Iterable
from typing import Final

import msgspec

from pocketmq.admin.messages import END_OF_TIME_MS, RESULTS_MAX, Messages
from pocketmq.model.errors import UsageError
from pocketmq.model.names import TRACE_TOPIC
from pocketmq.wire.traces import (
    ConsumeOutcome,
    EndTransactionTrace,
    PubTrace,
    RecallTrace,
    SubAfterTrace,
    SubBeforeTrace,
    Trace,
    TraceType,
    decode_traces,
    trace_keys,
)

SENT: Final[dict[int, str]] = {
    TraceType.TRANSACTION_HALF: "sent in a transaction",
    TraceType.TRANSACTION_COMMIT: "sent in a transaction",
    TraceType.DELAY: "sent with a delay",
    TraceType.ORDER: "sent in order",
}
CONSUMED: Final[dict[int, str]] = {
    ConsumeOutcome.TIME_OUT: "consumed too slowly",
    ConsumeOutcome.EXCEPTION: "failed",
    ConsumeOutcome.RETURNED_NULL: "failed",
    ConsumeOutcome.FAILED: "given back",
}


class TraceEvent(msgspec.Struct, kw_only=True):
    """Something that happened to a message. `time_ms` is when it began."""

    time_ms: int
    what: str
    """`sent`, `send failed`, `consumed`, `given back`, `committed`, ..."""
    success: bool | None
    """None: it has not ended, as far as traces say."""
    message_id: str
    group: str
    """The producer's or the consumer's."""
    client: str
    """The host of the client that wrote the trace."""
    topic: str = ""
    keys: str | None = None
    message_tag: str | None = None
    broker: str = ""
    cost_ms: int | None = None
    attempt: int | None = None
    body_bytes: int | None = None
    offset_message_id: str = ""


class Traces:
    """Finds traces of messages."""

    def __init__(self, messages: Messages) -> None:
        self._messages = messages

    async def find(
        self,
        *,
        message_id: str | None = None,
        key: str | None = None,
        topic: str = TRACE_TOPIC,
        begin_ms: int = 0,
        end_ms: int = END_OF_TIME_MS,
    ) -> list[TraceEvent]:
        """What happened to the message with an id, or to the messages with a key, in the order of time.

        `topic` is where traces are, `begin_ms` and `end_ms` (ms since the epoch) when they were written. Each broker
        gives those of at most 64 messages of the trace topic. Raises RouteNotFoundError.
        """
        wanted = message_id or key
        if not wanted or (message_id and key):
            raise UsageError("give a message id or a key")
        found = await self._messages.find(topic, wanted, begin_ms=begin_ms, end_ms=end_ms, max=RESULTS_MAX)
        traces: list[Trace] = []
        for message in found:
            client = message.born_host.rpartition(":")[0] or message.born_host
            for trace in decode_traces(message.body):
                if wanted in (trace_keys(trace) if key else (trace.message_id,)):
                    trace.client_host = trace.client_host or client
                    traces.append(trace)
        return time_line(traces)


def time_line(traces: Iterable[Trace]) -> list[TraceEvent]:
    """Traces as events, in the order of time; beginning and end of a handling are one event."""
    events: list[TraceEvent] = []
    begins: dict[tuple[str, str], SubBeforeTrace] = {}
    ends: dict[tuple[str, str], SubAfterTrace] = {}
    for trace in traces:
        if isinstance(trace, SubBeforeTrace):
            begins[trace.request_id, trace.message_id] = trace
        elif isinstance(trace, SubAfterTrace):
            ends[trace.request_id, trace.message_id] = trace
        else:
            events.append(_event(trace))
    events.extend(_handling(begins.get(place), ends.get(place)) for place in begins | ends)
    return sorted(events, key=lambda event: event.time_ms)


def _event(trace: PubTrace | EndTransactionTrace | RecallTrace) -> TraceEvent:
    event = TraceEvent(
        time_ms=trace.time_ms,
        what="recalled",
        success=True,
        message_id=trace.message_id,
        group=trace.group,
        client=trace.client_host,
        topic=trace.topic,
        keys=trace.keys,
    )
    if isinstance(trace, PubTrace):
        event.what = SENT.get(trace.type, "sent") if trace.success else "send failed"
        event.success = trace.success
        event.message_tag = trace.message_tag
        event.broker = trace.store_host
        event.cost_ms = trace.cost_ms
        event.body_bytes = trace.body_bytes
        event.offset_message_id = trace.offset_message_id
    elif isinstance(trace, EndTransactionTrace):
        word = {"COMMIT_MESSAGE": "committed", "ROLLBACK_MESSAGE": "rolled back"}.get(trace.state, "left open")
        event.what = f"{word} when asked" if trace.from_check else word
        event.message_tag = trace.message_tag
        event.broker = trace.store_host
    else:
        event.success = trace.success
        event.what = "recalled" if trace.success else "recall failed"
    return event


def _handling(begin: SubBeforeTrace | None, end: SubAfterTrace | None) -> TraceEvent:
    one = begin or end
    assert one is not None
    event = TraceEvent(
        time_ms=one.time_ms,
        what="consumption began",
        success=None,
        message_id=one.message_id,
        group=one.group,
        client=one.client_host,
        keys=one.keys,
    )
    if begin is not None:
        event.attempt = begin.retry_times + 1
    if end is not None:
        event.what = "consumed" if end.success else CONSUMED.get(end.outcome, "failed")
        event.success = end.success
        event.cost_ms = end.cost_ms
        if begin is None:
            event.time_ms = max(0, end.time_ms - end.cost_ms)
    return event
