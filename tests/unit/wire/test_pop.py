"""Texts of popped messages, and recall handles. The texts are golden."""

from collections.abc import Callable

import pytest

from pocketmq.model.errors import HeaderError, UsageError
from pocketmq.wire.ids import decode_recall_handle, encode_recall_handle
from pocketmq.wire.pop import (
    Receipt,
    decode_message_offsets,
    decode_order_counts,
    decode_receipt,
    decode_start_offsets,
    encode_message_offsets,
    encode_order_counts,
    encode_start_offsets,
)


def test_start_offsets() -> None:
    assert encode_start_offsets([("0", 3, 5), ("1", 0, 9)]) == "0 3 5;1 0 9"
    assert decode_start_offsets("0 3 5;1 0 9") == {("0", 3): 5, ("1", 0): 9}


def test_message_offsets() -> None:
    assert encode_message_offsets([("0", 3, [5, 7]), ("1", 0, [9])]) == "0 3 5,7;1 0 9"
    assert decode_message_offsets("0 3 5,7;1 0 9") == {("0", 3): [5, 7], ("1", 0): [9]}


def test_order_counts() -> None:
    assert encode_order_counts([("0", 3, 5, 2)], [("0", 3, 0)]) == "0 qo3%5 2;0 3 0"
    assert decode_order_counts("0 qo3%5 2;0 3 0") == {("0", 3, 5): 2, ("0", 3, None): 0}


def test_nothing_popped_reads_as_nothing() -> None:
    for decode in (decode_start_offsets, decode_message_offsets, decode_order_counts):
        assert decode(None) == decode("") == {}


def test_receipt() -> None:
    receipt = Receipt(5, 1_700_000_000_000, 60_000, 2, "0", "broker-a", 3, 7)
    assert receipt.encode() == "5 1700000000000 60000 2 0 broker-a 3 7"
    assert decode_receipt(receipt.encode()) == receipt


@pytest.mark.parametrize("text", ["", "5 1700000000000 60000 2 0 broker-a 3", "a 1 1 1 0 b 1 1", "1 2 3 4 5 6 7 8 9"])
def test_receipt_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(HeaderError, match="receipt"):
        decode_receipt(text)


@pytest.mark.parametrize(
    ("decode", "text"),
    [
        (decode_start_offsets, "0 3"),
        (decode_start_offsets, "0 3 x"),
        (decode_message_offsets, "0 3 5,"),
        (decode_order_counts, "0 qo3 5"),
        (decode_order_counts, "0 qo%5 1"),
    ],
)
def test_pop_answer_that_is_none_is_refused(decode: Callable[[str], object], text: str) -> None:
    with pytest.raises(HeaderError, match="pop answer"):
        decode(text)


def test_recall_handle() -> None:
    handle = "djEgVDEgYnJva2VyLWEgMTcwMDAwMDAwMDAwMCBVSw=="
    assert encode_recall_handle("T1", "broker-a", 1_700_000_000_000, "UK") == handle
    assert decode_recall_handle(handle) == ("T1", "broker-a", 1_700_000_000_000, "UK")
    for wrong in ("", "?", "djEgVDE=", "djIgVDEgYnJva2VyLWEgMTcwMDAwMDAwMDAwMCBVSw==", "/////w==", "é"):
        with pytest.raises(UsageError, match="not a recall handle"):
            decode_recall_handle(wrong)
