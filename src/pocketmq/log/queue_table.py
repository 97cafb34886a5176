"""The queue table on disk: where every queue stood when the index covered the log up to some position.

    uint32 number of topics, then each topic: uint16 length + name, uint32 number of queues, then each queue:
    uint32 id | int64 next offset | int64 first offset | int64 newest run (-1: none) | int64 floor | uint8 state

The floor is the position below which runs belong to an earlier life of the queue; state 1 is a queue whose topic was
dropped. Stored as a snapshot named `queues`, see `pocketmq.log.snapshots`. Little-endian.
"""

import gc
import struct

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
    # Nothing that is made here is ever garbage; looking for some among a million queues takes longer than making them.
    collects = gc.isenabled()
    gc.disable()
    try:
        (topic_count,) = _TOPIC_COUNT.unpack_from(payload)
        at = _TOPIC_COUNT.size
        for _ in range(topic_count):
            at = _load_topic(payload, at, queues, floors)
    finally:
        if collects:
            gc.enable()


def _load_topic(payload: bytes, at: int, queues: QueueTable, floors: dict[LogQueue, int]) -> int:
    (length,) = _NAME_LENGTH.unpack_from(payload, at)
    at += _NAME_LENGTH.size
    topic = str(payload[at : at + length], "utf-8")
    at += length
    (queue_count,) = _QUEUE_COUNT.unpack_from(payload, at)
    at += _QUEUE_COUNT.size
    end: int = at + queue_count * _QUEUE.size
    rows = list(_QUEUE.iter_unpack(payload[at:end]))
    if rows and not queues.of_topic(topic) and rows[0][5] != DROPPED:
        made = queues.add_topic(topic, [row[0] for row in rows])
    else:
        made = [queues.ensure(topic, row[0]) for row in rows]
    for queue, (_, next_offset, min_offset, last_run, floor, state) in zip(made, rows, strict=True):
        queue.next_offset = next_offset
        queue.min_offset = min_offset
        queue.last_run = last_run
        if floor:
            floors[queue] = floor
        if state == DROPPED:
            queues.drop_queue(queue, min_offset)
    return end
