"""A client that does one thing at a time and hides nothing: no retries, no routes, no merging, no background work.

For tests that must know exactly what a broker promised. Works on any `Network` and `Clock`, simulated ones included.
"""

from collections.abc import Mapping
from types import TracebackType
from typing import NamedTuple, Self

from pocketmq.model.config import GroupConfig, TopicConfig
from pocketmq.model.errors import BrokerError
from pocketmq.model.seams import Clock, Network
from pocketmq.net.addresses import parse_address
from pocketmq.net.clock import SystemClock
from pocketmq.net.network import TcpNetwork
from pocketmq.net.remoting import RemotingConnection
from pocketmq.wire.bodies.codec import decode_body, encode_body
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.base import Header
from pocketmq.wire.headers.offsets import (
    GetMaxOffsetRequestHeader,
    GetMaxOffsetResponseHeader,
    GetMinOffsetRequestHeader,
    GetMinOffsetResponseHeader,
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)
from pocketmq.wire.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader
from pocketmq.wire.headers.send import SendMessageRequestHeaderV2, SendMessageResponseHeader
from pocketmq.wire.headers.topics import CreateTopicRequestHeader, GetTopicConfigRequestHeader
from pocketmq.wire.properties import encode_properties
from pocketmq.wire.record import Record, decode_records

TIMEOUT_S = 10.0
READ_COUNT = 32
_GROUP = "raw-client"
_SUBSCRIPTION_IN_HEADER = 4
_NOTHING_YET = frozenset(
    {ResponseCode.PULL_NOT_FOUND, ResponseCode.PULL_OFFSET_MOVED, ResponseCode.PULL_RETRY_IMMEDIATELY}
)


class Pulled(NamedTuple):
    """What one pull brought."""

    code: int
    records: list[Record]
    next_offset: int
    min_offset: int
    max_offset: int


class RawClient:
    """One connection to one broker. Every method raises BrokerError for an answer that is no success."""

    def __init__(self, connection: RemotingConnection, clock: Clock, timeout_s: float) -> None:
        self.connection = connection
        self._clock = clock
        self._timeout_s = timeout_s

    @classmethod
    async def connect(
        cls, address: str, *, network: Network | None = None, clock: Clock | None = None, timeout_s: float = TIMEOUT_S
    ) -> Self:
        """Connect to `host:port`. Raises OSError, TimeoutError."""
        clock = clock or SystemClock()
        network = network or TcpNetwork()
        host, port = parse_address(address)
        connection = await network.connect(
            host, port, lambda: RemotingConnection(clock, accepted=False), timeout=timeout_s
        )
        return cls(connection, clock, timeout_s)

    async def request(self, code: int, header: Header | Mapping[str, str] | None = None, body: bytes = b"") -> Command:
        """One request and its answer. Raises BrokerError, RequestTimeoutError, ConnectionClosedError."""
        answer = await self.connection.request(code, header, body, timeout_s=self._timeout_s)
        if answer.code != ResponseCode.SUCCESS:
            raise BrokerError(answer.remark or "no remark", code=answer.code, address=self.connection.peer)
        return answer

    async def send(
        self,
        topic: str,
        queue_id: int,
        body: bytes,
        *,
        properties: Mapping[str, str] | None = None,
        group: str = _GROUP,
    ) -> SendMessageResponseHeader:
        """Send one message to one queue."""
        header = SendMessageRequestHeaderV2(
            producer_group=group,
            topic=topic,
            default_topic="TBW102",
            default_topic_queue_nums=4,
            queue_id=queue_id,
            sys_flag=0,
            born_timestamp=self._clock.time_ms(),
            flag=0,
            properties=encode_properties(properties or {}),
        )
        answer = await self.request(RequestCode.SEND_MESSAGE_V2, header, body)
        return answer.header(SendMessageResponseHeader)

    async def pull(self, topic: str, queue_id: int, offset: int, *, count_max: int = READ_COUNT) -> Pulled:
        """One pull that is not held."""
        header = PullMessageRequestHeader(
            consumer_group=_GROUP,
            topic=topic,
            queue_id=queue_id,
            queue_offset=offset,
            max_msg_nums=count_max,
            sys_flag=_SUBSCRIPTION_IN_HEADER,
            commit_offset=0,
            suspend_timeout_millis=0,
            subscription="*",
            sub_version=0,
            expression_type="TAG",
        )
        answer = await self.connection.request(RequestCode.PULL_MESSAGE, header, timeout_s=self._timeout_s)
        if answer.code != ResponseCode.SUCCESS and answer.code not in _NOTHING_YET:
            raise BrokerError(answer.remark or "no remark", code=answer.code, address=self.connection.peer)
        place = answer.header(PullMessageResponseHeader)
        records = decode_records(answer.body) if answer.body else []
        return Pulled(answer.code, records, place.next_begin_offset, place.min_offset, place.max_offset)

    async def read(self, topic: str, queue_id: int, offset: int | None = None) -> list[Record]:
        """All messages of a queue, from `offset` or from its beginning to its end."""
        offset = await self.min_offset(topic, queue_id) if offset is None else offset
        records: list[Record] = []
        while offset < await self.max_offset(topic, queue_id):
            pulled = await self.pull(topic, queue_id, offset)
            records += pulled.records
            if pulled.next_offset <= offset:
                raise AssertionError(f"a pull of {topic}/{queue_id} at {offset} goes on at {pulled.next_offset}")
            offset = pulled.next_offset
        return records

    async def min_offset(self, topic: str, queue_id: int) -> int:
        """The first offset of a queue."""
        answer = await self.request(RequestCode.GET_MIN_OFFSET, GetMinOffsetRequestHeader(topic, queue_id))
        return answer.header(GetMinOffsetResponseHeader).offset

    async def max_offset(self, topic: str, queue_id: int) -> int:
        """The offset after the last message of a queue."""
        answer = await self.request(RequestCode.GET_MAX_OFFSET, GetMaxOffsetRequestHeader(topic, queue_id))
        return answer.header(GetMaxOffsetResponseHeader).offset

    async def commit(self, group: str, topic: str, queue_id: int, offset: int) -> None:
        """Commit a position of a group, and wait for the answer."""
        header = UpdateConsumerOffsetRequestHeader(group, topic, queue_id, offset)
        await self.request(RequestCode.UPDATE_CONSUMER_OFFSET, header)

    async def committed(self, group: str, topic: str, queue_id: int) -> int | None:
        """The committed position of a group; None when there is none."""
        header = QueryConsumerOffsetRequestHeader(group, topic, queue_id, set_zero_if_not_found=False)
        try:
            answer = await self.request(RequestCode.QUERY_CONSUMER_OFFSET, header)
        except BrokerError as error:
            if error.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.header(QueryConsumerOffsetResponseHeader).offset

    async def create_topic(self, topic: str, queues: int = 4) -> None:
        """Create a topic, or change it."""
        config = TopicConfig(topic_name=topic, read_queue_nums=queues, write_queue_nums=queues)
        header = CreateTopicRequestHeader(
            topic=topic,
            default_topic="TBW102",
            read_queue_nums=config.read_queue_nums,
            write_queue_nums=config.write_queue_nums,
            perm=config.perm,
            topic_filter_type=config.topic_filter_type,
            topic_sys_flag=config.topic_sys_flag,
            order=config.order,
        )
        await self.request(RequestCode.UPDATE_AND_CREATE_TOPIC, header)

    async def topic_config(self, topic: str) -> TopicConfig:
        """The settings of a topic as the broker has them."""
        answer = await self.request(RequestCode.GET_TOPIC_CONFIG, GetTopicConfigRequestHeader(topic))
        return decode_body(answer.body, TopicConfig)

    async def create_group(self, group: str) -> None:
        """Create a consumer group, or change it back to its defaults."""
        body = encode_body(GroupConfig(group_name=group))
        await self.request(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, None, body)

    def close(self) -> None:
        """Close the connection."""
        self.connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
