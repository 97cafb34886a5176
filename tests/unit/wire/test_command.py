"""Headers of commands, both kinds, both ways."""

import json

import pytest

from golden.frames import PACKETS, REFUSED_HEADERS, SEND_V2_HEADER, Packet, RefusedHeader, frame
from pocketmq.model.errors import HeaderError, UsageError
from pocketmq.wire.codes import RequestCode, ResponseCode, language_name, request_name, response_name
from pocketmq.wire.command import (
    JSON,
    ROCKETMQ,
    Command,
    encode_head,
    encode_request,
    encode_response,
    encode_response_head,
    encode_send_response,
)
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.offsets import GetMaxOffsetRequestHeader
from pocketmq.wire.headers.pop import AckMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader

both_kinds = pytest.mark.parametrize("serialize_type", [JSON, ROCKETMQ], ids=["json", "binary"])


def read(data: bytes) -> Command:
    (command,) = CommandReader().feed(data)
    return command


@pytest.mark.parametrize("packet", [packet for packet in PACKETS if packet.canonical], ids=lambda packet: packet.name)
def test_canonical_packet_is_written_byte_for_byte(packet: Packet) -> None:
    head = encode_head(
        packet.serialize_type,
        code=packet.code,
        language=packet.language,
        version=packet.version,
        opaque=packet.opaque,
        flag=packet.flag,
        remark=packet.remark,
        header=packet.header or packet.ext,
        body_length=len(packet.body),
    )
    assert head + packet.body == packet.data


@pytest.mark.parametrize("packet", [packet for packet in PACKETS if packet.header], ids=lambda packet: packet.name)
def test_typed_header_is_read_the_same_from_both_kinds(packet: Packet) -> None:
    assert packet.header is not None
    assert read(packet.data).header(type(packet.header)) == packet.header


@pytest.mark.parametrize("refused", REFUSED_HEADERS, ids=lambda refused: refused.name)
def test_header_without_what_it_needs_names_the_field(refused: RefusedHeader) -> None:
    with pytest.raises(HeaderError, match=f"<{refused.field}>") as raised:
        read(refused.data).header(refused.kind)
    assert raised.value.code == ResponseCode.SYSTEM_ERROR


@both_kinds
def test_request_comes_back_as_it_was_written(serialize_type: int) -> None:
    data = encode_request(310, 42, SEND_V2_HEADER, b"body", oneway=True, serialize_type=serialize_type)
    command = read(data)
    assert (command.code, command.opaque, command.body) == (310, 42, b"body")
    assert command.is_oneway
    assert not command.is_response
    assert command.language == "PYTHON"
    assert command.serialize_type == serialize_type
    assert command.header(SendMessageRequestHeaderV2) == SEND_V2_HEADER


@both_kinds
def test_response_comes_back_as_it_was_written(serialize_type: int) -> None:
    command = read(encode_response(-1, 17, 'no "topic"', {"k": "v"}, b"x", serialize_type=serialize_type))
    assert (command.code, command.opaque, command.remark, command.body) == (17, -1, 'no "topic"', b"x")
    assert command.is_response
    assert command.ext() == {"k": "v"}


@both_kinds
def test_head_leaves_room_for_a_body_written_apart(serialize_type: int) -> None:
    head = encode_response_head(7, 0, None, {"k": "v"}, 5, serialize_type=serialize_type)
    assert head + b"hello" == encode_response(7, 0, None, {"k": "v"}, b"hello", serialize_type=serialize_type)


def test_answer_to_a_send_always_has_its_map() -> None:
    command = read(encode_response(7, 2, "system busy", {}))
    assert b'"extFields":{}' in encode_response(7, 2, "system busy", {})
    assert command.ext() == {}


def test_the_send_answer_made_in_one_go_is_the_ordinary_one() -> None:
    for transaction_id in ("AC11000200002A9F0000000000000123", 'a "quoted" \x01 one'):
        header = SendMessageResponseHeader("AC11000200002A9F0000000000000123", 3, 11, transaction_id)
        quick = encode_send_response(7, header.msg_id, header.queue_id, header.queue_offset, transaction_id)
        assert quick == encode_response(7, 0, None, header)
        assert read(quick).header(SendMessageResponseHeader) == header


def test_json_header_is_compact_and_has_only_text_values() -> None:
    data = encode_request(RequestCode.GET_MAX_OFFSET, 7, GetMaxOffsetRequestHeader("T", 1, committed=False))
    text = data[8:].decode()
    assert json.loads(text)["extFields"] == {"topic": "T", "queueId": "1", "committed": "false"}
    assert " " not in text


def test_code_beyond_16_bits_does_not_fit_into_a_binary_header() -> None:
    header = AckMessageRequestHeader("g", "T", 0, "info", 1)
    with pytest.raises(UsageError, match="200051 does not fit"):
        encode_request(RequestCode.ACK_MESSAGE, 7, header, serialize_type=ROCKETMQ)
    assert read(encode_request(RequestCode.ACK_MESSAGE, 7, header)).header(AckMessageRequestHeader) == header


def test_remark_of_no_length_is_none_in_binary() -> None:
    assert read(encode_response(7, 0, "", serialize_type=ROCKETMQ)).remark is None


def test_peer_cannot_set_what_does_not_come_from_the_header() -> None:
    command = read(frame(b'{"code":1,"#body":"aGk=","#serialize_type":1}', b"real"))
    assert command.body == b"real"
    assert command.serialize_type == JSON


def test_names_of_codes_and_languages() -> None:
    assert request_name(310) == "SEND_MESSAGE_V2"
    assert request_name(9999) == "9999"
    assert response_name(17) == "TOPIC_NOT_EXIST"
    assert response_name(-7) == "-7"
    assert language_name("GO") == language_name(9) == "GO"
    assert language_name(127) == language_name(None) == language_name("") == "OTHER"


def test_frame_that_every_peer_would_refuse_is_not_written() -> None:
    with pytest.raises(UsageError, match="too large"):
        encode_response_head(7, 0, None, {}, 16_777_216)
