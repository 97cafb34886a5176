"""What an expression is made of. A node knows where it began and how high the tree below it is."""

from typing import Literal as OneOf

import msgspec

Value = str | int | float | bool | None
Comparator = OneOf["=", "<>", ">", ">=", "<", "<="]
Matching = OneOf["CONTAINS", "STARTSWITH", "ENDSWITH"]


class Node(msgspec.Struct, frozen=True, eq=False):
    """Base of all."""

    at: int
    height: int


class Literal(Node, frozen=True, eq=False):
    """A number, a string, TRUE, FALSE or NULL."""

    value: Value


class Property(Node, frozen=True, eq=False):
    """The value of a property: a string, or null when the message has none of that name."""

    name: str


class Negation(Node, frozen=True, eq=False):
    """`- operand`: null unless the operand is a number."""

    operand: Node


class Condition(Node, frozen=True, eq=False):
    """Base of all that is true, false or unknown."""


class Truth(Condition, frozen=True, eq=False):
    """A property where a condition stands: false, as a string is not a truth value; unknown when null."""

    operand: Property


class Not(Condition, frozen=True, eq=False):
    """`NOT operand`."""

    operand: Node


class And(Condition, frozen=True, eq=False):
    """`a AND b AND c`."""

    parts: tuple[Node, ...]


class Or(Condition, frozen=True, eq=False):
    """`a OR b OR c`."""

    parts: tuple[Node, ...]


class Comparison(Condition, frozen=True, eq=False):
    """`left = right` and so on."""

    comparator: Comparator
    left: Node
    right: Node


class Between(Condition, frozen=True, eq=False):
    """`operand [NOT] BETWEEN low AND high`, both included."""

    operand: Node
    low: Node
    high: Node
    negated: bool


class IsNull(Condition, frozen=True, eq=False):
    """`operand IS [NOT] NULL`."""

    operand: Node
    negated: bool


class In(Condition, frozen=True, eq=False):
    """`operand [NOT] IN ('a', 'b')`."""

    operand: Property
    strings: frozenset[str]
    negated: bool


class TextMatch(Condition, frozen=True, eq=False):
    """`operand [NOT] CONTAINS 'text'` and so on."""

    matching: Matching
    operand: Node
    text: str
    negated: bool


def is_number(value: object) -> bool:
    """Whether a literal's value is a number; TRUE and FALSE are none."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_condition(node: Node) -> bool:
    """Whether the node is true, false or unknown without more ado."""
    return isinstance(node, Condition) or (isinstance(node, Literal) and isinstance(node.value, bool | None))
