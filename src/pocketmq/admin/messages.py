"""Looking messages up: by id, by key, by place."""

from typing import Final

from pocketmq.admin.reach import Progress, Reach, each
from pocketmq.admin.topics import Topics
from pocketmq.client._async.pulling import Puller, PullStatus
from pocketmq.client.broker_errors import error_of
from pocketmq.client.filters import Tag
from pocketmq.model.errors import BrokerError, DecodeError, PocketMQError, UsageError
from pocketmq.model.message import MessageQueue, ReceivedMessage
from pocketmq.model.names import TOOLS_GROUP
from pocketmq.model.seams import Clock
from pocketmq.net.addresses import format_address
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.headers.messages import QueryMessageRequestHeader, ViewMessageRequestHeader
from pocketmq.wire.hosts import HOST_V4_BYTES, HOST_V6_BYTES, unpack_host
from pocketmq.wire.ids import decode_offset_id
from pocketmq.wire.received import to_received
from pocketmq.wire.record import decode_records

UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
RESULTS_MAX: Final = 64
END_OF_TIME_MS: Final = 2**63 - 1


class Messages:
    """Finds messages. Bodies are decompressed; topics are those in which the messages are stored."""

    def __init__(self, reach: Reach, topics: Topics, clock: Clock) -> None:
        self._reach = reach
        self._topics = topics
        self._clock = clock

    async def show(
        self, message_id: str, *, topic: str | None = None, progress: Progress | None = None
    ) -> ReceivedMessage:
        """A message by the id of its producer, or by its offset id.

        A producer's id is looked for in `topic`, or one topic after the other. Raises BrokerError 22 (no
        such message), RouteNotFoundError.
        """
        found = None
        if is_offset_id(message_id):
            found = await self._by_offset_id(message_id)
        if found is None:
            found = await self._by_unique_key(message_id, topic, progress)
        if found is None:
            where = f"in {topic}" if topic else "in any topic"
            raise BrokerError(
                f"there is no message {message_id} {where}; it was deleted, or the id is not right",
                code=ResponseCode.QUERY_NOT_FOUND,
            )
        return found

    async def find(
        self, topic: str, key: str, *, begin_ms: int = 0, end_ms: int = END_OF_TIME_MS, max: int = 32
    ) -> list[ReceivedMessage]:
        """Messages of a topic with a key, stored between two times (ms since the epoch); newest first.

        Each broker gives at most 64. Raises RouteNotFoundError.
        """
        if not key:
            raise UsageError("the key is empty")
        if not 0 < max <= RESULTS_MAX:
            raise UsageError(f"at most {RESULTS_MAX} messages can be found at once, not {max}")
        masters = await self._reach.masters_of(topic)

        async def ask(broker: str, address: str) -> list[ReceivedMessage]:
            return await self._query(broker, address, topic, key, begin_ms, end_ms, max, unique=False)

        found = await self._reach.of_all(masters, ask)
        messages = [message for each in found.values() for message in each if key in message.keys]
        return sorted(messages, key=lambda message: message.store_timestamp, reverse=True)[:max]

    async def at(self, topic: str, queue: int, offset: int, *, broker: str | None = None) -> ReceivedMessage:
        """The message at an offset of a queue. Raises BrokerError 22 (none), UsageError (several brokers have it)."""
        masters = await self._reach.masters_of(topic)
        if broker is None:
            if len(masters) != 1:
                raise UsageError(f"{topic} is on several brokers, {', '.join(masters)}: say on which one")
            broker = next(iter(masters))
        if broker not in masters:
            raise UsageError(f"{topic} is not on broker {broker}, but on {', '.join(masters)}")
        if queue < 0 or offset < 0:
            raise UsageError("queue and offset are not negative")
        puller = Puller(
            self._reach.remoting, MessageQueue(topic, broker, queue), TOOLS_GROUP, Tag.ALL, self._clock.time_ms()
        )
        result = await puller.pull(masters[broker], offset, count_max=1)
        if result.status is not PullStatus.FOUND or not result.messages:
            raise BrokerError(
                f"queue {queue} of {topic} on {broker} has no message at {offset}; it has those from "
                f"{result.min_offset} to {result.max_offset - 1}"
                if result.max_offset > result.min_offset
                else f"queue {queue} of {topic} on {broker} is empty",
                code=ResponseCode.QUERY_NOT_FOUND,
            )
        return result.messages[0]

    # -- inside ------------------------------------------------------------------------------------------------------

    async def _by_offset_id(self, message_id: str) -> ReceivedMessage | None:
        host, port, position = decode_offset_id(message_id)
        info = await self._reach.cluster_info()
        brokers = {
            address: name for name, data in info.broker_addr_table.items() for address in data.broker_addrs.values()
        }
        named = format_address(host, port)
        # A broker may have told its name another way than it signs its messages with: then any may be meant.
        candidates = {named: brokers[named]} if named in brokers else brokers
        for address, broker in sorted(candidates.items()):
            answer = await self._reach.remoting.ask(
                address, RequestCode.VIEW_MESSAGE_BY_ID, ViewMessageRequestHeader(offset=position)
            )
            if answer.code != ResponseCode.SUCCESS:
                continue
            for message in self._read(answer.body, broker, address):
                if message.offset_message_id == message_id.upper():
                    return message
        return None

    async def _by_unique_key(self, key: str, topic: str | None, progress: Progress | None) -> ReceivedMessage | None:
        if topic is not None:
            return await self._unique_in(topic, await self._reach.masters_of(topic), key)
        masters = await self._reach.masters()
        infos = [info for info in await self._topics.list() if info.brokers and info.kind != "system"]
        found: list[ReceivedMessage] = []

        async def look(name: str, brokers: tuple[str, ...]) -> None:
            if found:
                return
            message = await self._unique_in(name, {b: masters[b] for b in brokers if b in masters}, key)
            if message is not None:
                found.append(message)

        await each(infos, lambda info: look(info.topic, info.brokers), progress=progress)
        return found[0] if found else None

    async def _unique_in(self, topic: str, masters: dict[str, str], key: str) -> ReceivedMessage | None:
        async def ask(broker: str, address: str) -> list[ReceivedMessage]:
            return await self._query(broker, address, topic, key, 0, END_OF_TIME_MS, 32, unique=True)

        found = await self._reach.of_all(masters, ask)
        messages = [message for each in found.values() for message in each if message.message_id == key]
        # Sent twice by its producer's retry, or given back by a consumer: the first is the one that is meant.
        return min(messages, key=lambda message: message.store_timestamp, default=None)

    async def _query(
        self, broker: str, address: str, topic: str, key: str, begin_ms: int, end_ms: int, count: int, *, unique: bool
    ) -> list[ReceivedMessage]:
        what = f"messages of {topic} by key"
        header = QueryMessageRequestHeader(
            topic=topic, key=key, max_num=count, begin_timestamp=begin_ms, end_timestamp=end_ms
        )
        fields = header.to_ext() | ({UNIQUE_KEY_QUERY: "true"} if unique else {})
        answer = await self._reach.remoting.ask(address, RequestCode.QUERY_MESSAGE, fields)
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return []
        if answer.code != ResponseCode.SUCCESS:
            raise error_of(answer, what, address)
        return self._read(answer.body, broker, address)

    def _read(self, body: bytes, broker: str, address: str) -> list[ReceivedMessage]:
        try:
            return [to_received(record, broker) for record in decode_records(body)]
        except DecodeError as error:
            raise PocketMQError(f"a message from {address} cannot be read: {error}", cause=error) from error


def is_offset_id(message_id: str) -> bool:
    """Whether an id looks like one that says where the message is stored.

    The producers' ids have the same length. Where an offset id has the upper half of its port, which is always 0,
    those have the process id.
    """
    try:
        data = bytes.fromhex(message_id)
    except ValueError:
        return False
    host_bytes = {HOST_V4_BYTES + 8: HOST_V4_BYTES, HOST_V6_BYTES + 8: HOST_V6_BYTES}.get(len(data))
    if host_bytes is None:
        return False
    _, port = unpack_host(data[:host_bytes])
    return 0 < port < 65_536
