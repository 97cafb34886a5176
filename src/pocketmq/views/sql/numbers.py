"""Numbers as Java reads and orders them, which differs from Python in whatever is unusual."""

import math
import re

LONG_MIN, LONG_MAX = -(1 << 63), (1 << 63) - 1

_SHORT_DIGITS = 19
"""With fewer digits a number cannot leave the range."""
_DIGITS_MAX = 4_000
_LONG = re.compile(r"[+-]?\d+")
_DOUBLE = re.compile(rb"([+-]?)(?:(NaN|Infinity)|((?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[fFdD]?|(0[xX].*))")
_HEX_DOUBLE = re.compile(rb"(0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?")
_TRIMMED = bytes(range(33))


def long_of(text: bytes) -> int:
    """A property's value as a whole number (`Long.valueOf`: signs and digits of any script, no blanks).

    Raises ValueError when it is none.
    """
    if text.isdigit() and len(text) < _SHORT_DIGITS:
        return int(text)
    string = text.decode("utf-8", "replace")
    if len(string) > _DIGITS_MAX or not _LONG.fullmatch(string) or max(string) > "\uffff":
        raise ValueError("not a whole number")
    number = int(string)
    if not LONG_MIN <= number <= LONG_MAX:
        raise ValueError("a number beyond 64 bits")
    return number


def double_of(text: bytes) -> float:
    """A property's value as a floating-point number (`Double.valueOf`). Raises ValueError when it is none."""
    if text.isdigit() and len(text) < _SHORT_DIGITS:
        return float(text)
    match = _DOUBLE.fullmatch(text.strip(_TRIMMED))
    if match is None:
        raise ValueError("not a number")
    sign, name, decimal, hexadecimal = match.groups()
    if name:
        number = math.nan if name == b"NaN" else math.inf
    elif decimal:
        number = float(decimal)
    else:
        number = _hexadecimal(hexadecimal)
    return -number if sign == b"-" else number


def _hexadecimal(text: bytes) -> float:
    match = _HEX_DOUBLE.fullmatch(text)
    if match is None:
        raise ValueError("not a number")
    try:
        return float.fromhex(match.group(1).decode())
    except OverflowError:
        return math.inf


def order_of_doubles(left: float, right: float) -> int:
    """Below, equal to or above 0, as `Double.compareTo`: NaN is above everything and equal to itself, -0.0 < 0.0."""
    if left < right:
        return -1
    if left > right:
        return 1
    left_key = (math.isnan(left), math.copysign(1.0, left) if left == 0.0 else 0.0)
    right_key = (math.isnan(right), math.copysign(1.0, right) if right == 0.0 else 0.0)
    return (left_key > right_key) - (left_key < right_key)
