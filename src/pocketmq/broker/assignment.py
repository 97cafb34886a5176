"""Sharing a topic's queues among the consumers of a group on behalf of clients that let the broker do it (code 400).

The rules are RocketMQ's own, so that such clients and those that share out queues themselves can mix. In POP mode
consumers share queues: each pops from all of them, or from its own and those of the next few consumers.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pocketmq.model.errors import PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import RETRY_PREFIX
from pocketmq.views.journal import RequestModePut
from pocketmq.wire.codes import ResponseCode

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.cluster_routes import ClusterRoutes
    from pocketmq.broker.journal import Journal
    from pocketmq.views.groups import GroupTable
    from pocketmq.views.topics import TopicTable

AVERAGE = "AVG"
CIRCLE = "AVG_BY_CIRCLE"
PULL = "PULL"
POP = "POP"
ALL_QUEUES = -1
"""Queue id that stands for every queue of a broker, in POP mode."""


class Assignment(NamedTuple):
    """The queues that one consumer shall ask for, and how (`mode`)."""

    mode: str
    queues: list[MessageQueue]


class Assignments:
    """Shares out queues, and keeps how groups are to ask for topics."""

    def __init__(
        self,
        journal: "Journal",
        *,
        topics: "TopicTable",
        groups: "GroupTable",
        clients: "ClientRegistry",
        routes: "ClusterRoutes",
    ) -> None:
        self._journal = journal
        self._topics = topics
        self._groups = groups
        self._clients = clients
        self._routes = routes

    async def query(
        self, topic: str, group: str, client_id: str, *, strategy: str, message_model: str
    ) -> Assignment | None:
        """What one consumer shall ask for; None when the topic or the group's consumers are not known.

        Raises:
            PocketMQError: 29, a strategy that is not known.
        """
        queues = await self._routes.readable_queues(topic)
        if queues is None:
            return None
        wanted = self._groups.request_mode(topic, group)
        mode = wanted.mode if wanted is not None else PULL
        if message_model == "BROADCASTING":
            return Assignment(PULL, queues)
        clients = sorted(self._clients.client_ids(group))
        if not clients:
            return None
        if wanted is None or mode == PULL:
            return Assignment(mode, share(strategy, client_id, clients, queues))
        return Assignment(mode, share_for_pop(strategy, client_id, clients, queues, wanted.pop_share_queues))

    async def set_mode(self, topic: str, group: str, mode: str, pop_share_queues: int) -> None:
        """Say how a group is to ask for a topic; durable when this returns.

        Raises:
            PocketMQError: 16 a retry topic, 17 no such topic, 26 no such group, 29 no such mode.
        """
        if topic.startswith(RETRY_PREFIX):
            raise PocketMQError(
                "retry topic is not allowed to set mode: it follows the topic of its group",
                code=ResponseCode.NO_PERMISSION,
            )
        if topic not in self._topics:
            raise PocketMQError(f"topic[{topic}] not exist", code=ResponseCode.TOPIC_NOT_EXIST)
        if group not in self._groups:
            raise PocketMQError(
                f"subscription group[{group}] not exist", code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST
            )
        if mode not in (PULL, POP):
            raise PocketMQError(f"the mode is {PULL} or {POP}, not {mode}", code=ResponseCode.INVALID_PARAMETER)
        await self._journal.write_durable([RequestModePut(topic, group, mode, pop_share_queues)])


def share(strategy: str, me: str, clients: Sequence[str], queues: Sequence[MessageQueue]) -> list[MessageQueue]:
    """This consumer's part of the sorted queues; none when it is not among the sorted `clients`. Raises PocketMQError
    29.
    """
    if me not in clients:
        return []
    index = clients.index(me)
    if strategy == CIRCLE:
        return list(queues[index :: len(clients)])
    if strategy != AVERAGE:
        raise PocketMQError(
            f"the strategy {strategy} is not known here; use {AVERAGE} or {CIRCLE}",
            code=ResponseCode.INVALID_PARAMETER,
        )
    least, rest = divmod(len(queues), len(clients))
    start = index * least + min(index, rest)
    return list(queues[start : start + least + (1 if index < rest else 0)])


def share_for_pop(
    strategy: str, me: str, clients: Sequence[str], queues: Sequence[MessageQueue], share_queues: int
) -> list[MessageQueue]:
    """This consumer's queues in POP mode, see the module. With more consumers than queues each still gets one."""
    if share_queues <= 0 or share_queues >= len(clients) - 1:
        return _one_for_each_broker(queues)
    if me not in clients:
        return []
    index = clients.index(me)
    if len(clients) > len(queues):
        return [queues[index % len(queues)]] if queues else []
    neighbours = (clients[(index + step) % len(clients)] for step in range(share_queues + 1))
    return [queue for neighbour in neighbours for queue in share(strategy, neighbour, clients, queues)]


def _one_for_each_broker(queues: Iterable[MessageQueue]) -> list[MessageQueue]:
    return sorted({MessageQueue(queue.topic, queue.broker_name, ALL_QUEUES) for queue in queues})
