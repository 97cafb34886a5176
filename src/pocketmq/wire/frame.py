"""Cuts a byte stream into commands. Sans-I/O: bytes in, commands out, errors that say what the bytes look like."""

import struct

from pocketmq.model.errors import ProtocolError
from pocketmq.model.limits import FRAME_BYTES_MAX
from pocketmq.wire.binary_send import SendHeaders
from pocketmq.wire.command import Command, decode_binary, decode_json

_unpack_head = struct.Struct(">iI").unpack_from
_INT32 = struct.Struct(">i")

_LOOKS_LIKE = (
    (b"PRI * HTTP/2", "this looks like HTTP/2 or gRPC; the gRPC port is 8081"),
    (b"\x16\x03", "this looks like a TLS hello; this port speaks plain text"),
    (b"PROXY ", "this looks like a PROXY protocol header; switch it off in the load balancer"),
    (
        b"\x0d\x0a\x0d\x0a\x00\x0d\x0a\x51\x55\x49\x54\x0a",
        "this looks like a PROXY protocol header; switch it off in the load balancer",
    ),
    (b"SSH-", "this looks like SSH"),
    *(
        (method + b" ", "this looks like HTTP; the gRPC port is 8081, the HTTP port is 8082")
        for method in (b"GET", b"POST", b"PUT", b"HEAD", b"DELETE", b"OPTIONS", b"PATCH", b"CONNECT", b"TRACE")
    ),
)


class CommandReader:
    """Turns the bytes of one connection into commands, however they are split.

    Keeps at most one incomplete frame, in a buffer that grows with what has arrived, not with what was announced.
    After a ProtocolError the stream has no meaning any more: every later call raises the same error.
    """

    __slots__ = ("_buffer", "_error", "_frame_bytes_max", "_sends", "_wanted")

    def __init__(self, frame_bytes_max: int = FRAME_BYTES_MAX) -> None:
        self._buffer = bytearray()
        self._sends = SendHeaders()
        self._wanted = 0
        self._frame_bytes_max = frame_bytes_max
        self._error: ProtocolError | None = None

    @property
    def pending_bytes(self) -> int:
        """How many bytes of an incomplete frame are kept."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[Command]:
        """Take the next bytes of the stream; return the commands that are whole now.

        Raises ProtocolError for what cannot be a frame: the connection must be closed.
        """
        if self._error is not None:
            raise self._error
        buffer = self._buffer
        if buffer:
            buffer += data
            if len(buffer) < self._wanted:
                return []
            data = bytes(buffer)
            self._buffer = bytearray()
        try:
            return self._cut(data)
        except ProtocolError as error:
            self._error = error
            self._buffer = bytearray()
            raise

    def _cut(self, data: bytes) -> list[Command]:
        commands: list[Command] = []
        append = commands.append
        total_max = self._frame_bytes_max - 4
        offset = 0
        end = len(data)
        while end - offset >= 8:
            total, kind_and_length = _unpack_head(data, offset)
            header_at = offset + 8
            frame_end = offset + 4 + total
            body_at = header_at + (kind_and_length & 0xFFFFFF)
            if not 4 <= total <= total_max or body_at > frame_end or kind_and_length >= 0x2000000:
                raise self._refusal(data, offset, total, kind_and_length)
            if frame_end > end:
                self._wanted = 4 + total
                self._buffer += data[offset:]
                return commands
            if kind_and_length < 0x1000000:
                command = decode_json(data[header_at:body_at])
            else:
                command = decode_binary(data[header_at:body_at], self._sends)
            command.body = data[body_at:frame_end]
            append(command)
            offset = frame_end
        if offset < end:
            self._wanted = 4
            if end - offset >= 4:
                self._wanted = 8
                (total,) = _INT32.unpack_from(data, offset)
                if not 4 <= total <= self._frame_bytes_max - 4:
                    raise self._refusal(data, offset, total, 0)
            self._buffer += data[offset:]
        return commands

    def _refusal(self, data: bytes, offset: int, total: int, kind_and_length: int) -> ProtocolError:
        start = data[offset : offset + 16]
        hint = next((text for prefix, text in _LOOKS_LIKE if start.startswith(prefix[: len(start)])), None)
        if total < 0:
            message = f"a frame announces a negative length, {total}"
        elif total < 4:
            message = f"a frame announces {total} bytes, too few for a header"
        elif total > self._frame_bytes_max - 4:
            message = f"a frame announces {total + 4} bytes; at most {self._frame_bytes_max} are allowed"
        elif kind_and_length >> 24 > 1:
            message = f"header kind {kind_and_length >> 24} is neither JSON (0) nor ROCKETMQ (1)"
        else:
            message = f"a header of {kind_and_length & 0xFFFFFF} bytes does not fit into a frame of {total + 4} bytes"
        return ProtocolError(message, hint=hint)
