"""The protobuf classes of the gRPC API v2, in a descriptor pool of their own.

A process can also hold the official client, whose generated code puts messages of the same names into protobuf's
default pool. Ours are not there, so that neither is in the other's way.

`schema()` makes the classes on its first call (some milliseconds); nothing here needs protobuf before that.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

from pocketmq.wire.grpc.proto_text import SCALARS, Field, Method, ProtoFile, parse_proto

SERVICE = "MessagingService"

Proto = Any
"""A protobuf message. Its class is made while the program runs, so no type checker knows it."""


class Schema:
    """Classes by message name as attributes (`schema.Status`), and the procedures of the service."""

    def __init__(self, classes: dict[str, Any], methods: list[Method], package: str) -> None:
        self.classes = classes
        self.methods = {method.name: method for method in methods}
        self.service = f"{package}.{SERVICE}"
        """Full name of the service, as it stands in paths."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["classes"][name]
        except KeyError:
            raise AttributeError(name) from None


@lru_cache(maxsize=1)
def schema() -> Schema:
    """The schema. Raises ImportError when protobuf is not installed."""
    from google.protobuf import descriptor_pool, duration_pb2, message_factory, timestamp_pb2

    file = parse_proto((Path(__file__).parent / "messaging.proto").read_text(encoding="utf-8"))
    pool = descriptor_pool.DescriptorPool()
    for known in (duration_pb2, timestamp_pb2):
        pool.AddSerializedFile(known.DESCRIPTOR.serialized_pb)
    pool.Add(_describe(file))
    names = [f"{file.package}.{name}" for name in file.messages]
    classes = {
        name.rpartition(".")[2]: message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
        for name in (*names, "google.protobuf.Duration", "google.protobuf.Timestamp")
    }
    return Schema(classes, file.services[SERVICE], file.package)


def _describe(file: ProtoFile) -> Proto:
    """The text as protobuf's own description of a file."""
    from google.protobuf import descriptor_pb2

    described = descriptor_pb2.FileDescriptorProto(
        name="pocketmq/messaging.proto", package=file.package, syntax="proto3", dependency=file.imports
    )
    for name, values in file.enums.items():
        enum = described.enum_type.add(name=name)
        for value_name, number in values.items():
            enum.value.add(name=value_name, number=number)
    for name, fields in file.messages.items():
        _Message(described.message_type.add(name=name), file).fill(fields)
    return described


class _Message:
    """Fills the description of one message."""

    def __init__(self, described: Proto, file: ProtoFile) -> None:
        self._described = described
        self._file = file
        self._oneofs: dict[str, int] = {}

    def fill(self, fields: list[Field]) -> None:
        for field in fields:
            if field.oneof is not None:
                self._oneof(field.oneof)
        for field in fields:
            described = self._described.field.add(name=field.name, number=field.number)
            described.label = described.LABEL_REPEATED if field.repeated else described.LABEL_OPTIONAL
            if field.map_value is not None:
                self._map(described, field)
                continue
            self._set_type(described, field.type_name)
            if field.oneof is not None:
                described.oneof_index = self._oneof(field.oneof)
            elif field.optional:
                # Presence of a single field is told by a choice that has only this one field.
                described.proto3_optional = True
                described.oneof_index = self._oneof(f"_{field.name}")

    def _oneof(self, name: str) -> int:
        if name not in self._oneofs:
            self._oneofs[name] = len(self._oneofs)
            self._described.oneof_decl.add(name=name)
        return self._oneofs[name]

    def _map(self, described: Proto, field: Field) -> None:
        entry_name = "".join(part.capitalize() for part in field.name.split("_")) + "Entry"
        entry = self._described.nested_type.add(name=entry_name)
        entry.options.map_entry = True
        assert field.map_value is not None
        for name, number, type_name in (("key", 1, field.type_name), ("value", 2, field.map_value)):
            part = entry.field.add(name=name, number=number, label=described.LABEL_OPTIONAL)
            self._set_type(part, type_name)
        described.label = described.LABEL_REPEATED
        described.type = described.TYPE_MESSAGE
        described.type_name = f".{self._file.package}.{self._described.name}.{entry_name}"

    def _set_type(self, described: Proto, type_name: str) -> None:
        if type_name in SCALARS:
            described.type = getattr(described, f"TYPE_{type_name.upper()}")
            return
        described.type = described.TYPE_ENUM if type_name in self._file.enums else described.TYPE_MESSAGE
        described.type_name = f".{type_name}" if "." in type_name else f".{self._file.package}.{type_name}"
