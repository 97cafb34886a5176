"""The queue table on disk: where every queue stood when the index covered the log up to some position.

    uint32 number of topics, then each topic: uint16 length + name, uint32 number of queues, then each queue:
    uint32 id | int64 next offset | int64 first offset | int64 newest run (-1: none) | int64 floor | uint8 state

The floor is the position below which runs belong to an earlier life of the queue; state 1 is a queue whose topic was
dropped. Stored as a snapshot named `queues`, see `pocketmq.log.snapshots`. Little-endian.
"""

import struct
from collections.abc import Callable

from pocketmq.log.queues import LogQueue, QueueTable

_TOPIC_COUNT = struct.Struct("<I")
_NAME_LENGTH = struct.Struct("<H")
_QUEUE_COUNT = struct.Struct("<I")
_QUEUE = struct.Struct("<IqqqqB")

DROPPED = 1


def encode_topic(name: str, queues: list[tuple[LogQueue, int, int]]) -> bytes:
    """The part of one topic; each queue comes with its floor and its state."""
    topic = name.encode()
    rows = [
        _QUEUE.pack(queue.queue_id, queue.memory_offset, queue.min_offset, queue.last_run, floor, state)
        for queue, floor, state in queues
    ]
    return b"".join((_NAME_LENGTH.pack(len(topic)), topic, _QUEUE_COUNT.pack(len(rows)), *rows))


def encode_table(topics: list[bytes]) -> bytes:
    """The whole table."""
    return _TOPIC_COUNT.pack(len(topics)) + b"".join(topics)


def load_table(payload: bytes, queues: QueueTable, floors: dict[LogQueue, int]) -> None:
    """Put the queues of a stored table into an empty one.

    A queue whose topic was dropped has a first offset behind its next one when its last records are not in runs yet.
    """
    (topic_count,) = _TOPIC_COUNT.unpack_from(payload)
    at = _TOPIC_COUNT.size
    ensure: Callable[[str, int], LogQueue] = queues.ensure
    for _ in range(topic_count):
        (length,) = _NAME_LENGTH.unpack_from(payload, at)
        at += _NAME_LENGTH.size
        topic = str(payload[at : at + length], "utf-8")
        at += length
        (queue_count,) = _QUEUE_COUNT.unpack_from(payload, at)
        at += _QUEUE_COUNT.size
        end = at + queue_count * _QUEUE.size
        for queue_id, next_offset, min_offset, last_run, floor, state in _QUEUE.iter_unpack(payload[at:end]):
            queue = ensure(topic, queue_id)
            queue.next_offset = next_offset
            queue.min_offset = min_offset
            queue.last_run = last_run
            if floor:
                floors[queue] = floor
            if state == DROPPED:
                queues.drop_queue(queue, min_offset)
        at = end
