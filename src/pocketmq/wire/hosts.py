"""Hosts as records and message ids hold them: 4 or 16 address bytes, then the port as an int32."""

import ipaddress
import struct
from functools import lru_cache

from pocketmq.model.errors import RecordError, UsageError

HOST_V4_BYTES = 8
HOST_V6_BYTES = 20

_PORT = struct.Struct(">i")


@lru_cache(maxsize=4096)
def pack_host(address: str, port: int) -> bytes:
    """8 bytes for an IPv4 address, 20 for an IPv6 one; an IPv4 address mapped into IPv6 counts as IPv4.

    Raises UsageError when `address` is not an IP address.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0].strip("[]"))
    except ValueError as error:
        raise UsageError(f"{address!r} is not an IP address", cause=error) from None
    mapped = getattr(parsed, "ipv4_mapped", None)
    return (mapped or parsed).packed + _PORT.pack(port)


@lru_cache(maxsize=4096)
def unpack_host(host: bytes) -> tuple[str, int]:
    """(address, port) of 8 or 20 bytes. Raises RecordError for any other length."""
    if len(host) not in (HOST_V4_BYTES, HOST_V6_BYTES):
        raise RecordError(f"a host has {len(host)} bytes; it must have {HOST_V4_BYTES} or {HOST_V6_BYTES}")
    (port,) = _PORT.unpack_from(host, len(host) - 4)
    return str(ipaddress.ip_address(host[:-4])), port


@lru_cache(maxsize=4096)
def format_host(host: bytes) -> str:
    """`address:port`, an IPv6 address in brackets."""
    address, port = unpack_host(host)
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def parse_address(text: str) -> tuple[str, int]:
    """(host, port) of `host:port`, `[v6]:port` or `v6:port` (the last colon counts). Raises UsageError otherwise."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise UsageError(f"{text!r} is not an address of the form host:port")
    return host.strip("[]"), int(port)
