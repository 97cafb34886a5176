"""What a procedure learns beside its request: who calls, from where, and how long he waits."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.wire.codes import CURRENT_VERSION, LanguageCode
from pocketmq.wire.grpc.codes import Code, CodedError, code_of
from pocketmq.wire.grpc.schema import Proto

if TYPE_CHECKING:
    from pocketmq.model.seams import Clock

Address = tuple[str, int]

CLIENT_ID_CHARS_MAX = 255

_VERSION = re.compile(r"5\.(\d{1,2})\.(\d)\b")
_VERSION_5_0_0 = 413
"""Ordinal of V5_0_0; each release is two further, see `pocketmq.wire.codes.CURRENT_VERSION`."""
_LANGUAGES = {"GOLANG": "GO", "DOT_NET": "DOTNET"}


class Call:
    """One call. `deadline` is on the monotonic clock, None when the caller set no limit."""

    __slots__ = ("_metadata", "authority", "client_id", "deadline", "local_address", "peer_address")

    def __init__(
        self,
        metadata: Iterable[tuple[str, str | bytes]],
        *,
        peer_address: Address,
        local_address: Address,
        deadline: float | None = None,
        authority: str = "",
    ) -> None:
        self._metadata = metadata
        self.client_id = self._find("x-mq-client-id")
        self.peer_address = peer_address
        self.local_address = local_address
        self.deadline = deadline
        self.authority = authority
        """`host:port` as the client wrote it; empty when it is not known."""

    @property
    def language(self) -> str:
        """The client's language, in the words of the remoting protocol."""
        name = self._find("x-mq-language").upper()
        name = _LANGUAGES.get(name, name)
        return name if name in LanguageCode.__members__ else "OTHER"

    @property
    def version(self) -> int:
        """The client's version as the remoting protocol numbers them."""
        match = _VERSION.match(self._find("x-mq-client-version"))
        return _VERSION_5_0_0 + 2 * (10 * int(match[1]) + int(match[2])) if match else CURRENT_VERSION

    def remaining_s(self, clock: "Clock") -> float | None:
        """How long the caller still waits; None for ever."""
        return None if self.deadline is None else self.deadline - clock.monotonic()

    def check_client_id(self) -> str:
        """The client's id. Raises CodedError CLIENT_ID_REQUIRED."""
        if not self.client_id:
            raise CodedError(Code.CLIENT_ID_REQUIRED, "the header x-mq-client-id is missing; every call must have it")
        if len(self.client_id) > CLIENT_ID_CHARS_MAX:
            raise CodedError(
                Code.CLIENT_ID_REQUIRED,
                f"the client id has {len(self.client_id)} characters; at most {CLIENT_ID_CHARS_MAX} are allowed",
            )
        return self.client_id

    def _find(self, name: str) -> str:
        for key, value in self._metadata:
            if key == name:
                return value if isinstance(value, str) else value.decode(errors="replace")
        return ""


def set_status(status: Proto, error: PocketMQError) -> None:
    """Fill a `Status` with what went wrong."""
    status.code = code_of(error)
    status.message = error.message


def set_common_status(status: Proto, codes: Sequence[int]) -> None:
    """Fill the `Status` over several entries: their common code, or MULTIPLE_RESULTS."""
    code = codes[0] if codes and codes.count(codes[0]) == len(codes) else Code.MULTIPLE_RESULTS
    status.code = code
    status.message = Code(code).name


def set_ok(status: Proto) -> None:
    """Fill a `Status` for success."""
    status.code = 20000
    status.message = "OK"


def set_time(time: Proto, time_ms: int) -> None:
    """Fill a Timestamp or a Duration with milliseconds."""
    seconds, rest_ms = divmod(time_ms, 1000)
    time.seconds = seconds
    time.nanos = rest_ms * 1_000_000


def read_ms(time: Proto) -> int:
    """Milliseconds of a Timestamp or a Duration."""
    return int(time.seconds * 1000 + time.nanos // 1_000_000)
