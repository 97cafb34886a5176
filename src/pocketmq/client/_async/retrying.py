"""Giving a message back: the broker delivers it again after a while, or puts it with the dead letters (36)."""

import logging
from typing import TYPE_CHECKING

from pocketmq.client._async.delivery import Delivery
from pocketmq.client.namespaces import with_namespace
from pocketmq.client.outgoing import DELAY_LEVELS_S
from pocketmq.model.errors import PocketMQError
from pocketmq.model.message import Message, MessageQueue
from pocketmq.model.names import retry_topic
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.clients import ConsumerSendMsgBackRequestHeader
from pocketmq.wire.properties import PropertyKey

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core

logger = logging.getLogger("pocketmq.client")

FIRST_RETRY_LEVEL = 3
"""The n-th retry waits as long as delay level 3 + n says, n from 0."""
ATTEMPTS_MAX_OF_OLD = 16

_NOT_AGAIN = frozenset(
    {
        PropertyKey.TRANSACTION_PREPARED,
        PropertyKey.MIN_OFFSET,
        PropertyKey.MAX_OFFSET,
        PropertyKey.DELAY,
        PropertyKey.TAGS,
        PropertyKey.KEYS,
        PropertyKey.UNIQUE_KEY,
        PropertyKey.REAL_TOPIC,
        PropertyKey.REAL_QUEUE_ID,
    }
)


class Retries:
    """Gives messages of one group back."""

    def __init__(self, core: "Core", group: str, attempts_max: int | None) -> None:
        self._core = core
        self._group = group
        self._retries_max = None if attempts_max is None else max(0, attempts_max - 1)

    def used_up(self, message: Delivery) -> bool:
        """Whether the message had all of its attempts; without a limit of our own, never."""
        return self._retries_max is not None and message.reconsume_times >= self._retries_max

    async def give_back(self, message: Delivery, queue: MessageQueue, delay_s: float | None, dead: bool) -> None:
        """Hand the message to its broker; if that fails, send it to the group's retry topic. Raises PocketMQError."""
        level = -1 if dead else 0 if delay_s is None else _level_for(delay_s)
        header = ConsumerSendMsgBackRequestHeader(
            offset=message.physical_offset,
            group=self._group,
            delay_level=level,
            origin_msg_id=message.message_id,
            origin_topic=with_namespace(message.topic, self._core.options.namespace),
            max_reconsume_times=self._retries_max,
            target_broker=queue.broker_name,
        )
        try:
            address = await self._core.offsets.master(queue)
            await self._core.remoting.call(address, RequestCode.CONSUMER_SEND_MSG_BACK, header, what="give back")
        except PocketMQError as error:
            logger.info("message %s goes to the retry topic by another way: %s", message.message_id, error)
            await self._send_again(message, level)

    async def _send_again(self, message: Delivery, level: int) -> None:
        times = message.reconsume_times
        retries_max = ATTEMPTS_MAX_OF_OLD if self._retries_max is None else self._retries_max
        properties = {key: value for key, value in message.properties.items() if key not in _NOT_AGAIN}
        properties.setdefault(PropertyKey.ORIGIN_MESSAGE_ID, message.offset_message_id)
        properties[PropertyKey.RETRY_TOPIC] = with_namespace(message.topic, self._core.options.namespace)
        properties[PropertyKey.RECONSUME_TIME] = str(times + 1 if level >= 0 else retries_max + 1)
        properties[PropertyKey.MAX_RECONSUME_TIMES] = str(retries_max)
        copy = Message(
            topic=retry_topic(self._group),
            body=message.body,
            tag=message.tag,
            keys=message.keys,
            properties=properties,
            flag=message.flag,
            delay_level=level if level > 0 else FIRST_RETRY_LEVEL + times,
        )
        await self._core.producer.send(copy, None, None, None)


def _level_for(delay_s: float) -> int:
    """The shortest delay level that is not shorter than asked; the longest there is for more."""
    for level, length_s in enumerate(DELAY_LEVELS_S, start=1):
        if length_s >= delay_s:
            return level
    return len(DELAY_LEVELS_S)
