"""Questions of operators that only a client can answer: passed on to it, its answer passed back.

The client is found by its id in the group, on its newest connection. It has `RELAY_TIMEOUT_S`; a client that does not
answer in time is code 207, one that is not there code 1 or 206.
"""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from pocketmq.model.errors import ConnectionClosedError, PocketMQError, RequestTimeoutError
from pocketmq.model.message import MessageQueue
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.offsets import GetConsumerStatusBody
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.clients import GetConsumerStatusRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.membership import ConsumerMember

RELAY_TIMEOUT_S = 10.0
STATUS_TIMEOUT_S = 5.0
RELAYS_MAX = 1000
"""Most questions that wait for clients at once."""


class Relay:
    """Asks clients on behalf of operators."""

    def __init__(self, clients: "ClientRegistry") -> None:
        self._clients = clients
        self._waiting = 0

    async def ask(
        self,
        code: RequestCode,
        group: str,
        client_id: str,
        header: Header | Mapping[str, str],
        body: bytes = b"",
        *,
        timeout_s: float = RELAY_TIMEOUT_S,
    ) -> Command:
        """Ask one client and return what it answered, whatever the code.

        Raises:
            PocketMQError: 1 the client is not there, 207 it does not answer, 2 too many questions wait already.
        """
        member = self._clients.consumer(group, client_id)
        if member is None:
            raise PocketMQError(f"The Consumer <{group}> <{client_id}> not online", code=ResponseCode.SYSTEM_ERROR)
        return await self._ask(member, code, header, body, timeout_s)

    async def positions(self, group: str, topic: str, client_id: str | None) -> dict[str, dict[MessageQueue, int]]:
        """Of one client of a group, or of each: how far it has come in its queues of a topic.

        Clients that do not answer in time are left out.

        Raises:
            PocketMQError: 206 none is there.
        """
        found = self._clients.group(group)
        members = [
            member
            for member in (found.speakers() if found is not None else ())
            if not client_id or member.client_id == client_id
        ]
        if not members:
            raise PocketMQError(
                f"No Any Consumer online in the consumer group: [{group}]", code=ResponseCode.CONSUMER_NOT_ONLINE
            )
        header = GetConsumerStatusRequestHeader(topic=topic, group=group)
        answers = await asyncio.gather(
            *(
                self._ask(member, RequestCode.GET_CONSUMER_STATUS_FROM_CLIENT, header, b"", STATUS_TIMEOUT_S)
                for member in members
            ),
            return_exceptions=True,
        )
        positions: dict[str, dict[MessageQueue, int]] = {}
        for member, answer in zip(members, answers, strict=True):
            if isinstance(answer, Command) and answer.code == ResponseCode.SUCCESS and answer.body:
                positions[member.client_id] = decode_body(answer.body, GetConsumerStatusBody).message_queue_table
            elif isinstance(answer, BaseException) and not isinstance(answer, PocketMQError):
                raise answer
        return positions

    async def _ask(
        self,
        member: "ConsumerMember",
        code: RequestCode,
        header: Header | Mapping[str, str],
        body: bytes,
        timeout_s: float,
    ) -> Command:
        connection = member.connection
        if not isinstance(connection, RemotingConnection):
            raise PocketMQError(
                f"the client {member.client_id} speaks a protocol in which it cannot be asked that",
                code=ResponseCode.SYSTEM_ERROR,
            )
        if self._waiting >= RELAYS_MAX:
            raise PocketMQError(
                f"{self._waiting} questions wait for clients already; try again later", code=ResponseCode.SYSTEM_BUSY
            )
        self._waiting += 1
        try:
            return await connection.request(code, header, body, timeout_s=timeout_s)
        except RequestTimeoutError as error:
            raise PocketMQError(
                f"consumer <{member.client_id}> did not answer in {timeout_s:g} s: it may be busy or stopped",
                code=ResponseCode.CONSUME_MSG_TIMEOUT,
                cause=error,
            ) from error
        except ConnectionClosedError as error:
            raise PocketMQError(
                f"the connection to consumer <{member.client_id}> ended before it answered",
                code=ResponseCode.SYSTEM_ERROR,
                cause=error,
            ) from error
        finally:
            self._waiting -= 1
