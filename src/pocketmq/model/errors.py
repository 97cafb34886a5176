"""Every error of PocketMQ, in one tree.

    PocketMQError                     code, cause, retryable
    +-- UsageError                    the caller asked for something that cannot be: never retryable
    |   +-- InvalidNameError          a topic or group name that RocketMQ would refuse
    |   +-- MessageTooLargeError
    |   +-- SettingError              an unknown setting, or a value it cannot take
    +-- ProtocolError                 the peer sent bytes that are not the protocol: the connection is closed
    +-- DecodeError                   well-framed bytes do not hold what they should: answered, the connection stays
    |   +-- HeaderError               a header field is missing or cannot be read
    |   +-- BodyError                 a body is not the JSON, or the batch, that it should be
    |   +-- RecordError               bytes are not a whole, undamaged message record
    |   +-- CompressionError          a body cannot be compressed or decompressed
    +-- ConnectError                  no connection could be made: retryable
    +-- ConnectionClosedError         the connection ended before the answer: retryable
    +-- RequestTimeoutError           no answer in time: retryable
    +-- RouteNotFoundError            no broker has the topic
    +-- ClientClosedError             the client was closed
    +-- BackPressureError             the client's own buffer is full
    +-- SendBatchError                some messages of a batch were not stored; knows which
    +-- BrokerError                   the server answered with a code other than success
    +-- StoreError                    the log could not take or give a record
        +-- StoreFullError            the disk is full: retryable
        +-- StoreCorruptError         damage that recovery will not hide
        +-- StoreLockedError          another process has the data directory

`code` is a response code of the remoting protocol (`pocketmq.wire.codes.ResponseCode`), so that a server can turn any
of these into an answer, and a client any answer into one of these.
"""

from collections.abc import Sequence


class PocketMQError(Exception):
    """Base of all errors. `message` is one sentence for people: the cause, and what to do."""

    code: int = 1
    retryable: bool = False

    def __init__(
        self,
        message: str,
        *,
        code: int | None = None,
        cause: BaseException | None = None,
        retryable: bool | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.cause = cause
        if code is not None:
            self.code = code
        if retryable is not None:
            self.retryable = retryable
        if cause is not None:
            self.__cause__ = cause


class UsageError(PocketMQError):
    """The caller asked for something that cannot be."""

    code = 29


class InvalidNameError(UsageError):
    """A topic or group name that the protocol does not allow."""


class MessageTooLargeError(UsageError):
    """A body or its properties are above the limit."""

    code = 13


class SettingError(UsageError):
    """A setting that does not exist, or a value that it cannot take."""


class ProtocolError(PocketMQError):
    """The peer sent bytes that are not the protocol. `hint` says what they look like, when that is known."""

    def __init__(self, message: str, *, hint: str | None = None, cause: BaseException | None = None) -> None:
        super().__init__(f"{message} ({hint})" if hint else message, cause=cause)
        self.hint = hint


class DecodeError(PocketMQError):
    """Bytes inside a whole frame, or in the log, do not hold what they should."""


class HeaderError(DecodeError):
    """A header field that the request needs is missing or cannot be read; the message names the field."""


class BodyError(DecodeError):
    """A body is not the JSON document, or the batch of messages, that its request needs."""


class RecordError(DecodeError):
    """Bytes are not a whole, undamaged message record."""


class CompressionError(DecodeError):
    """A body cannot be compressed or decompressed: damaged, too large, or its algorithm is not installed."""


class ConnectError(PocketMQError):
    """No connection could be made."""

    retryable = True


class ConnectionClosedError(PocketMQError):
    """The connection ended before the answer came; whether the request was done is unknown."""

    retryable = True


class RequestTimeoutError(PocketMQError):
    """No answer came in time; whether the request was done is unknown."""

    retryable = True


class RouteNotFoundError(PocketMQError):
    """No broker is known for the topic."""

    code = 17


class ClientClosedError(PocketMQError):
    """The client was closed, or not yet connected."""


class BackPressureError(PocketMQError):
    """The client's own send buffer is full and the caller chose not to wait."""

    code = 2
    retryable = True


class SendBatchError(PocketMQError):
    """Some messages of a batch were not stored. `results` holds a receipt or an error for each, in their order."""

    def __init__(self, message: str, *, results: Sequence[object], cause: PocketMQError) -> None:
        super().__init__(message, code=cause.code, cause=cause, retryable=cause.retryable)
        self.results = tuple(results)


class BrokerError(PocketMQError):
    """The server answered with a code other than success. `address` is the server's."""

    def __init__(self, message: str, *, code: int, address: str | None = None, retryable: bool | None = None) -> None:
        super().__init__(message, code=code, retryable=retryable)
        self.address = address


class StoreError(PocketMQError):
    """The log could not take or give a record."""


class StoreFullError(StoreError):
    """The disk is full; writes are refused until there is room."""

    code = 14
    retryable = True


class StoreCorruptError(StoreError):
    """Damage before the tail of the log, or a file that fails its checksum."""


class StoreLockedError(StoreError):
    """Another process has the data directory open."""
