"""Looking things up: QUERY_MESSAGE 12, VIEW_MESSAGE_BY_ID 33, and who consumes what: 300, 303, 321, 343, 345."""

from datetime import datetime
from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.model.message import MessageQueue
from pocketmq.net.addresses import format_address
from pocketmq.wire.bodies.groups import GroupList, QuerySubscriptionResponseBody
from pocketmq.wire.bodies.routes import TopicList
from pocketmq.wire.bodies.statistics import (
    ConsumeQueueData,
    QueryConsumeQueueResponseBody,
    QueryConsumeTimeSpanBody,
    QueueTimeSpan,
)
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command, encode_response_head
from pocketmq.wire.headers.groups import QueryConsumeTimeSpanRequestHeader, QuerySubscriptionByConsumerRequestHeader
from pocketmq.wire.headers.messages import (
    QueryConsumeQueueRequestHeader,
    QueryMessageRequestHeader,
    QueryMessageResponseHeader,
    ViewMessageRequestHeader,
)
from pocketmq.wire.headers.topics import QueryTopicConsumeByWhoRequestHeader, QueryTopicsByConsumerRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection

UNIQUE_KEY_QUERY = "_UNIQUE_KEY_QUERY"


class QueryRequests:
    """Translates questions for `Queries`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._queries = broker.queries

    def by_key(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_MESSAGE 12: by key, or by unique key when the request says so."""
        header = command.header(QueryMessageRequestHeader)
        found = self._queries.by_key(
            header.topic,
            header.key,
            count_max=header.max_num,
            begin_ms=header.begin_timestamp,
            end_ms=header.end_timestamp,
            unique=command.ext().get(UNIQUE_KEY_QUERY) == "true",
        )
        head = encode_response_head(
            command.opaque,
            header=QueryMessageResponseHeader(found.newest_timestamp, found.newest_position),
            body_length=sum(map(len, found.records)),
            serialize_type=command.serialize_type,
        )
        return b"".join((head, *found.records))

    def by_id(self, connection: "RemotingConnection", command: Command) -> Answer:
        """VIEW_MESSAGE_BY_ID 33: the record at a log position."""
        record = self._queries.by_position(command.header(ViewMessageRequestHeader).offset)
        return success(command, body=bytes(record))

    def groups_of_topic(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_TOPIC_CONSUME_BY_WHO 300."""
        topic = command.header(QueryTopicConsumeByWhoRequestHeader).topic
        return success_body(command, GroupList(self._queries.groups_of(topic)))

    def topics_of_group(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_TOPICS_BY_CONSUMER 343."""
        group = command.header(QueryTopicsByConsumerRequestHeader).group
        address = format_address(connection.local_address[0], self._broker.port)
        return success_body(command, TopicList(self._queries.topics_of(group), address))

    def subscription(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_SUBSCRIPTION_BY_CONSUMER 345."""
        header = command.header(QuerySubscriptionByConsumerRequestHeader)
        topic = header.topic or ""
        found = self._broker.clients.subscription(None, header.group, topic)
        return success_body(command, QuerySubscriptionResponseBody(header.group, topic, found))

    def time_span(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_CONSUME_TIME_SPAN 303."""
        header = command.header(QueryConsumeTimeSpanRequestHeader)
        name = self._broker.settings.broker.name
        spans = [
            QueueTimeSpan(
                MessageQueue(header.topic, name, span.queue_id),
                span.oldest,
                span.newest,
                span.consumed,
                span.delay_ms,
                _time_text(span.oldest),
                _time_text(span.newest),
                _time_text(span.consumed),
            )
            for span in self._queries.time_spans(header.group, header.topic)
        ]
        return success_body(command, QueryConsumeTimeSpanBody(spans))

    def consume_queue(self, connection: "RemotingConnection", command: Command) -> Answer:
        """QUERY_CONSUME_QUEUE 321: units of a queue index."""
        header = command.header(QueryConsumeQueueRequestHeader)
        found = self._queries.index_units(
            header.topic or "", header.queue_id or 0, header.index or 0, header.count or 0, header.consumer_group
        )
        units = [
            ConsumeQueueData(unit.position, unit.size, unit.tag_code, eval=unit.wanted is True) for unit in found.units
        ]
        return success_body(
            command,
            QueryConsumeQueueResponseBody(
                units, found.min_offset, found.max_offset, subscription_data=found.subscription
            ),
        )


def _time_text(time_ms: int) -> str | None:
    """`yyyy-MM-dd#HH:mm:ss:SSS` in local time."""
    if time_ms < 0:
        return None
    when = datetime.fromtimestamp(time_ms / 1000)
    return f"{when:%Y-%m-%d#%H:%M:%S}:{time_ms % 1000:03d}"


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the query codes."""
    requests = QueryRequests(broker)
    dispatcher.on(RequestCode.QUERY_MESSAGE, requests.by_key)
    dispatcher.on(RequestCode.VIEW_MESSAGE_BY_ID, requests.by_id)
    dispatcher.on(RequestCode.QUERY_TOPIC_CONSUME_BY_WHO, requests.groups_of_topic)
    dispatcher.on(RequestCode.QUERY_TOPICS_BY_CONSUMER, requests.topics_of_group)
    dispatcher.on(RequestCode.QUERY_SUBSCRIPTION_BY_CONSUMER, requests.subscription)
    dispatcher.on(RequestCode.QUERY_CONSUME_TIME_SPAN, requests.time_span)
    dispatcher.on(RequestCode.QUERY_CONSUME_QUEUE, requests.consume_queue)
