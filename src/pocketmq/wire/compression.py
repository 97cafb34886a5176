"""Compressed message bodies: which algorithm a record's sys flag names, packing, and unpacking within bounds.

Bit 0 of the sys flag says that a body is compressed, bits 8 to 10 how: 0 or 3 a zlib stream (RFC 1950), 1 an LZ4
frame, 2 ZSTD. A broker stores what it gets; consumers unpack. Source: RocketMQ's `MessageSysFlag`, `CompressionType`.
"""

import zlib
from typing import Any

from pocketmq.model.errors import CompressionError, UsageError
from pocketmq.wire.record import SysFlag

UNPACKED_BYTES_MAX = 64 * 1024 * 1024
"""What a body may unpack to. Bodies are limited to 4 MiB when sent; a bomb stops here."""

ZSTD_WINDOW_BYTES_MAX = 128 * 1024 * 1024
ZSTD_FEED_BYTES = 1024

LEVEL_DEFAULT = 5
"""RocketMQ's level."""

FLAGS = {
    "zlib": SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZLIB,
    "lz4": SysFlag.COMPRESSED | SysFlag.COMPRESSION_LZ4,
    "zstd": SysFlag.COMPRESSED | SysFlag.COMPRESSION_ZSTD,
}
"""Algorithm name -> the sys-flag bits that announce it."""


def compress(body: bytes, algorithm: str = "zlib", level: int = LEVEL_DEFAULT) -> tuple[bytes, int]:
    """(packed body, sys-flag bits). `level` is 1 (fast) to 9, or the algorithm's own scale.

    Raises UsageError for an unknown algorithm, CompressionError when its package is not installed.
    """
    name = algorithm.lower()
    if name not in FLAGS:
        raise UsageError(f"compression {algorithm!r} is unknown; choose one of {', '.join(FLAGS)}")
    if name == "zlib":
        packed = zlib.compress(body, level)
    elif name == "lz4":
        packed = _lz4().compress(body, compression_level=level)
    else:
        packed = _zstd().ZstdCompressor(level=level).compress(body)
    return packed, FLAGS[name]


def decompress(body: bytes, sys_flag: int, *, bytes_max: int = UNPACKED_BYTES_MAX) -> bytes:
    """The body as it was before compression; unchanged when `sys_flag` does not say that it is compressed.

    Raises CompressionError when it is damaged, would exceed `bytes_max`, or needs a package that is not installed.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return body
    kind = sys_flag & SysFlag.COMPRESSION_MASK
    if kind == SysFlag.COMPRESSION_LZ4:
        return _unpack_lz4(body, bytes_max)
    if kind == SysFlag.COMPRESSION_ZSTD:
        return _unpack_zstd(body, bytes_max)
    if kind in (0, SysFlag.COMPRESSION_ZLIB):
        return unpack_zlib(body, bytes_max)
    raise CompressionError(f"compression type {kind >> 8} of a message is unknown")


def unpack_zlib(data: bytes, bytes_max: int = UNPACKED_BYTES_MAX) -> bytes:
    """Inflate one whole zlib stream. Raises CompressionError."""
    unpacker = zlib.decompressobj()
    try:
        unpacked = unpacker.decompress(data, bytes_max)
    except zlib.error as error:
        raise CompressionError(f"a zlib body is damaged: {error}", cause=error) from None
    return _whole(unpacked, unpacker.eof, len(unpacked) >= bytes_max, "zlib", bytes_max)


def _unpack_lz4(data: bytes, bytes_max: int) -> bytes:
    unpacker = _lz4().LZ4FrameDecompressor()
    try:
        unpacked: bytes = unpacker.decompress(data, max_length=bytes_max)
    except (RuntimeError, ValueError, EOFError) as error:
        raise CompressionError(f"an LZ4 body is damaged: {error}", cause=error) from None
    return _whole(unpacked, unpacker.eof, len(unpacked) >= bytes_max, "LZ4", bytes_max)


def _unpack_zstd(data: bytes, bytes_max: int) -> bytes:
    module = _zstd()
    try:
        announced = module.frame_content_size(data)
        if announced > bytes_max:
            raise CompressionError(f"a ZSTD body unpacks to more than {bytes_max} bytes")
        # A frame may ask for a window of gigabytes; no body of ours needs one.
        unpacker = module.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES_MAX)
        if announced >= 0:
            return bytes(unpacker.decompress(data, max_output_size=announced))
        return _unpack_zstd_stream(unpacker.decompressobj(), data, bytes_max)
    except (module.ZstdError, MemoryError) as error:
        raise CompressionError(f"a ZSTD body is damaged: {error}", cause=error) from None


def _unpack_zstd_stream(unpacker: Any, data: bytes, bytes_max: int) -> bytes:
    """A frame that does not announce its size is fed in small pieces, so that a bomb is noticed while it is small."""
    parts = []
    size = 0
    for start in range(0, len(data), ZSTD_FEED_BYTES):
        part = unpacker.decompress(data[start : start + ZSTD_FEED_BYTES])
        parts.append(part)
        size += len(part)
        if size > bytes_max or unpacker.eof:
            break
    return _whole(b"".join(parts), unpacker.eof and size <= bytes_max, size > bytes_max, "ZSTD", bytes_max)


def _whole(unpacked: bytes, complete: bool, full: bool, name: str, bytes_max: int) -> bytes:
    if complete:
        return unpacked
    if full:
        raise CompressionError(f"a {name} body unpacks to more than {bytes_max} bytes")
    raise CompressionError(f"a {name} body is cut off")


def _lz4() -> Any:
    try:
        import lz4.frame
    except ImportError as error:
        raise CompressionError("LZ4 bodies need the lz4 package: pip install 'pocketmq[lz4]'", cause=error) from None
    return lz4.frame


def _zstd() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise CompressionError(
            "ZSTD bodies need the zstandard package: pip install 'pocketmq[zstd]'", cause=error
        ) from None
    return zstandard
