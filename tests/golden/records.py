"""Message records and batches: valid ones with what they hold, and damaged ones with why they are refused."""

from dataclasses import dataclass

RECORD_V1 = bytes.fromhex(
    "00000077 daa320a7 3610a686 00000003 00000007 000000000000000b 0000000000000123 00000000 0000018bcfe56800"
    "0a0000010000c350 0000018bcfe5687b ac11000200002a9f 00000001 0000000000000000 00000005 68656c6c6f 02 5431"
    "0015 4b455953016b31206b320254414753015461674102"
)
"""Golden. Topic T1, body "hello", KEYS "k1 k2", TAGS "TagA"."""

RECORD_V1_FIELDS = {
    "topic": "T1",
    "body": b"hello",
    "properties": b"KEYS\x01k1 k2\x02TAGS\x01TagA\x02",
    "queue_id": 3,
    "flag": 7,
    "queue_offset": 11,
    "physical_offset": 0x123,
    "sys_flag": 0,
    "born_timestamp": 1_700_000_000_000,
    "born_host": bytes.fromhex("0a0000010000c350"),
    "store_timestamp": 1_700_000_000_123,
    "store_host": bytes.fromhex("ac11000200002a9f"),
    "reconsume_times": 1,
    "prepared_transaction_offset": 0,
}
RECORD_V1_OFFSET_ID = "AC11000200002A9F0000000000000123"
RECORD_V1_BORN_HOST = ("10.0.0.1", 50_000)
RECORD_V1_STORE_HOST = ("172.17.0.2", 10_911)

RECORD_V2 = (
    bytes.fromhex(
        "000000f6 daa320ab 3610a686 00000003 00000007 000000000000000b 0000000000000123 00000000 0000018bcfe56800"
        "0a0000010000c350 0000018bcfe5687b ac11000200002a9f 00000001 0000000000000000 00000005 68656c6c6f 0080"
    )
    + b"T" * 128
    + bytes.fromhex("0015 4b455953016b31206b320254414753015461674102")
)
"""The same with a topic of 128 characters."""

RECORD_V6 = bytes.fromhex(
    "0000008f daa320a7 3610a686 00000003 00000007 000000000000000b 0000000000000123 00000030 0000018bcfe56800"
    "20010db8000000000000000000000001 0000c350 0000018bcfe5687b fe800000000000000000000000000002 00002a9f"
    "00000001 0000000000000000 00000005 68656c6c6f 02 5431 0015 4b455953016b31206b320254414753015461674102"
)
"""The same with IPv6 hosts [2001:db8::1]:50000 and [fe80::2]:10911."""

CRC_OF_HELLO = 907_060_870
TAG_HASHES = {"TagA": 2_598_919, "polygenelubricants": -2_147_483_648, "": 0}

BATCH = bytes.fromhex(
    "000000330000000000000000000000010000000161001c4b455953016b31025741495401747275650254414753015461674102"
    "00000022000000000000000000000000000000026262000a57414954017472756502"
)
"""Golden."""

BATCH_MESSAGES = [
    (1, b"a", b"KEYS\x01k1\x02WAIT\x01true\x02TAGS\x01TagA\x02"),
    (0, b"bb", b"WAIT\x01true\x02"),
]


@dataclass(frozen=True)
class BadBytes:
    """Damaged bytes, and part of the error that says so."""

    name: str
    data: bytes
    error: str


def patched(data: bytes, offset: int, replacement: str) -> bytes:
    """`data` with the hexadecimal `replacement` at `offset`."""
    new = bytes.fromhex(replacement)
    return data[:offset] + new + data[offset + len(new) :]


BAD_RECORDS = [
    BadBytes("magic of nothing", patched(RECORD_V1, 4, "12345678"), "magic"),
    BadBytes("size 0 but not empty", patched(RECORD_V1, 0, "00000000"), "size of 0 bytes"),
    BadBytes("negative size", patched(RECORD_V1, 0, "ffffffff"), "size of -1 bytes"),
    BadBytes("size one too small", patched(RECORD_V1, 0, "00000076"), "do not end a record"),
    BadBytes("size one too large", patched(RECORD_V1, 0, "00000078") + b"\0", "do not end a record"),
    BadBytes("size beyond the end", patched(RECORD_V1, 0, "7fffffff"), "size of 2147483647 bytes"),
    BadBytes("body changed", patched(RECORD_V1, 88, "00"), "checksum"),
    BadBytes("checksum changed", patched(RECORD_V1, 8, "00000000"), "checksum"),
    BadBytes("negative body length", patched(RECORD_V1, 84, "ffffffff"), "body of -1 bytes"),
    BadBytes("body length beyond the record", patched(RECORD_V1, 84, "00001000"), "body of 4096 bytes"),
    BadBytes("topic length beyond the record", patched(RECORD_V1, 93, "7f"), "topic of 127 bytes"),
    BadBytes("topic with a blank", patched(RECORD_V1, 94, "20"), "characters"),
    BadBytes("negative properties length", patched(RECORD_V1, 96, "ffff"), "properties of -1 bytes"),
    BadBytes("properties with a NUL", patched(RECORD_V1, 98, "00"), "NUL"),
    BadBytes("cut off in the head", RECORD_V1[:60], "size of 119 bytes"),
    BadBytes("cut off by one byte", RECORD_V1[:-1], "size of 119 bytes"),
    BadBytes("flag says IPv6 where there is no room", patched(RECORD_V1, 36, "00000030"), "does not fit"),
]
"""Refused by `check_record`; `decode_record` refuses them too unless only content (checksum, characters) is wrong."""

BAD_BATCHES = [
    BadBytes("cut off in the head", BATCH[:10], "message 1 of a batch is cut off"),
    BadBytes("cut off in the second message", BATCH[:-1], "message 2 of a batch"),
    BadBytes("zeros", bytes(22), "do not add up"),
    BadBytes("size one too large", patched(BATCH, 0, "00000034"), "do not add up"),
    BadBytes("negative body length", patched(BATCH, 16, "ffffffff"), "message 1 of a batch"),
    BadBytes("body length beyond the end", patched(BATCH, 16, "7fffffff"), "message 1 of a batch"),
    BadBytes("negative properties length", patched(BATCH, 21, "ffff"), "do not add up"),
    BadBytes("garbage behind", BATCH + b"\x01", "message 3 of a batch is cut off"),
]
