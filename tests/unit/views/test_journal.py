"""Journal records: what is written is what is read back, and what older versions wrote stays readable."""

import msgspec
import pytest

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.views.journal import (
    Cursor,
    CursorReset,
    CursorsCommitted,
    GroupDelete,
    GroupOffsetsDropped,
    GroupPut,
    ResetTaken,
    TimersFired,
    TopicDelete,
    TopicPut,
    decode_entries,
    encode_entries,
)

ENTRIES = [
    TopicPut(TopicConfig(topic_name="orders", attributes={"message.type": "FIFO"}), 5),
    TopicDelete("orders", 6),
    GroupPut(GroupConfig(group_name="billing", retry_max_times=3), 7),
    GroupDelete("billing", 8),
    CursorsCommitted([Cursor("billing", "orders", 0, 17), Cursor("billing", "orders", 1, 2**40)]),
    CursorReset(Cursor("billing", "orders", 0, 3), announce=True),
    ResetTaken("billing", "orders", 0),
    GroupOffsetsDropped("billing"),
    TimersFired([0, 2**50]),
]


def test_every_kind_of_entry_is_read_back_as_it_was_written() -> None:
    assert decode_entries(encode_entries(ENTRIES)) == ENTRIES


def test_a_record_may_be_read_from_a_slice_of_the_log() -> None:
    body = encode_entries(ENTRIES)
    assert decode_entries(memoryview(b"xx" + body)[2:]) == ENTRIES


def test_an_entry_written_before_it_had_its_last_field_gets_the_default() -> None:
    body = msgspec.msgpack.encode([["reset", ["billing", "orders", 0, 3]]])
    assert decode_entries(body) == [CursorReset(Cursor("billing", "orders", 0, 3))]


def test_a_field_that_a_later_version_added_is_passed_over() -> None:
    body = msgspec.msgpack.encode([["topic-gone", "orders", 6, "what comes next"]])
    assert decode_entries(body) == [TopicDelete("orders", 6)]


def test_a_body_that_is_no_record_is_an_error() -> None:
    with pytest.raises(msgspec.MsgspecError):
        decode_entries(b"\xc1")
