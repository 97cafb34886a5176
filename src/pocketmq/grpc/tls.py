"""TLS for one connection, without I/O of its own: what is received goes in, what is to be sent comes out."""

import contextlib
import os
import ssl
import tempfile

from pocketmq.grpc.certificate import self_signed
from pocketmq.model.errors import SettingError
from pocketmq.model.settings import GrpcSettings

HANDSHAKE = 0x16
"""First byte of a TLS connection (a record with a handshake); no plaintext of HTTP/2 begins with it."""
CHUNK_BYTES = 64 * 1024


def server_context(settings: GrpcSettings, now_ms: int) -> ssl.SSLContext:
    """What TLS connections are made with. Raises SettingError for files that cannot be used."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["h2"])
    if settings.certificate:
        try:
            context.load_cert_chain(settings.certificate, settings.private_key or None)
        except OSError as error:
            raise SettingError(
                f"grpc.certificate {settings.certificate} and grpc.private_key cannot be used: {error}", cause=error
            ) from error
        return context
    host = settings.host if settings.host not in ("", "0.0.0.0", "::") else "localhost"
    _load(context, *self_signed((host,), now_ms))
    return context


def _load(context: ssl.SSLContext, certificate: str, key: str) -> None:
    # The library reads keys from files only; nobody else can read this one, and it is gone at once.
    descriptor, path = tempfile.mkstemp(prefix="pocketmq-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(key + certificate)
        context.load_cert_chain(path)
    finally:
        with contextlib.suppress(OSError):
            os.remove(path)  # noqa: PTH107


class TlsLayer:
    """The server's side of one TLS connection."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._received = ssl.MemoryBIO()
        self._to_send = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._received, self._to_send, server_side=True)
        self._shaken = False
        self.ended = False
        """True when the peer has said that nothing more comes."""

    def open(self, data: bytes) -> bytes:
        """What the peer said with `data`; may be nothing. Then send what `sealed` has. Raises ssl.SSLError."""
        self._received.write(data)
        plain = []
        try:
            if not self._shaken:
                self._tls.do_handshake()
                self._shaken = True
            while chunk := self._tls.read(CHUNK_BYTES):
                plain.append(chunk)
            self.ended = True
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self.ended = True
        return b"".join(plain)

    def seal(self, data: bytes) -> bytes:
        """What to send to say `data`. Raises ssl.SSLError."""
        self._tls.write(data)
        return self._to_send.read()

    def sealed(self) -> bytes:
        """What is to be sent for TLS itself."""
        return self._to_send.read() if self._to_send.pending else b""
