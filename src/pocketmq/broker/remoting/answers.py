"""Short ways to answer a request in the kind that it was asked in."""

from collections.abc import Mapping

import msgspec

from pocketmq.wire.bodies.codec import encode_body
from pocketmq.wire.command import Command, encode_response
from pocketmq.wire.headers.base import Header


def success(
    command: Command,
    header: Header | Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    remark: str | None = None,
) -> bytes:
    """Code 0."""
    return encode_response(command.opaque, 0, remark, header, body, serialize_type=command.serialize_type)


def success_body(command: Command, body: object, header: Header | Mapping[str, str] | None = None) -> bytes:
    """Code 0 with a JSON body."""
    return success(command, header, encode_body(body))


def success_table(command: Command, body: object, header: Header | Mapping[str, str] | None = None) -> bytes:
    """The same for bodies that may be long: the fast encoder will do where no key is a number or an object."""
    return success(command, header, msgspec.json.encode(body))
