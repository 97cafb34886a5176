"""The messages of the gRPC API, read from text into classes of our own."""

import pytest

from pocketmq.model.errors import DecodeError, InvalidNameError, PocketMQError
from pocketmq.wire.grpc.codes import Code, CodedError, code_of
from pocketmq.wire.grpc.proto_text import Field, parse_proto
from pocketmq.wire.grpc.schema import schema

HEAD = 'syntax = "proto3"; package p;'


def test_a_message_has_the_numbers_of_the_protocol() -> None:
    message = schema().Message(body=b"b")
    message.user_properties["a"] = "1"
    message.system_properties.receipt_handle = "r"
    # user_properties=2, system_properties=3 with receipt_handle=12, body=4
    assert message.SerializeToString() == b"\x12\x06\n\x01a\x12\x011\x1a\x03b\x01r" + b'"\x01b'


def test_presence_is_known_of_optional_fields_only() -> None:
    properties = schema().SystemProperties()
    assert not properties.HasField("tag")
    properties.tag = ""
    assert properties.HasField("tag")
    with pytest.raises(ValueError):
        properties.HasField("message_id")


def test_of_a_choice_the_last_one_counts() -> None:
    command = schema().TelemetryCommand()
    command.settings.publishing.max_body_size = 1
    command.verify_message_result.nonce = "n"
    assert command.WhichOneof("command") == "verify_message_result"


def test_codes_without_a_name_are_kept() -> None:
    status = schema().Status.FromString(schema().Status(code=40404, message="m").SerializeToString())
    assert status.code == Code.OFFSET_NOT_FOUND


def test_the_classes_are_not_in_the_default_pool() -> None:
    from google.protobuf import descriptor_pool

    assert schema().Status.DESCRIPTOR.full_name == "apache.rocketmq.v2.Status"
    with pytest.raises(KeyError):
        descriptor_pool.Default().FindMessageTypeByName("apache.rocketmq.v2.Status")


def test_the_procedures_say_what_they_stream() -> None:
    methods = schema().methods
    assert len(methods) == 17
    streams = {name: (m.streams_requests, m.streams_responses) for name, m in methods.items() if any(m[3:])}
    assert streams == {"ReceiveMessage": (False, True), "PullMessage": (False, True), "Telemetry": (True, True)}
    assert all(hasattr(schema(), m.request) and hasattr(schema(), m.response) for m in methods.values())


def test_no_other_names_are_made_up() -> None:
    with pytest.raises(AttributeError):
        _ = schema().NoSuchMessage


def test_fields_are_read_with_their_kinds() -> None:
    file = parse_proto(
        HEAD
        + "// note\nmessage M { repeated string a = 1; optional E b = 2; oneof c { M d = 3; } map<string, E> e = 4; }"
    )
    assert file.messages["M"] == [
        Field("a", 1, "string", repeated=True),
        Field("b", 2, "E", optional=True),
        Field("d", 3, "M", oneof="c"),
        Field("e", 4, "string", map_value="E"),
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("message M {", "ends too early"),
        ("\nmessage M { string a = b; }", r"line 2\): a number was expected, not 'b'"),
        ("option x = 1;", "'option' is not known"),
        ("message M [", "the character '\\[' has no meaning"),
        ("message M { string a 1; }", "'=' was expected"),
    ],
)
def test_text_that_cannot_be_read_is_refused_with_its_line(text: str, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        parse_proto(HEAD + text)


def test_errors_of_services_have_a_code() -> None:
    assert code_of(PocketMQError("", code=17)) is Code.TOPIC_NOT_FOUND
    assert code_of(PocketMQError("", code=26)) is Code.CONSUMER_GROUP_NOT_FOUND
    assert code_of(InvalidNameError("")) is Code.ILLEGAL_TOPIC
    assert code_of(CodedError(Code.CLIENT_ID_REQUIRED, "")) is Code.CLIENT_ID_REQUIRED
    assert code_of(PocketMQError("", code=987654)) is Code.INTERNAL_SERVER_ERROR
