"""What a route answer means: which queues can be written, which read, and where the brokers are."""

import msgspec

from pocketmq.model.config import Permission
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies import TopicRouteData

MASTER_ID = 0
AUTO_CREATE_QUEUES = 4
"""Queues that the broker is asked for when a topic is created by its first message."""


class TopicRoute(msgspec.Struct, frozen=True, kw_only=True):
    """Where one topic is. Queues are sorted by broker name, then queue id.

    `automatic`: the topic does not exist yet; its first message creates it in these queues.
    """

    topic: str
    writable: tuple[MessageQueue, ...] = ()
    readable: tuple[MessageQueue, ...] = ()
    brokers: dict[str, dict[int, str]] = {}
    clusters: dict[str, str] = {}
    automatic: bool = False

    def master(self, broker_name: str) -> str | None:
        """The address of a broker's master."""
        return self.brokers.get(broker_name, {}).get(MASTER_ID)

    def address(self, broker_name: str, broker_id: int = MASTER_ID) -> str | None:
        """An address to read from: that of `broker_id`, else the master's, else any replica's."""
        addresses = self.brokers.get(broker_name)
        if not addresses:
            return None
        return addresses.get(broker_id) or addresses.get(MASTER_ID) or addresses[min(addresses)]

    def addresses(self) -> set[str]:
        """All brokers that have the topic."""
        return {address for addresses in self.brokers.values() for address in addresses.values()}


def topic_route(topic: str, data: TopicRouteData, *, automatic: bool = False) -> TopicRoute:
    """Read a route answer for `topic`. `automatic`: it is the answer for TBW102, whose queues the topic will get."""
    brokers = {broker.broker_name: dict(broker.broker_addrs) for broker in data.broker_datas}
    ordered = _ordered_queues(data.order_topic_conf)
    writable: list[MessageQueue] = []
    readable: list[MessageQueue] = []
    for entry in data.queue_datas:
        name = entry.broker_name
        write_count, read_count = entry.write_queue_nums, entry.read_queue_nums
        if automatic:
            write_count = min(write_count, AUTO_CREATE_QUEUES)
            read_count = min(read_count, AUTO_CREATE_QUEUES)
        if ordered is not None:
            write_count = ordered.get(name, 0)
        if entry.perm & Permission.WRITE and MASTER_ID in brokers.get(name, ()):
            writable += [MessageQueue(topic, name, queue_id) for queue_id in range(write_count)]
        if entry.perm & Permission.READ and brokers.get(name):
            readable += [MessageQueue(topic, name, queue_id) for queue_id in range(read_count)]
    return TopicRoute(
        topic=topic,
        writable=tuple(sorted(writable)),
        readable=tuple(sorted(readable)),
        brokers=brokers,
        clusters={broker.broker_name: broker.cluster for broker in data.broker_datas},
        automatic=automatic,
    )


def _ordered_queues(text: str | None) -> dict[str, int] | None:
    """`broker-a:4;broker-b:2` as a map; None when the topic has no order configuration."""
    if not text:
        return None
    queues = {}
    for part in text.split(";"):
        name, colon, count = part.rpartition(":")
        if colon and count.strip().isdigit():
            queues[name.strip()] = int(count)
    return queues
