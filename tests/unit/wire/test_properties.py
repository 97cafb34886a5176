"""Message properties and batches of messages."""

import pytest

from golden.records import BAD_BATCHES, BATCH, BATCH_MESSAGES, BadBytes
from pocketmq.model.errors import BodyError, UsageError
from pocketmq.wire.batch import encode_batch, iter_batch, split_batch
from pocketmq.wire.properties import (
    SYSTEM_PROPERTIES,
    decode_properties,
    encode_properties,
    find_property,
    with_property,
    without_property,
)


def test_properties_are_written_and_read() -> None:
    assert encode_properties({"KEYS": "k1 k2", "TAGS": "TagA", "NONE": None}) == "KEYS\x01k1 k2\x02TAGS\x01TagA\x02"
    assert decode_properties("KEYS\x01k1 k2\x02TAGS\x01TagA\x02") == {"KEYS": "k1 k2", "TAGS": "TagA"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("a\x01b", {"a": "b"}),
        ("a\x01b\x02a\x01c\x02", {"a": "c"}),
        ("a\x01b\x02a\x01\x02", {"a": "b"}),
        ("\x01b\x02a\x01\x02c\x02", {}),
        ("a\x01b\x01c\x02", {"a": "b\x01c"}),
        ("\x02\x02a\x01b\x02\x02", {"a": "b"}),
    ],
)
def test_odd_properties_are_read_as_java_reads_them(text: str, expected: dict[str, str]) -> None:
    assert decode_properties(text) == expected
    for key in ("a", "b", "c"):
        found = find_property(text.encode(), key.encode())
        assert (None if found is None else found.decode()) == expected.get(key)


@pytest.mark.parametrize("properties", [{"a\x01": "b"}, {"a\x02": "b"}, {"a": "b\x02"}])
def test_separators_in_properties_are_refused(properties: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="separates"):
        encode_properties(properties)


def test_a_property_is_found_by_its_whole_key_only() -> None:
    properties = b"XKEYS\x01no\x02A\x01KEYS\x02KEYS\x01yes\x02KEYSX\x01no\x02"
    assert find_property(properties, b"KEYS") == b"yes"
    assert find_property(properties, b"KEY") is None
    assert find_property(properties, b"A") == b"KEYS"
    assert find_property(b"", b"KEYS") is None


def test_a_property_is_set_and_removed_without_touching_the_others() -> None:
    properties = b"A\x011\x02B\x012\x02A\x013"
    assert without_property(properties, b"A") == b"B\x012\x02"
    assert without_property(properties, b"C") is properties
    assert with_property(properties, b"B", b"9") == b"A\x011\x02A\x013\x02B\x019\x02"
    assert with_property(b"A\x011", b"B", b"2") == b"A\x011\x02B\x012\x02"
    assert with_property(b"", b"A", b"1") == b"A\x011\x02"


def test_users_may_not_set_what_the_broker_sets() -> None:
    assert {"UNIQ_KEY", "TAGS", "KEYS", "DELAY", "WAIT", "PGROUP"} <= SYSTEM_PROPERTIES
    assert not {"__SHARDINGKEY", "TRACE_CONTEXT", "mine"} & SYSTEM_PROPERTIES


def test_golden_batch_is_written_and_read() -> None:
    assert encode_batch(BATCH_MESSAGES) == BATCH
    assert split_batch(BATCH) == BATCH_MESSAGES
    assert list(iter_batch(BATCH)) == BATCH_MESSAGES
    assert split_batch(b"") == []


@pytest.mark.parametrize("bad", BAD_BATCHES, ids=lambda bad: bad.name)
def test_damaged_batch_is_refused_as_a_whole(bad: BadBytes) -> None:
    with pytest.raises(BodyError, match=bad.error):
        iter_batch(bad.data)


def test_properties_too_long_for_a_batch_are_refused() -> None:
    with pytest.raises(UsageError, match="32768 bytes"):
        encode_batch([(0, b"", bytes(32_768))])


def test_a_property_is_found_behind_any_number_of_empty_ones() -> None:
    assert find_property(b"a\x01x\x02" + b"a\x01\x02" * 5_000, b"a") == b"x"
    assert find_property(b"a\x01\x02" * 5_000, b"a") is None
