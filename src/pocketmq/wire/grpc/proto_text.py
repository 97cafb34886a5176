"""Reads `.proto` text: as much of the language (proto3) as `messaging.proto` uses. Pure; knows nothing of protobuf.

Messages and enums stand at the top, fields have one of a few scalar types or the name of a message or an enum, and
nothing has options. What else there may be is refused, with its line.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, Self

from pocketmq.model.errors import DecodeError

SCALARS = ("string", "bytes", "bool", "int32", "int64", "float")

_TOKEN = re.compile(r'//[^\n]*|"([^"\n]*)"|([A-Za-z_][\w.]*|\d+)|([{}()<>=;,])|(\n)|[ \t\r]+|(.)')


class Field(NamedTuple):
    """One field. `type_name` is a scalar, or the name of a message or enum; `map_value` is the value type of a map."""

    name: str
    number: int
    type_name: str
    repeated: bool = False
    optional: bool = False
    oneof: str | None = None
    map_value: str | None = None


class Method(NamedTuple):
    """One procedure of the service."""

    name: str
    request: str
    response: str
    streams_requests: bool
    streams_responses: bool


class ProtoFile(NamedTuple):
    """What a text says."""

    package: str
    imports: list[str]
    enums: dict[str, dict[str, int]]
    messages: dict[str, list[Field]]
    services: dict[str, list[Method]]


class _Tokens:
    def __init__(self, text: str) -> None:
        self._line = 1
        self._tokens = self._cut(text)
        self._next = next(self._tokens, "")

    def _cut(self, text: str) -> Iterator[str]:
        for match in _TOKEN.finditer(text):
            quoted, word, sign, newline, other = match.groups()
            if newline:
                self._line += 1
            elif other:
                raise self.refusal(f"the character {other!r} has no meaning here")
            elif word or sign:
                yield word or sign
            elif quoted is not None:
                yield quoted

    def refusal(self, reason: str) -> DecodeError:
        return DecodeError(f"the proto text cannot be read (line {self._line}): {reason}")

    @property
    def next(self) -> str:
        return self._next

    def take(self) -> str:
        token = self._next
        if not token:
            raise self.refusal("it ends too early")
        self._next = next(self._tokens, "")
        return token

    def expect(self, *tokens: str) -> Self:
        for token in tokens:
            found = self.take()
            if found != token:
                raise self.refusal(f"{token!r} was expected, not {found!r}")
        return self

    def accept(self, token: str) -> bool:
        if self._next != token:
            return False
        self.take()
        return True

    def number(self) -> int:
        token = self.take()
        if not token.isdecimal():
            raise self.refusal(f"a number was expected, not {token!r}")
        return int(token)


def parse_proto(text: str) -> ProtoFile:
    """Read a text. Raises DecodeError with the line."""
    tokens = _Tokens(text)
    tokens.expect("syntax", "=", "proto3", ";")
    file = ProtoFile("", [], {}, {}, {})
    while tokens.next:
        word = tokens.take()
        if word == "package":
            file = file._replace(package=tokens.take())
            tokens.expect(";")
        elif word == "import":
            file.imports.append(tokens.take())
            tokens.expect(";")
        elif word == "enum":
            name = tokens.take()
            file.enums[name] = _enum(tokens)
        elif word == "message":
            name = tokens.take()
            tokens.expect("{")
            file.messages[name] = list(_fields(tokens, None))
        elif word == "service":
            name = tokens.take()
            file.services[name] = list(_methods(tokens))
        else:
            raise tokens.refusal(f"{word!r} is not known at this place")
    return file


def _enum(tokens: _Tokens) -> dict[str, int]:
    tokens.expect("{")
    values: dict[str, int] = {}
    while not tokens.accept("}"):
        name = tokens.take()
        tokens.expect("=")
        values[name] = tokens.number()
        tokens.expect(";")
    return values


def _fields(tokens: _Tokens, oneof: str | None) -> Iterator[Field]:
    while not tokens.accept("}"):
        if tokens.accept("oneof"):
            name = tokens.take()
            tokens.expect("{")
            yield from _fields(tokens, name)
            continue
        repeated = tokens.accept("repeated")
        optional = not repeated and tokens.accept("optional")
        type_name = tokens.take()
        map_value = None
        if type_name == "map" and tokens.next == "<":
            tokens.expect("<")
            type_name = tokens.take()
            tokens.expect(",")
            map_value = tokens.take()
            tokens.expect(">")
        name = tokens.take()
        number = tokens.expect("=").number()
        tokens.expect(";")
        yield Field(name, number, type_name, repeated, optional, oneof, map_value)


def _methods(tokens: _Tokens) -> Iterator[Method]:
    tokens.expect("{")
    while not tokens.accept("}"):
        name = tokens.expect("rpc").take()
        streams_requests = tokens.expect("(").accept("stream")
        request = tokens.take()
        streams_responses = tokens.expect(")", "returns", "(").accept("stream")
        response = tokens.take()
        tokens.expect(")", ";")
        yield Method(name, request, response, streams_requests, streams_responses)
