"""The one table from a broker's response code to an exception.

An answer that is no success becomes the exception of its code, with the broker's remark, what was asked, and the
address. `retryable` is said of the operation as such: the same request may do on another broker, or a moment later.
"""

from typing import Final

from pocketmq.model.errors import (
    BrokerError,
    MessageTooLargeError,
    PocketMQError,
    ProtocolError,
    RouteNotFoundError,
    UsageError,
)
from pocketmq.wire.codes import ResponseCode, response_name
from pocketmq.wire.command import Command

_RETRY: Final = True
_NEVER: Final = False

ERRORS: Final[dict[int, tuple[type[PocketMQError], bool]]] = {
    ResponseCode.SYSTEM_ERROR: (BrokerError, _RETRY),
    ResponseCode.SYSTEM_BUSY: (BrokerError, _RETRY),
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: (BrokerError, _NEVER),
    ResponseCode.MESSAGE_ILLEGAL: (BrokerError, _NEVER),
    ResponseCode.SERVICE_NOT_AVAILABLE: (BrokerError, _RETRY),
    ResponseCode.NO_PERMISSION: (BrokerError, _RETRY),
    ResponseCode.TOPIC_NOT_EXIST: (RouteNotFoundError, _RETRY),
    ResponseCode.SUBSCRIPTION_PARSE_FAILED: (UsageError, _NEVER),
    ResponseCode.SUBSCRIPTION_NOT_EXIST: (BrokerError, _RETRY),
    ResponseCode.SUBSCRIPTION_NOT_LATEST: (BrokerError, _RETRY),
    ResponseCode.FILTER_DATA_NOT_EXIST: (BrokerError, _RETRY),
    ResponseCode.FILTER_DATA_NOT_LATEST: (BrokerError, _RETRY),
    ResponseCode.INVALID_PARAMETER: (UsageError, _NEVER),
    ResponseCode.NO_BUYER_ID: (BrokerError, _RETRY),
    ResponseCode.NOT_IN_CURRENT_UNIT: (BrokerError, _RETRY),
    ResponseCode.CONSUME_MSG_TIMEOUT: (BrokerError, _RETRY),
    ResponseCode.FLOW_CONTROL: (BrokerError, _RETRY),
    ResponseCode.NOT_LEADER_FOR_QUEUE: (BrokerError, _RETRY),
    ResponseCode.GO_AWAY: (BrokerError, _RETRY),
}
"""Codes with a meaning of their own. All others are a BrokerError that is not retryable."""

ROUTE_IS_STALE: Final = frozenset(
    {
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.NO_PERMISSION,
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.INVALID_PARAMETER,
        ResponseCode.NOT_LEADER_FOR_QUEUE,
    }
)
"""Codes that say: what you know about this topic may no longer be so."""


def error_of(answer: Command, what: str, address: str) -> PocketMQError:
    """The exception for an answer that is no success. `what` was asked ("send to orders"), for the message."""
    code = answer.code
    kind, retryable = ERRORS.get(code, (BrokerError, _NEVER))
    remark = answer.remark or "no reason given"
    text = f"{what}: {address} answered {code} {response_name(code)}: {remark}"
    if kind is BrokerError:
        return BrokerError(text, code=code, address=address, retryable=retryable)
    return kind(text, code=code, retryable=retryable)


def too_large(size: int, size_max: int) -> MessageTooLargeError:
    """The refusal of a body before it is sent."""
    return MessageTooLargeError(
        f"the body has {size} bytes; at most {size_max} are allowed (message_bytes_max); send a reference to it instead"
    )


def unexpected(answer: Command, what: str, address: str, error: Exception) -> ProtocolError:
    """An answer whose code is fine and whose content is not."""
    return ProtocolError(f"{what}: {address} gave an answer that cannot be read: {error}", cause=error)
