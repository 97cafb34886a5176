"""PULL_MESSAGE 11 and LITE_PULL_MESSAGE 361, with long polling."""

from typing import TYPE_CHECKING

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.holds import Held
from pocketmq.broker.pulling import NOT_FOUND, RETRY_IMMEDIATELY, Pulled
from pocketmq.model.config import GroupConfig
from pocketmq.model.errors import PocketMQError
from pocketmq.views.filters import Accept
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command, encode_response_head
from pocketmq.wire.headers.pull import PullMessageRequestHeader, PullMessageResponseHeader

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.log.queues import LogQueue
    from pocketmq.net.remoting import RemotingConnection

COMMIT_OFFSET = 1
SUSPEND = 2
SUBSCRIPTION = 4
SUSPEND_MS_MAX = 10 * 60_000


class HeldPull(Held):
    """A pull that found nothing and waits for the next message of its queue that it wants."""

    __slots__ = (
        "accept",
        "count_max",
        "group",
        "group_sys_flag",
        "offset",
        "opaque",
        "requests",
        "serialize_type",
        "topic_sys_flag",
    )

    def __init__(
        self,
        requests: "PullRequests",
        connection: "RemotingConnection",
        queue: "LogQueue",
        command: Command,
        header: PullMessageRequestHeader,
        accept: Accept | None,
        topic_sys_flag: int,
        group_sys_flag: int,
    ) -> None:
        super().__init__(connection, queue)
        self.requests = requests
        self.group = header.consumer_group
        self.offset = header.queue_offset
        self.count_max = header.max_msg_nums
        self.accept = accept
        self.opaque = command.opaque
        self.serialize_type = command.serialize_type
        self.topic_sys_flag = topic_sys_flag
        self.group_sys_flag = group_sys_flag

    def try_answer(self) -> bool:
        """Answer when there is a message for it, or when its offset is not one of the queue's any more."""
        pulled = self.requests.read_for(self)
        if pulled.code == RETRY_IMMEDIATELY:
            # Nothing of what came is wanted: these messages need not be looked at again.
            self.offset = pulled.next_offset
            return False
        if pulled.code == NOT_FOUND:
            return False
        self.connection.write_all(self.requests.answer_held(self, pulled))
        return True

    def answer_empty(self) -> None:
        """The time is over."""
        pulled = self.requests.read_for(self)
        self.connection.write_all(self.requests.answer_held(self, pulled))


class PullRequests:
    """Translates pulls for `Pulling`, and what it found into answers."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._pulling = broker.pulling
        self._holds = broker.holds
        self._settings = broker.settings.broker
        self._statistics = broker.statistics

    def pull(self, connection: "RemotingConnection", command: Command) -> Answer:
        """Codes 11 and 361."""
        header = command.header(PullMessageRequestHeader)
        group, topic, queue_id = header.consumer_group, header.topic, header.queue_id
        pulling = self._pulling
        group_config, topic_config = pulling.check(group, topic, queue_id)
        if header.sys_flag & SUBSCRIPTION:
            accept = pulling.filters.accept(topic, header.expression_type, header.subscription)
        else:
            accept = self._subscribed(connection, header, group_config)
        pulled = pulling.take_reset(group, topic, queue_id)
        if pulled is None:
            if header.sys_flag & COMMIT_OFFSET:
                pulling.commit(group, topic, queue_id, header.commit_offset)
            pulled = pulling.read(topic, queue_id, header.queue_offset, header.max_msg_nums, accept)
        topic_sys_flag, group_sys_flag = topic_config.topic_sys_flag, group_config.group_sys_flag
        if pulled.code == NOT_FOUND and header.sys_flag & SUSPEND:
            timeout_ms = min(header.suspend_timeout_millis, SUSPEND_MS_MAX)
            if not self._settings.long_polling:
                timeout_ms = min(timeout_ms, int(self._settings.short_polling_s * 1000))
            if timeout_ms > 0:
                queue = self._broker.log.ensure_queue(topic, queue_id)
                held = HeldPull(self, connection, queue, command, header, accept, topic_sys_flag, group_sys_flag)
                if self._holds.hold(held, timeout_ms / 1000):
                    return None
        return self._answer(
            pulled, group, topic, queue_id, command.opaque, command.serialize_type, topic_sys_flag, group_sys_flag
        )

    def read_for(self, held: HeldPull) -> Pulled:
        """What a held pull finds now."""
        queue = held.queue
        return self._pulling.read(queue.topic, queue.queue_id, held.offset, held.count_max, held.accept)

    def answer_held(self, held: HeldPull, pulled: Pulled) -> list[bytes | memoryview]:
        """The frames that answer a held pull."""
        queue = held.queue
        return self._answer(
            pulled,
            held.group,
            queue.topic,
            queue.queue_id,
            held.opaque,
            held.serialize_type,
            held.topic_sys_flag,
            held.group_sys_flag,
        )

    def _subscribed(
        self, connection: "RemotingConnection", header: PullMessageRequestHeader, group_config: GroupConfig
    ) -> Accept | None:
        """The filter that the consumer's heartbeat asked for. Raises PocketMQError 24, 25, 16, 1, 23."""
        group = header.consumer_group
        members = self._broker.clients.group(group)
        if members is None:
            raise PocketMQError(
                f"the consumer's group info not exist: no consumer of {group} has sent a heartbeat to this broker",
                code=ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        if members.message_model == "BROADCASTING" and not (
            group_config.consume_broadcast_enable and self._settings.broadcast
        ):
            raise PocketMQError(
                f"the consumer group[{group}] can not consume by broadcast way", code=ResponseCode.NO_PERMISSION
            )
        subscription = members.subscription(connection, header.topic)
        if subscription is None:
            raise PocketMQError(
                f"the consumer's subscription not exist: {group} did not subscribe to {header.topic}",
                code=ResponseCode.SUBSCRIPTION_NOT_EXIST,
            )
        if subscription.sub_version < header.sub_version:
            raise PocketMQError(
                f"the consumer's subscription not latest: this broker knows version {subscription.sub_version} of "
                f"{group}, the request has {header.sub_version}",
                code=ResponseCode.SUBSCRIPTION_NOT_LATEST,
            )
        return self._pulling.filters.accept(header.topic, subscription.expression_type, subscription.sub_string)

    def _answer(
        self,
        pulled: Pulled,
        group: str,
        topic: str,
        queue_id: int,
        opaque: int,
        serialize_type: int,
        topic_sys_flag: int,
        group_sys_flag: int,
    ) -> list[bytes | memoryview]:
        self._pulling.note_position(group, topic, queue_id, pulled.next_offset)
        self._statistics.count_out(topic, group, pulled.message_count, pulled.size_bytes)
        head = encode_response_head(
            opaque,
            pulled.code,
            pulled.status,
            PullMessageResponseHeader(
                0,
                pulled.next_offset,
                pulled.min_offset,
                pulled.max_offset,
                topic_sys_flag=topic_sys_flag,
                group_sys_flag=group_sys_flag,
            ),
            pulled.size_bytes,
            serialize_type=serialize_type,
        )
        return [head, *pulled.records]


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the pull codes."""
    requests = PullRequests(broker)
    dispatcher.on(RequestCode.PULL_MESSAGE, requests.pull)
    dispatcher.on(RequestCode.LITE_PULL_MESSAGE, requests.pull)
