"""What a subscription lets through, as a function over queue index entries.

A filter is `accept(tag_code, position, size) -> bool`, or None for "everything". Tags are compared by hash, which is
what the queue index holds; two tags may share a hash, so consumers compare the tag itself once more.
"""

from collections.abc import Callable
from functools import lru_cache

from pocketmq.model.errors import PocketMQError
from pocketmq.model.hashing import tag_code
from pocketmq.wire.codes import ResponseCode

Accept = Callable[[int, int, int], bool]
"""(tag code, log position, record size) of one message -> whether the consumer wants it."""

TAG = "TAG"
SQL92 = "SQL92"


@lru_cache(maxsize=65_536)
def compile_filter(expression_type: str | None, expression: str | None) -> Accept | None:
    """The filter of a subscription; None lets everything through. The same object for the same arguments.

    Raises PocketMQError: 23 for an expression or type that cannot be understood, 1 for a type that is not served.
    """
    if not expression_type or expression_type == TAG:
        return _compile_tags(expression)
    if expression_type == SQL92:
        raise PocketMQError(
            "this broker does not filter by SQL92 expressions yet; subscribe by tags (`A || B`)",
            code=ResponseCode.SYSTEM_ERROR,
        )
    raise PocketMQError(
        f"the expression type {expression_type!r} is unknown; use TAG or SQL92",
        code=ResponseCode.SUBSCRIPTION_PARSE_FAILED,
    )


def split_tags(expression: str | None) -> list[str]:
    """The tags of `A || B`; none when the expression means everything."""
    if not expression or expression.strip() == "*":
        return []
    return [tag for part in expression.split("||") if (tag := part.strip())]


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
