"""The values of an expression and how two of them compare.

Strings are the UTF-8 bytes that they are stored as. Which of two values decides how they compare depends on the kind of
the *left* one, as in RocketMQ: `a = TRUE` reads `a` as a truth value, `TRUE = a` cannot be evaluated.
"""

from collections.abc import Callable, Sequence

from pocketmq.views.sql.numbers import double_of, long_of, order_of_doubles

Row = Sequence[bytes | None]
"""The values of an expression's properties."""
Value = bytes | int | float | bool | None
Evaluate = Callable[[Row], Value]
Decide = Callable[[Row], bool | None]


def truth_of(text: bytes) -> bool:
    """A property's value as a truth value: `true` in any case is, everything else is not."""
    return text.lower() == b"true"


def order(left: Value, right: Value) -> int | None:
    """Below, equal to or above 0; None where the two kinds do not compare. Neither is null.

    Two strings compare as numbers. Raises ValueError when a string is no number and must be.
    """
    if isinstance(left, bytes):
        if isinstance(right, bytes):
            return order_of_doubles(double_of(left), double_of(right))
        if isinstance(right, bool):
            return truth_of(left) - right
        left = double_of(left) if isinstance(right, float) else long_of(left)
    elif isinstance(left, bool):
        if isinstance(right, bytes):
            raise ValueError("a truth value on the left does not compare with a string")
        return left - right if isinstance(right, bool) else None
    elif isinstance(right, bytes):
        right = double_of(right) if isinstance(left, float) else long_of(right)
    if isinstance(right, bool) or left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        return order_of_doubles(float(left), float(right))
    return (left > right) - (left < right)


def equal(left: Value, right: Value) -> bool | None:
    """Whether two values are equal: null is equal to null, unknown to anything else when it stands on the left."""
    if left is None:
        return True if right is None else None
    if right is None:
        return False
    if isinstance(left, bytes) and isinstance(right, bytes):
        return left == right
    return order(left, right) == 0
