"""SQL92 filters let through what Apache's broker lets through, and refuse what it refuses."""

import pytest

from golden.sql92 import (
    ANSWERS,
    LARGE_NUMBERS,
    MESSAGES,
    NARROWER_ANSWERS,
    REFUSED,
    REFUSED_HERE,
    REFUSED_THERE,
    STAMPED,
)
from pocketmq.views.sql.compiler import compile_expression
from pocketmq.views.sql.errors import ExpressionError
from pocketmq.wire.properties import encode_properties

STORED = [encode_properties(STAMPED | message).encode() for message in MESSAGES]


def answer(expression: str) -> str:
    matches = compile_expression(expression).matches
    return "".join("x" if matches(properties) else "." for properties in STORED)


@pytest.mark.parametrize(("expression", "expected"), ANSWERS)
def test_an_expression_lets_through_the_same_messages(expression: str, expected: str) -> None:
    assert answer(expression) == expected


@pytest.mark.parametrize(("expression", "narrower"), NARROWER_ANSWERS)
def test_a_large_number_is_compared_with_a_small_one(expression: str, narrower: str) -> None:
    more = "".join("x" if index in LARGE_NUMBERS else known for index, known in enumerate(narrower))
    assert answer(expression) == more


@pytest.mark.parametrize(("expression", "line", "column"), REFUSED + REFUSED_HERE)
def test_what_has_no_meaning_is_refused_with_its_place(expression: str, line: int, column: int) -> None:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(expression)
    assert (caught.value.code, caught.value.line, caught.value.column) == (23, line, column)


@pytest.mark.parametrize("expression", REFUSED_THERE)
def test_every_number_of_64_bits_can_be_written(expression: str) -> None:
    assert "x" not in answer("FALSE")
    compile_expression(expression)
