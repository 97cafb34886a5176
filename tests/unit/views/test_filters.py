"""Tag expressions, and what cannot be understood or is not served."""

import pytest

from pocketmq.model.errors import PocketMQError
from pocketmq.model.hashing import tag_code
from pocketmq.views.filters import Expression, compile_filter, split_tags


@pytest.mark.parametrize("expression", [None, "", "*", " * "])
@pytest.mark.parametrize("expression_type", [None, "", "TAG"])
def test_everything_needs_no_filter(expression_type: str | None, expression: str | None) -> None:
    assert compile_filter(expression_type, expression) is None


def test_one_tag_lets_only_its_own_messages_through() -> None:
    accept = compile_filter("TAG", "TagA")
    assert accept is not None
    assert accept(tag_code("TagA"), 0, 100)
    assert not accept(tag_code("TagB"), 0, 100)
    assert not accept(0, 0, 100)


def test_several_tags_are_an_or_and_blanks_do_not_matter() -> None:
    accept = compile_filter(None, " TagA||  TagB || ")
    assert accept is not None
    assert accept(tag_code("TagA"), 0, 100)
    assert accept(tag_code("TagB"), 0, 100)
    assert not accept(tag_code("TagC"), 0, 100)


def test_a_tag_whose_hash_is_negative_is_found() -> None:
    accept = compile_filter("TAG", "polygenelubricants")
    assert accept is not None
    assert accept(-2147483648, 0, 100)


def test_the_same_subscription_is_compiled_once() -> None:
    assert compile_filter("TAG", "a || b") is compile_filter("TAG", "a || b")


def test_tags_are_split_at_double_bars() -> None:
    assert split_tags("a || b||c d") == ["a", "b", "c d"]
    assert split_tags("*") == []


def test_an_expression_without_any_tag_is_refused() -> None:
    with pytest.raises(PocketMQError) as caught:
        compile_filter("TAG", "||")
    assert caught.value.code == 23


def test_an_unknown_type_is_refused() -> None:
    with pytest.raises(PocketMQError, match="XPATH") as caught:
        compile_filter("XPATH", "//a")
    assert caught.value.code == 23


def test_an_sql_expression_is_compiled_once() -> None:
    wanted = compile_filter("SQL92", "a > 5")
    assert isinstance(wanted, Expression)
    assert wanted is compile_filter("SQL92", "a > 5")
    assert wanted.names == ("a",)


def test_a_broken_sql_expression_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(PocketMQError, match="line 1, column 5") as caught:
            compile_filter("SQL92", "a > ")
        assert caught.value.code == 23
