"""`host:port` strings, for IPv4, IPv6 and names."""

from typing import Any

from pocketmq.model.errors import UsageError

_MAPPED_IPV4 = "::ffff:"


def parse_address(address: str) -> tuple[str, int]:
    """Split `10.0.0.1:9876`, `name:9876`, `[::1]:9876` or `::1:9876`. Raises UsageError with the reason."""
    host, colon, port_text = address.strip().rpartition(":")
    if not colon or not host:
        raise UsageError(f"{address!r} is not an address; expected host:port, for example 127.0.0.1:9876")
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65_536):
        raise UsageError(f"{address!r} has no usable port; expected a number from 1 to 65535 after the last colon")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    return host, int(port_text)


def format_address(host: str, port: int) -> str:
    """The opposite of `parse_address`; IPv6 hosts get brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_addresses(text: str) -> list[str]:
    """Split a list such as `a:9876;b:9876` (commas are fine too) and check each part. Raises UsageError."""
    parts = [part.strip() for part in text.replace(",", ";").split(";")]
    addresses = [part for part in parts if part]
    for address in addresses:
        parse_address(address)
    return addresses


def socket_address(name: Any) -> tuple[str, int]:
    """Host and port of what a socket calls its own or its peer's name; `("", 0)` when it has none any more."""
    if not isinstance(name, tuple) or len(name) < 2:
        return "", 0
    host, port = str(name[0]), int(name[1])
    # A listener on `::` may see IPv4 peers; they are shown as what they are.
    if host.startswith(_MAPPED_IPV4) and "." in host:
        host = host[len(_MAPPED_IPV4) :]
    return host, port
