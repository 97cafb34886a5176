"""What the parts of a client share: connections, routes, the producer, the consumers, and what happens periodically."""

import asyncio
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from pocketmq.client._async.cursors import BrokerCursors, FileCursors
from pocketmq.client._async.handling import HandleChain
from pocketmq.client._async.heartbeats import Heartbeats
from pocketmq.client._async.inbound import Inbound
from pocketmq.client._async.member import Member
from pocketmq.client._async.offsets import Offsets
from pocketmq.client._async.producer import Producer
from pocketmq.client._async.remoting import Remoting
from pocketmq.client._async.requests import Requests
from pocketmq.client._async.routes import RouteCache
from pocketmq.client._async.sender import SendChain, close_all, transaction_listeners
from pocketmq.client._async.transactions import Decisions
from pocketmq.client.middleware import EndedTransaction, SendKind, overrides
from pocketmq.client.namespaces import without_namespace
from pocketmq.client.options import ClientOptions
from pocketmq.client.parts import Cursors
from pocketmq.client.routing import TopicRoute
from pocketmq.model.errors import ClientClosedError, PocketMQError, UsageError
from pocketmq.model.message import Message, MessageQueue, SendReceipt
from pocketmq.model.seams import Clock, Network
from pocketmq.net.remoting import RemotingConnection

logger = logging.getLogger("pocketmq.client")

LOCK_RENEWAL_S = 20.0
AFTER_RECONNECT_S = 6.0
"""A broker that was just reached again may not know the other consumers yet: change over no sooner than this, by when
they must have reached it, too."""
CLOSE_S = 5.0
"""How long messages that are on their way are waited for at close."""


class Core:
    """One client's inside. Made by `Client`; starts nothing before it is first used."""

    def __init__(self, name_servers: Sequence[str], options: ClientOptions, clock: Clock, network: Network) -> None:
        self.options = options
        self.clock = clock
        self.closed = False
        self.started_ms = clock.time_ms()
        self.calm_from = 0.0
        """No consumer changes over before this monotonic time."""
        self.decisions = Decisions(self)
        self.requests = Requests(self)
        self.inbound = Inbound(self)
        self.remoting = Remoting(
            network,
            clock,
            name_servers,
            request_timeout_s=options.request_timeout_s,
            connect_timeout_s=options.connect_timeout_s,
            on_request=self.inbound.handle,
            on_closed=self._connection_closed,
        )
        self.routes = RouteCache(self.remoting, clock, self._route_changed)
        self.producer = Producer(self.remoting, self.routes, clock, options)
        sends = any(overrides(each, "send") for each in options.middleware)
        self.chain = SendChain(self, options.middleware) if sends else None
        """The middleware around sends; None when there is none."""
        self.sender: Producer | SendChain = self.chain or self.producer
        """Where the client sends."""
        self._on_transaction_ended = transaction_listeners(options.middleware)
        self.offsets = Offsets(self.remoting, self.routes)
        self.heartbeats = Heartbeats(self)
        self._members: dict[str, Member] = {}
        self._file_cursors: FileCursors | None = None
        self._broker_cursors = BrokerCursors(self.offsets)
        self._client_id = options.client_id
        self._tasks: list[asyncio.Task[None]] = []
        self._beside: set[asyncio.Task[None]] = set()
        for middleware in options.middleware:
            middleware.attach(self)

    def begin(self) -> None:
        """Start what happens periodically, once."""
        if self.closed:
            raise ClientClosedError("the client is closed")
        if self._tasks:
            return
        options = self.options
        for period_s, action in (
            (options.route_refresh_s, self.routes.refresh_all),
            (options.heartbeat_s, self.heartbeats.send_all),
            (options.rebalance_s, self._rebalance_all),
            (options.cursor_commit_s, self._store_positions),
            (LOCK_RENEWAL_S, self._renew_locks),
        ):
            self._tasks.append(asyncio.get_running_loop().create_task(self._every(period_s, action)))

    async def _every(self, period_s: float, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            await self.clock.sleep(period_s)
            try:
                await action()
            except PocketMQError as error:
                logger.warning("%s: %s", getattr(action, "__name__", "a periodic task"), error)
            except Exception:
                logger.exception("a periodic task failed")

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside; it is ended with the client."""
        task = asyncio.get_running_loop().create_task(work)
        self._beside.add(task)
        task.add_done_callback(self._beside.discard)

    # -- identity ----------------------------------------------------------------------------------------------------

    @property
    def client_id(self) -> str:
        """Who we are towards brokers: unique by default, also among containers that all have process id 1."""
        if self._client_id is None:
            host = self.remoting.local_host or socket.gethostname()
            self._client_id = f"{host}@{os.getpid()}#{self.options.random_source.getrandbits(48):012x}"
        return self._client_id

    # -- consumers ---------------------------------------------------------------------------------------------------

    def members(self) -> list[Member]:
        """All consumers that are started."""
        return list(self._members.values())

    def member(self, group: str) -> Member | None:
        """The member of a group."""
        return self._members.get(group)

    def add_member(self, member: Member) -> None:
        """Register a member. Raises UsageError: a client can be in a group once."""
        self.begin()
        if member.group in self._members:
            raise UsageError(
                f"this client has a member of {member.group} already; iterate over that one from several tasks, "
                "or open another client"
            )
        self._members[member.group] = member

    def remove_member(self, member: Member) -> None:
        """Forget a member."""
        if self._members.get(member.group) is member:
            del self._members[member.group]

    def default_cursors(self, broadcasting: bool) -> Cursors:
        """Where positions are kept unless the user says otherwise."""
        if not broadcasting:
            return self._broker_cursors
        if self._file_cursors is None:
            host = self.remoting.local_host or socket.gethostname()
            self._file_cursors = FileCursors(Path.home() / ".rocketmq_offsets" / f"{host}@{self.options.instance}")
        return self._file_cursors

    async def _rebalance_all(self) -> None:
        for member in self.members():
            member.assignment.soon(0.0)

    async def _renew_locks(self) -> None:
        for member in self.members():
            if member.orderly:
                await member.renew_locks()

    async def _store_positions(self) -> None:
        for member in self.members():
            await member.store_positions()

    # -- middleware ---------------------------------------------------------------------------------------------------

    async def send_as(
        self, kind: SendKind, message: Message, timeout_s: float | None, retries: int | None, queue: MessageQueue | None
    ) -> SendReceipt:
        """Send one message that is more than a plain one."""
        if self.chain is None:
            return await self.producer.send(message, timeout_s, retries, queue)
        return await self.chain.send(message, timeout_s, retries, queue, kind)

    async def send_beside(self, message: Message) -> SendReceipt:
        """Send a message that no middleware sees. Raises PocketMQError."""
        return await self.producer.send(message, None, None, None)

    def wants_traces(self, broker_name: str) -> bool:
        """Whether a broker wants traces of messages to be written."""
        return broker_name not in self.producer.without_traces

    def handle_chain(self, group: str, *, broadcasting: bool, orderly: bool) -> HandleChain | None:
        """The middleware of one consumer; None when there is none."""
        shown_group = without_namespace(group, self.options.namespace)
        chain = HandleChain(
            self.options.middleware, self, group=shown_group, broadcasting=broadcasting, orderly=orderly
        )
        return chain if chain.handles or chain.listens else None

    def transaction_ended(self, ended: EndedTransaction) -> None:
        """Tell the middleware that wants to know."""
        for listener in self._on_transaction_ended:
            listener(ended)

    # -- what happens ------------------------------------------------------------------------------------------------

    def _route_changed(self, route: TopicRoute) -> None:
        self.producer.route_changed(route)
        for member in self.members():
            if route.topic in member.subscriptions:
                member.assignment.soon()
        self.heartbeats.soon()

    def _connection_closed(self, connection: RemotingConnection) -> None:
        if isinstance(connection.context, str):
            self.heartbeats.lost(connection.context)
            self.requests.lost(connection.context)

    def broker_is_coming_back(self) -> None:
        """A broker whose connection was lost is about to be told about us. What it says of others is not all yet."""
        self.calm_from = self.clock.monotonic() + AFTER_RECONNECT_S

    def broker_is_back(self) -> None:
        """A broker was reached again after its connection had been lost."""
        for member in self.members():
            member.assignment.soon(AFTER_RECONNECT_S)

    def address_of(self, queue: MessageQueue) -> str | None:
        """The master's address of a queue, as far as it is known."""
        return self.routes.address_of(queue.broker_name)

    async def close(self) -> None:
        """End everything in good order."""
        if self.closed:
            return
        results = await asyncio.gather(*(member.close() for member in self.members()), return_exceptions=True)
        for result in results:
            if isinstance(result, Exception):
                logger.error("a member did not close in good order: %r", result)
        self.requests.close()
        for failure in await close_all(self.options.middleware):
            logger.error("a middleware did not close in good order: %r", failure)
        await self.producer.close(CLOSE_S)
        if self.producer.used:
            await self.heartbeats.unregister_producer()
        self.closed = True
        tasks = [*self._tasks, *self._beside]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.inbound.close()
        await self.decisions.close()
        await self.heartbeats.close()
        await self.routes.close()
        await self.remoting.close()
