"""How messages look to a consumer."""

from pocketmq.client.namespaces import without_namespace
from pocketmq.model.message import ReceivedMessage
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX
from pocketmq.wire.properties import PropertyKey


def shown_topic(message: ReceivedMessage, namespace: str = "") -> str:
    """The topic a message was sent to, also when it comes again through a retry topic; without the namespace."""
    topic = message.topic
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        topic = message.properties.get(PropertyKey.RETRY_TOPIC, topic)
    return without_namespace(topic, namespace)
