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
from typing import Any

import msgspec

from pocketmq.model.errors import ProtocolError, UsageError
from pocketmq.model.limits import FRAME_BYTES_MAX
from pocketmq.wire.binary_send import EXT_AT, KnownSend, SendHeaders
from pocketmq.wire.codes import CURRENT_VERSION, RequestCode, language_name, language_number
from pocketmq.wire.headers.base import Header, HeaderT, Int32, decode_header, to_json, to_text

JSON = 0
ROCKETMQ = 1

RESPONSE_FLAG = 1
ONEWAY_FLAG = 2

OUR_LANGUAGE = "PYTHON"

_NO_EXT = msgspec.Raw(b"{}")

_SEND_CODES = frozenset({int(RequestCode.SEND_MESSAGE_V2), int(RequestCode.SEND_BATCH_MESSAGE)})

_BINARY_HEAD = struct.Struct(">hbhiii")
_unpack_binary_head = _BINARY_HEAD.unpack_from
_unpack_int32 = struct.Struct(">i").unpack_from
_unpack_int16 = struct.Struct(">h").unpack_from
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
    known_send: Any = msgspec.field(name="#known_send", default=None)
    """`KnownSend` of a binary send that was read in one step; `raw_ext` is empty then."""

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
        if self.known_send is not None:
            fields: dict[str, str] = self._known_header().to_ext()
            return fields
        try:
            return msgspec.json.decode(self.raw_ext, type=dict[str, str])
        except (msgspec.DecodeError, RecursionError):
            return _ext_of_any(self.raw_ext)

    def header(self, kind: type[HeaderT]) -> HeaderT:
        """Decode the extension fields as `kind`; HeaderError names a required field that is missing or unreadable."""
        if self.known_send is not None:
            known: Any = self._known_header()
            return known if type(known) is kind else decode_header(kind, self.ext())
        decode = _header_decoders.get(kind) or _header_decoder(kind)
        try:
            header: HeaderT = decode(self.raw_ext)
            return header
        except (msgspec.DecodeError, RecursionError):
            return decode_header(kind, self.ext())

    def _known_header(self) -> Header:
        known: KnownSend = self.known_send
        shape, queue_id, born_timestamp, unique_key, properties = known
        return shape.header(queue_id, born_timestamp, unique_key, properties)


_header_decoders: dict[type[Header], Callable[[msgspec.Raw], Any]] = {}
"""Made when a kind is first asked for."""


def _header_decoder(kind: type[Header]) -> Callable[[msgspec.Raw], Any]:
    decode = _header_decoders[kind] = msgspec.json.Decoder(kind, strict=False).decode
    return decode


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


def decode_json(header: bytes) -> Command:
    """A command without its body, from a JSON header. Raises ProtocolError when it is none."""
    try:
        command = _decode_envelope(header)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ProtocolError(f"the JSON header of a frame cannot be read: {error}", cause=error) from None
    # No peer decides these, nor the body, which the caller sets.
    command.serialize_type = JSON
    command.known_send = None
    return command


def decode_binary(header: bytes, sends: SendHeaders | None = None) -> Command:
    """A command without its body, from a ROCKETMQ binary header. Raises ProtocolError when it is none.

    `sends` remembers what the sends of one connection have in common, and so makes them cheap.
    """
    size = len(header)
    try:
        if sends is not None and (read := sends.read(header)) is not None:
            opaque, known = read
            shape = known[0]
            return Command(
                shape.code, opaque, shape.flag, shape.version, shape.language, None, _NO_EXT, ROCKETMQ, b"", known
            )
        code, language, version, opaque, flag, remark_length = _unpack_binary_head(header, 0)
        offset = _BINARY_HEAD.size + remark_length
        if remark_length < 0 or offset > size:
            raise ProtocolError(f"a binary header of {size} bytes announces a remark of {remark_length} bytes")
        remark = header[_BINARY_HEAD.size : offset].decode() if remark_length else None
        is_send = sends is not None and code in _SEND_CODES and remark is None
        (ext_length,) = _unpack_int32(header, offset)
        offset += 4
        if ext_length < 0 or offset + ext_length > size:
            raise ProtocolError(f"a binary header of {size} bytes announces {ext_length} bytes of fields")
        ext = _decode_binary_ext(header, offset, offset + ext_length) if ext_length else None
    except (struct.error, UnicodeDecodeError) as error:
        raise ProtocolError(f"the binary header of a frame cannot be read: {error}", cause=error) from None
    command = Command(code, opaque, flag, version, language, remark)
    command.serialize_type = ROCKETMQ
    if ext:
        command.raw_ext = msgspec.Raw(to_json(ext).encode())
        if is_send and sends is not None and EXT_AT + ext_length == size:
            sends.learn(header, ext)
    return command


def _decode_binary_ext(header: bytes, offset: int, end: int) -> dict[str, str]:
    ext = {}
    while offset < end:
        (key_length,) = _unpack_int16(header, offset)
        offset += 2
        value_at = offset + key_length + 4
        if key_length < 0 or value_at > end:
            raise ProtocolError(f"a binary header has a field name of {key_length} bytes")
        (value_length,) = _unpack_int32(header, value_at - 4)
        value_end = value_at + value_length
        if value_length < 0 or value_end > end:
            raise ProtocolError(f"a binary header has a field value of {value_length} bytes")
        ext[header[offset : value_at - 4].decode()] = header[value_at:value_end].decode()
        offset = value_end
    return ext


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
    if length + body_length > FRAME_BYTES_MAX - 8:
        raise UsageError(
            f"a frame of {length + body_length + 8} bytes is too large; at most {FRAME_BYTES_MAX} are allowed"
        )
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
    return b"".join(
        (
            _BINARY_HEAD.pack(code, language_number(language), version, opaque, flag, len(remark_bytes)),
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
