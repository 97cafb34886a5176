"""From the text of an expression to its tree.

    condition  := all (OR all)*
    all        := equality (AND equality)*
    equality   := comparison ((= | <>) comparison | IS [NOT] NULL)*
    comparison := signed ((> | >= | < | <=) signed | [NOT] BETWEEN signed AND signed
                          | [NOT] (CONTAINS | STARTSWITH | ENDSWITH) 'text' | [NOT] IN ('text', ...))*
    signed     := (+ | - | NOT) signed | value
    value      := number | 'text' | TRUE | FALSE | NULL | property | ( condition )

NOT binds tighter than any comparison, unlike in SQL databases: `NOT a = 5` is `(NOT a) = 5`. That is RocketMQ's
grammar, and consumers rely on their filters meaning the same on every broker.
"""

from collections.abc import Iterable
from typing import get_args

from pocketmq.views.sql import tokens
from pocketmq.views.sql.errors import ExpressionError
from pocketmq.views.sql.limits import EXPRESSION_CHARS_MAX, LIST_STRINGS_MAX, NAMES_MAX, NESTING_MAX, NODES_MAX
from pocketmq.views.sql.numbers import LONG_MAX
from pocketmq.views.sql.tokens import Token
from pocketmq.views.sql.tree import (
    And,
    Between,
    Comparator,
    Comparison,
    In,
    IsNull,
    Literal,
    Matching,
    Negation,
    Node,
    Not,
    Or,
    Property,
    TextMatch,
    Truth,
    Value,
    is_condition,
    is_number,
)

_CONSTANTS = {"TRUE": True, "FALSE": False, "NULL": None}
_COMPARATORS: dict[str, Comparator] = {name: name for name in get_args(Comparator)}
_MATCHINGS: dict[str, Matching] = {name: name for name in get_args(Matching)}
_A_VALUE = "a number, a 'string', TRUE, FALSE, NULL, a property, NOT or ("
_LONG_DIGITS_MAX = 19


def parse(expression: str) -> Node:
    """The tree of an expression; it is a condition. Raises ExpressionError (code 23)."""
    if len(expression) > EXPRESSION_CHARS_MAX:
        raise ExpressionError(
            expression,
            EXPRESSION_CHARS_MAX,
            f"it has {len(expression)} characters, and at most {EXPRESSION_CHARS_MAX} are allowed",
        )
    return _Parser(expression).whole()


class _Parser:
    """One run over one expression."""

    def __init__(self, expression: str) -> None:
        self._expression = expression
        self._tokens = tokens.split(expression)
        self._next = 0
        self._depth = 0
        self._nodes = 0
        self._names: set[str] = set()

    def whole(self) -> Node:
        node = self._condition()
        token = self._peek()
        if token.kind != tokens.END:
            raise self._expected("AND, OR, a comparison or the end of the expression")
        return self._as_condition(node)

    # -- grammar -----------------------------------------------------------------------------------------------------

    def _condition(self) -> Node:
        parts = [self._all()]
        while self._take_keyword("OR"):
            parts.append(self._all())
        if len(parts) == 1:
            return parts[0]
        conditions = tuple(self._as_condition(part) for part in parts)
        return Or(parts[0].at, self._height(parts[0].at, conditions), conditions)

    def _all(self) -> Node:
        parts = [self._equality()]
        while self._take_keyword("AND"):
            parts.append(self._equality())
        if len(parts) == 1:
            return parts[0]
        conditions = tuple(self._as_condition(part) for part in parts)
        return And(parts[0].at, self._height(parts[0].at, conditions), conditions)

    def _equality(self) -> Node:
        left = self._comparison()
        while True:
            token = self._peek()
            if token.kind == tokens.SYMBOL and token.text in ("=", "<>"):
                self._next += 1
                right = self._comparison()
                self._check_equality(left, right)
                height = self._height(token.at, (left, right))
                left = Comparison(left.at, height, _COMPARATORS[token.text], left, right)
            elif self._take_keyword("IS"):
                negated = self._take_keyword("NOT")
                if not self._take_keyword("NULL"):
                    raise self._expected("NULL" if negated else "NULL or NOT NULL")
                left = IsNull(left.at, self._height(token.at, (left,)), left, negated)
            else:
                return left

    def _comparison(self) -> Node:
        left = self._signed()
        while True:
            token = self._peek()
            if token.kind == tokens.SYMBOL and token.text in (">", ">=", "<", "<="):
                self._next += 1
                right = self._signed()
                self._check_order(left)
                self._check_order(right)
                height = self._height(token.at, (left, right))
                left = Comparison(left.at, height, _COMPARATORS[token.text], left, right)
                continue
            negated = self._take_keyword("NOT")
            if negated:
                token = self._peek()
            if self._take_keyword("BETWEEN"):
                left = self._between(token, left, negated)
            elif self._take_keyword("IN"):
                left = self._in(token, left, negated)
            elif token.kind == tokens.KEYWORD and token.text in _MATCHINGS:
                self._next += 1
                text = self._string()
                height = self._height(token.at, (left,))
                left = TextMatch(left.at, height, _MATCHINGS[token.text], left, text, negated)
            elif negated:
                raise self._expected("BETWEEN, IN, CONTAINS, STARTSWITH or ENDSWITH")
            else:
                return left

    def _between(self, token: Token, operand: Node, negated: bool) -> Node:
        low = self._signed()
        if not self._take_keyword("AND"):
            raise self._expected("AND and the upper end of BETWEEN")
        high = self._signed()
        for node in (operand, low, high):
            self._check_order(node)
        if isinstance(low, Literal) and isinstance(high, Literal) and not negated:
            assert isinstance(low.value, int | float)
            assert isinstance(high.value, int | float)
            if low.value > high.value:
                raise self._error(low.at, f"the lower end {low.value} of BETWEEN is above the upper end {high.value}")
        return Between(operand.at, self._height(token.at, (operand, low, high)), operand, low, high, negated)

    def _in(self, token: Token, operand: Node, negated: bool) -> Node:
        if not isinstance(operand, Property):
            raise self._error(operand.at, "IN asks for a property on its left, such as a IN ('x', 'y')")
        self._symbol("(")
        strings = {self._string()}
        while not self._take_symbol(")"):
            if not self._take_symbol(","):
                raise self._expected(", or )")
            strings.add(self._string())
            if len(strings) > LIST_STRINGS_MAX:
                raise self._error(token.at, f"a list has at most {LIST_STRINGS_MAX} strings")
        return In(operand.at, self._height(token.at, (operand,)), operand, frozenset(strings), negated)

    def _signed(self) -> Node:
        token = self._peek()
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise self._error(token.at, f"it is nested deeper than {NESTING_MAX} levels")
        if self._take_symbol("+"):
            node = self._signed()
        elif self._take_symbol("-"):
            node = self._negation(token)
        elif self._take_keyword("NOT"):
            operand = self._as_condition(self._signed())
            node = Not(token.at, self._height(token.at, (operand,)), operand)
        else:
            node = self._value()
        self._depth -= 1
        return node

    def _negation(self, token: Token) -> Node:
        digit = self._peek()
        if digit.kind == tokens.INTEGER and digit.text.rstrip("lL") == str(LONG_MAX + 1):
            # Only with its sign is it a 64-bit number.
            self._next += 1
            return self._literal(token.at, -LONG_MAX - 1)
        operand = self._signed()
        return Negation(token.at, self._height(token.at, (operand,)), operand)

    def _value(self) -> Node:
        token = self._peek()
        self._next += 1
        if token.kind == tokens.STRING:
            return self._literal(token.at, token.text)
        if token.kind == tokens.INTEGER:
            return self._literal(token.at, self._integer(token))
        if token.kind == tokens.FLOAT:
            return self._literal(token.at, self._float(token))
        if token.kind == tokens.NAME:
            self._names.add(token.text)
            if len(self._names) > NAMES_MAX:
                raise self._error(token.at, f"it names more than {NAMES_MAX} properties")
            return Property(token.at, self._height(token.at, ()), token.text)
        if token.kind == tokens.KEYWORD and token.text in _CONSTANTS:
            return self._literal(token.at, _CONSTANTS[token.text])
        if token.kind == tokens.SYMBOL and token.text == "(":
            node = self._condition()
            if not self._take_symbol(")"):
                raise self._expected("AND, OR, a comparison or )")
            return node
        self._next -= 1
        raise self._expected(_A_VALUE)

    # -- numbers -----------------------------------------------------------------------------------------------------

    def _integer(self, token: Token) -> int:
        digits = token.text.rstrip("lL")
        if digits[0] == "0" and digits != "0":
            raise self._error(token.at, "a whole number does not begin with 0")
        if len(digits) > _LONG_DIGITS_MAX or int(digits) > LONG_MAX:
            raise self._error(token.at, f"a whole number is at most {LONG_MAX}")
        return int(digits)

    def _float(self, token: Token) -> float:
        value = float(token.text)
        mantissa = token.text.lower().partition("e")[0]
        if value == float("inf") or (value == 0.0 and mantissa.strip("0.")):
            raise self._error(token.at, "this number is beyond what 64-bit floating point can hold")
        return value

    # -- meaning -----------------------------------------------------------------------------------------------------

    def _as_condition(self, node: Node) -> Node:
        if is_condition(node):
            return node
        if isinstance(node, Property):
            return Truth(node.at, node.height + 1, node)
        raise self._error(node.at, "a condition was expected, such as a > 5, and this is a value")

    def _check_equality(self, left: Node, right: Node) -> None:
        for node in (left, right):
            if isinstance(node, Literal) and node.value is None:
                raise self._error(node.at, "nothing is equal to NULL; write IS NULL or IS NOT NULL")
        left_is_truth = isinstance(left, Literal) and isinstance(left.value, bool)
        if left_is_truth and isinstance(right, Literal) and not isinstance(right.value, bool):
            raise self._error(right.at, "TRUE and FALSE cannot be compared with this value")

    def _check_order(self, node: Node) -> None:
        """What stands beside < and > or in BETWEEN must be able to be a number."""
        if isinstance(node, Not):
            raise self._error(
                node.at, "NOT belongs to what follows it directly; put brackets around the comparison: NOT (a > 5)"
            )
        if is_condition(node) or (isinstance(node, Literal) and not is_number(node.value)):
            raise self._error(node.at, "a number or a property was expected: only numbers are smaller or greater")

    # -- words -------------------------------------------------------------------------------------------------------

    def _literal(self, at: int, value: Value) -> Literal:
        return Literal(at, self._height(at, ()), value)

    def _height(self, at: int, children: Iterable[Node]) -> int:
        """The height of a node above `children`, and one node more."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            raise self._error(at, f"it has more than {NODES_MAX} operators and values")
        height = 1 + max((child.height for child in children), default=0)
        if height > NESTING_MAX:
            raise self._error(at, f"it is nested deeper than {NESTING_MAX} levels")
        return height

    def _peek(self) -> Token:
        return self._tokens[self._next]

    def _take_keyword(self, keyword: str) -> bool:
        return self._take(tokens.KEYWORD, keyword)

    def _take_symbol(self, symbol: str) -> bool:
        return self._take(tokens.SYMBOL, symbol)

    def _take(self, kind: str, text: str) -> bool:
        token = self._tokens[self._next]
        if token.kind != kind or token.text != text:
            return False
        self._next += 1
        return True

    def _symbol(self, symbol: str) -> None:
        if not self._take_symbol(symbol):
            raise self._expected(symbol)

    def _string(self) -> str:
        token = self._peek()
        if token.kind != tokens.STRING:
            raise self._expected("a 'string'")
        self._next += 1
        return token.text

    def _expected(self, what: str) -> ExpressionError:
        token = self._peek()
        problem = f"{what} was expected instead of {token}"
        if token.kind == tokens.NAME and token.text.upper() == "LIKE":
            problem += "; instead of LIKE use CONTAINS, STARTSWITH or ENDSWITH"
        if token.text == "=" and self._next and self._tokens[self._next - 1].text == "=":
            problem += "; equal is written ="
        return self._error(token.at, problem)

    def _error(self, at: int, problem: str) -> ExpressionError:
        return ExpressionError(self._expression, at, problem)
