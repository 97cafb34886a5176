"""Bodies as they are: the default serializer."""

from collections.abc import Mapping
from typing import Any

from pocketmq.model.errors import UsageError


class BytesSerializer:
    """Takes bytes-like values only, and gives bytes back: nothing is guessed."""

    __slots__ = ()

    def encode(self, value: Any, properties: dict[str, str]) -> bytes:
        """The bytes of a bytes-like value. Raises UsageError for anything else."""
        if isinstance(value, (bytes, bytearray, memoryview)):
            return bytes(value)
        kind = type(value).__name__
        raise UsageError(f"a body must be bytes, not {kind}; encode it first, or give connect() a serializer")

    def decode(self, body: bytes, properties: Mapping[str, str]) -> bytes:
        """The body itself."""
        return body
