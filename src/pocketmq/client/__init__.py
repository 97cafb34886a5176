"""The SDK: `connect` gives a `Client` that sends and consumes.

The asynchronous source is in `_async`, the blocking API that is generated from it in `_sync`; what needs no event loop
(routing, filters, buffers, allocation) stands beside them. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.client._async.client import Client as Client
    from pocketmq.client._async.connecting import connect as connect
    from pocketmq.client._async.consumer import Consumer as Consumer
    from pocketmq.client._async.cursors import BrokerCursors as BrokerCursors
    from pocketmq.client._async.cursors import FileCursors as FileCursors
    from pocketmq.client._async.delivery import Delivery as Delivery
    from pocketmq.client._async.message_trace import MessageTrace as MessageTrace
    from pocketmq.client._async.pull_consumer import PullConsumer as PullConsumer
    from pocketmq.client._async.pulling import PullResult as PullResult
    from pocketmq.client._async.pulling import PullStatus as PullStatus
    from pocketmq.client._async.transactions import Transaction as Transaction
    from pocketmq.client.allocators import AverageAllocator as AverageAllocator
    from pocketmq.client.allocators import CircleAllocator as CircleAllocator
    from pocketmq.client.buffers import QueueBuffer as QueueBuffer
    from pocketmq.client.filters import Sql as Sql
    from pocketmq.client.filters import Tag as Tag
    from pocketmq.client.middleware import EndedTransaction as EndedTransaction
    from pocketmq.client.middleware import Fetched as Fetched
    from pocketmq.client.middleware import Incoming as Incoming
    from pocketmq.client.middleware import Middleware as Middleware
    from pocketmq.client.middleware import Outgoing as Outgoing
    from pocketmq.client.parts import Allocator as Allocator
    from pocketmq.client.parts import Clock as Clock
    from pocketmq.client.parts import Cursors as Cursors
    from pocketmq.client.parts import MessageBuffer as MessageBuffer
    from pocketmq.client.parts import Router as Router
    from pocketmq.client.parts import Serializer as Serializer
    from pocketmq.client.parts import WritableQueue as WritableQueue
    from pocketmq.client.pulled import PulledMessage as PulledMessage
    from pocketmq.client.pulled import Rebalance as Rebalance
    from pocketmq.client.replies import Reply as Reply
    from pocketmq.client.routers import HashRouter as HashRouter
    from pocketmq.client.routers import RoundRobinRouter as RoundRobinRouter
    from pocketmq.client.serializers import BytesSerializer as BytesSerializer

_HOMES = {
    "_async.client": ("Client",),
    "_async.connecting": ("connect",),
    "_async.consumer": ("Consumer",),
    "_async.cursors": ("BrokerCursors", "FileCursors"),
    "_async.delivery": ("Delivery",),
    "_async.pull_consumer": ("PullConsumer",),
    "_async.message_trace": ("MessageTrace",),
    "_async.pulling": ("PullResult", "PullStatus"),
    "_async.transactions": ("Transaction",),
    "allocators": ("AverageAllocator", "CircleAllocator"),
    "buffers": ("QueueBuffer",),
    "filters": ("Sql", "Tag"),
    "middleware": ("EndedTransaction", "Fetched", "Incoming", "Middleware", "Outgoing"),
    "parts": ("Allocator", "Clock", "Cursors", "MessageBuffer", "Router", "Serializer", "WritableQueue"),
    "replies": ("Reply",),
    "pulled": ("PulledMessage", "Rebalance"),
    "routers": ("HashRouter", "RoundRobinRouter"),
    "serializers": ("BytesSerializer",),
}
_HOME_OF = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)
