"""Routes of the topics in use: asked for once, refreshed in the background, asked again when they prove wrong."""

import asyncio
import logging
from collections.abc import Callable

from pocketmq.client._async.remoting import Remoting
from pocketmq.client.broker_errors import error_of, unexpected
from pocketmq.client.routing import TopicRoute, topic_route
from pocketmq.model.errors import ClientClosedError, DecodeError, PocketMQError, RouteNotFoundError, UsageError
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.model.seams import Clock
from pocketmq.wire.bodies import TopicRouteData, decode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.namesrv import GetRouteInfoRequestHeader

logger = logging.getLogger("pocketmq.client")

TOPICS_MAX = 100_000
REFRESH_AGAIN_S = 1.0
"""A route that proved wrong is asked for again at most this often."""


class RouteCache:
    """Topic -> route. `on_change` is called with every route that differs from the one known before."""

    def __init__(self, remoting: Remoting, clock: Clock, on_change: Callable[[TopicRoute], None]) -> None:
        self._remoting = remoting
        self._clock = clock
        self._on_change = on_change
        self._routes: dict[str, TopicRoute] = {}
        self._masters: dict[str, str] = {}
        self._asking: dict[str, asyncio.Task[TopicRoute]] = {}
        self._asked_at: dict[str, float] = {}

    def known(self, topic: str) -> TopicRoute | None:
        """The route as it was last seen."""
        return self._routes.get(topic)

    def topics(self) -> list[str]:
        """Topics whose route is known."""
        return list(self._routes)

    def masters(self) -> set[str]:
        """Addresses of the masters of all known routes."""
        found = (route.master(name) for route in self._routes.values() for name in route.brokers)
        return {address for address in found if address is not None}

    def addresses(self) -> set[str]:
        """Addresses of all brokers of all known routes, replicas too."""
        return {address for route in self._routes.values() for address in route.addresses()}

    def address_of(self, broker_name: str) -> str | None:
        """The master's address of a broker, as the newest route that names it has it."""
        return self._masters.get(broker_name)

    async def get(self, topic: str, *, create: bool = False) -> TopicRoute:
        """The route of a topic; with `create`, one that lets its first message create it when it does not exist.

        Raises RouteNotFoundError, ConnectError (no name server answers).
        """
        route = self._routes.get(topic)
        if route is not None and (create or not route.automatic):
            return route
        return await self.refresh(topic, create=create)

    async def refresh(self, topic: str, *, create: bool = False) -> TopicRoute:
        """Ask a name server now; callers who ask at the same time share the answer."""
        task = self._asking.get(topic)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(topic))
            self._asking[topic] = task
            task.add_done_callback(lambda done: self._forget_asking(topic, done))
        try:
            return await asyncio.shield(task)
        except RouteNotFoundError:
            if not create:
                raise
        except asyncio.CancelledError:
            if task.cancelled():  # by `close`; whoever waits here was not cancelled himself
                raise ClientClosedError("the client was closed before the route was known") from None
            raise
        return await self._for_creation(topic)

    def _forget_asking(self, topic: str, task: asyncio.Task[TopicRoute]) -> None:
        self._asking.pop(topic, None)
        if not task.cancelled():
            task.exception()  # Whoever waits has it; nobody waiting is fine.

    async def _ask(self, topic: str) -> TopicRoute:
        self._asked_at[topic] = self._clock.monotonic()
        route = await self._query(topic, topic)
        self._keep(route)
        return route

    async def _for_creation(self, topic: str) -> TopicRoute:
        try:
            route = await self._query(topic, AUTO_CREATE_TOPIC)
        except RouteNotFoundError as error:
            raise RouteNotFoundError(
                f"no broker has the topic {topic}, and none creates topics by itself; create it first "
                f"(pocketmq topic create {topic})",
                cause=error,
            ) from error
        self._keep(route)
        return route

    async def _query(self, topic: str, asked: str) -> TopicRoute:
        what = f"route of {topic}"
        header = GetRouteInfoRequestHeader(topic=asked, accept_standard_json_only=True)
        answer, address = await self._remoting.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            raise RouteNotFoundError(
                f"no broker has the topic {asked} (name server {address}); create it first, or check its name",
                retryable=False,
            )
        if answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise UsageError(f"{address} is not a name server, perhaps a broker; give the name server's address")
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        try:
            data = decode_body(answer.body, TopicRouteData)
        except DecodeError as error:
            raise unexpected(answer, what, address, error) from error
        return topic_route(topic, data, automatic=topic != asked)

    def _keep(self, route: TopicRoute) -> None:
        for broker_name in route.brokers:
            master = route.master(broker_name)
            if master is None:
                self._masters.pop(broker_name, None)
            else:
                self._masters[broker_name] = master
        before = self._routes.get(route.topic)
        if route == before:
            return
        if before is None and len(self._routes) >= TOPICS_MAX:
            self._routes.pop(next(iter(self._routes)))
        self._routes[route.topic] = route
        self._on_change(route)

    def stale(self, topic: str) -> None:
        """The route proved wrong: ask again in the background, but not in a tight loop."""
        now = self._clock.monotonic()
        if topic in self._asking or now - self._asked_at.get(topic, now - 2 * REFRESH_AGAIN_S) < REFRESH_AGAIN_S:
            return
        task = asyncio.get_running_loop().create_task(self._ask(topic))
        self._asking[topic] = task
        task.add_done_callback(lambda done: self._forget_asking(topic, done))

    async def refresh_all(self) -> None:
        """Ask again for every topic in use. What cannot be asked now is kept as it is."""
        for topic in list(self._routes):
            try:
                await self.refresh(topic)
            except RouteNotFoundError:
                logger.debug("the topic %s has no route at the moment", topic)
            except PocketMQError as error:
                logger.warning("routes cannot be refreshed: %s", error)
                return

    def forget(self, topic: str) -> None:
        """The topic is no longer used."""
        self._routes.pop(topic, None)
        self._asked_at.pop(topic, None)

    async def close(self) -> None:
        """Give up what is being asked."""
        tasks = list(self._asking.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
