"""SQL92 expressions: what is said of mistakes, how large they may be, and what they see of a message."""

import pytest

from pocketmq.views.sql.compiler import compile_expression
from pocketmq.views.sql.errors import ExpressionError
from pocketmq.views.sql.limits import EXPRESSION_CHARS_MAX, LIST_STRINGS_MAX, NAMES_MAX, NESTING_MAX, NODES_MAX
from pocketmq.views.sql.numbers import double_of, long_of


def refusal(expression: str) -> str:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression)
    assert caught.value.code == 23
    return caught.value.message


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("a >", "line 1, column 4 (a >[here]): a number, a 'string', TRUE, FALSE, NULL, a property, NOT or ( was"),
        ("a > 5\n  AND", "line 2, column 6"),
        ("a > 5 b", "AND, OR, a comparison or the end of the expression was expected instead of `b`"),
        ("a != 5", "unequal is written <>"),
        ("a == 5", "equal is written ="),
        ('a = "x"', "strings stand in single quotes"),
        ("a = 'x", "this string is not closed"),
        ("a = 5 /* x", "this comment is not closed"),
        ("a = 1 && b = 2", "write AND"),
        ("a = 1 || b = 2", "write OR"),
        ("a = 1 AND ! b", "write NOT"),
        ("a LIKE 'x%'", "instead of LIKE use CONTAINS, STARTSWITH or ENDSWITH"),
        ("NOT a > 5", "NOT (a > 5)"),
        ("a > 'x'", "only numbers are smaller or greater"),
        ("a = NULL", "IS NULL"),
        ("a", ""),
        ("5", "a condition was expected"),
        ("a IN (5)", "a 'string' was expected instead of `5`"),
        ("5 IN ('5')", "IN asks for a property"),
        ("a BETWEEN 9 AND 5", "the lower end 9 of BETWEEN is above the upper end 5"),
        ("a = 9223372036854775808", "at most 9223372036854775807"),
        ("a = \x00", "the character '\\x00' has no meaning here"),
    ],
)
def test_a_mistake_is_named(expression: str, words: str) -> None:
    if words:
        assert words in refusal(expression)
    else:
        compile_expression(expression)


def test_a_refusal_quotes_little_of_a_long_expression() -> None:
    message = refusal("a = 1 OR " * 500 + "?")
    assert len(message) < 250


@pytest.mark.parametrize(
    ("fits", "too_much"),
    [
        ("a = 1" + " " * (EXPRESSION_CHARS_MAX - 5), "a = 1" + " " * (EXPRESSION_CHARS_MAX - 4)),
        ("(" * (NESTING_MAX - 1) + "a" + ")" * (NESTING_MAX - 1), "(" * NESTING_MAX + "a" + ")" * NESTING_MAX),
        ("NOT " * (NESTING_MAX - 2) + "a", "NOT " * NESTING_MAX + "a"),
        ("a = b" + " = b" * (NESTING_MAX - 2), "a = b" + " = b" * (NESTING_MAX - 1)),
        ("a IS NULL" + " IS NULL" * (NESTING_MAX - 2), "a IS NULL" + " IS NULL" * (NESTING_MAX - 1)),
        (" OR ".join(["a = 1"] * ((NODES_MAX - 1) // 3)), " OR ".join(["a = 1"] * (NODES_MAX // 3 + 1))),
        (" OR ".join(f"a{n}" for n in range(NAMES_MAX)), " OR ".join(f"a{n}" for n in range(NAMES_MAX + 1))),
        (
            f"a IN ({','.join(repr(str(n)) for n in range(LIST_STRINGS_MAX))})",
            f"a IN ({','.join(repr(str(n)) for n in range(LIST_STRINGS_MAX + 1))})",
        ),
    ],
    ids=["length", "brackets", "signs", "comparisons", "null tests", "nodes", "names", "list"],
)
def test_an_expression_has_bounds(fits: str, too_much: str) -> None:
    assert isinstance(compile_expression(fits).matches(b"a\x015\x02"), bool)
    refusal(too_much)


def test_operands_are_evaluated_once_however_deep() -> None:
    expression = "a"
    for _ in range(10):
        expression = f"(-({expression}) BETWEEN 1 AND 2)"
    compile_expression(expression).matches(b"a\x015\x02")
    deep = "a BETWEEN 1 AND 2"
    for _ in range(14):
        deep = f"-({deep}) BETWEEN 1 AND 2"
    assert not compile_expression(deep).matches(b"a\x011\x02")


@pytest.mark.parametrize(
    ("properties", "wanted"),
    [
        (b"", False),
        (b"a\x016", False),
        (b"a\x016\x02", False),
        (b"a\x016\x02region\x01x\x02", True),
        (b"region\x01x\x02a\x016", True),
        (b"xa\x016\x02region\x01x\x02", False),
        (b"a\x013\x02a\x016\x02region\x01x\x02", True),
        (b"a\x016\x02a\x013\x02region\x01x\x02", False),
        (b"a\x016\x02a\x01\x02region\x01x\x02", True),
        (b"a\x016\x02region\x01X\x02", False),
        (b"b\x01a\x016\x02region\x01x\x02", False),
    ],
)
def test_properties_are_read_as_they_are_stored(properties: bytes, wanted: bool) -> None:
    assert compile_expression("a > 5 AND region = 'x'").matches(properties) is wanted


def test_only_what_an_expression_names_is_looked_at() -> None:
    assert compile_expression("a > 5 AND (b = 'x' OR a < 0) AND TRUE").names == ("a", "b")
    assert compile_expression("TRUE").names == ()


def test_nothing_of_the_text_is_executed() -> None:
    matches = compile_expression("a = '\"); import os; (\"' OR __class__ = '{a}%s\\x01'").matches
    assert matches(b'a\x01"); import os; ("\x02')
    assert matches(b"__class__\x01{a}%s\\x01\x02")


@pytest.mark.parametrize(
    ("text", "number"),
    [(b"5", 5), (b"-5", -5), (b"+5", 5), (b"0005", 5), ("६".encode(), 6), (b"-9223372036854775808", -(1 << 63))],
)
def test_whole_numbers_are_read_as_java_does(text: bytes, number: int) -> None:
    assert long_of(text) == number


@pytest.mark.parametrize(
    "text",
    [b"", b" 5", b"5 ", b"5.0", b"1_0", b"0x10", b"--5", b"9223372036854775808", b"9" * 5000, b"\xff", "𝟓".encode()],
)
def test_what_java_takes_for_no_whole_number_is_none(text: bytes) -> None:
    with pytest.raises(ValueError):
        long_of(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (b"5", 5.0),
        (b" 5.5\t", 5.5),
        (b".5", 0.5),
        (b"5.", 5.0),
        (b"-1e3", -1000.0),
        (b"5d", 5.0),
        (b"5F", 5.0),
        (b"0x1.8p1", 3.0),
        (b"0x1p99999", float("inf")),
        (b"1e999", float("inf")),
        (b"-Infinity", float("-inf")),
    ],
)
def test_floating_point_numbers_are_read_as_java_does(text: bytes, number: float) -> None:
    assert double_of(text) == number


@pytest.mark.parametrize("text", [b"", b"inf", b"nan", b"1_0", b"5dd", b"0x10", b"0x1.8", "٦".encode(), b"1e", b"."])
def test_what_java_takes_for_no_floating_point_number_is_none(text: bytes) -> None:
    with pytest.raises(ValueError):
        double_of(text)
