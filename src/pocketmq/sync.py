"""The blocking API: the same names as the asynchronous one, generated from it.

    import pocketmq.sync

    with pocketmq.sync.connect("127.0.0.1:9876") as client:
        client.send("orders", b"...", tag="new")
        for message in client.consume("orders", group="billing"):
            with message:
                ...

All blocking clients of a process share one event loop on a thread of its own. Clients may be used from several threads.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pocketmq

if TYPE_CHECKING:
    from pocketmq.client._sync.client import Client
    from pocketmq.client._sync.connecting import connect
    from pocketmq.client._sync.consumer import Consumer
    from pocketmq.client._sync.delivery import Delivery
    from pocketmq.client._sync.pull_consumer import PullConsumer
    from pocketmq.client._sync.transactions import Transaction

_HOMES = {
    "Client": "pocketmq.client._sync.client",
    "Consumer": "pocketmq.client._sync.consumer",
    "Delivery": "pocketmq.client._sync.delivery",
    "PullConsumer": "pocketmq.client._sync.pull_consumer",
    "Transaction": "pocketmq.client._sync.transactions",
    "connect": "pocketmq.client._sync.connecting",
}

__all__ = ["Client", "Consumer", "Delivery", "PullConsumer", "Transaction", "connect"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is not None:
        return getattr(import_module(home), name)
    if name in pocketmq.__all__:
        return getattr(pocketmq, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
