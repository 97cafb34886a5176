"""The file in which Java clients keep the positions of broadcasting groups: `{"offsetTable":{{queue}:5}}`. Pure."""

from collections.abc import Mapping
from typing import Any

from pocketmq.model.errors import BodyError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.fastjson import dumps, loads


def encode_positions(table: Mapping[MessageQueue, int]) -> bytes:
    """The content of the file."""
    return dumps({"offsetTable": dict(table)})


def decode_positions(data: bytes) -> dict[MessageQueue, int]:
    """The table in the file; entries that are none are left out. Raises BodyError."""
    content = loads(data, object_key=_queue)
    table = content.get("offsetTable") if isinstance(content, dict) else None
    if not isinstance(table, dict):
        raise BodyError("there is no offsetTable in it")
    found = {}
    for queue, value in table.items():
        # Java writes counters as numbers; an older form has {"value": 5}.
        offset = value.get("value") if isinstance(value, dict) else value
        if isinstance(queue, MessageQueue) and isinstance(offset, int):
            found[queue] = offset
    return found


def _queue(members: dict[str, Any]) -> MessageQueue | None:
    topic, broker, queue_id = members.get("topic"), members.get("brokerName"), members.get("queueId")
    if isinstance(topic, str) and isinstance(broker, str) and isinstance(queue_id, int):
        return MessageQueue(topic, broker, queue_id)
    return None
