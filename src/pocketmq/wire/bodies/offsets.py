"""Bodies about queue offsets and who consumes which queue. Offsets of queues are keyed by the queue itself."""

from typing import Any

from pocketmq.model.config import DataVersion
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import Body


class ResetOffsetBody(Body):
    """Offsets that a group was set to (220, the answer to 222)."""

    offset_table: dict[MessageQueue, int] = {}


class QueueOffset(Body):
    """One entry of `ResetOffsetBodyForC`."""

    broker_name: str
    topic: str
    queue_id: int
    offset: int


class ResetOffsetBodyForC(Body):
    """The same for clients written in C++ (language CPP)."""

    offset_table: list[QueueOffset] = []


class GetConsumerStatusBody(Body):
    """Offsets of one client (221), or of all clients of a group by client id (223)."""

    message_queue_table: dict[MessageQueue, int] = {}
    consumer_table: dict[str, dict[MessageQueue, int]] = {}


class ConsumerOffsetSerializeWrapper(Body):
    """All group offsets (43): `topic@group` -> queue id -> offset."""

    data_version: DataVersion | None = None
    offset_table: dict[str, dict[int, int]] = {}


class DelayOffsetSerializeWrapper(Body):
    """Positions of the delay levels (45)."""

    data_version: DataVersion | None = None
    offset_table: dict[int, int] = {}


class QueryCorrectionOffsetBody(Body):
    """The answer to 308: queue id -> smallest offset."""

    correction_offsets: dict[int, int] = {}


class QueryAssignmentRequestBody(Body):
    """The body of 400; `strategy_name` is AVG or AVG_BY_CIRCLE."""

    topic: str
    consumer_group: str
    client_id: str
    strategy_name: str = "AVG"
    message_model: str = "CLUSTERING"


class MessageQueueAssignment(Body):
    """A queue that a client shall consume, and how (PULL or POP)."""

    message_queue: MessageQueue
    mode: str = "PULL"
    attachments: dict[str, Any] | None = None


class QueryAssignmentResponseBody(Body):
    """The answer to 400; no list at all means that the broker does not know."""

    message_queue_assignments: list[MessageQueueAssignment] | None = None
