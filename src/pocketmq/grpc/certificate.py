"""A certificate that signs itself, made at the start, for clients that insist on TLS and trust everybody.

It encrypts and proves nothing: who wants to know whom he talks to sets `grpc.certificate`. An elliptic curve of 256
bits takes some hundredths of a second and no library: key and signature are made with the formulas of FIPS 186-4 and
the curve P-256 of SEC 2; the form is X.509 (RFC 5280), written as DER. The key lives as long as the process.
"""

import base64
import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

P = 2**256 - 2**224 + 2**192 + 2**96 - 1
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
GENERATOR = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
Point = tuple[int, int]

VALID_DAYS = 3650
NAMES = ("localhost", "127.0.0.1", "::1")

_EC_PUBLIC_KEY = "1.2.840.10045.2.1"
_PRIME256V1 = "1.2.840.10045.3.1.7"
_ECDSA_WITH_SHA256 = "1.2.840.10045.4.3.2"
_COMMON_NAME = "2.5.4.3"
_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"


def self_signed(names: tuple[str, ...], now_ms: int) -> tuple[str, str]:
    """A new certificate for these host names and addresses, and its private key; both as PEM text."""
    secret = secrets.randbelow(ORDER - 1) + 1
    public = _multiply(secret, GENERATOR)
    point = b"\x04" + public[0].to_bytes(32, "big") + public[1].to_bytes(32, "big")
    algorithm = _sequence(_oid(_ECDSA_WITH_SHA256))
    name = _sequence(_set(_sequence(_oid(_COMMON_NAME), _tlv(0x0C, names[0].encode()))))
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    content = _sequence(
        _tlv(0xA0, _integer(2)),
        _integer(secrets.randbits(120) + 1),
        algorithm,
        name,
        _sequence(_time(now - timedelta(days=1)), _time(now + timedelta(days=VALID_DAYS))),
        name,
        _sequence(_sequence(_oid(_EC_PUBLIC_KEY), _oid(_PRIME256V1)), _bits(point)),
        _tlv(0xA3, _sequence(_alternative_names(dict.fromkeys((*names, *NAMES))))),
    )
    certificate = _sequence(content, algorithm, _bits(_sign(secret, content)))
    key = _sequence(
        _integer(1), _tlv(4, secret.to_bytes(32, "big")), _tlv(0xA0, _oid(_PRIME256V1)), _tlv(0xA1, _bits(point))
    )
    return _pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", key)


# -- the curve ---------------------------------------------------------------------------------------------------------


def _add(one: Point | None, other: Point | None) -> Point | None:
    if one is None or other is None:
        return one or other
    if one[0] == other[0]:
        if (one[1] + other[1]) % P == 0:
            return None
        slope = (3 * one[0] * one[0] - 3) * pow(2 * one[1], -1, P) % P
    else:
        slope = (other[1] - one[1]) * pow(other[0] - one[0], -1, P) % P
    x = (slope * slope - one[0] - other[0]) % P
    return x, (slope * (one[0] - x) - one[1]) % P


def _multiply(number: int, point: Point) -> Point:
    result: Point | None = None
    addend: Point | None = point
    while number:
        if number & 1:
            result = _add(result, addend)
        addend = _add(addend, addend)
        number >>= 1
    assert result is not None
    return result


def _sign(secret: int, data: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(data).digest(), "big")
    while True:
        once = secrets.randbelow(ORDER - 1) + 1
        r = _multiply(once, GENERATOR)[0] % ORDER
        s = pow(once, -1, ORDER) * (digest + r * secret) % ORDER
        if r and s:
            return _sequence(_integer(r), _integer(s))


# -- DER ---------------------------------------------------------------------------------------------------------------


def _tlv(tag: int, content: bytes) -> bytes:
    length = len(content)
    if length < 128:
        return bytes((tag, length)) + content
    size = length.to_bytes((length.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(size))) + size + content


def _sequence(*parts: bytes) -> bytes:
    return _tlv(0x30, b"".join(parts))


def _set(*parts: bytes) -> bytes:
    return _tlv(0x31, b"".join(parts))


def _integer(number: int) -> bytes:
    return _tlv(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))


def _bits(content: bytes) -> bytes:
    return _tlv(3, b"\0" + content)


def _oid(dotted: str) -> bytes:
    first, second, *rest = (int(part) for part in dotted.split("."))
    encoded = bytearray((40 * first + second,))
    for number in rest:
        groups = [number & 0x7F]
        while number := number >> 7:
            groups.append(number & 0x7F | 0x80)
        encoded += bytes(reversed(groups))
    return _tlv(6, bytes(encoded))


def _time(moment: datetime) -> bytes:
    if moment.year < 2050:
        return _tlv(0x17, moment.strftime("%y%m%d%H%M%SZ").encode())
    return _tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _alternative_names(names: dict[str, None]) -> bytes:
    parts = []
    for name in names:
        try:
            parts.append(_tlv(0x87, ip_address(name).packed))
        except ValueError:
            parts.append(_tlv(0x82, name.encode("idna")))
    return _sequence(_oid(_SUBJECT_ALTERNATIVE_NAME), _tlv(4, _sequence(*parts)))


def _pem(kind: str, data: bytes) -> str:
    text = base64.b64encode(data).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    return "\n".join((f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""))
