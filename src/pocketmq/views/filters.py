"""What a subscription lets through.

Tags are compared by hash, which is what the queue index holds: such a filter is an `Accept`, a function over index
entries. Two tags may share a hash, so consumers compare the tag itself once more. SQL92 expressions look at a message's
properties: such a filter is an `Expression`, and whoever reads messages shows it their properties
(`pocketmq.broker.filtering`). None lets everything through.
"""

from collections.abc import Callable
from functools import lru_cache

from pocketmq.model.errors import PocketMQError
from pocketmq.model.hashing import tag_code
from pocketmq.views.sql.compiler import Compiled, compile_expression
from pocketmq.wire.codes import ResponseCode

Accept = Callable[[int, int, int], bool]
"""(tag code, log position, record size) of one message -> whether the consumer wants it."""

Expression = Compiled
"""An SQL92 expression; its `matches` takes a message's encoded properties."""

TAG = "TAG"
SQL92 = "SQL92"

EXPRESSIONS_KEPT_MAX = 2_048
"""SQL92 expressions that stay compiled; a large one takes some ten kilobytes."""


def compile_filter(expression_type: str | None, expression: str | None) -> Accept | Expression | None:
    """The filter of a subscription; None lets everything through. The same object for the same arguments.

    Raises PocketMQError 23 for an expression or type that cannot be understood.
    """
    if not expression_type or expression_type == TAG:
        return _compile_tags(expression)
    if expression_type == SQL92:
        return _compile_sql(expression or "")
    raise PocketMQError(
        f"the expression type {expression_type[:80]!r} is unknown; use TAG or SQL92",
        code=ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    )


def split_tags(expression: str | None) -> list[str]:
    """The tags of `A || B`; none when the expression means everything."""
    if not expression or expression.strip() == "*":
        return []
    return [tag for part in expression.split("||") if (tag := part.strip())]


_compile_sql = lru_cache(maxsize=EXPRESSIONS_KEPT_MAX)(compile_expression)


@lru_cache(maxsize=65_536)
def _compile_tags(expression: str | None) -> Accept | None:
    tags = split_tags(expression)
    if not tags:
        if expression and "|" in expression:
            raise PocketMQError(
                f"the tag expression {expression!r} names no tag; write `A || B`, or `*` for everything",
                code=ResponseCode.SUBSCRIPTION_PARSE_FAILED,
            )
        return None
    codes = frozenset(tag_code(tag) for tag in tags)
    if len(codes) == 1:
        (only,) = codes
        return lambda code, position, size: code == only
    return lambda code, position, size: code in codes
