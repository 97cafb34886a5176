"""The settings that a client is told: what it sent, completed by what this broker wants of it."""

from typing import TYPE_CHECKING, Any

from pocketmq.grpc.calls import set_time
from pocketmq.grpc.names import full_name
from pocketmq.wire.grpc.schema import Proto, Schema

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.model.config import GroupConfig

PRODUCER_ATTEMPTS_MAX = 3
PRODUCER_BACKOFF_MS = (10, 1_000)
RECEIVE_BATCH = 32
EXPONENTIAL = "EXPONENTIAL"
EXPONENTIAL_DEFAULTS = (5_000, 2 * 60 * 60 * 1000, 2.0)


class ClientSettings:
    """Makes settings for clients."""

    def __init__(self, broker: "Broker", schema: Schema) -> None:
        self._broker = broker
        self._schema = schema

    def complete(self, sent: Proto) -> Proto:
        """A copy of what the client sent, with this broker's part."""
        settings = self._schema.Settings()
        settings.CopyFrom(sent)
        settings.metric.on = False
        if settings.WhichOneof("pub_sub") == "publishing":
            self._publishing(settings)
        else:
            self._subscription(settings)
        return settings

    def fifo(self, group: str) -> bool:
        """Whether a group wants its messages in order."""
        config = self._broker.groups.get(group)
        return config is not None and config.consume_message_orderly

    def _publishing(self, settings: Proto) -> None:
        policy = settings.backoff_policy
        policy.max_attempts = PRODUCER_ATTEMPTS_MAX
        initial_ms, most_ms = PRODUCER_BACKOFF_MS
        set_time(policy.exponential_backoff.initial, initial_ms)
        set_time(policy.exponential_backoff.max, most_ms)
        policy.exponential_backoff.multiplier = 2
        settings.publishing.validate_message_type = self._broker.settings.grpc.message_type_check
        settings.publishing.max_body_size = self._broker.settings.store.message_bytes_max

    def _subscription(self, settings: Proto) -> None:
        subscription = settings.subscription
        subscription.receive_batch_size = RECEIVE_BATCH
        set_time(subscription.long_polling_timeout, int(self._broker.settings.grpc.long_polling_max_s * 1000))
        config = self._broker.groups.get(full_name(subscription.group))
        if config is None:
            return
        subscription.fifo = config.consume_message_orderly
        policy = settings.backoff_policy
        policy.max_attempts = config.retry_max_times + 1
        self._backoff(policy, config)

    def _backoff(self, policy: Proto, config: "GroupConfig") -> None:
        """How long a message that failed waits, as the group's retry policy has it."""
        wanted: dict[str, Any] = config.group_retry_policy
        if wanted.get("type") == EXPONENTIAL:
            given = wanted.get("exponentialRetryPolicy") or {}
            initial_ms, most_ms, multiplier = EXPONENTIAL_DEFAULTS
            backoff = policy.exponential_backoff
            set_time(backoff.initial, _number(given.get("initial"), initial_ms))
            set_time(backoff.max, _number(given.get("max"), most_ms))
            backoff.multiplier = _number(given.get("multiplier"), int(multiplier))
            return
        given = wanted.get("customizedRetryPolicy") or {}
        delays = [delay for delay in given.get("next") or () if isinstance(delay, int) and delay >= 0]
        policy.ClearField("strategy")
        for delay_ms in delays or self._broker.levels:
            set_time(policy.customized_backoff.next.add(), delay_ms)


def _number(value: object, default: int) -> int:
    return int(value) if isinstance(value, int | float) and value > 0 else default
