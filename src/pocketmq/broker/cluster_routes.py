"""Where a topic's queues are in the whole cluster, as the name servers tell; for what a broker decides about more
than itself.
"""

import logging
from typing import TYPE_CHECKING

from pocketmq.model.config import Permission
from pocketmq.model.errors import PocketMQError
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.routes import TopicRouteData
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.namesrv import GetRouteInfoRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.registration import Registration
    from pocketmq.model.seams import Clock
    from pocketmq.model.settings import BrokerSettings
    from pocketmq.views.topics import TopicTable

logger = logging.getLogger(__name__)

FRESH_S = 5.0
TIMEOUT_S = 3.0
TOPICS_MAX = 10_000


class ClusterRoutes:
    """Routes of topics, remembered for a few seconds."""

    def __init__(
        self, settings: "BrokerSettings", clock: "Clock", registration: "Registration", topics: "TopicTable"
    ) -> None:
        self._settings = settings
        self._clock = clock
        self._registration = registration
        self._topics = topics
        self._known: dict[str, tuple[float, list[MessageQueue]]] = {}

    async def readable_queues(self, topic: str) -> list[MessageQueue] | None:
        """The queues of a topic that can be read, on all brokers, sorted; None when nobody knows the topic.

        Without a name server that answers, those of this broker.
        """
        now = self._clock.monotonic()
        known = self._known.get(topic)
        if known is not None and now - known[0] < FRESH_S:
            return known[1]
        route = await self._ask(topic)
        queues = self._of_this_broker(topic) if route is None else sorted(_readable(topic, route))
        if not queues:
            return None
        if len(self._known) >= TOPICS_MAX:
            self._known.clear()
        self._known[topic] = (now, queues)
        return queues

    async def _ask(self, topic: str) -> TopicRouteData | None:
        for server in self._registration.servers:
            if not server.registered:
                continue
            try:
                connection = await self._registration.connections.get(server.address)
                answer = await connection.request(
                    RequestCode.GET_ROUTEINFO_BY_TOPIC, GetRouteInfoRequestHeader(topic), timeout_s=TIMEOUT_S
                )
                if answer.code == ResponseCode.SUCCESS:
                    return decode_body(answer.body, TopicRouteData)
            except PocketMQError as error:
                logger.debug("name server %s did not tell the route of %s: %s", server.address, topic, error.message)
        return None

    def _of_this_broker(self, topic: str) -> list[MessageQueue]:
        config = self._topics.get(topic)
        if config is None or not config.perm & Permission.READ:
            return []
        return [MessageQueue(topic, self._settings.name, queue_id) for queue_id in range(config.read_queue_nums)]


def _readable(topic: str, route: TopicRouteData) -> list[MessageQueue]:
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if data.perm & Permission.READ
        for queue_id in range(data.read_queue_nums)
    ]
