"""SQL92 filters against an evaluator that is made differently: it walks the tree, over strings, by Kleene's minimum
and maximum, and works out every pair of kinds from a table.
"""

import re
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from pocketmq.views.sql.compiler import compile_expression
from pocketmq.views.sql.errors import ExpressionError
from pocketmq.wire.properties import encode_properties

Tree = tuple[Any, ...]
NO, UNKNOWN, YES = 0, 1, 2


class Broken(Exception):
    """The oracle cannot evaluate."""


# -- the oracle --------------------------------------------------------------------------------------------------------


def as_long(text: str) -> Fraction:
    if not re.fullmatch(r"[-+]?[0-9]+", text) or not -(2**63) <= int(text) < 2**63:
        raise Broken
    return Fraction(int(text))


def as_double(text: str) -> Any:
    """A sort key: numbers as fractions between the infinities, NaN above all; the second part tells zeros apart."""
    text = text.strip("\t\n\r ")
    if re.fullmatch("[-+]?NaN", text):
        return (2, Fraction(0), 0)
    if re.fullmatch("[-+]?Infinity", text):
        return (-1 if text[0] == "-" else 1, Fraction(0), 0)
    found = re.fullmatch(r"([-+]?)([0-9]*)(\.?)([0-9]*)([eE][-+]?[0-9]+)?[dDfF]?", text)
    if not found or not found[2] + found[4]:
        raise Broken
    number = float(f"{found[1]}{found[2] or 0}.{found[4] or 0}{found[5] or ''}")
    if number in (float("inf"), float("-inf")):
        return (1 if number > 0 else -1, Fraction(0), 0)
    return (0, Fraction(number), -1 if number == 0 and found[1] == "-" else 0)


def widened(number: Fraction) -> Any:
    return (0, Fraction(float(number)), 0)


ORDER_KEYS: dict[tuple[str, str], tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    ("string", "string"): (as_double, as_double),
    ("string", "long"): (as_long, lambda number: number),
    ("string", "double"): (as_double, lambda key: key),
    ("string", "truth"): (lambda text: text.lower() == "true", lambda truth: truth),
    ("long", "string"): (lambda number: number, as_long),
    ("long", "long"): (lambda number: number, lambda number: number),
    ("long", "double"): (widened, lambda key: key),
    ("double", "string"): (lambda key: key, as_double),
    ("double", "long"): (lambda key: key, widened),
    ("double", "double"): (lambda key: key, lambda key: key),
    ("truth", "truth"): (lambda truth: truth, lambda truth: truth),
}


def value_of(tree: Tree, row: Mapping[str, str]) -> tuple[str, Any] | None:
    kind = tree[0]
    if kind == "property":
        return ("string", row[tree[1]]) if row.get(tree[1]) else None
    if kind == "double":
        return ("double", as_double(tree[1]))
    if kind in ("long", "string", "truth"):
        return (kind, Fraction(tree[1]) if kind == "long" else tree[1])
    if kind == "minus":
        inner = value_of(tree[1], row)
        if inner is None or inner[0] not in ("long", "double"):
            return None
        if inner[0] == "long":
            return ("long", -inner[1])
        rank, number, zero = inner[1]
        return ("double", (rank, -number, -1 - zero if number == 0 else 0))
    truth = decide(tree, row)
    return None if truth == UNKNOWN else ("truth", truth == YES)


def ordered(left: tuple[str, Any], right: tuple[str, Any]) -> tuple[Any, Any] | None:
    if left[0] == "truth" and right[0] == "string":
        raise Broken
    keys = ORDER_KEYS.get((left[0], right[0]))
    return keys and (keys[0](left[1]), keys[1](right[1]))


def compared(sign: str, left: tuple[str, Any] | None, right: tuple[str, Any] | None) -> int:
    if sign in ("=", "<>"):
        if left is None or right is None:
            same = YES if left == right else UNKNOWN if left is None else NO
        elif left[0] == right[0]:
            same = YES if left[1] == right[1] else NO
        else:
            keys = ordered(left, right)
            same = YES if keys and keys[0] == keys[1] else NO
        return same if sign == "=" else YES - same
    if left is None or right is None:
        return UNKNOWN
    keys = ordered(left, right)
    assert keys is not None
    above, below = keys[0] > keys[1], keys[0] < keys[1]
    return YES if {">": above, "<": below, ">=": not below, "<=": not above}[sign] else NO


def decide(tree: Tree, row: Mapping[str, str]) -> int:
    kind, *parts = tree
    if kind in ("and", "or"):
        least = YES if kind == "and" else NO
        for part in parts:
            least = (min if kind == "and" else max)(least, decide(part, row))
            if least == (NO if kind == "and" else YES):
                break
        return least
    if kind == "not":
        return YES - decide(parts[0], row)
    if kind == "truth":
        return YES if parts[0] else NO
    if kind == "null":
        return UNKNOWN
    if kind == "property":
        return NO if row.get(parts[0]) else UNKNOWN
    if kind == "compare":
        sign, left, right = parts
        return compared(sign, value_of(left, row), value_of(right, row))
    if kind == "between":
        negated, operand, low, high = parts
        inside = ("and", ("compare", ">=", operand, low), ("compare", "<=", operand, high))
        outside = ("or", ("compare", "<", operand, low), ("compare", ">", operand, high))
        return decide(outside if negated else inside, row)
    if kind == "is null":
        return YES if (value_of(parts[1], row) is None) is not parts[0] else NO
    if kind == "in":
        negated, operand, strings = parts
        found = value_of(operand, row)
        return UNKNOWN if found is None else YES if (found[1] in strings) is not negated else NO
    negated, operand, text = parts
    found = value_of(operand, row)
    if found is None or found[0] != "string" or text == "":
        return NO
    place = {"contains": text in found[1], "startswith": found[1].startswith(text), "endswith": found[1].endswith(text)}
    return YES if place[kind] is not negated else NO


def wanted(tree: Tree, row: Mapping[str, str]) -> bool:
    try:
        return decide(tree, row) == YES
    except Broken:
        return False


# -- expressions -------------------------------------------------------------------------------------------------------

NAMES = ["a", "b", "_c$1"]
WORDS = ["abc", "ab", "b", "true", "FALSE", "it's", "ü", "5", "6.0", ""]
VALUES = st.one_of(
    st.sampled_from(WORDS),
    st.integers(-20, 20).map(str),
    st.sampled_from(
        "5.0 -0 0 -0.0 1e2 NaN -Infinity +7 07 5d 1_0 inf .5 5. 9007199254740993 9223372036854775808".split()
    ),
    st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs", "Nd"]), max_size=4),
)
ROWS = st.dictionaries(st.sampled_from(NAMES), VALUES)

properties = st.sampled_from(NAMES).map(lambda name: ("property", name))
numbers = st.one_of(
    st.integers(0, 12).map(lambda number: ("long", number)),
    st.sampled_from([("long", 9007199254740993), ("long", 2**63 - 1)]),
    st.sampled_from([("double", text) for text in ("5.0", ".5", "7.", "1E2", "0.0", "9007199254740992.0")]),
)
signed = st.one_of(properties, numbers, numbers.map(lambda number: ("minus", number)))
strings = st.sampled_from(WORDS).map(lambda text: ("string", text))
truths = st.booleans().map(lambda truth: ("truth", truth))
negations = st.booleans()


def conditions(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    anything = st.one_of(signed, strings, truths, inner, inner.map(lambda tree: ("minus", tree)))
    return st.one_of(
        st.tuples(st.sampled_from(["and", "or"]), inner, inner),
        st.tuples(st.sampled_from(["and", "or"]), inner, inner, inner),
        st.tuples(st.just("not"), inner),
        st.tuples(st.just("compare"), st.sampled_from(["=", "<>"]), anything, anything),
        st.tuples(st.just("is null"), negations, anything),
        st.tuples(st.sampled_from(["contains", "startswith", "endswith"]), negations, anything, st.sampled_from(WORDS)),
    )


leaves = st.one_of(
    truths,
    properties,
    st.just(("null",)),
    st.tuples(st.just("compare"), st.sampled_from([">", ">=", "<", "<=", "=", "<>"]), signed, signed),
    st.tuples(st.just("compare"), st.sampled_from(["=", "<>"]), properties, st.one_of(strings, truths)),
    st.tuples(st.just("between"), negations, signed, signed, signed),
    st.tuples(st.just("in"), negations, properties, st.lists(st.sampled_from(WORDS), min_size=1, max_size=4)),
)
trees = st.recursive(leaves, conditions, max_leaves=8)


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def written(tree: Tree, tight: int = 0) -> str:
    """`tight`: 0 stands alone, 1 within OR, 2 within AND, 3 beside an operator."""
    kind, *parts = tree
    if kind in ("property", "double"):
        return str(parts[0])
    if kind == "long":
        return f"{parts[0]}"
    if kind == "string":
        return quoted(parts[0])
    if kind in ("truth", "null"):
        return {True: "TRUE", False: "false", None: "Null"}[parts[0] if parts else None]
    if kind == "minus":
        return f"-{written(parts[0], 3)}" if parts[0][0] != "minus" else f"-({written(parts[0])})"
    if kind == "not":
        text, level = f"NOT {written(parts[0], 3)}", 2
    elif kind in ("and", "or"):
        level = 1 if kind == "and" else 0
        text = f" {kind} ".join(written(part, level + 1) for part in parts)
    else:
        level = 2
        no = "NOT " if len(parts) > 1 and parts[0] is True else ""
        if kind == "compare":
            text = f"{written(parts[1], 3)}{parts[0]}{written(parts[2], 3)}"
        elif kind == "between":
            text = f"{written(parts[1], 3)} {no}BETWEEN {written(parts[2], 3)} AND {written(parts[3], 3)}"
        elif kind == "is null":
            text = f"{written(parts[1], 3)} IS {no}NULL"
        elif kind == "in":
            text = f"{written(parts[1], 3)} {no}IN ({', '.join(map(quoted, parts[2]))})"
        else:
            text = f"{written(parts[1], 3)} {no}{kind.upper()} {quoted(parts[2])}"
    return f"({text})" if tight > level else text


@given(trees, st.lists(ROWS, min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_a_filter_lets_through_what_the_oracle_wants(tree: Tree, rows: list[dict[str, str]]) -> None:
    expression = written(tree)
    try:
        matches = compile_expression(expression).matches
    except ExpressionError as error:
        # The trees are made without regard to which constants may be compared.
        assert any(word in error.message for word in ("BETWEEN", "cannot be compared", "NULL;")), error.message
        assume(False)
        raise
    for row in rows:
        stored = encode_properties({"KEYS": "k"} | row | {"TAGS": "t"}).encode()
        assert matches(stored) is wanted(tree, row), (expression, row)


@given(st.text(st.sampled_from("ab1.5'()<>=-+* \n/NOTANDORISNULLBETWEENINe,")), st.binary(max_size=40))
@example("a > 5", b"a\x01\xff\xfe")
@settings(max_examples=100, deadline=None)
def test_any_text_is_compiled_or_refused_with_a_place_within_it(expression: str, stored: bytes) -> None:
    try:
        compiled = compile_expression(expression)
    except ExpressionError as error:
        assert 0 <= error.at <= len(expression)
        assert error.line <= expression.count("\n") + 1
        return
    assert compiled.matches(stored) in (True, False)
