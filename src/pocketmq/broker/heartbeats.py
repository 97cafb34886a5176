"""What a heartbeat does: its groups exist afterwards, and its sender is a member of them.

Heartbeat V1 carries everything each time. V2 carries a fingerprint of the subscriptions, and when that has not
changed the sender may leave them out ("as before"). The answer says whether it must send everything again; Apache's
broker forgets to say so after its own restart, when it knows no before.
"""

from typing import TYPE_CHECKING, NamedTuple

from pocketmq.broker.membership import ClientConnection
from pocketmq.model.config import GroupConfig, Subscription, TopicConfig
from pocketmq.model.errors import PocketMQError, StoreError
from pocketmq.model.names import retry_topic
from pocketmq.views.filters import compile_filter

if TYPE_CHECKING:
    from pocketmq.broker.clients import ClientRegistry
    from pocketmq.broker.topics import TopicService
    from pocketmq.views.topics import TopicTable

UNIT_SUBSCRIPTION = 2
"""Bit of a topic's sys flag: a retry topic of a group in unit mode."""


class ConsumerBeat(NamedTuple):
    """One consumer of a heartbeat."""

    group: str
    consume_type: str
    message_model: str
    consume_from_where: str
    subscriptions: list[Subscription]
    unit_mode: bool


class Beat(NamedTuple):
    """One heartbeat, whatever the protocol. `fingerprint` 0: V1."""

    client_id: str
    language: str
    version: int
    producers: list[str]
    consumers: list[ConsumerBeat]
    fingerprint: int = 0
    as_before: bool = False


class Heartbeats:
    """Takes heartbeats."""

    def __init__(self, clients: "ClientRegistry", topic_service: "TopicService", topics: "TopicTable") -> None:
        self._clients = clients
        self._topic_service = topic_service
        self._topics = topics

    def take(self, connection: ClientConnection, beat: Beat) -> bool:
        """Register the sender; returns whether it must send everything again (V2).

        A consumer whose group does not exist and may not be created is left out: its pulls are answered with the
        reason.

        Raises:
            PocketMQError: 29 a group name that cannot be, 23 a filter that cannot be understood, 2 too many clients;
                StoreFullError.
        """
        resend = False
        refused: PocketMQError | None = None
        for consumer in beat.consumers:
            try:
                resend |= self._consumer(connection, beat, consumer)
            except PocketMQError as error:
                # One group that cannot be must not keep the others of the same client away.
                refused = refused or error
        for producer in beat.producers:
            self._clients.register_producer(
                connection, producer, beat.client_id, language=beat.language, version=beat.version
            )
        if refused is not None:
            raise refused
        return resend

    def _consumer(self, connection: ClientConnection, beat: Beat, consumer: ConsumerBeat) -> bool:
        group = self._topic_service.group_for(consumer.group)
        if group is None:
            return False
        for subscription in consumer.subscriptions:
            # Who asks for what cannot be understood gets no share of the queues: others can still consume them.
            compile_filter(subscription.expression_type, subscription.sub_string)
        self._ensure_retry_topic(group, consumer)
        return self._clients.register_consumer(
            connection,
            consumer.group,
            beat.client_id,
            language=beat.language,
            version=beat.version,
            consume_type=consumer.consume_type,
            message_model=consumer.message_model,
            consume_from_where=consumer.consume_from_where,
            subscriptions=None if beat.as_before and beat.fingerprint else consumer.subscriptions,
            fingerprint=beat.fingerprint,
        )

    def _ensure_retry_topic(self, group: GroupConfig, consumer: ConsumerBeat) -> None:
        if retry_topic(group.group_name) in self._topics:
            return
        ordered = any(
            config is not None and config.order
            for config in (self._topics.get(subscription.topic) for subscription in consumer.subscriptions)
        )
        queues = max(1, group.retry_queue_nums)
        try:
            self._topic_service.ensure(
                TopicConfig(
                    topic_name=retry_topic(group.group_name),
                    read_queue_nums=queues,
                    write_queue_nums=queues,
                    order=ordered,
                    topic_sys_flag=UNIT_SUBSCRIPTION if consumer.unit_mode else 0,
                )
            )
        except StoreError:
            # The disk is full: reading goes on. The topic is made at a later heartbeat, or when something is sent back.
            pass
