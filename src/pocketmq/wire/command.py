"""One remoting command: its header, read lazily, and its encoding in both header kinds.

    frame    int32 total | 1 byte header kind | 3 bytes header length | header | body   (total does not count itself)
    JSON     {"code":..,"extFields":{..},"flag":..,"language":"..","opaque":..,"remark":"..","version":..}
    ROCKETMQ int16 code | int8 language | int16 version | int32 opaque | int32 flag | int32+remark | int32+ext
             ext = repeated int16+key, int32+value

`flag` bit 0 marks a response, bit 1 a one-way request that is never answered. `opaque` pairs a response with its
request. Source: RocketMQ's `RemotingCommand`, `RemotingSerializable`, `RocketMQSerializable`.

The extension fields of a JSON header are kept as the bytes they came in and decoded once, straight into the typed
header that the handler asks for; those of a binary header are turned into the same JSON first, so that everything
above reads one form.
"""

import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import msgspec

from pocketmq.model.errors import ProtocolError, UsageError
from pocketmq.wire.codes import CURRENT_VERSION, LanguageCode, language_name
from pocketmq.wire.headers.base import Header, HeaderT, Int32, decode_header, to_json, to_text

JSON = 0
ROCKETMQ = 1

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

OUR_LANGUAGE = "PYTHON"

_NO_EXT = msgspec.Raw(b"{}")

_BINARY_HEAD = struct.Struct(">hbhii")
_FRAME_HEAD = struct.Struct(">II")


class Command(msgspec.Struct, gc=False):
    """A request or a response as it came from the wire. `body` is b"" when there is none."""

    code: Int32
    opaque: Int32 = 0
    flag: Int32 = 0
    version: Int32 = 0
    raw_language: Any = msgspec.field(name="language", default="OTHER")
    remark: str | None = None
    raw_ext: msgspec.Raw = msgspec.field(name="extFields", default=_NO_EXT)
    serialize_type: int = msgspec.field(name="#serialize_type", default=JSON)
    body: bytes = msgspec.field(name="#body", default=b"")

    @property
    def language(self) -> str:
        """The peer's language by name; unknown names pass through, unknown numbers are `OTHER`."""
        return language_name(self.raw_language)

    @property
    def is_response(self) -> bool:
        """True for an answer to one of our requests."""
        return self.flag & RESPONSE_FLAG != 0

    @property
    def is_oneway(self) -> bool:
        """True for a request that must never be answered, not even with an error."""
        return self.flag & ONEWAY_FLAG != 0

    def ext(self) -> dict[str, str]:
        """All extension fields as text, in a new dict. Values that are not text are written as Java would."""
        try:
            return msgspec.json.decode(self.raw_ext, type=dict[str, str])
        except (msgspec.DecodeError, RecursionError):
            return _ext_of_any(self.raw_ext)

    def header(self, kind: type[HeaderT]) -> HeaderT:
        """Decode the extension fields as `kind`; HeaderError names a required field that is missing or unreadable."""
        try:
            header: HeaderT = _header_decoder(kind)(self.raw_ext)
            return header
        except (msgspec.DecodeError, RecursionError):
            return decode_header(kind, self.ext())


@cache
def _header_decoder(kind: type[HeaderT]) -> Callable[[msgspec.Raw], HeaderT]:
    return msgspec.json.Decoder(kind, strict=False).decode


def _ext_of_any(raw: msgspec.Raw) -> dict[str, str]:
    try:
        fields = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return {}
    if not isinstance(fields, dict):
        return {}
    return {
        key: value if isinstance(value, str) else to_text(value) for key, value in fields.items() if value is not None
    }


_decode_envelope = msgspec.json.Decoder(Command, strict=False).decode


def decode_command(serialize_type: int, header: bytes, body: bytes) -> Command:
    """Decode one frame's header. Raises ProtocolError when the header is not what `serialize_type` says."""
    if serialize_type == JSON:
        try:
            command = _decode_envelope(header)
        except (msgspec.DecodeError, RecursionError) as error:
            raise ProtocolError(f"the JSON header of a frame cannot be read: {error}", cause=error) from None
        command.serialize_type = JSON
    elif serialize_type == ROCKETMQ:
        command = _decode_binary(header)
    else:
        raise ProtocolError(f"header kind {serialize_type} is neither JSON (0) nor ROCKETMQ (1)")
    command.body = body
    return command


def _decode_binary(header: bytes) -> Command:
    try:
        code, language, version, opaque, flag = _BINARY_HEAD.unpack_from(header, 0)
        remark, offset = _take_text(header, _BINARY_HEAD.size)
        (ext_length,) = _INT32.unpack_from(header, offset)
        offset += 4
        end = offset + ext_length
        if ext_length < 0 or end > len(header):
            raise ProtocolError(f"a binary header of {len(header)} bytes claims {ext_length} bytes of fields")
        ext = {}
        while offset < end:
            (key_length,) = _INT16.unpack_from(header, offset)
            value_at = offset + 2 + key_length
            if key_length < 0 or value_at > end:
                raise ProtocolError(f"a binary header has a field name of {key_length} bytes")
            value, next_offset = _take_text(header, value_at)
            if next_offset > end:
                raise ProtocolError("a field of a binary header reaches beyond the fields")
            ext[header[offset + 2 : value_at].decode()] = value
            offset = next_offset
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"the binary header of a frame cannot be read: {error}", cause=error) from None
    command = Command(code, opaque, flag, version, language, remark or None)
    command.serialize_type = ROCKETMQ
    if ext:
        command.raw_ext = msgspec.Raw(to_json(ext).encode())
    return command


_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


def _take_text(header: bytes, offset: int) -> tuple[str, int]:
    (length,) = _INT32.unpack_from(header, offset)
    offset += 4
    if length < 0 or offset + length > len(header):
        raise ProtocolError(f"a binary header of {len(header)} bytes claims a text of {length} bytes")
    return header[offset : offset + length].decode(), offset + length


def encode_request(
    code: int,
    opaque: int,
    header: Header | Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    oneway: bool = False,
    serialize_type: int = JSON,
    language: str = OUR_LANGUAGE,
    version: int = CURRENT_VERSION,
) -> bytes:
    """A whole request frame. UsageError when the code does not fit into a binary header (the POP family)."""
    head = encode_head(
        serialize_type,
        code=code,
        language=language,
        version=version,
        opaque=opaque,
        flag=ONEWAY_FLAG if oneway else 0,
        remark=None,
        header=header,
        body_length=len(body),
    )
    return head + body if body else head


def encode_response(
    request_opaque: int,
    code: int = 0,
    remark: str | None = None,
    header: Header | Mapping[str, str] | None = None,
    body: bytes = b"",
    *,
    serialize_type: int = JSON,
) -> bytes:
    """A whole response frame; `serialize_type` is the request's, so that the answer comes in the kind that was asked.

    The answer to any kind of send must carry a header, even an empty one: Java clients read fields of the map unasked.
    """
    head = encode_response_head(request_opaque, code, remark, header, len(body), serialize_type=serialize_type)
    return head + body if body else head


def encode_response_head(
    request_opaque: int,
    code: int = 0,
    remark: str | None = None,
    header: Header | Mapping[str, str] | None = None,
    body_length: int = 0,
    *,
    serialize_type: int = JSON,
) -> bytes:
    """A response frame up to where its body of `body_length` bytes begins; the caller writes the body itself."""
    return encode_head(
        serialize_type,
        code=code,
        language=OUR_LANGUAGE,
        version=CURRENT_VERSION,
        opaque=request_opaque,
        flag=RESPONSE_FLAG,
        remark=remark,
        header=header,
        body_length=body_length,
    )


def encode_head(
    serialize_type: int,
    *,
    code: int,
    language: str,
    version: int,
    opaque: int,
    flag: int,
    remark: str | None,
    header: Header | Mapping[str, str] | None,
    body_length: int,
) -> bytes:
    """A frame of any kind up to where its body of `body_length` bytes begins; the other encoders stand on this one."""
    if serialize_type == ROCKETMQ:
        ext = header.to_ext() if isinstance(header, Header) else header
        data = _encode_binary(
            code=code, language=language, version=version, opaque=opaque, flag=flag, remark=remark, ext=ext
        )
    else:
        fields = ""
        if header is not None:
            fields = f'"extFields":{header.ext_json() if isinstance(header, Header) else to_json(header)},'
        note = "" if remark is None else f'"remark":{to_json(remark)},'
        # The keys in Java's order.
        data = (
            f'{{"code":{code},{fields}"flag":{flag},"language":"{language}","opaque":{opaque},{note}"version":{version}}}'
        ).encode()
    length = len(data)
    return _FRAME_HEAD.pack(4 + length + body_length, serialize_type << 24 | length) + data


def _encode_binary(
    *, code: int, language: str, version: int, opaque: int, flag: int, remark: str | None, ext: Mapping[str, str] | None
) -> bytes:
    if not -0x8000 <= code <= 0x7FFF:
        raise UsageError(f"code {code} does not fit into a ROCKETMQ binary header; use JSON headers for it")
    remark_bytes = remark.encode() if remark else b""
    fields: list[bytes] = []
    for key, value in ext.items() if ext else ():
        key_bytes, value_bytes = key.encode(), value.encode()
        if len(key_bytes) > 0x7FFF:
            raise UsageError(f"a header field name of {len(key_bytes)} bytes does not fit into a binary header")
        fields += (len(key_bytes).to_bytes(2, "big"), key_bytes, len(value_bytes).to_bytes(4, "big"), value_bytes)
    ext_bytes = b"".join(fields)
    language_number = LanguageCode[language] if language in LanguageCode.__members__ else LanguageCode.OTHER
    return b"".join(
        (
            _BINARY_HEAD.pack(code, language_number, version, opaque, flag),
            len(remark_bytes).to_bytes(4, "big"),
            remark_bytes,
            len(ext_bytes).to_bytes(4, "big"),
            ext_bytes,
        )
    )


def encode_send_response(
    request_opaque: int,
    message_id: str,
    queue_id: int,
    queue_offset: int,
    transaction_id: str,
    *,
    message_region: str = "DefaultRegion",
) -> bytes:
    """The answer to a plain send that succeeded, in JSON: what a busy broker writes most, made in one go.

    The same bytes as `encode_response` with a `SendMessageResponseHeader` of these fields. `message_id` and
    `message_region` must hold nothing that JSON escapes; they are the broker's own.
    """
    data = (
        f'{{"code":0,"extFields":{{"MSG_REGION":"{message_region}","TRACE_ON":"true","msgId":"{message_id}",'
        f'"queueId":"{queue_id}","queueOffset":"{queue_offset}","transactionId":{to_json(transaction_id)}}},'
        f'"flag":1,"language":"{OUR_LANGUAGE}","opaque":{request_opaque},"version":{CURRENT_VERSION}}}'
    ).encode()
    length = len(data)
    return _FRAME_HEAD.pack(4 + length, length) + data
