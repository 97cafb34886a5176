"""Typed headers: all of them, read and written in every way."""

import importlib
import pkgutil

import msgspec
import pytest

import pocketmq.wire.headers as family
from pocketmq.wire.command import JSON, ROCKETMQ, encode_request
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.base import Header, RpcHeader, TopicHeader, decode_header, to_json

MODULES = [
    importlib.import_module(f"{family.__name__}.{module.name}") for module in pkgutil.iter_modules(family.__path__)
]
KINDS = sorted(
    {
        kind
        for module in MODULES
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, Header) and kind not in (Header, RpcHeader, TopicHeader)
    },
    key=lambda kind: kind.__name__,
)


def sample(kind: type[Header], *, full: bool) -> Header:
    """A header with every field set, or only those that are required."""
    values: dict[str, object] = {}
    for number, field in enumerate(msgspec.structs.fields(kind), start=1):
        if full or field.required:
            text = str(field.type)
            values[field.name] = (
                number if "int" in text else number % 2 == 0 if "bool" in text else f'text "{number}" é'
            )
    return kind(**values)


@pytest.mark.parametrize("full", [True, False], ids=["full", "required"])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_header_survives_both_kinds_of_encoding(kind: type[Header], full: bool) -> None:
    header = sample(kind, full=full)
    for serialize_type in (JSON, ROCKETMQ):
        (command,) = CommandReader().feed(encode_request(1, 1, header, serialize_type=serialize_type))
        assert command.header(kind) == header
        assert command.ext() == header.to_ext()
    assert decode_header(kind, header.to_ext()) == header


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_hand_made_json_says_the_same_as_the_general_one(kind: type[Header]) -> None:
    for full in (True, False):
        header = sample(kind, full=full)
        by_hand = msgspec.json.decode(header.ext_json())
        assert by_hand == msgspec.json.decode(to_json(header.to_ext()))
