"""What all typed headers share: text on the wire, types in Python.

A header is the `extFields` map of a command: every value is a string ("4", "true"), null fields are left out, fields
that a receiver does not know are ignored. Decoding is lax, since some clients write numbers and booleans as such. A
required field (`@CFNotNull` in RocketMQ's header classes) that is missing or unreadable is an error of the request,
answered with code 1; an optional field that cannot be read counts as not sent.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec

from pocketmq.model.errors import HeaderError

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""A Java `int`; what does not fit is unreadable, as it is there."""

Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""A Java `long`."""

HeaderT = TypeVar("HeaderT", bound="Header")

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}\Z")


_encode_json = msgspec.json.Encoder().encode


def to_json(value: object) -> str:
    """`value` as compact JSON text."""
    return _encode_json(value).decode()


class Header(msgspec.Struct, rename="camel", gc=False):
    """Base of all typed headers; the names on the wire are the camel-case ones unless a field says otherwise."""

    def to_ext(self) -> dict[str, str]:
        """The header as the strings that go on the wire; None fields are left out."""
        ext = {}
        for key, value in zip(self.__struct_encode_fields__, msgspec.structs.astuple(self), strict=True):
            if value is not None:
                ext[key] = value if type(value) is str else to_text(value)
        return ext

    def ext_json(self) -> str:
        """The same as a JSON object. Headers of the busiest requests override this with something faster."""
        return to_json(self.to_ext())


class RpcHeader(Header, kw_only=True):
    """Fields that nearly every request may carry (`RpcRequestHeader`): namespace, broker name, one-way.

    They matter to static topics and to forwarding between brokers only.
    """

    namespace_v2: str | None = msgspec.field(name="ns", default=None)
    namespaced: bool | None = msgspec.field(name="nsd", default=None)
    target_broker: str | None = msgspec.field(name="bname", default=None)
    oneway: bool | None = msgspec.field(name="oway", default=None)


class TopicHeader(RpcHeader, kw_only=True):
    """Requests about a topic (`TopicRequestHeader`); `logical_queue` marks a request to a static topic."""

    logical_queue: bool | None = msgspec.field(name="lo", default=None)

    def common_ext_json(self) -> str:
        """The fields that all topic requests share, as JSON members that begin with a comma; for hand-made encoders."""
        common = {
            "bname": self.target_broker,
            "lo": self.logical_queue,
            "ns": self.namespace_v2,
            "nsd": self.namespaced,
            "oway": self.oneway,
        }
        present = {key: to_text(value) for key, value in common.items() if value is not None}
        return "," + to_json(present)[1:-1] if present else ""


def to_text(value: object) -> str:
    """A field value as Java writes it: `true`, `false`, decimal numbers, text as it is."""
    if value is True:
        return "true"
    if value is False:
        return "false"
    return str(value)


def decode_header(kind: type[HeaderT], ext: Mapping[str, Any]) -> HeaderT:
    """Read a typed header from an ext map, field by field, as forgiving as Java is.

    Raises HeaderError naming the first required field that is missing or unreadable.
    """
    values = {}
    for field in msgspec.structs.fields(kind):
        value = ext.get(field.encode_name)
        if value is not None:
            try:
                values[field.name] = _convert(value, field.type)
                continue
            except ValueError as error:
                if field.required:
                    raise HeaderError(f"the header field <{field.encode_name}> cannot be read: {error}") from None
        elif field.required:
            raise HeaderError(f"the header field <{field.encode_name}> is missing")
    return kind(**values)


def _convert(value: object, kind: Any) -> Any:
    """One value, or ValueError. What `msgspec` refuses may still be what Java's parsers take ("+5", "007", "yes")."""
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError as error:
        if isinstance(value, str):
            if _INTEGER.match(value):
                try:
                    return msgspec.convert(int(value), kind)
                except msgspec.ValidationError:
                    pass
            try:
                return msgspec.convert(value.lower() == "true", kind)
            except msgspec.ValidationError:
                pass
        elif isinstance(value, bool | int):
            try:
                return msgspec.convert(to_text(value), kind)
            except msgspec.ValidationError:
                pass
        raise ValueError(str(error)) from None
