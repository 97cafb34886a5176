"""How every JSON body is read and written."""

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from pocketmq.model.errors import BodyError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.fastjson import dumps, loads

BodyT = TypeVar("BodyT")


class Body(msgspec.Struct, rename="camel"):
    """Base of the JSON bodies; named as RocketMQ's classes, fields in camel case on the wire."""


def encode_body(value: object, *, quote_keys: bool = False) -> bytes:
    """The body as Java peers write it: compact, no nulls, integer keys unquoted unless `quote_keys`."""
    return dumps(value, quote_keys=quote_keys)


def decode_body(data: bytes, kind: type[BodyT]) -> BodyT:
    """Read a body as `kind`, strict JSON or the form that Java peers write.

    Unknown fields are ignored, numbers may be quoted, null counts as absent. Raises BodyError.
    """
    try:
        body: BodyT = _decoder(kind)(data)
        return body
    except (msgspec.DecodeError, RecursionError):
        pass
    if not data:
        raise BodyError("the body is empty; it should be JSON")
    value = without_nulls(loads(data, object_key=_queue_key))
    try:
        return msgspec.convert(value, kind, strict=False, str_keys=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise BodyError(f"a JSON body is not a {getattr(kind, '__name__', kind)}: {error}", cause=error) from None


_decoders: dict[Any, Callable[[bytes], Any]] = {}


def _decoder(kind: Any) -> Callable[[bytes], Any]:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind, strict=False).decode
    return decoder


def _queue_key(members: dict[str, Any]) -> MessageQueue | None:
    """Objects stand as map keys for message queues only; a reference, or anything else, loses its entry."""
    try:
        return msgspec.convert(members, MessageQueue, strict=False)
    except msgspec.ValidationError:
        return None


def without_nulls(value: Any) -> Any:
    """The same tree of maps and lists with no None in it."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
