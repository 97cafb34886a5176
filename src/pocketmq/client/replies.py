"""Requests and their replies as values: what marks a message as one, and how the other is made from it. Pure."""

from collections.abc import Mapping
from typing import Any

from pocketmq.model.errors import UsageError
from pocketmq.model.message import Message, ReceivedMessage
from pocketmq.wire.properties import PropertyKey

REPLY_SUFFIX = "_REPLY_TOPIC"
REPLY_TYPE = "reply"
DEFAULT_TIME_TO_LIVE_MS = "3000"


class Reply(ReceivedMessage, kw_only=True, eq=False):
    """The answer to a request."""

    @property
    def value(self) -> Any:
        """What the client's serializer makes of the body; the body itself by default."""
        return self.context.decode(self.body, self.properties)


def reply_topic(cluster: str) -> str:
    """The topic that replies of a cluster are sent to."""
    return cluster + REPLY_SUFFIX


def mark_request(message: Message, correlation_id: str, client_id: str, timeout_s: float) -> None:
    """Make a message a request of `client_id`."""
    message.properties[PropertyKey.CORRELATION_ID] = correlation_id
    message.properties[PropertyKey.REPLY_TO_CLIENT] = client_id
    message.properties[PropertyKey.TIME_TO_LIVE] = str(round(timeout_s * 1000))


def is_request(message: ReceivedMessage) -> bool:
    """Whether somebody waits for a reply to the message."""
    properties = message.properties
    return PropertyKey.REPLY_TO_CLIENT in properties and PropertyKey.CORRELATION_ID in properties


def reply_to(request: ReceivedMessage, body: bytes, properties: Mapping[str, str]) -> Message:
    """The message that answers `request`. Raises UsageError when nobody waits for a reply."""
    asked = request.properties
    cluster = asked.get(PropertyKey.CLUSTER)
    if not is_request(request) or not cluster:
        raise UsageError(f"the message {request.message_id} is no request: nobody waits for a reply to it")
    time_to_live = asked.get(PropertyKey.TIME_TO_LIVE, "")
    return Message(
        topic=reply_topic(cluster),
        body=body,
        properties={
            **properties,
            PropertyKey.MESSAGE_TYPE: REPLY_TYPE,
            PropertyKey.CORRELATION_ID: asked[PropertyKey.CORRELATION_ID],
            PropertyKey.REPLY_TO_CLIENT: asked[PropertyKey.REPLY_TO_CLIENT],
            PropertyKey.TIME_TO_LIVE: time_to_live if time_to_live.isdigit() else DEFAULT_TIME_TO_LIVE_MS,
        },
    )
