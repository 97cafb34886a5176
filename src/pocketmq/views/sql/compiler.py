"""From the tree of an expression to a function over property bytes.

Each node becomes a function over a row. Comparisons of a property with a constant, which is what nearly every
expression consists of, have functions of their own that convert nothing they need not; all others go through
`evaluation`.
"""

from collections.abc import Callable
from operator import contains, eq, ge, gt, itemgetter, le, lt

from pocketmq.views.sql.evaluation import Decide, Evaluate, Row, Value, equal, order, truth_of
from pocketmq.views.sql.numbers import double_of, long_of
from pocketmq.views.sql.parser import parse
from pocketmq.views.sql.tree import (
    And,
    Between,
    Comparison,
    In,
    IsNull,
    Literal,
    Negation,
    Node,
    Not,
    Or,
    Property,
    TextMatch,
    Truth,
    is_number,
)
from pocketmq.wire.properties import property_finder

_FLIPPED = {"=": "=", "<>": "<>", ">": "<", ">=": "<=", "<": ">", "<=": ">="}
_LONG_TESTS: dict[str, Callable[[int, int], bool]] = {"=": eq, ">": gt, ">=": ge, "<": lt, "<=": le}
_DOUBLE_TESTS: dict[str, Callable[[float, float], bool]] = {
    "=": eq,
    "<": lt,
    "<=": le,
    # NaN, which a property may be and a constant may not, is above everything.
    ">": lambda left, right: not left <= right,
    ">=": lambda left, right: not left < right,
}
_ORDER_TESTS: dict[str, Callable[[int], bool]] = {
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
}
_TEXT_TESTS: dict[str, Callable[[bytes, bytes], bool]] = {
    "CONTAINS": contains,
    "STARTSWITH": lambda value, text: value.startswith(text),
    "ENDSWITH": lambda value, text: value.endswith(text),
}


class Compiled:
    """An expression that is ready for use."""

    __slots__ = ("expression", "matches", "names")

    def __init__(self, expression: str, names: tuple[str, ...], matches: Callable[[bytes], bool]) -> None:
        self.expression = expression
        self.names = names
        """The properties that it looks at."""
        self.matches = matches
        """Encoded properties of a message -> whether it is wanted. Never fails."""


def compile_expression(expression: str) -> Compiled:
    """Make an expression ready for use. Raises ExpressionError (code 23) with the place of the mistake."""
    tree = parse(expression)
    compiler = _Compiler()
    decide = compiler.condition(tree)
    names = tuple(compiler.names)
    finders = [property_finder(name.encode()) for name in names]

    def matches(properties: bytes) -> bool:
        try:
            return decide([find(properties) for find in finders]) is True
        except ValueError:
            # What cannot be evaluated is not wanted.
            return False

    return Compiled(expression, names, matches)


def _encoded(value: str | int | float | bool | None) -> Value:
    return value.encode() if isinstance(value, str) else value


def _number(node: Node) -> int | float | None:
    """The number that a constant node is."""
    if isinstance(node, Literal):
        return node.value if is_number(node.value) and isinstance(node.value, int | float) else None
    if isinstance(node, Negation):
        number = _number(node.operand)
        return None if number is None else -number
    return None


class _Compiler:
    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        """Property -> its place in the row."""

    def index(self, node: Property) -> int:
        return self.names.setdefault(node.name, len(self.names))

    # -- values ------------------------------------------------------------------------------------------------------

    def value(self, node: Node) -> Evaluate:
        """The function of any node."""
        if isinstance(node, Property):
            return itemgetter(self.index(node))
        number = _number(node)
        if number is not None:
            return lambda row: number
        if isinstance(node, Literal):
            constant = _encoded(node.value)
            return lambda row: constant
        if isinstance(node, Negation):
            operand = self.value(node.operand)

            def nothing(row: Row) -> None:
                # Only numbers have a negative; what is inside may yet fail.
                operand(row)

            return nothing
        return self.condition(node)

    # -- conditions --------------------------------------------------------------------------------------------------

    def condition(self, node: Node) -> Decide:
        """The function of a node that is a condition."""
        if isinstance(node, And | Or):
            parts = tuple(self.condition(part) for part in node.parts)
            return _all_of(parts) if isinstance(node, And) else _any_of(parts)
        if isinstance(node, Not):
            return _not(self.condition(node.operand))
        if isinstance(node, Comparison):
            return self._comparison(node)
        if isinstance(node, Between):
            return self._between(node)
        if isinstance(node, IsNull):
            operand, negated = self.value(node.operand), node.negated
            return lambda row: (operand(row) is None) is not negated
        if isinstance(node, In):
            return _one_of(self.index(node.operand), frozenset(map(str.encode, node.strings)), node.negated)
        if isinstance(node, TextMatch):
            return self._text_match(node)
        if isinstance(node, Truth):
            index = self.index(node.operand)
            return lambda row: None if row[index] is None else False
        assert isinstance(node, Literal)
        assert node.value is None or isinstance(node.value, bool)
        constant = node.value
        return lambda row: constant

    def _comparison(self, node: Comparison) -> Decide:
        if node.comparator == "<>":
            return _not(self._equality(node.left, node.right))
        if node.comparator == "=":
            return self._equality(node.left, node.right)
        special = self._with_number(node.comparator, node.left, node.right)
        if special is not None:
            return special
        return _ordered(self.value(node.left), self.value(node.right), _ORDER_TESTS[node.comparator])

    def _equality(self, left: Node, right: Node) -> Decide:
        special = self._with_number("=", left, right)
        if special is not None:
            return special
        if isinstance(left, Property) and isinstance(right, Literal):
            if isinstance(right.value, str):
                return _is_string(self.index(left), right.value.encode(), absent=None)
            if isinstance(right.value, bool):
                return _is_truth(self.index(left), right.value)
        if isinstance(right, Property) and isinstance(left, Literal) and isinstance(left.value, str):
            return _is_string(self.index(right), left.value.encode(), absent=False)
        left_value, right_value = self.value(left), self.value(right)
        return lambda row: equal(left_value(row), right_value(row))

    def _with_number(self, comparator: str, left: Node, right: Node) -> Decide | None:
        """The function for a property and a number, whichever stands left."""
        if isinstance(left, Property):
            number, index, absent = _number(right), self.index(left), None
        elif isinstance(right, Property):
            number, index, absent = _number(left), self.index(right), False if comparator == "=" else None
            comparator = _FLIPPED[comparator]
        else:
            return None
        if isinstance(number, int):
            return _long_test(index, _LONG_TESTS[comparator], number, absent)
        if isinstance(number, float) and number != 0.0:
            return _double_test(index, _DOUBLE_TESTS[comparator], number, absent)
        return None

    def _between(self, node: Between) -> Decide:
        low, high = _number(node.low), _number(node.high)
        if isinstance(node.operand, Property) and isinstance(low, int) and isinstance(high, int):
            return _long_between(self.index(node.operand), low, high, node.negated)
        return _between(self.value(node.operand), self.value(node.low), self.value(node.high), node.negated)

    def _text_match(self, node: TextMatch) -> Decide:
        operand, text, negated = self.value(node.operand), node.text.encode(), node.negated
        test = _TEXT_TESTS[node.matching]

        def decide(row: Row) -> bool:
            value = operand(row)
            # False whether negated or not: so RocketMQ answers for what is not a string, and for an empty text.
            return isinstance(value, bytes) and text != b"" and test(value, text) is not negated

        return decide


# -- the functions ---------------------------------------------------------------------------------------------------


def _all_of(parts: tuple[Decide, ...]) -> Decide:
    def decide(row: Row) -> bool | None:
        answer: bool | None = True
        for part in parts:
            value = part(row)
            if value is False:
                return False
            if value is None:
                answer = None
        return answer

    return decide


def _any_of(parts: tuple[Decide, ...]) -> Decide:
    def decide(row: Row) -> bool | None:
        answer: bool | None = False
        for part in parts:
            value = part(row)
            if value is True:
                return True
            if value is None:
                answer = None
        return answer

    return decide


def _not(operand: Decide) -> Decide:
    def decide(row: Row) -> bool | None:
        value = operand(row)
        return None if value is None else not value

    return decide


def _is_string(index: int, constant: bytes, *, absent: bool | None) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return absent if text is None else text == constant

    return decide


def _is_truth(index: int, constant: bool) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return None if text is None else truth_of(text) is constant

    return decide


def _one_of(index: int, strings: frozenset[bytes], negated: bool) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return None if text is None else (text in strings) is not negated

    return decide


def _long_test(index: int, test: Callable[[int, int], bool], constant: int, absent: bool | None) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return absent if text is None else test(long_of(text), constant)

    return decide


def _double_test(index: int, test: Callable[[float, float], bool], constant: float, absent: bool | None) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return absent if text is None else test(double_of(text), constant)

    return decide


def _ordered(left: Evaluate, right: Evaluate, test: Callable[[int], bool]) -> Decide:
    def decide(row: Row) -> bool | None:
        left_value = left(row)
        if left_value is None:
            return None
        right_value = right(row)
        if right_value is None:
            return None
        found = order(left_value, right_value)
        return found is not None and test(found)

    return decide


def _long_between(index: int, low: int, high: int, negated: bool) -> Decide:
    def decide(row: Row) -> bool | None:
        text = row[index]
        return None if text is None else (low <= long_of(text) <= high) is not negated

    return decide


def _between(operand: Evaluate, low: Evaluate, high: Evaluate, negated: bool) -> Decide:
    """As `operand >= low AND operand <= high`, or `operand < low OR operand > high`; the operand is evaluated once."""

    def decide(row: Row) -> bool | None:
        value = operand(row)
        if value is None:
            return None
        answer: bool | None = not negated
        for end, sign in ((low, 1), (high, -1)):
            bound = end(row)
            found = None if bound is None else order(value, bound)
            if found is None:
                answer = None
            elif found * sign < 0:
                return negated
        return answer

    return decide
