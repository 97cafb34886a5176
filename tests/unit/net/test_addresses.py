"""Addresses as people and sockets write them."""

import pytest

from pocketmq.model.errors import UsageError
from pocketmq.net.addresses import format_address, parse_address, parse_addresses, socket_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:9876", "127.0.0.1", 9876),
        (" name-server:1 ", "name-server", 1),
        ("[::1]:9876", "::1", 9876),
        ("::1:9876", "::1", 9876),
    ],
)
def test_addresses_are_read(text: str, host: str, port: int) -> None:
    assert parse_address(text) == (host, port)


@pytest.mark.parametrize("text", ["", "host", "host:", ":9876", "host:0", "host:65536", "host:９", "host:-1"])
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"host:port|usable port"):
        parse_address(text)


def test_lists_take_semicolons_and_commas() -> None:
    assert parse_addresses("a:1; b:2,c:3;") == ["a:1", "b:2", "c:3"]


def test_ipv6_hosts_get_brackets() -> None:
    assert format_address("::1", 9876) == "[::1]:9876"
    assert format_address("10.0.0.1", 9876) == "10.0.0.1:9876"


def test_socket_names_become_plain_pairs() -> None:
    assert socket_address(("10.0.0.1", 5)) == ("10.0.0.1", 5)
    assert socket_address(("::ffff:10.0.0.1", 5, 0, 0)) == ("10.0.0.1", 5)
    assert socket_address(("fe80::1", 5, 0, 2)) == ("fe80::1", 5)
    assert socket_address(None) == ("", 0)
