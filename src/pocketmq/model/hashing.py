"""Java's `String.hashCode`, which the protocol uses for tags."""

from functools import lru_cache


@lru_cache(maxsize=65_536)
def java_string_hash(text: str) -> int:
    """Signed 32-bit `String.hashCode()` over the UTF-16 units of `text`; the empty string gives 0."""
    value = 0
    data = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(data[::2], data[1::2], strict=True):
        value = (value * 31 + (high << 8) + low) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def tag_code(tag: str | None) -> int:
    """The code a queue index stores for a tag: the hash of the whole TAGS value, 0 for none."""
    return java_string_hash(tag) if tag else 0
