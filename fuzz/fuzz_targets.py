"""What is fuzzed: one target for each decoder.

A target is fed any bytes. It may raise the errors that its decoder documents, and nothing else; where decoding
succeeds it checks that what came out is consistent (written again it reads the same, split elsewhere it is the same).
"""

from collections.abc import Callable
from dataclasses import dataclass

from golden.bodies import BAD_BODIES, BODIES, COMPRESSED_REGISTRATION_INFLATED, OTHER_FORMS
from golden.frames import BAD_STREAMS, PACKETS, REFUSED_HEADERS, frame
from golden.records import BAD_BATCHES, BAD_RECORDS, BATCH, RECORD_V1, RECORD_V2, RECORD_V6
from golden.sql92 import ANSWERS, NARROWER_ANSWERS, REFUSED
from pocketmq.model.errors import (
    BodyError,
    CompressionError,
    HeaderError,
    ProtocolError,
    RecordError,
    UsageError,
)
from pocketmq.views.sql.compiler import compile_expression
from pocketmq.views.sql.errors import ExpressionError
from pocketmq.wire import bodies
from pocketmq.wire.batch import encode_batch, split_batch
from pocketmq.wire.bodies.acks import decode_bit_set
from pocketmq.wire.command import Command, encode_head, encode_response
from pocketmq.wire.compression import FLAGS, compress, decompress
from pocketmq.wire.fastjson import loads
from pocketmq.wire.frame import CommandReader
from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.offsets import GetMaxOffsetRequestHeader
from pocketmq.wire.headers.pull import PullMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.ids import (
    decode_offset_id,
    decode_recall_handle,
    encode_offset_id,
    encode_recall_handle,
    unique_key_time_ms,
)
from pocketmq.wire.pop import decode_message_offsets, decode_order_counts, decode_receipt, decode_start_offsets
from pocketmq.wire.properties import (
    decode_properties,
    encode_properties,
    find_property,
    with_property,
    without_property,
)
from pocketmq.wire.received import to_received
from pocketmq.wire.record import check_record, decode_record, decode_records, encode_record

UNPACKED_BYTES_MAX = 1_048_576


@dataclass(frozen=True)
class Target:
    """One decoder: seeds to start from, what it may raise, and the check itself."""

    name: str
    run: Callable[[bytes], None]
    allowed: tuple[type[Exception], ...]
    seeds: tuple[bytes, ...]


def _content(command: Command) -> tuple[object, ...]:
    return (command.code, command.opaque, command.flag, command.version, command.remark, command.ext(), command.body)


def _frames(data: bytes) -> None:
    """The first two bytes choose where the stream is split; however it is, the same commands come out."""
    cut, stream = int.from_bytes(data[:2], "big"), data[2:]
    reader = CommandReader()
    pieces = [stream[start : start + max(1, cut % 97)] for start in range(0, len(stream), max(1, cut % 97))]
    split: list[Command] = []
    error: ProtocolError | None = None
    for piece in pieces:
        try:
            split += reader.feed(piece)
        except ProtocolError as raised:
            error = raised
            break
        assert reader.pending_bytes <= len(stream)
    try:
        whole = CommandReader().feed(stream)
    except ProtocolError:
        assert error is not None
        raise
    assert error is None
    assert [_content(command) for command in split] == [_content(command) for command in whole]
    for command in whole:
        _again(command)


def _again(command: Command) -> None:
    """A command written again reads the same."""
    language = command.language if command.language.isidentifier() else "OTHER"
    head = encode_head(
        command.serialize_type,
        code=command.code,
        language=language,
        version=command.version,
        opaque=command.opaque,
        flag=command.flag,
        remark=command.remark,
        header=command.ext(),
        body_length=len(command.body),
    )
    (again,) = CommandReader().feed(head + command.body)
    assert _content(again) == _content(command)


def _header(kind: type[Header]) -> Callable[[bytes], None]:
    """The first byte is the header kind, the rest the header, so that a changed length does not break the frame."""

    def run(data: bytes) -> None:
        for command in CommandReader().feed(frame(data[1:], kind=data[0] if data else 0)):
            _again(command)
            header = command.header(kind)
            head = encode_response(1, 0, None, header, serialize_type=command.serialize_type)
            (again,) = CommandReader().feed(head)
            assert again.header(kind) == header

    return run


def _record(data: bytes) -> None:
    size = 0
    try:
        size = check_record(data, 0, len(data))
    except RecordError:
        pass
    record = decode_record(data)
    if size:
        assert record.size == size
    again = encode_record(
        record.topic,
        record.body,
        record.properties,
        queue_id=record.queue_id,
        queue_offset=record.queue_offset,
        physical_offset=record.physical_offset,
        born_timestamp=record.born_timestamp,
        born_host=record.born_host,
        store_timestamp=record.store_timestamp,
        store_host=record.store_host,
        flag=record.flag,
        sys_flag=record.sys_flag,
        reconsume_times=record.reconsume_times,
        prepared_transaction_offset=record.prepared_transaction_offset,
    )
    assert decode_record(again).topic == record.topic
    if size and again != data[:size]:
        # Only the choice between the two versions is ours.
        assert data[4:8] != again[4:8]
    to_received(record, "b")


def _records(data: bytes) -> None:
    records = decode_records(memoryview(data))
    assert sum(record.size for record in records) == len(data)


def _batch(data: bytes) -> None:
    messages = split_batch(data)
    again = encode_batch(messages)
    assert split_batch(again) == messages
    assert len(again) == len(data)


def _properties(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    encoded = text.encode()
    properties = decode_properties(text)
    for key, value in list(properties.items())[:20]:
        found = find_property(encoded, key.encode())
        assert found == value.encode()
        changed = with_property(encoded, key.encode(), b"new")
        assert find_property(changed, key.encode()) == b"new"
        assert find_property(without_property(encoded, key.encode()), key.encode()) is None
    assert decode_properties(encode_properties(properties)) == properties


def _body(kind: type) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        value = bodies.decode_body(data, kind)
        assert bodies.decode_body(bodies.encode_body(value), kind) == value

    return run


def _json(data: bytes) -> None:
    loads(data)


def _registration(data: bytes) -> None:
    bodies.decode_register_body(data, compressed=True)


def _registration_inside(data: bytes) -> None:
    bodies.decode_register_body(compress(data)[0], compressed=True)


def _compression(flag: int) -> Callable[[bytes], None]:
    def run(data: bytes) -> None:
        assert len(decompress(data, flag, bytes_max=UNPACKED_BYTES_MAX)) <= UNPACKED_BYTES_MAX

    return run


def _ids(data: bytes) -> None:
    text = data.decode("latin-1")
    unique_key_time_ms(text, 1_700_000_000_000)
    address, port, position = decode_offset_id(text)
    again = encode_offset_id(pack_host(address, port), position)
    assert decode_offset_id(again) == (address, port, position)


def _recall(data: bytes) -> None:
    parts = decode_recall_handle(data.decode("latin-1"))
    assert decode_recall_handle(encode_recall_handle(*parts)) == parts


def _pop(data: bytes) -> None:
    """The first byte chooses which of the texts it is."""
    text = data[1:].decode("utf-8", "replace")
    choice = data[0] % 4 if data else 0
    if choice == 0:
        receipt = decode_receipt(text)
        assert decode_receipt(receipt.encode()) == receipt
    else:
        (decode_start_offsets, decode_message_offsets, decode_order_counts)[choice - 1](text)


def _bits(data: bytes) -> None:
    decode_bit_set(data.decode("latin-1"))


def _sql(data: bytes) -> None:
    """An expression, a zero byte, the properties of a message. It is compiled again to the same answer."""
    text, _, properties = data.partition(b"\0")
    expression = text.decode("utf-8", "replace")
    try:
        wanted = compile_expression(expression).matches(properties)
    except ExpressionError as error:
        assert 0 <= error.at <= len(expression)
        assert len(error.message) < 500
        raise
    assert wanted in (True, False)
    assert compile_expression(f"({expression}\n) AND TRUE").matches(properties) is wanted


def _packed(algorithm: str) -> bytes:
    return compress(b"hello" * 50, algorithm)[0]


_FRAME_SEEDS = tuple(
    entry.data for entry in (*PACKETS, *BAD_STREAMS, *REFUSED_HEADERS) if len(entry.data) < 4096
)  # fmt: skip
_HEADER_SEEDS = tuple(seed[4:5] + seed[8 : 8 + int.from_bytes(seed[5:8], "big")] for seed in _FRAME_SEEDS)
_RECORD_SEEDS = (RECORD_V1, RECORD_V2, RECORD_V6, *(bad.data for bad in BAD_RECORDS))
_BODY_SEEDS = tuple(
    [body.data for body in BODIES]
    + [text.encode() for _, text, _ in OTHER_FORMS]
    + [data for _, data, _ in BAD_BODIES if len(data) < 4096]
)
_BODY_KINDS = (bodies.HeartbeatData, bodies.TopicRouteData, bodies.ConsumerRunningInfo, bodies.LockBatchRequestBody)
_PROTOCOL = (ProtocolError, HeaderError)

TARGETS = {
    target.name: target
    for target in (
        Target(
            "frames", _frames, (ProtocolError,),
            (*(b"\0\x07" + seed for seed in _FRAME_SEEDS), b"\0\x05" + b"".join(packet.data for packet in PACKETS)),
        ),
        Target("send-header", _header(SendMessageRequestHeader), _PROTOCOL, _HEADER_SEEDS),
        Target("send-header-v2", _header(SendMessageRequestHeaderV2), _PROTOCOL, _HEADER_SEEDS),
        Target("pull-header", _header(PullMessageRequestHeader), _PROTOCOL, _HEADER_SEEDS),
        Target("offset-header", _header(GetMaxOffsetRequestHeader), _PROTOCOL, _HEADER_SEEDS),
        Target("record", _record, (RecordError, CompressionError), _RECORD_SEEDS),
        Target("records", _records, (RecordError,), (*_RECORD_SEEDS, RECORD_V1 + RECORD_V2 + RECORD_V6)),
        Target("batch", _batch, (BodyError,), (BATCH, *(bad.data for bad in BAD_BATCHES))),
        Target(
            "properties", _properties, (),
            (b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02", b"a\x01b\x02a\x01\x02\x01x\x02c\x02", b"a\x01b\x01c"),
        ),
        *(Target(f"body-{kind.__name__}", _body(kind), (BodyError,), _BODY_SEEDS) for kind in _BODY_KINDS),
        Target("json", _json, (BodyError,), _BODY_SEEDS),
        Target("registration", _registration, (BodyError,), (compress(COMPRESSED_REGISTRATION_INFLATED)[0],)),
        Target("registration-inside", _registration_inside, (BodyError,), (COMPRESSED_REGISTRATION_INFLATED,)),
        *(
            Target(f"compression-{name}", _compression(flag), (CompressionError,), (_packed(name), b""))
            for name, flag in FLAGS.items()
        ),
        Target("ids", _ids, (UsageError,), (b"AC11000200002A9F0000000000000123", b"AC11000204D20000006347B760000000")),
        Target("recall", _recall, (UsageError,), (b"djEgVDEgYnJva2VyLWEgMTcwMDAwMDAwMDAwMCBVSw==",)),
        Target(
            "pop", _pop, (HeaderError,),
            (
                b"\x005 1700000000000 60000 2 0 broker-a 3 7",
                b"\x010 3 5;1 0 9",
                b"\x020 3 5,7;1 0 9",
                b"\x030 qo3%5 2;0 3 0",
            ),
        ),
        Target(
            "sql", _sql, (ExpressionError,),
            tuple(
                expression.encode() + b"\0a\x016\x02b\x01x\x02"
                for expression, *_ in (*ANSWERS[::5], *NARROWER_ANSWERS[::5], *REFUSED[::5])
            ),
        ),
        Target("bit-sets", _bits, (BodyError,), (b"AQI=", b"")),
    )
}  # fmt: skip
