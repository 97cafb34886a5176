"""How messages look to a consumer."""

from pocketmq.model.message import ReceivedMessage
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.wire.properties import PropertyKey


def shown_topic(message: ReceivedMessage) -> str:
    """The topic a message was sent to, also when it comes again through a retry topic."""
    if message.topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        return message.properties.get(PropertyKey.RETRY_TOPIC, message.topic)
    return message.topic
