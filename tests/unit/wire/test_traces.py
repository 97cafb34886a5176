"""Records of message traces, as RocketMQ's clients write and read them."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.wire.traces import (
    EndTransactionTrace,
    PubTrace,
    RecallTrace,
    SubAfterTrace,
    SubBeforeTrace,
    decode_traces,
    trace_keys,
)

PUB = PubTrace(
    time_ms=1700000000000,
    region="DefaultRegion",
    group="p",
    topic="orders",
    message_id="ID",
    message_tag="new",
    keys="k1 k2",
    store_host="127.0.0.1:10911",
    body_bytes=5,
    cost_ms=3,
    type=3,
    offset_message_id="OFFSET",
)


def test_a_send_is_written_as_java_does():
    assert PUB.encode() == (
        "Pub\x011700000000000\x01DefaultRegion\x01p\x01orders\x01ID\x01new\x01k1 k2\x01127.0.0.1:10911\x01"
        "5\x013\x013\x01OFFSET\x01true\x02"
    )


def test_what_is_missing_is_the_word_null():
    """A reader in Java counts fields, and does not count empty ones at the end."""
    text = SubBeforeTrace(time_ms=1, region="r", group="g", request_id="q", message_id="m").encode()
    assert text == "SubBefore\x011\x01r\x01g\x01q\x01m\x010\x01null\x02"
    [trace] = decode_traces(text.encode())
    assert trace.keys is None


def test_all_kinds_are_read_as_they_were_written():
    traces = [
        PUB,
        SubBeforeTrace(time_ms=1, region="r", group="g", request_id="q", message_id="m", retry_times=2, keys="k"),
        SubAfterTrace(request_id="q", message_id="m", cost_ms=7, success=False, outcome=2, time_ms=9, group="g"),
        EndTransactionTrace(
            time_ms=1,
            region="r",
            group="g",
            topic="t",
            message_id="m",
            store_host="h:1",
            transaction_id="x",
            state="COMMIT_MESSAGE",
            from_check=True,
        ),
        RecallTrace(time_ms=1, region="r", group="g", topic="t", message_id="m", success=False),
    ]
    body = "".join(trace.encode() for trace in traces).encode()
    assert list(decode_traces(body)) == traces


def test_the_forms_of_older_and_newer_clients_are_read():
    old = "Pub\x011\x01r\x01g\x01t\x01m\x01null\x01null\x01h:1\x015\x013\x010\x01true\x02"
    new = PUB.encode().removesuffix("\x02") + "\x0110.0.0.7\x02"
    after = "SubAfter\x01q\x01m\x017\x01true\x01k\x02SubAfter\x01q\x01m\x017\x01true\x01k\x014\x02"
    first, second, third, fourth = decode_traces((old + new + after).encode())
    assert isinstance(first, PubTrace)
    assert (first.success, first.offset_message_id, first.keys) == (True, "", None)
    assert isinstance(second, PubTrace)
    assert (second.success, second.client_host) == (True, "10.0.0.7")
    assert isinstance(third, SubAfterTrace)
    assert (third.outcome, third.time_ms) == (0, 0)
    assert isinstance(fourth, SubAfterTrace)
    assert fourth.outcome == 4


def test_a_separator_in_a_value_ends_no_field():
    trace = PubTrace(time_ms=1, region="r", group="g", topic="t", message_id="m", keys="a\x01b\x02c")
    [read] = decode_traces(trace.encode().encode())
    assert read.keys == "a b c"


def test_traces_are_found_by_id_and_by_keys():
    assert trace_keys(PUB) == ["ID", "k1", "k2"]


@settings(max_examples=50)
@given(st.binary(max_size=200), st.lists(st.sampled_from(["Pub", "SubAfter", "1", "true", ""]), max_size=20))
def test_anything_can_be_in_the_trace_topic(data, fields):
    list(decode_traces(data))
    list(decode_traces("\x01".join(fields).encode()))
