"""The JSON that Java peers really write and read.

Their library writes map keys as JSON values, so `{0:"a",1:"b"}` and `{{"brokerName":"b","queueId":1,"topic":"t"}:5}`
are ordinary bodies; it leaves out nulls, writes no blanks and sorts properties by name. It reads all that back, and
also single quotes, unquoted names and stray commas. `{"$ref":"$.path"}` stands for an object written before. `dumps`
writes that form (compact, because some clients cut bodies up as text), `loads` reads it.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Hashable, Mapping
from typing import Any

import msgspec

from pocketmq.model.errors import BodyError

LENIENT_BYTES_MAX = 4 * 1024 * 1024
"""Bodies above this are read as strict JSON or not at all: reading them leniently would hold everybody up."""

DEPTH_MAX = 64

_encode_json = msgspec.json.Encoder().encode


def dumps(value: object, *, quote_keys: bool = False) -> bytes:
    """Compact JSON in the form that Java peers write; None fields and None map values are left out.

    With `quote_keys` integer keys are quoted, which makes it standard JSON wherever no key is an object. `value` may
    be built of structs, maps, sequences, sets, text, numbers, booleans, bytes (as base64) and None.
    """
    parts: list[str] = []
    _write(value, parts.append, quote_keys)
    return "".join(parts).encode()


_struct_fields: dict[type, tuple[tuple[str, str], ...]] = {}


def _fields_of(kind: Any) -> tuple[tuple[str, str], ...]:
    """(name as a JSON key with its colon, attribute) of a struct's fields, in the order of the names."""
    fields = _struct_fields.get(kind)
    if fields is None:
        names = sorted(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
        fields = _struct_fields[kind] = tuple((_encode_json(key).decode() + ":", name) for key, name in names)
    return fields


def _write(value: Any, put: Callable[[str], None], quote_keys: bool) -> None:
    kind = type(value)
    if kind is str:
        put(_encode_json(value).decode())
    elif kind is bool:
        put("true" if value else "false")
    elif kind is int:
        put(str(value))
    elif value is None:
        put("null")
    elif isinstance(value, msgspec.Struct):
        comma = "{"
        for key, name in _fields_of(kind):
            item = getattr(value, name)
            if item is not None:
                put(comma)
                put(key)
                _write(item, put, quote_keys)
                comma = ","
        put("{}" if comma == "{" else "}")
    elif isinstance(value, Mapping):
        comma = "{"
        for key, item in value.items():
            if item is not None:
                put(comma)
                _write_key(key, put, quote_keys)
                _write(item, put, quote_keys)
                comma = ","
        put("{}" if comma == "{" else "}")
    elif isinstance(value, list | tuple | set | frozenset):
        comma = "["
        for item in value:
            put(comma)
            _write(item, put, quote_keys)
            comma = ","
        put("[]" if comma == "[" else "]")
    elif isinstance(value, bytes):
        put(f'"{b64encode(value).decode()}"')
    else:
        put(_encode_json(value).decode())


def _write_key(key: object, put: Callable[[str], None], quote_keys: bool) -> None:
    if isinstance(key, str):
        put(_encode_json(key).decode())
    elif isinstance(key, int) and quote_keys:
        put(f'"{key:d}"')
    else:
        _write(key, put, quote_keys)
    put(":")


def frozen_object(value: Mapping[Any, Any]) -> Hashable:
    """The default key for an object that stands as a map key: its members, sorted."""
    return tuple(sorted((str(key), str(item)) for key, item in value.items()))


def loads(data: bytes, *, object_key: Callable[[dict[str, Any]], Hashable | None] = frozen_object) -> Any:
    """Read JSON, strict or in the form that Java peers write. Raises BodyError when it is neither.

    Maps come back with text keys, integer keys too. A key that is an object is turned into something hashable by
    `object_key`; where that gives None, the entry is left out. A reference to another object reads as None.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    if len(data) > LENIENT_BYTES_MAX:
        raise BodyError(f"a body of {len(data)} bytes is not strict JSON")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise BodyError(f"a JSON body is not UTF-8: {error}", cause=error) from None
    return _Parser(text, object_key).parse()


# Possessive quantifiers: a string that never ends must not be tried in every way.
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
        (?P<mark>[{}\[\]:,])
      | "(?P<double>(?:[^"\\]++|\\.)*+)"
      | '(?P<single>(?:[^'\\]++|\\.)*+)'
      | (?P<number>[+-]?[0-9]++(?:\.[0-9]*+)?(?:[eE][+-]?[0-9]++)?)[LFDlfd]?(?![\w$])
      | (?P<word>[^\W\d][\w$.@-]*+|\$[\w$.@-]*+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|.)", re.DOTALL)
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_SURROGATES = re.compile("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None, "NaN": None, "undefined": None}


class _Parser:
    """One pass over the text, by tokens, with bounded depth."""

    def __init__(self, text: str, object_key: Callable[[dict[str, Any]], Hashable | None]) -> None:
        self._text = text
        self._at = 0
        self._object_key = object_key

    def parse(self) -> Any:
        value = self._value(*self._next(), 0)
        if self._text[self._at :].strip():
            raise self._error("there is more after the end")
        return value

    def _error(self, what: str) -> BodyError:
        return BodyError(f"a JSON body cannot be read at character {self._at}: {what}")

    def _next(self) -> tuple[str, str]:
        """(kind, text) of the next token."""
        match = _TOKEN.match(self._text, self._at)
        if match is None:
            raise self._error("this is not JSON")
        self._at = match.end()
        kind = match.lastgroup or ""
        return kind, match[kind]

    def _value(self, kind: str, text: str, depth: int) -> Any:
        if depth > DEPTH_MAX:
            raise self._error(f"it is nested more than {DEPTH_MAX} deep")
        if kind == "mark":
            if text == "{":
                members = self._object(depth)
                return None if len(members) == 1 and "$ref" in members else members
            if text == "[":
                return self._array(depth)
            raise self._error(f"{text!r} does not begin a value")
        if kind == "number":
            return self._number(text)
        if kind == "word":
            if text not in _WORDS:
                raise self._error(f"{text[:40]!r} is no value")
            return _WORDS[text]
        return _unescape(text)

    def _number(self, text: str) -> int | float:
        try:
            return int(text)
        except ValueError:
            pass
        try:
            return float(text)
        except ValueError:
            raise self._error(f"{text[:40]!r} is no number") from None

    def _array(self, depth: int) -> list[Any]:
        items: list[Any] = []
        while True:
            kind, text = self._next()
            if kind == "mark" and text == "]":
                return items
            if kind == "mark" and text == ",":
                continue
            items.append(self._value(kind, text, depth + 1))

    def _object(self, depth: int) -> dict[Any, Any]:
        members: dict[Any, Any] = {}
        while True:
            kind, text = self._next()
            if kind == "mark" and text == "}":
                return members
            if kind == "mark" and text == ",":
                continue
            key: Hashable | None
            if kind == "mark":
                inner = self._value(kind, text, depth + 1)
                key = self._object_key(inner) if isinstance(inner, dict) else None
            else:
                key = _unescape(text) if kind in ("double", "single") else text
            if self._next() != ("mark", ":"):
                raise self._error("a colon is missing")
            value = self._value(*self._next(), depth + 1)
            if key is not None:
                members[key] = value


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    text = _ESCAPE.sub(_escaped, text)
    if _SURROGATES.search(text):
        # Pairs become the character that they stand for, halves a replacement.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _escaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) > 1:
        return chr(int(code[1:], 16))
    return _ESCAPED.get(code, code)
