"""Replies: what a consumer answers to a request goes straight to the producer that waits for it.

Theory of operation. A request is an ordinary message that names its producer's client (`REPLY_TO_CLIENT`). The reply
comes to any broker that this client is known to, is pushed to the client on its newest connection, and is then stored
in the cluster's reply topic, where nobody waits for it: operators find it there. The replying consumer gets its answer
when the client has confirmed; one that is not there, refuses, or says nothing for `PUSH_TIMEOUT_S` is code 1, and the
reply is stored all the same.
"""

from typing import TYPE_CHECKING, NamedTuple

from pocketmq.model.errors import PocketMQError
from pocketmq.net.addresses import format_address
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.messages import ReplyMessageRequestHeader
from pocketmq.wire.hosts import format_host
from pocketmq.wire.properties import PropertyKey, decode_properties, encode_properties

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.origins import Origins
    from pocketmq.model.seams import Clock

PUSH_TIMEOUT_S = 10.0
PUSHES_MAX = 10_000
PUSHED_BYTES_MAX = 64 * 1024 * 1024
"""Replies that wait for the confirmation of their clients, and the bytes of their bodies."""


class Reply(NamedTuple):
    """What a consumer sent as its answer to a request."""

    producer_group: str
    topic: str
    queue_id: int
    sys_flag: int
    flag: int
    born_timestamp: int
    properties: str
    reconsume_times: int
    default_topic: str
    default_queues: int
    body: bytes


class Replies:
    """Pushes replies to the clients that wait for them."""

    def __init__(self, clock: "Clock", clients: "ClientRegistry", origins: "Origins") -> None:
        self._clock = clock
        self._clients = clients
        self._origins = origins
        self._waiting = 0
        self._waiting_bytes = 0

    async def push(self, sender: RemotingConnection, reply: Reply) -> str | None:
        """Push a reply; returns None when its client has confirmed it, else a sentence that says why not.

        Raises:
            PocketMQError: code 2, too many replies wait for their clients already.
        """
        properties = decode_properties(reply.properties)
        client_id = properties.get(PropertyKey.REPLY_TO_CLIENT)
        if client_id is None:
            return f"the reply does not say whom it is for: it has no property {PropertyKey.REPLY_TO_CLIENT}"
        member = self._clients.producer_by_client_id(client_id)
        connection = member.connection if member is not None else None
        if not isinstance(connection, RemotingConnection) or connection.closed:
            return f"push reply message fail, channel of <{client_id}> not found"
        size = len(reply.body)
        if self._waiting >= PUSHES_MAX or (self._waiting and self._waiting_bytes + size > PUSHED_BYTES_MAX):
            raise PocketMQError(
                f"{self._waiting} replies wait for their clients already; try again later",
                code=ResponseCode.SYSTEM_BUSY,
                retryable=True,
            )
        self._waiting += 1
        self._waiting_bytes += size
        try:
            answer = await connection.request(
                RequestCode.PUSH_REPLY_MESSAGE_TO_CLIENT,
                self._header(sender, reply, properties),
                reply.body,
                timeout_s=PUSH_TIMEOUT_S,
            )
        except PocketMQError as error:
            return f"push reply message to {client_id} fail: {error}"
        finally:
            self._waiting -= 1
            self._waiting_bytes -= size
        if answer.code != ResponseCode.SUCCESS:
            return f"push reply message to {client_id} fail: it answered {answer.code} {answer.remark or ''}".rstrip()
        return None

    def _header(
        self, sender: RemotingConnection, reply: Reply, properties: dict[str, str]
    ) -> ReplyMessageRequestHeader:
        now = self._clock.time_ms()
        return ReplyMessageRequestHeader(
            producer_group=reply.producer_group,
            topic=reply.topic,
            default_topic=reply.default_topic,
            default_topic_queue_nums=reply.default_queues,
            queue_id=reply.queue_id,
            sys_flag=reply.sys_flag,
            born_timestamp=reply.born_timestamp,
            flag=reply.flag,
            born_host=format_address(*sender.peer_address),
            store_host=format_host(self._origins.store_host(sender)),
            store_timestamp=now,
            properties=encode_properties({**properties, PropertyKey.PUSH_REPLY_TIME: str(now)}),
            reconsume_times=reply.reconsume_times,
        )
