"""SendMessage and RecallMessage.

A request is checked as a whole before anything of it is stored. What it stores is written in one go, and answered when
the log says that it is as durable as the settings ask.
"""

from typing import TYPE_CHECKING

from pocketmq.broker.origins import Origin
from pocketmq.grpc.calls import Call, set_common_status, set_ok, set_status
from pocketmq.grpc.durability import written
from pocketmq.grpc.incoming import Incoming, check_type, read_message
from pocketmq.grpc.names import full_name, topic_of
from pocketmq.grpc.origins import origin_of
from pocketmq.grpc.transaction_ids import encode_transaction_id
from pocketmq.model.errors import PocketMQError
from pocketmq.model.hashing import java_string_hash
from pocketmq.model.names import AUTO_CREATE_TOPIC
from pocketmq.wire.codes import ResponseCode
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto, Schema
from pocketmq.wire.ids import encode_recall_handle

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.model.config import TopicConfig

MESSAGES_MAX = 1024
"""Most messages of one request."""

_ANY_QUEUE = -1


class SendProcedures:
    """Translates what producers send for `Sending`."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self._broker = broker
        self._schema = schema
        self._settings = broker.settings

    async def send(self, call: Call, request: Proto) -> Proto:
        """Store the messages of one request; each gets an entry in the answer."""
        messages = request.messages
        if not messages:
            raise CodedError(Code.MESSAGE_CORRUPTED, "the request has no message")
        if len(messages) > MESSAGES_MAX:
            raise CodedError(
                Code.MESSAGE_CORRUPTED, f"the request has {len(messages)} messages; at most {MESSAGES_MAX} are allowed"
            )
        topic = topic_of(messages[0].topic)
        if len(messages) > 1 and any(full_name(message.topic) != topic for message in messages):
            raise CodedError(Code.MESSAGE_CORRUPTED, "all messages of a request must have the same topic")
        config = self._topic(topic)
        now_ms = self._broker.clock.time_ms()
        check = self._settings.grpc.message_type_check
        taken = []
        for message in messages:
            incoming = read_message(message, topic, settings=self._settings, now_ms=now_ms)
            if check:
                check_type(incoming, config)
            taken.append(incoming)
        response = self._schema.SendMessageResponse()
        if self._store(response, origin_of(self._broker, call), config, taken):
            await self._wait(response)
        set_common_status(response.status, [entry.status.code for entry in response.entries])
        return response

    def _topic(self, topic: str) -> "TopicConfig":
        config = self._broker.topics.get(topic)
        if config is None:
            config = self._broker.topic_service.create_for_send(
                topic, AUTO_CREATE_TOPIC, self._settings.broker.default_topic_queues
            )
        return config

    def _store(self, response: Proto, origin: Origin, config: "TopicConfig", taken: list[Incoming]) -> bool:
        """Stage and write the messages, and fill an entry for each; whether any of them was stored."""
        broker = self._broker
        # The messages of a request stay together, as those of a batch do.
        common_queue = _ANY_QUEUE
        staged = []
        for incoming in taken:
            entry = response.entries.add()
            queue_id = _queue_of(incoming, config, common_queue)
            try:
                queue_id, queue_offset, position, _ = broker.sending.send(
                    config.topic_name,
                    queue_id,
                    incoming.body,
                    incoming.properties,
                    origin,
                    0,
                    incoming.sys_flag,
                    incoming.born_timestamp,
                    0,
                    AUTO_CREATE_TOPIC,
                    self._settings.broker.default_topic_queues,
                    None,
                )
            except PocketMQError as error:
                set_status(entry.status, error)
                continue
            if common_queue == _ANY_QUEUE and not incoming.message_group:
                common_queue = queue_id
            entry.offset = queue_offset
            staged.append((entry, incoming, position))
        if not staged:
            return False
        try:
            broker.sending.flush()
        except PocketMQError as error:
            for entry, _, _ in staged:
                entry.offset = 0
                set_status(entry.status, error)
            return False
        for entry, incoming, position in staged:
            set_ok(entry.status)
            entry.message_id = incoming.message_id
            if incoming.transaction:
                entry.transaction_id = encode_transaction_id(position, entry.offset, incoming.message_id)
            elif incoming.deliver_ms:
                entry.recall_handle = encode_recall_handle(
                    config.topic_name, self._settings.broker.name, incoming.deliver_ms, incoming.message_id
                )
        return True

    async def _wait(self, response: Proto) -> None:
        error = await written(self._broker)
        if error is not None:
            for entry in response.entries:
                if entry.status.code == Code.OK:
                    entry.Clear()
                    set_status(entry.status, error)

    async def recall(self, call: Call, request: Proto) -> Proto:
        """Take a delayed message back that is not due yet."""
        topic_of(request.topic)
        raise PocketMQError("messages cannot be recalled by this broker", code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED)


def _queue_of(incoming: Incoming, config: "TopicConfig", common_queue: int) -> int:
    count = config.write_queue_nums
    if incoming.message_group and count:
        return consistent_hash(java_string_hash(incoming.message_group), count)
    if incoming.priority >= 0 and count:
        return min(incoming.priority, count - 1)
    return common_queue


def consistent_hash(value: int, buckets: int) -> int:
    """Which of `buckets` a 32-bit number belongs to, so that with one bucket more few numbers move.

    The jump hash of Lamping and Veach with the generator of Guava's `Hashing.consistentHash`, which RocketMQ's proxy
    uses: all who send to a topic must put a message group into the same queue.
    """
    state = value & 0xFFFFFFFFFFFFFFFF if value >= 0 else (value + (1 << 64))
    candidate = 0
    while True:
        state = (2862933555777941757 * state + 1) & 0xFFFFFFFFFFFFFFFF
        following = int((candidate + 1) / (((state >> 33) + 1) / 2147483648.0))
        if not 0 <= following < buckets:
            return candidate
        candidate = following
