"""Binary send headers are read by their layout and answered by a template, with the same result as field by field."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pocketmq.model.errors import ProtocolError
from pocketmq.wire.binary_send import BinarySendAnswer
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import OUR_LANGUAGE, ROCKETMQ, Command, encode_request, encode_response
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.send import (
    SendMessageRequestHeader,
    SendMessageRequestHeaderV2,
    SendMessageResponseHeader,
)

HEADER = SendMessageRequestHeaderV2(
    producer_group="group",
    topic="topic",
    default_topic="TBW102",
    default_topic_queue_nums=4,
    queue_id=3,
    sys_flag=0,
    born_timestamp=1_700_000_000_000,
    flag=0,
    properties="UNIQ_KEY\x010A0B\x02TAGS\x01a\x02",
    reconsume_times=0,
    unit_mode=False,
    batch=False,
    broker_name="broker-a",
)


def frame(header: SendMessageRequestHeaderV2 | dict[str, str], opaque: int = 7) -> bytes:
    return encode_request(RequestCode.SEND_MESSAGE_V2, opaque, header, b"body", serialize_type=ROCKETMQ)


def read(reader: CommandReader, header: SendMessageRequestHeaderV2 | dict[str, str]) -> Command:
    (command,) = reader.feed(frame(header))
    return command


def changed(**values: object) -> SendMessageRequestHeaderV2:
    return msgspec.structs.replace(HEADER, **values)


def test_the_second_header_of_a_kind_is_read_by_its_layout() -> None:
    reader = CommandReader()
    assert read(reader, HEADER).known_send is None
    other = changed(queue_id=5, born_timestamp=1_700_000_000_001, properties="UNIQ_KEY\x010A0C\x02TAGS\x01b\x02")
    command = read(reader, other)
    assert command.known_send is not None
    assert command.header(SendMessageRequestHeaderV2) == other
    assert command.ext() == other.to_ext()
    assert (command.code, command.opaque, command.body, command.serialize_type) == (310, 7, b"body", ROCKETMQ)


def test_a_header_that_differs_elsewhere_is_read_field_by_field() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    for other in (
        changed(topic="topiC"),
        changed(producer_group="grouq"),
        changed(flag=1),
        changed(broker_name="broker-b"),
        changed(properties="x" * 200),
        changed(queue_id=12),
    ):
        command = read(reader, other)
        assert command.known_send is None
        assert command.header(SendMessageRequestHeaderV2) == other


def test_a_number_that_is_none_is_not_taken_from_a_layout() -> None:
    reader = CommandReader()
    read(reader, changed(queue_id=12))
    fields = {**HEADER.to_ext(), "e": "1_"}
    assert read(reader, fields).known_send is None


def test_fields_that_the_layout_would_lose_are_kept() -> None:
    reader = CommandReader()
    for fields in ({**HEADER.to_ext(), "zz": "1"}, {**HEADER.to_ext(), "bname": "b"}, {**HEADER.to_ext(), "d": "04"}):
        for _ in range(2):
            command = read(reader, fields)
            assert command.known_send is None
            assert command.ext() == fields


def properties_of(command: Command) -> str | None:
    return command.header(SendMessageRequestHeaderV2).properties


def test_properties_that_differ_in_the_unique_key_alone_have_the_same_shape() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    shapes = set()
    for key in ("0A0B", "FFFF", "abc9"):
        command = read(reader, changed(properties=f"UNIQ_KEY\x01{key}\x02TAGS\x01a\x02"))
        shape, _, _, unique_key, _ = command.known_send
        shapes.add(id(shape))
        assert unique_key == key.encode()
        assert properties_of(command) == f"UNIQ_KEY\x01{key}\x02TAGS\x01a\x02"
    assert len(shapes) == 1


def test_properties_that_differ_elsewhere_get_another_shape_and_the_old_one_stays_as_it_is() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    first = read(reader, HEADER)
    other = changed(properties="UNIQ_KEY\x010A0C\x02TAGS\x01b\x02")
    second, third = read(reader, other), read(reader, other)
    assert [command.known_send[3] for command in (first, second, third)] == [b"0A0B", b"", b"0A0C"]
    assert [properties_of(command) for command in (first, second, third)] == [
        HEADER.properties,
        other.properties,
        other.properties,
    ]


def with_tag(tag: str, key: str = "0A0B") -> SendMessageRequestHeaderV2:
    return changed(properties=f"UNIQ_KEY\x01{key}\x02TAGS\x01{tag}\x02")


def test_a_unique_key_with_a_separator_in_it_is_read_as_any_text() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    for key in ("0\x02DE", "0\x01AB", "0-AB"):
        other = with_tag("a", key)
        command = read(reader, other)
        assert command.known_send[3] == b""
        assert properties_of(command) == other.properties


def test_a_shape_changes_a_bounded_number_of_times() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    shapes = set()
    for number in range(1000):
        other = with_tag(chr(0x21 + number % 90))
        command = read(reader, other)
        shapes.add(command.known_send[0])
        assert properties_of(command) == other.properties
    assert 1 < len(shapes) < 20


def test_another_connection_has_layouts_of_its_own() -> None:
    read(CommandReader(), HEADER)
    assert read(CommandReader(), HEADER).known_send is None


def test_a_known_send_can_be_read_as_another_kind() -> None:
    reader = CommandReader()
    read(reader, HEADER)
    command = read(reader, HEADER)
    with pytest.raises(Exception, match="producerGroup"):
        command.header(SendMessageRequestHeader)


def test_text_that_is_no_utf8_is_refused_with_and_without_a_layout() -> None:
    broken = frame(HEADER).replace(b"TAGS", b"TA\xffS")
    with pytest.raises(ProtocolError):
        CommandReader().feed(broken)
    reader = CommandReader()
    read(reader, HEADER)
    with pytest.raises(ProtocolError):
        reader.feed(broken)


def test_a_json_command_brings_no_known_send() -> None:
    data = b'{"code":310,"#known_send":{"a":"b"},"extFields":{"a":"group"}}'
    (command,) = CommandReader().feed((4 + len(data)).to_bytes(4, "big") + len(data).to_bytes(4, "big") + data)
    assert command.known_send is None
    assert command.ext() == {"a": "group"}


def test_many_topics_hold_no_unbounded_memory() -> None:
    reader = CommandReader()
    for number in range(3000):
        assert read(reader, changed(topic=f"topic-{number:04d}")).header(SendMessageRequestHeaderV2)
        assert read(reader, changed(topic="t" * (number % 120 + 1))).header(SendMessageRequestHeaderV2)
    assert sum(len(layouts) for layouts in reader._sends._layouts.values()) <= 256


@settings(max_examples=50)
@given(st.data())
def test_layouts_never_change_what_is_read(data: st.DataObject) -> None:
    reader = CommandReader()
    texts = st.text(max_size=6).filter(bool)
    for _ in range(8):
        header = changed(
            producer_group=data.draw(st.sampled_from(["g", "h"])),
            topic=data.draw(texts),
            queue_id=data.draw(st.integers(-1, 12)),
            born_timestamp=data.draw(st.integers(0, 2**63 - 1)),
            flag=data.draw(st.integers(0, 1)),
            properties=data.draw(st.one_of(st.none(), texts)),
            batch=data.draw(st.booleans()),
        )
        assert read(reader, header).header(SendMessageRequestHeaderV2) == header


@pytest.mark.parametrize("region", ["DefaultRegion", "100%b"])
def test_the_template_answers_as_the_header_does(region: str) -> None:
    answer = BinarySendAnswer(region, "true", OUR_LANGUAGE).encode
    data = answer(9, b"0A00000100002A9F", 291, 3, 123456, b"0A0B0C")
    assert data is not None
    expected = SendMessageResponseHeader(
        "0A00000100002A9F0000000000000123", 3, 123456, "0A0B0C", message_region=region, trace_on="true"
    )
    (command,) = CommandReader().feed(data)
    (usual,) = CommandReader().feed(encode_response(9, 0, None, expected, serialize_type=ROCKETMQ))
    assert command.ext() == usual.ext()
    for name in ("code", "opaque", "flag", "version", "language"):
        assert getattr(command, name) == getattr(usual, name), name
    assert command.header(SendMessageResponseHeader) == expected


def test_a_very_long_unique_key_is_left_to_the_usual_way() -> None:
    assert BinarySendAnswer("r", "true", OUR_LANGUAGE).encode(1, b"0" * 16, 0, 0, 0, b"k" * 256) is None
