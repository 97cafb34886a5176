"""Makes new inputs from known ones: the same seed makes the same inputs."""

from collections.abc import Iterator, Sequence
from random import Random

INPUT_BYTES_MAX = 65_536
_INTEGERS = (0, 1, 2, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x0100_0000)
_TOKENS = (
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b'"',
    b"'",
    b"\\",
    b"\\u0041",
    b"null",
    b"-1",
    b"1e999",
    b"\x01",
    b"\x02",
    b"\0",
    b"\xff",
)


def inputs(seeds: Sequence[bytes], random: Random) -> Iterator[bytes]:
    """The seeds themselves, then mutations of them without end."""
    yield from seeds
    while True:
        data = random.randbytes(random.randrange(64)) if random.random() < 0.02 else random.choice(seeds)
        for _ in range(1 + random.randrange(4)):
            data = _mutated(data, seeds, random)
        yield data[:INPUT_BYTES_MAX]


def _mutated(data: bytes, seeds: Sequence[bytes], random: Random) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + 1 + random.randrange(16))
    choice = random.randrange(9)
    if choice == 0 and at < len(data):
        return data[:at] + bytes((data[at] ^ 1 << random.randrange(8),)) + data[at + 1 :]
    if choice == 1:
        return data[:at] + random.randbytes(end - at) + data[end:]
    if choice == 2:
        size = random.choice((1, 2, 4, 8))
        value = random.choice((*_INTEGERS, len(data), len(data) - 4)) & (1 << 8 * size) - 1
        return data[:at] + value.to_bytes(size, "big") + data[at + size :]
    if choice == 3:
        return data[:at] + data[end:]
    if choice == 4:
        return data[:end] + data[at:end] * (1 + random.randrange(3)) + data[end:]
    if choice == 5:
        other = random.choice(seeds)
        start = random.randrange(len(other) + 1)
        return data[:at] + other[start : start + random.randrange(64)] + data[at:]
    if choice == 6:
        return data[:at]
    if choice == 7:
        return data[:at] + random.choice(_TOKENS) * random.choice((1, 1, 1, 2, 300)) + data[at:]
    return data + random.choice(seeds)
