"""What commands print, and how they read what people type."""

import json
from datetime import datetime, timedelta

import pytest

from pocketmq.cli.messages import message_fields
from pocketmq.cli.offset import parse_target
from pocketmq.cli.operating import name_value_pairs, time_text
from pocketmq.cli.output import body_text, plain, show, show_one
from pocketmq.cli.times import parse_time
from pocketmq.model.errors import UsageError
from pocketmq.model.message import ReceivedMessage

NOW = datetime(2026, 5, 4, 12, 0)


def test_a_table_has_a_header_and_a_line_for_each_row(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"topic": "orders", "read_queues": 8}, {"topic": "a", "read_queues": 16}], "table")
    header, first, second = capsys.readouterr().out.splitlines()
    assert header.split() == ["topic", "read", "queues"]
    assert first.split() == ["orders", "8"]
    assert second.split() == ["a", "16"]


def test_a_row_is_one_line_where_no_terminal_is(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"a": "x" * 300, "b": "y" * 300}], "table")
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_json_is_an_array_also_when_it_is_empty(capsys: pytest.CaptureFixture[str]) -> None:
    show([], "json")
    assert json.loads(capsys.readouterr().out) == []


def test_nothing_found_is_said_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    show([], "table", empty="there are no topics")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "there are no topics\n")


def test_markup_and_terminal_commands_are_shown_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    show([{"body": "[red]x[/foo]"}, {"body": "\x1b[31m"}], "table")
    show_one({"key": "a\x1b[2Jb", "none": None}, "table")
    shown = capsys.readouterr().out
    assert "[red]x[/foo]" in shown
    assert "\x1b" not in shown
    assert r"a\x1b[2Jb" in shown


def test_bodies_are_text_or_hexadecimal_and_not_too_long() -> None:
    assert body_text("grüße".encode()) == "grüße"
    assert body_text(b"\xff\x00") == "0xff00"
    assert body_text(b"a\nb") == r"a\nb"
    assert body_text(b"a\nb", keep_lines=True) == "a\nb"
    assert body_text(b"a\x1bb", keep_lines=True) == r"a\x1bb"
    assert len(body_text(b"x" * 1000)) == 200
    assert plain(None) == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-01-31T12:00", datetime(2026, 1, 31, 12)),
        ("2026-01-31 12:00:05", datetime(2026, 1, 31, 12, 0, 5)),
        ("2026-01-31", datetime(2026, 1, 31)),
        ("30m", NOW - timedelta(minutes=30)),
        ("1.5h", NOW - timedelta(minutes=90)),
        ("2d", NOW - timedelta(days=2)),
        ("10s", NOW - timedelta(seconds=10)),
    ],
)
def test_times_are_dates_or_how_long_ago(text: str, expected: datetime) -> None:
    assert parse_time(text, NOW) == expected


@pytest.mark.parametrize("text", ["", "yesterday", "30", "5w", "-1h", "99999999999999d", "2026-13-01"])
def test_other_times_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_time(text, NOW)


def test_a_target_is_a_word_an_offset_or_a_time() -> None:
    assert parse_target("first", NOW) == "first"
    assert parse_target("last", NOW) == "last"
    assert parse_target("120", NOW) == 120
    assert parse_target("1h", NOW) == NOW - timedelta(hours=1)
    with pytest.raises(UsageError):
        parse_target("-1", NOW)


def test_pairs_need_a_name_and_a_value() -> None:
    assert name_value_pairs(["a=1", "b=x=y", "c="], "--property") == {"a": "1", "b": "x=y", "c": ""}
    for text in ("a", "=1"):
        with pytest.raises(UsageError, match="write NAME=VALUE"):
            name_value_pairs([text], "--property")


def test_times_are_shown_in_local_time() -> None:
    assert time_text(None) is None
    assert time_text(round(NOW.timestamp() * 1000)) == "2026-05-04 12:00:00.000"


def received(body: bytes) -> ReceivedMessage:
    return ReceivedMessage(
        topic="orders",
        body=body,
        properties={"TAGS": "new", "KEYS": "a b"},
        broker_name="broker-a",
        queue_id=1,
        queue_offset=2,
        physical_offset=3,
        message_id="M",
        offset_message_id="O",
        flag=0,
        sys_flag=0,
        born_timestamp=4,
        born_host="h:1",
        store_timestamp=5,
        store_host="h:2",
        reconsume_times=0,
        prepared_transaction_offset=0,
        store_size=6,
    )


def test_a_message_in_json_says_how_its_body_is_written() -> None:
    fields = message_fields(received(b"hello"))
    assert (fields["body"], fields["tag"], fields["keys"]) == ("hello", "new", ["a", "b"])
    assert "body_base64" not in fields
    fields = message_fields(received(b"\xff"))
    assert fields["body_base64"] == "/w=="
    assert "body" not in fields
