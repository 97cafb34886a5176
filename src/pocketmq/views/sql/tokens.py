"""The words of an expression."""

import re
from typing import NamedTuple

from pocketmq.views.sql.errors import ExpressionError

INTEGER, FLOAT, STRING, NAME, KEYWORD, SYMBOL, END = "integer", "float", "string", "name", "keyword", "symbol", "end"

KEYWORDS = frozenset(
    {
        "AND",
        "OR",
        "NOT",
        "BETWEEN",
        "IN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "CONTAINS",
        "STARTSWITH",
        "ENDSWITH",
    }
)
"""Written in any case; property names are not."""

_TOKEN = re.compile(
    r"""
      (?P<blank>   [ \t\n\r\f]+ | --[^\r\n]* | /\*[\s\S]*?\*/ )
    | (?P<float>   (?: \d+\.\d* | \.\d+ ) (?: [eE][+-]?\d+ )? | \d+[eE][+-]?\d+ )
    | (?P<integer> \d+[lL]? )
    | (?P<string>  '[^']*(?:''[^']*)*+' )
    | (?P<name>    [A-Za-z_$][A-Za-z0-9_$]* )
    | (?P<symbol>  <> | <= | >= | [=<>(),+-] )
    """,
    re.VERBOSE | re.ASCII,
)

_HINTS = (
    ("/*", "this comment is not closed with */"),
    ("'", "this string is not closed with '"),
    ('"', "strings stand in single quotes: 'text'"),
    ("!=", "unequal is written <>"),
    ("&", "write AND"),
    ("|", "write OR"),
    ("!", "write NOT"),
)


class Token(NamedTuple):
    """One word. Keywords are upper case; strings are without their quotes. `at` counts characters from 0."""

    kind: str
    text: str
    at: int

    def __str__(self) -> str:
        if self.kind == END:
            return "the end of the expression"
        return f"the string '{self.text[:20]}'" if self.kind == STRING else f"`{self.text[:40]}`"


def split(expression: str) -> list[Token]:
    """The words, and END behind them. Raises ExpressionError at what is none."""
    tokens = []
    at = 0
    while at < len(expression):
        match = _TOKEN.match(expression, at)
        if match is None:
            raise ExpressionError(expression, at, _hint(expression, at))
        kind, text = match.lastgroup or "", match.group()
        if kind == STRING:
            text = text[1:-1].replace("''", "'")
        elif kind == NAME and text.upper() in KEYWORDS:
            kind, text = KEYWORD, text.upper()
        if kind != "blank":
            tokens.append(Token(kind, text, at))
        at = match.end()
    tokens.append(Token(END, "", len(expression)))
    return tokens


def _hint(expression: str, at: int) -> str:
    for start, hint in _HINTS:
        if expression.startswith(start, at):
            return hint
    return f"the character {expression[at]!r} has no meaning here"
