"""Telling brokers who we are: every few seconds, at once to a broker that is new or was lost, and goodbye."""

import asyncio
import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from pocketmq.client.filters import Sql, subscription
from pocketmq.model.errors import ConnectError, ConnectionClosedError, PocketMQError, RequestTimeoutError
from pocketmq.model.seams import Cancellable
from pocketmq.wire.bodies import CheckClientRequestBody, ConsumerData, HeartbeatData, ProducerData, encode_body
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.clients import HeartbeatRequestHeader, UnregisterClientRequestHeader

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core
    from pocketmq.client._async.member import Member

logger = logging.getLogger("pocketmq.client")

RECONNECT_FIRST_S = 0.1
RECONNECT_MAX_S = 5.0


class Heartbeats:
    """The heartbeats of one client."""

    def __init__(self, core: "Core") -> None:
        self._core = core
        self._timer: Cancellable | None = None
        self._reconnecting: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._greeted: set[str] = set()

    # -- content -----------------------------------------------------------------------------------------------------

    def _data(self, consumers: Iterable["Member"], *, producer: bool) -> HeartbeatData:
        core = self._core
        producers = [ProducerData(group_name=core.options.producer_group)] if producer else []
        return HeartbeatData(
            client_id=core.client_id,
            producer_data_set=producers,
            consumer_data_set=[consumer_data(member) for member in consumers],
        )

    # -- sending -----------------------------------------------------------------------------------------------------

    async def send_all(self) -> None:
        """To every broker that has something to do with us."""
        core = self._core
        consumers = core.members()
        if not consumers and not core.producer.used:
            return
        masters = core.routes.masters()
        data = self._data(consumers, producer=core.producer.used)
        addresses = core.routes.addresses() if consumers else masters
        await self._send(addresses, data)

    async def introduce(self, addresses: Iterable[str], timeout_s: float) -> set[str]:
        """Make the producer known to these brokers; returns those that know it now."""
        body = encode_body(self._data(self._core.members(), producer=True))
        known = await asyncio.gather(*(self._introduce_to(address, body, timeout_s) for address in sorted(addresses)))
        return {address for address in known if address is not None}

    async def _introduce_to(self, address: str, body: bytes, timeout_s: float) -> str | None:
        return address if await self._send_to(address, body, timeout_s) else None

    async def check_filters(self, member: "Member") -> None:
        """Ask the brokers of a member's topics whether its SQL92 filters will do.

        Raises UsageError 23 with the place of the mistake, BrokerError 1 when a broker does not filter by SQL92. A
        broker that cannot be asked now is not waited for: its answers to pulls will say the same.
        """
        core = self._core
        for topic, wanted in member.subscriptions.items():
            route = core.routes.known(topic)
            if not isinstance(wanted, Sql) or route is None:
                continue
            question = CheckClientRequestBody(
                core.client_id, member.group, subscription(topic, wanted, member.version_ms)
            )
            for address in sorted(route.addresses()):
                try:
                    await core.remoting.call(
                        address,
                        RequestCode.CHECK_CLIENT_CONFIG,
                        None,
                        encode_body(question),
                        what=f"the filter {wanted.expression[:80]!r} of {topic}",
                    )
                except (ConnectError, ConnectionClosedError, RequestTimeoutError) as error:
                    logger.debug("the filter of %s was not checked by %s: %s", topic, address, error)

    async def send_for(self, member: "Member") -> None:
        """To the brokers of a member's topics, for that member alone: when it joins."""
        addresses: set[str] = set()
        for topic in member.subscriptions:
            route = self._core.routes.known(topic)
            if route is not None:
                addresses |= route.addresses()
        await self._send(addresses, self._data([member], producer=False))

    async def _send(self, addresses: Iterable[str], data: HeartbeatData) -> None:
        body = encode_body(data)
        await asyncio.gather(*(self._send_to(address, body) for address in sorted(addresses)))

    async def _send_to(self, address: str, body: bytes, timeout_s: float | None = None) -> bool:
        header, remoting = HeartbeatRequestHeader(), self._core.remoting
        try:
            await remoting.call(address, RequestCode.HEART_BEAT, header, body, timeout_s=timeout_s)
        except PocketMQError as error:
            logger.debug("no heartbeat to %s: %s", address, error)
            return False
        self._greeted.add(address)
        return True

    def soon(self, delay_s: float = 0.05) -> None:
        """Send one in a moment; several who ask share it."""
        if self._timer is None and not self._core.closed:
            self._timer = self._core.clock.call_later(delay_s, self._begin)

    def _begin(self) -> None:
        self._timer = None
        if not self._core.closed:
            self._keep(asyncio.get_running_loop().create_task(self.send_all()))

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- brokers that come and go ------------------------------------------------------------------------------------

    def lost(self, address: str) -> None:
        """The connection to a broker ended. It forgot us with it: tell it again as soon as it can be reached."""
        core = self._core
        if core.closed or address not in self._greeted or address in self._reconnecting:
            return
        self._greeted.discard(address)
        task = asyncio.get_running_loop().create_task(self._reconnect(address))
        self._reconnecting[address] = task
        task.add_done_callback(lambda _: self._reconnecting.pop(address, None))

    async def _reconnect(self, address: str) -> None:
        core = self._core
        pause_s = RECONNECT_FIRST_S
        while not core.closed:
            await core.clock.sleep(pause_s)
            if address not in core.routes.addresses():
                return
            data = self._data(core.members(), producer=core.producer.used)
            core.broker_is_coming_back()
            if await self._send_to(address, encode_body(data)):
                logger.info("the broker at %s is back", address)
                core.broker_is_back()
                return
            pause_s = min(RECONNECT_MAX_S, pause_s * 2)

    # -- goodbye -----------------------------------------------------------------------------------------------------

    async def unregister(self, member: "Member") -> None:
        """Tell the brokers that a member has left its group, so that its queues are shared out at once."""
        addresses = {
            address
            for topic in member.subscriptions
            if (route := self._core.routes.known(topic)) is not None
            for address in route.addresses()
        }
        header = UnregisterClientRequestHeader(client_id=self._core.client_id, consumer_group=member.group)
        await self._say_goodbye(addresses, header)

    async def unregister_producer(self) -> None:
        """Tell the brokers that the producer has gone."""
        header = UnregisterClientRequestHeader(
            client_id=self._core.client_id, producer_group=self._core.options.producer_group
        )
        await self._say_goodbye(self._core.routes.masters(), header)

    async def _say_goodbye(self, addresses: Iterable[str], header: UnregisterClientRequestHeader) -> None:
        # A broker that cannot be reached finds out by itself: no need to dial for a goodbye.
        reached = [address for address in addresses if self._core.remoting.connections.peek(address) is not None]
        requests = (
            self._core.remoting.call(address, RequestCode.UNREGISTER_CLIENT, header, timeout_s=1.0)
            for address in sorted(reached)
        )
        for result in await asyncio.gather(*requests, return_exceptions=True):
            if isinstance(result, BaseException):
                logger.debug("no goodbye: %s", result)

    async def close(self) -> None:
        """Stop."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._tasks, *self._reconnecting.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def consumer_data(member: "Member") -> ConsumerData:
    """The part of a heartbeat that is about one member."""
    where = member.options.from_where
    return ConsumerData(
        group_name=member.group,
        consume_type=member.consume_type,
        message_model="BROADCASTING" if member.broadcasting else "CLUSTERING",
        consume_from_where=(
            "CONSUME_FROM_FIRST_OFFSET"
            if where == "first"
            else "CONSUME_FROM_LAST_OFFSET"
            if where == "last"
            else "CONSUME_FROM_TIMESTAMP"
        ),
        subscription_data_set=[
            subscription(topic, wanted, member.version_ms) for topic, wanted in member.announced().items()
        ],
    )
