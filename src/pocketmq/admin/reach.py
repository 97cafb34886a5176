"""Finding brokers and asking them: one, all, or those of a topic, a few at a time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TypeVar

from pocketmq.client._async.remoting import Fields, Remoting
from pocketmq.client.broker_errors import error_of, unexpected
from pocketmq.model.errors import (
    ConnectError,
    ConnectionClosedError,
    DecodeError,
    PocketMQError,
    RequestTimeoutError,
    RouteNotFoundError,
    UsageError,
)
from pocketmq.wire.bodies import ClusterInfo, TopicRouteData, decode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.namesrv import GetRouteInfoRequestHeader

logger = logging.getLogger("pocketmq.admin")

Item = TypeVar("Item")
Result = TypeVar("Result")
BodyT = TypeVar("BodyT")

Progress = Callable[[int, int], None]
"""Called with (done, total) while something takes long."""

MASTER_ID = 0
AT_ONCE = 16
"""Requests that wait for their answers at the same time."""
UNREACHABLE = (ConnectError, ConnectionClosedError, RequestTimeoutError)


class Reach:
    """The ways from an operator's question to the brokers that can answer it."""

    def __init__(self, remoting: Remoting) -> None:
        self.remoting = remoting

    # -- who is there ------------------------------------------------------------------------------------------------

    async def cluster_info(self) -> ClusterInfo:
        """All brokers and clusters that the first name server that answers knows."""
        what = "list of brokers"
        answer, address = await self.remoting.ask_name_server(RequestCode.GET_BROKER_CLUSTER_INFO)
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return _read(answer, ClusterInfo, what, address)

    async def masters(self, *, cluster: str | None = None, broker: str | None = None) -> dict[str, str]:
        """Broker name -> address of its master: of all, of one cluster, or of one broker.

        Raises UsageError (no such cluster or broker), ConnectError (none is registered).
        """
        info = await self.cluster_info()
        names = set(info.broker_addr_table)
        if cluster is not None:
            if cluster not in info.cluster_addr_table:
                known = ", ".join(sorted(info.cluster_addr_table)) or "none"
                raise UsageError(f"there is no cluster {cluster}; known are: {known}")
            names &= set(info.cluster_addr_table[cluster])
        if broker is not None:
            if broker not in names:
                raise UsageError(f"there is no broker {broker}; known are: {', '.join(sorted(names)) or 'none'}")
            names = {broker}
        found = {
            name: info.broker_addr_table[name].broker_addrs[MASTER_ID]
            for name in sorted(names)
            if MASTER_ID in info.broker_addr_table[name].broker_addrs
        }
        if not found:
            raise ConnectError(f"no broker is registered with the name server {self.remoting.name_server}")
        return found

    async def find_route(self, topic: str) -> TopicRouteData | None:
        """Where a topic is; None when no name server knows it."""
        what = f"route of {topic}"
        header = GetRouteInfoRequestHeader(topic=topic, accept_standard_json_only=True)
        answer, address = await self.remoting.ask_name_server(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        if answer.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return _read(answer, TopicRouteData, what, address)

    async def route(self, topic: str) -> TopicRouteData:
        """The same, or RouteNotFoundError."""
        route = await self.find_route(topic)
        if route is None:
            raise no_such_topic(topic)
        return route

    async def masters_of(self, topic: str) -> dict[str, str]:
        """Broker name -> address of its master, for the brokers that have a topic. Raises RouteNotFoundError."""
        route = await self.route(topic)
        having = {queue.broker_name for queue in route.queue_datas}
        return {
            broker.broker_name: broker.broker_addrs[MASTER_ID]
            for broker in sorted(route.broker_datas, key=lambda each: each.broker_name)
            if broker.broker_name in having and MASTER_ID in broker.broker_addrs
        }

    # -- asking ------------------------------------------------------------------------------------------------------

    async def tell(
        self, address: str, code: RequestCode, header: Fields = None, body: bytes = b"", *, what: str
    ) -> Command:
        """Ask one server; anything but success is raised as the error of its code."""
        return await self.remoting.call(address, code, header, body, what=what)

    async def fetch(
        self, address: str, code: RequestCode, kind: type[BodyT], header: Fields = None, *, what: str
    ) -> BodyT:
        """The same, with the answer's body as `kind`."""
        return _read(await self.tell(address, code, header, what=what), kind, what, address)

    async def of_all(
        self,
        masters: Mapping[str, str],
        ask: Callable[[str, str], Awaitable[Result]],
        *,
        progress: Progress | None = None,
    ) -> dict[str, Result]:
        """Ask each broker (name, address); those that cannot be reached are left out with a warning.

        Raises the error when none can be reached, and any error that is an answer.
        """
        failures: list[PocketMQError] = []

        async def one(item: tuple[str, str]) -> tuple[str, Result] | None:
            name, address = item
            try:
                return name, await ask(name, address)
            except UNREACHABLE as error:
                failures.append(error)
                logger.warning("broker %s was left out: %s", name, error)
                return None

        results = await each(masters.items(), one, progress=progress)
        if failures and len(failures) == len(masters):
            raise failures[0]
        return dict(result for result in results if result is not None)


async def each(
    items: Iterable[Item], ask: Callable[[Item], Awaitable[Result]], *, progress: Progress | None = None
) -> list[Result]:
    """`ask` for each item, at most `AT_ONCE` at a time; results in the items' order. The first error ends it."""
    ordered = list(items)
    results: dict[int, Result] = {}
    numbered = iter(enumerate(ordered))

    async def work() -> None:
        for number, item in numbered:
            results[number] = await ask(item)
            if progress is not None:
                progress(len(results), len(ordered))

    loop = asyncio.get_running_loop()
    workers = [loop.create_task(work()) for _ in range(min(AT_ONCE, len(ordered)))]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
    return [results[number] for number in range(len(ordered))]


def no_such_topic(topic: str) -> RouteNotFoundError:
    """The error for a topic that nobody has."""
    return RouteNotFoundError(f"there is no topic {topic}; see `pocketmq topic list`", retryable=False)


def _read(answer: Command, kind: type[BodyT], what: str, address: str) -> BodyT:
    try:
        return decode_body(answer.body, kind)
    except DecodeError as error:
        raise unexpected(answer, what, address, error) from error
