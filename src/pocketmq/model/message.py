"""Messages as people see them, and where they live."""

from typing import Any

import msgspec


class MessageQueue(msgspec.Struct, frozen=True, order=True, rename="camel"):
    """One queue of one topic on one broker; sorts by topic, broker name, queue id, as all clients must."""

    topic: str
    broker_name: str
    queue_id: int


class Message(msgspec.Struct, kw_only=True, rename=None):
    """A message to send. `properties` holds user and system properties alike, as on the wire."""

    topic: str
    body: bytes
    tag: str | None = None
    keys: tuple[str, ...] = ()
    properties: dict[str, str] = {}
    flag: int = 0
    delay_level: int = 0


class ReceivedMessage(msgspec.Struct, kw_only=True, eq=False):
    """A message as a consumer gets it.

    Times are milliseconds since the epoch; hosts are `address:port`; `body` is decompressed.
    """

    topic: str
    body: bytes
    properties: dict[str, str]
    broker_name: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    message_id: str
    """The id the producer's client gave (UNIQ_KEY), or the offset id when there is none."""
    offset_message_id: str
    flag: int
    sys_flag: int
    born_timestamp: int
    born_host: str
    store_timestamp: int
    store_host: str
    reconsume_times: int
    prepared_transaction_offset: int
    store_size: int
    context: Any = None
    """What the consumer that delivered it needs to settle it; not for users."""

    @property
    def tag(self) -> str | None:
        """The TAGS property."""
        return self.properties.get("TAGS")

    @property
    def keys(self) -> tuple[str, ...]:
        """The blank-separated KEYS property, split."""
        return tuple(self.properties.get("KEYS", "").split())

    @property
    def delivery_attempt(self) -> int:
        """1 for the first delivery."""
        return self.reconsume_times + 1


class SendReceipt(msgspec.Struct, frozen=True, kw_only=True):
    """Proof that the broker took a message. `status` is SEND_OK or what was slower than asked."""

    message_id: str
    offset_message_id: str
    queue: MessageQueue
    queue_offset: int
    transaction_id: str | None = None
    recall_handle: str | None = None
    status: str = "SEND_OK"
