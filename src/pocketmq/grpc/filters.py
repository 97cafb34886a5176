"""Filter expressions of requests."""

from typing import TYPE_CHECKING

from pocketmq.model.errors import PocketMQError
from pocketmq.views.filters import SQL92, TAG
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.views.filters import Accept

SQL = 2


def expression_of(expression: Proto) -> tuple[str, str]:
    """Type and text of a filter, as the remoting protocol has them."""
    return (SQL92 if expression.type == SQL else TAG), expression.expression or "*"


def filter_of(broker: "Broker", topic: str, expression: Proto) -> "Accept | None":
    """What a reader of `topic` wants; None for everything. Raises CodedError ILLEGAL_FILTER_EXPRESSION."""
    try:
        return broker.pulling.filters.accept(topic, *expression_of(expression))
    except PocketMQError as error:
        raise CodedError(Code.ILLEGAL_FILTER_EXPRESSION, error.message) from error
