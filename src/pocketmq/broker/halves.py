"""Half messages as records: what tells one, and what one says about the message that it is the half of. Pure."""

from functools import lru_cache
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.model.hashing import java_string_hash
from pocketmq.model.names import CHECK_MAX_TOPIC, HALF_TOPIC, RETRY_PREFIX
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.properties import PropertyKey, decode_properties, property_finder, without_property
from pocketmq.wire.record import Record

if TYPE_CHECKING:
    from pocketmq.views.transactions import Transactions

_TRANSACTION_PREPARED = PropertyKey.TRANSACTION_PREPARED + "\x01"
_QUEUE_ID_DIGITS_MAX = 9

_REAL_TOPIC = PropertyKey.REAL_TOPIC.encode()
_REAL_QUEUE_ID = PropertyKey.REAL_QUEUE_ID.encode()
_find_real_topic = property_finder(_REAL_TOPIC)
_find_real_queue_id = property_finder(_REAL_QUEUE_ID)
_find_tags = property_finder(PropertyKey.TAGS.encode())


def is_half(topic: str, properties: str, reconsume_times: int) -> bool:
    """Whether a message for `topic` that mentions `TRAN_MSG` is one of a transaction.

    A consumer that sends a committed message back by itself leaves the mention in: that one is a retry.
    """
    if topic.startswith(RETRY_PREFIX):
        return False
    before, _, rest = properties.partition(_TRANSACTION_PREPARED)
    if rest.startswith("true\x02") and not reconsume_times and (not before or before[-1] == "\x02"):
        return True
    found = decode_properties(properties)
    if found.get(PropertyKey.TRANSACTION_PREPARED, "").lower() != "true":
        return False
    delay = found.get(PropertyKey.DELAY, "0")
    return not (reconsume_times > 0 and delay.isdigit() and int(delay) > 0)


def half_tag_code(properties: bytes) -> int:
    """The tag code of a message with these properties."""
    return _tag_code_of(_find_tags(properties) or b"")


@lru_cache(maxsize=65_536)
def _tag_code_of(tags: bytes) -> int:
    return java_string_hash(tags.decode(errors="replace"))


def target_of(position: int, properties: bytes) -> tuple[str, int, bytes]:
    """The topic and queue that a half is meant for, and the properties that its message has there.

    Raises PocketMQError 1 when the half does not say.
    """
    # Side by side, as they are written here; otherwise they are looked for.
    before, found, rest = properties.rpartition(b"\x02REAL_TOPIC\x01")
    topic: bytes | None
    queue_id: bytes | None
    topic, together, rest = rest.partition(b"\x02REAL_QID\x01")
    queue_id, _, rest = rest.partition(b"\x02")
    if found and together and b"\x02" not in topic and b"REAL_TOPIC\x01" not in before:
        kept = before + b"\x02" + rest
    else:
        topic, queue_id = _find_real_topic(properties), _find_real_queue_id(properties)
        kept = without_property(without_property(properties, _REAL_TOPIC), _REAL_QUEUE_ID)
    if not topic or queue_id is None or not queue_id.isdigit() or len(queue_id) > _QUEUE_ID_DIGITS_MAX:
        raise PocketMQError(
            f"the half message at {position} does not say where it is meant for", code=ResponseCode.SYSTEM_ERROR
        )
    return topic.decode(errors="replace"), int(queue_id), kept


def fold_transaction_record(view: "Transactions", record: Record) -> None:
    """Fold one replayed record of the half, op or given-up topic into the view."""
    if record.topic == HALF_TOPIC:
        view.fold_half(record.physical_offset, record.queue_offset, record.store_timestamp, record.properties)
    elif record.topic == CHECK_MAX_TOPIC:
        view.fold_copy(record.prepared_transaction_offset)
    elif _find_tags(record.properties) == b"d":
        view.fold_mark(record.physical_offset, record.body)
