"""Cutting a byte stream into commands."""

import pytest

from golden.frames import BAD_STREAMS, PACKETS, BadStream, Packet, frame
from pocketmq.model.errors import ProtocolError
from pocketmq.wire.frame import CommandReader

by_name = {"ids": lambda entry: entry.name}


@pytest.mark.parametrize("packet", PACKETS, **by_name)
def test_golden_packet_is_read(packet: Packet) -> None:
    (command,) = CommandReader().feed(packet.data)
    assert command.code == packet.code
    assert command.opaque == packet.opaque
    assert command.flag == packet.flag
    assert command.language == packet.language
    assert command.version == packet.version
    assert command.remark == packet.remark
    assert command.ext() == packet.ext
    assert command.body == packet.body
    assert command.serialize_type == packet.serialize_type
    assert command.is_response == bool(packet.flag & 1)
    assert command.is_oneway == bool(packet.flag & 2)


@pytest.mark.parametrize("packet", PACKETS, **by_name)
def test_golden_packet_is_read_byte_by_byte(packet: Packet) -> None:
    reader = CommandReader()
    commands = [command for byte in packet.data for command in reader.feed(bytes((byte,)))]
    assert [command.ext() for command in commands] == [packet.ext]
    assert reader.pending_bytes == 0


def test_many_packets_in_one_piece_come_in_order() -> None:
    stream = b"".join(packet.data for packet in PACKETS)
    assert [command.code for command in CommandReader().feed(stream)] == [packet.code for packet in PACKETS]


@pytest.mark.parametrize("bad", BAD_STREAMS, **by_name)
def test_what_is_no_frame_is_refused_with_the_likely_mistake(bad: BadStream) -> None:
    with pytest.raises(ProtocolError) as raised:
        CommandReader().feed(bad.data)
    assert bad.error in str(raised.value)
    if bad.hint is None:
        assert raised.value.hint is None
    else:
        assert raised.value.hint is not None
        assert bad.hint in raised.value.hint


@pytest.mark.parametrize("bad", BAD_STREAMS, **by_name)
def test_what_is_no_frame_is_refused_after_good_packets_too(bad: BadStream) -> None:
    reader = CommandReader()
    reader.feed(PACKETS[0].data)
    with pytest.raises(ProtocolError):
        reader.feed(PACKETS[1].data + bad.data)


def test_after_an_error_the_stream_is_dead_and_nothing_is_kept() -> None:
    reader = CommandReader()
    with pytest.raises(ProtocolError) as first:
        reader.feed(b"GET / HTTP/1.1\r\n")
    with pytest.raises(ProtocolError) as second:
        reader.feed(PACKETS[0].data)
    assert first.value is second.value
    assert reader.pending_bytes == 0


def test_garbage_is_refused_as_soon_as_its_length_is_known() -> None:
    reader = CommandReader()
    assert reader.feed(b"GE") == []
    with pytest.raises(ProtocolError, match="this looks like HTTP"):
        reader.feed(b"T ")


def test_an_announced_length_costs_no_memory_before_the_bytes_come() -> None:
    reader = CommandReader()
    header = PACKETS[0].data[8:]
    assert reader.feed((16_000_000).to_bytes(4, "big") + len(header).to_bytes(4, "big") + header) == []
    assert reader.pending_bytes == 8 + len(header)


def test_the_largest_frame_is_read_and_the_next_size_is_not() -> None:
    header = PACKETS[0].data[8:]
    size = 4096
    largest = frame(header, bytes(size - 8 - len(header)))
    assert len(largest) == size
    (command,) = CommandReader(frame_bytes_max=size).feed(largest)
    assert command.body == bytes(size - 8 - len(header))
    with pytest.raises(ProtocolError, match="announces 4097 bytes; at most 4096 are allowed"):
        CommandReader(frame_bytes_max=size).feed(frame(header, bytes(size - 7 - len(header))))
