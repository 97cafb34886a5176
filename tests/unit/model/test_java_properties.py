"""Properties text is read as Java reads it."""

import pytest

from pocketmq.model.java_properties import parse_properties


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("brokerName=broker-a", "brokerName", "broker-a"),
        ("  brokerName = broker-a", "brokerName", "broker-a"),
        ("namesrvAddr=10.0.0.1:9876;10.0.0.2:9876", "namesrvAddr", "10.0.0.1:9876;10.0.0.2:9876"),
        ("name:value", "name", "value"),
        ("name value with blanks", "name", "value with blanks"),
        ("empty=", "empty", ""),
        ("alone", "alone", ""),
        ("path=C\\:\\\\data", "path", "C:\\data"),
        ("a\\=b=c", "a=b", "c"),
        ("key=a\\\n   b", "key", "ab"),
        ("key=\\u00e9\\t", "key", "é\t"),
        ("key=a=b", "key", "a=b"),
    ],
)
def test_one_entry(text: str, name: str, value: str) -> None:
    assert parse_properties(text) == [(name, value, 1)]


def test_comments_and_blank_lines_are_skipped_and_lines_are_numbered() -> None:
    assert parse_properties("# a\n\n! b\nx=1\ny=2\\\n3\nz=4\n") == [("x", "1", 4), ("y", "23", 5), ("z", "4", 7)]
