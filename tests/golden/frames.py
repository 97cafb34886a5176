"""Frames: valid ones with what they say, streams that are no frames, and commands whose header lacks what it needs."""

from dataclasses import dataclass, field

from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.offsets import GetMaxOffsetRequestHeader, UpdateConsumerOffsetRequestHeader
from pocketmq.wire.headers.pull import PullMessageRequestHeader
from pocketmq.wire.headers.send import SendMessageRequestHeader, SendMessageRequestHeaderV2


def frame(header: bytes, body: bytes = b"", *, kind: int = 0) -> bytes:
    """A frame around any header bytes."""
    return (
        (4 + len(header) + len(body)).to_bytes(4, "big")
        + bytes((kind,))
        + len(header).to_bytes(3, "big")
        + header
        + body
    )


def text(value: str, size: int) -> bytes:
    """A text with its length before it, as in binary headers."""
    data = value.encode()
    return len(data).to_bytes(size, "big") + data


def text_bytes(data: bytes) -> bytes:
    """The same for bytes, with a length of four bytes."""
    return len(data).to_bytes(4, "big") + data


def binary(*, remark: bytes = b"\0\0\0\0", ext: bytes = b"\0\0\0\0", code: int = 105) -> bytes:
    """A binary header with given remark and ext parts, each with its length."""
    return code.to_bytes(2, "big") + b"\x00\x01\xdf\x00\x00\x00\x07\x00\x00\x00\x00" + remark + ext


@dataclass(frozen=True, kw_only=True)
class Packet:
    """A valid frame and what it says. `canonical`: our encoder gives the same bytes for the same content."""

    name: str
    data: bytes
    code: int
    opaque: int = 7
    flag: int = 0
    language: str = "JAVA"
    version: int = 479
    remark: str | None = None
    ext: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    serialize_type: int = 0
    canonical: bool = False
    header: Header | None = None


@dataclass(frozen=True)
class BadStream:
    """Bytes that cannot be frames: part of the error, and part of the hint if there is one."""

    name: str
    data: bytes
    error: str
    hint: str | None = None


@dataclass(frozen=True)
class RefusedHeader:
    """A whole frame whose header lacks what `kind` needs: the error names `field`."""

    name: str
    data: bytes
    kind: type[Header]
    field: str


SEND_V2_JSON = (
    b'{"code":310,"extFields":{"a":"pg","b":"T","c":"TBW102","d":"4","e":"0","f":"0","g":"1700000000000","h":"0",'
    b'"i":"UNIQ_KEY\\u0001AC11000200002A9F0000000000000123\\u0002WAIT\\u0001true\\u0002","j":"0","k":"false",'
    b'"m":"false","n":"broker-a"},"flag":0,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}'
)
SEND_V2_EXT = {
    "a": "pg",
    "b": "T",
    "c": "TBW102",
    "d": "4",
    "e": "0",
    "f": "0",
    "g": "1700000000000",
    "h": "0",
    "i": "UNIQ_KEY\x01AC11000200002A9F0000000000000123\x02WAIT\x01true\x02",
    "j": "0",
    "k": "false",
    "m": "false",
    "n": "broker-a",
}
SEND_V2_HEADER = SendMessageRequestHeaderV2(
    "pg", "T", "TBW102", 4, 0, 0, 1_700_000_000_000, 0,
    properties=SEND_V2_EXT["i"], reconsume_times=0, unit_mode=False, batch=False, broker_name="broker-a",
)  # fmt: skip

PACKETS = [
    Packet(
        name="java json request (golden)",
        data=frame(
            b'{"code":105,"extFields":{"topic":"TBW102"},"flag":0,"language":"JAVA","opaque":7,'
            b'"serializeTypeCurrentRPC":"JSON","version":479}'
        ),
        code=105,
        ext={"topic": "TBW102"},
    ),
    Packet(
        name="java json response (golden)",
        data=frame(b'{"code":0,"flag":1,"language":"JAVA","opaque":7,"serializeTypeCurrentRPC":"JSON","version":479}'),
        code=0,
        flag=1,
    ),
    Packet(
        name="java binary request (golden)",
        data=bytes.fromhex(
            "0000002c 01000028 0069 00 01df 00000007 00000000 00000002 6869"
            "00000011 0005 746f706963 00000006 544257313032"
        ),
        code=105,
        remark="hi",
        ext={"topic": "TBW102"},
        serialize_type=1,
        canonical=True,
    ),
    Packet(
        name="java send in one-letter names",
        data=frame(SEND_V2_JSON, b"hello"),
        code=310,
        ext=SEND_V2_EXT,
        body=b"hello",
        header=SEND_V2_HEADER,
    ),
    Packet(
        name="the same send with a binary header",
        data=frame(
            bytes.fromhex("0136 00 01df 00000007 00000000 00000000")
            + text_bytes(b"".join(text(key, 2) + text(value, 4) for key, value in SEND_V2_EXT.items())),
            b"hello",
            kind=1,
        ),
        code=310,
        ext=SEND_V2_EXT,
        body=b"hello",
        serialize_type=1,
        canonical=True,
        header=SEND_V2_HEADER,
    ),
    Packet(
        name="go request with empty remark and fields",
        data=frame(
            b'{"code":106,"language":"GO","version":317,"opaque":1,"flag":0,"remark":"","extFields":{}}',
        ),
        code=106,
        opaque=1,
        language="GO",
        version=317,
        remark="",
    ),
    Packet(
        name="fields as numbers and booleans, as old C++ clients write them",
        data=frame(
            b'{"code":10,"extFields":{"producerGroup":"pg","topic":"T","defaultTopic":"TBW102","defaultTopicQueueNums":4,'
            b'"queueId":0,"sysFlag":0,"bornTimestamp":1700000000000,"flag":0,"unitMode":false},'
            b'"flag":2,"language":"CPP","opaque":7,"version":121}'
        ),
        code=10,
        flag=2,
        language="CPP",
        version=121,
        ext={
            "producerGroup": "pg",
            "topic": "T",
            "defaultTopic": "TBW102",
            "defaultTopicQueueNums": "4",
            "queueId": "0",
            "sysFlag": "0",
            "bornTimestamp": "1700000000000",
            "flag": "0",
            "unitMode": "false",
        },
        header=SendMessageRequestHeader("pg", "T", "TBW102", 4, 0, 0, 1_700_000_000_000, 0, unit_mode=False),
    ),
    Packet(
        name="language as a number",
        data=frame(b'{"code":34,"flag":0,"language":9,"opaque":7,"version":317}'),
        code=34,
        language="GO",
        version=317,
    ),
    Packet(
        name="a language that nobody knows",
        data=frame(b'{"code":34,"flag":0,"language":"COBOL","opaque":7,"version":479}'),
        code=34,
        language="COBOL",
    ),
    Packet(
        name="fields that are null, and fields that nobody knows",
        data=frame(
            b'{"code":34,"extFields":null,"flag":0,"language":"JAVA","opaque":7,"remark":null,"version":479,"new":[{}]}'
        ),
        code=34,
    ),
    Packet(
        name="one field that is null",
        data=frame(
            b'{"code":30,"extFields":{"topic":"T","queueId":"1","bname":null},"flag":0,"language":"JAVA","opaque":7,"version":479}'
        ),
        code=30,
        ext={"topic": "T", "queueId": "1"},
        header=GetMaxOffsetRequestHeader("T", 1),
    ),
    Packet(
        name="a number with a sign and one that cannot be read where none is needed",
        data=frame(
            b'{"code":30,"extFields":{"topic":"T","queueId":"+1","committed":"yes","lo":"x","nsd":"TRUE"},'
            b'"flag":0,"language":"JAVA","opaque":7,"version":479}'
        ),
        code=30,
        ext={"topic": "T", "queueId": "+1", "committed": "yes", "lo": "x", "nsd": "TRUE"},
        header=GetMaxOffsetRequestHeader("T", 1, committed=False, logical_queue=False, namespaced=True),
    ),
    Packet(
        name="our own pull, and text beyond ASCII",
        data=frame(
            '{"code":11,"extFields":{"commitOffset":"0","consumerGroup":"日本","maxMsgNums":"32","queueId":"3",'
            '"queueOffset":"9223372036854775807","subVersion":"0","suspendTimeoutMillis":"15000","sysFlag":"2",'
            '"topic":"T"},"flag":0,"language":"PYTHON","opaque":-5,"version":479}'.encode()
        ),
        code=11,
        opaque=-5,
        language="PYTHON",
        ext={
            "commitOffset": "0",
            "consumerGroup": "日本",
            "maxMsgNums": "32",
            "queueId": "3",
            "queueOffset": "9223372036854775807",
            "subVersion": "0",
            "suspendTimeoutMillis": "15000",
            "sysFlag": "2",
            "topic": "T",
        },
        canonical=True,
        header=PullMessageRequestHeader("日本", "T", 3, 2**63 - 1, 32, 2, 0, 15_000, 0),
    ),
    Packet(
        name="binary code that Java cut to 16 bits (200050 as 3442)",
        data=frame(binary(code=200050 & 0xFFFF), kind=1),
        code=3442,
        serialize_type=1,
        canonical=True,
    ),
    Packet(
        name="binary language and negative opaque",
        data=frame(bytes.fromhex("0022 09 013d ffffffff 00000002 00000000 00000000"), kind=1),
        code=34,
        opaque=-1,
        flag=2,
        language="GO",
        version=317,
        serialize_type=1,
        canonical=True,
    ),
]

_HTTP = "this looks like HTTP; the gRPC port is 8081, the HTTP port is 8082"
_TLS = "this looks like a TLS hello; this port speaks plain text"

BAD_STREAMS = [
    BadStream("random bytes", bytes.fromhex("9f3a77c1e0b2440d19"), "negative length"),
    BadStream("text", b"hello, world\r\n", "at most 16777216 are allowed"),
    BadStream("zeros", bytes(16), "too few for a header"),
    BadStream("tls hello", bytes.fromhex("16030102000100 01fc0303"), "at most 16777216", _TLS),
    BadStream("http get", b"GET / HTTP/1.1\r\nHost: broker:10911\r\n\r\n", "at most 16777216", _HTTP),
    BadStream("http post", b"POST /topics HTTP/1.1\r\n\r\n", "at most 16777216", _HTTP),
    BadStream(
        "http/2 preface",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "at most 16777216",
        "this looks like HTTP/2 or gRPC; the gRPC port is 8081",
    ),
    BadStream(
        "proxy protocol 1",
        b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n",
        "at most 16777216",
        "this looks like a PROXY protocol",
    ),
    BadStream(
        "proxy protocol 2", b"\r\n\r\n\0\r\nQUIT\n\x21\x11", "at most 16777216", "this looks like a PROXY protocol"
    ),
    BadStream("ssh", b"SSH-2.0-OpenSSH_9.2\r\n", "at most 16777216", "this looks like SSH"),
    BadStream("length -1", bytes.fromhex("ffffffff 00000010") + bytes(16), "negative length, -1"),
    BadStream("length 3", bytes.fromhex("00000003 00000000"), "3 bytes, too few"),
    BadStream("one byte too large", bytes.fromhex("00fffffd 00000010"), "announces 16777217 bytes"),
    BadStream("header longer than its frame", bytes.fromhex("00000010 0000000d") + bytes(12), "13 bytes does not fit"),
    BadStream("header of 24 bits", bytes.fromhex("00000010 00ffffff") + bytes(12), "16777215 bytes does not fit"),
    BadStream("header kind 2", bytes.fromhex("00000006 02000002") + b"{}", "header kind 2"),
    BadStream("header kind 255", bytes.fromhex("00000006 ff000002") + b"{}", "header kind 255"),
    BadStream("no header", frame(b""), "the JSON header of a frame cannot be read"),
    BadStream("json header cut off", frame(b'{"code":105,"flag":0'), "the JSON header of a frame cannot be read"),
    BadStream("json header with no code", frame(b'{"flag":0,"opaque":7}'), "missing required field `code`"),
    BadStream("json header that is a list", frame(b"[105]"), "the JSON header of a frame cannot be read"),
    BadStream("json header with a wrong type", frame(b'{"code":[],"opaque":7}'), "the JSON header of a frame"),
    BadStream("json opaque of 33 bits", frame(b'{"code":105,"opaque":4294967296}'), "the JSON header of a frame"),
    BadStream("json header that is not UTF-8", frame(b'{"code":105,"remark":"\xff"}'), "the JSON header of a frame"),
    BadStream("json header nested too deep", frame(b'{"code":105,"x":' + b"[" * 100_000), "the JSON header of a frame"),
    BadStream("binary header cut off", frame(bytes(12), kind=1), "the binary header of a frame cannot be read"),
    BadStream(
        "binary header with a negative remark", frame(binary(remark=b"\xff\xff\xff\xff"), kind=1), "remark of -1 bytes"
    ),
    BadStream("binary remark beyond the header", frame(binary(remark=b"\0\0\0\x0f"), kind=1), "remark of 15 bytes"),
    BadStream("binary fields beyond the header", frame(binary(ext=b"\0\0\0\x07\0\x01k"), kind=1), "7 bytes of fields"),
    BadStream("binary fields of negative length", frame(binary(ext=b"\xff\xff\xff\xff"), kind=1), "-1 bytes of fields"),
    BadStream(
        "binary field name of negative length",
        frame(binary(ext=text_bytes(b"\xff\xffk\0\0\0\0")), kind=1),
        "name of -1 bytes",
    ),
    BadStream(
        "binary field value beyond the fields",
        frame(binary(ext=text_bytes(b"\0\x01k\0\0\0\x09v")), kind=1),
        "value of 9 bytes",
    ),
    BadStream(
        "binary field name that is not UTF-8",
        frame(binary(ext=text_bytes(b"\0\x01\xff\0\0\0\0")), kind=1),
        "cannot be read",
    ),
]

REFUSED_HEADERS = [
    RefusedHeader(
        "a required field is missing",
        frame(b'{"code":15,"extFields":{"consumerGroup":"g","topic":"T","queueId":"0"},"flag":0,"opaque":7}'),
        UpdateConsumerOffsetRequestHeader,
        "commitOffset",
    ),
    RefusedHeader(
        "a required field is null",
        frame(b'{"code":30,"extFields":{"topic":null,"queueId":"0"},"flag":0,"opaque":7}'),
        GetMaxOffsetRequestHeader,
        "topic",
    ),
    RefusedHeader(
        "a number that is none",
        frame(b'{"code":30,"extFields":{"topic":"T","queueId":"zero"},"flag":0,"opaque":7}'),
        GetMaxOffsetRequestHeader,
        "queueId",
    ),
    RefusedHeader(
        "an int of 33 bits",
        frame(b'{"code":30,"extFields":{"topic":"T","queueId":"4294967296"},"flag":0,"opaque":7}'),
        GetMaxOffsetRequestHeader,
        "queueId",
    ),
    RefusedHeader(
        "a fraction",
        frame(b'{"code":30,"extFields":{"topic":"T","queueId":"1.5"},"flag":0,"opaque":7}'),
        GetMaxOffsetRequestHeader,
        "queueId",
    ),
    RefusedHeader("no fields at all", frame(b'{"code":30,"flag":0,"opaque":7}'), GetMaxOffsetRequestHeader, "topic"),
    RefusedHeader(
        "fields that are a list",
        frame(b'{"code":30,"extFields":["topic"],"flag":0,"opaque":7}'),
        GetMaxOffsetRequestHeader,
        "topic",
    ),
    RefusedHeader(
        "a binary header without a field",
        frame(binary(code=30, ext=text_bytes(text("topic", 2) + text("T", 4))), kind=1),
        GetMaxOffsetRequestHeader,
        "queueId",
    ),
]
