"""PocketMQ: a message broker that speaks RocketMQ's protocols, and a client SDK for it and for Apache RocketMQ.

    import pocketmq

    async with pocketmq.connect("127.0.0.1:9876") as client:
        await client.send("orders", b"...", tag="new")

The blocking API is `pocketmq.sync`. Names are loaded when they are first used; importing does nothing else.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.client import Client as Client
    from pocketmq.client import Consumer as Consumer
    from pocketmq.client import Delivery as Delivery
    from pocketmq.client import EndedTransaction as EndedTransaction
    from pocketmq.client import Fetched as Fetched
    from pocketmq.client import Incoming as Incoming
    from pocketmq.client import MessageTrace as MessageTrace
    from pocketmq.client import Middleware as Middleware
    from pocketmq.client import Outgoing as Outgoing
    from pocketmq.client import PullConsumer as PullConsumer
    from pocketmq.client import PulledMessage as PulledMessage
    from pocketmq.client import PullResult as PullResult
    from pocketmq.client import PullStatus as PullStatus
    from pocketmq.client import Rebalance as Rebalance
    from pocketmq.client import Reply as Reply
    from pocketmq.client import Sql as Sql
    from pocketmq.client import Tag as Tag
    from pocketmq.client import Transaction as Transaction
    from pocketmq.client import connect as connect
    from pocketmq.model.errors import BackPressureError as BackPressureError
    from pocketmq.model.errors import BrokerError as BrokerError
    from pocketmq.model.errors import ClientClosedError as ClientClosedError
    from pocketmq.model.errors import ConnectError as ConnectError
    from pocketmq.model.errors import ConnectionClosedError as ConnectionClosedError
    from pocketmq.model.errors import InvalidNameError as InvalidNameError
    from pocketmq.model.errors import MessageTooLargeError as MessageTooLargeError
    from pocketmq.model.errors import PocketMQError as PocketMQError
    from pocketmq.model.errors import ProtocolError as ProtocolError
    from pocketmq.model.errors import RequestTimeoutError as RequestTimeoutError
    from pocketmq.model.errors import RouteNotFoundError as RouteNotFoundError
    from pocketmq.model.errors import SendBatchError as SendBatchError
    from pocketmq.model.errors import UsageError as UsageError
    from pocketmq.model.message import Message as Message
    from pocketmq.model.message import MessageQueue as MessageQueue
    from pocketmq.model.message import ReceivedMessage as ReceivedMessage
    from pocketmq.model.message import SendReceipt as SendReceipt

__version__ = "0.1.0"

_HOMES = {
    "pocketmq.client": (
        "Client",
        "Consumer",
        "Delivery",
        "EndedTransaction",
        "Fetched",
        "Incoming",
        "MessageTrace",
        "Middleware",
        "Outgoing",
        "PullConsumer",
        "PullResult",
        "PullStatus",
        "PulledMessage",
        "Rebalance",
        "Reply",
        "Sql",
        "Tag",
        "Transaction",
        "connect",
    ),
    "pocketmq.model.errors": (
        "BackPressureError",
        "BrokerError",
        "ClientClosedError",
        "ConnectError",
        "ConnectionClosedError",
        "InvalidNameError",
        "MessageTooLargeError",
        "PocketMQError",
        "ProtocolError",
        "RequestTimeoutError",
        "RouteNotFoundError",
        "SendBatchError",
        "UsageError",
    ),
    "pocketmq.model.message": ("Message", "MessageQueue", "ReceivedMessage", "SendReceipt"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME_OF)]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
