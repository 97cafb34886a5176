"""What a consumer says about itself when an operator asks (221, 307)."""

from typing import TYPE_CHECKING

from pocketmq.client.filters import subscription
from pocketmq.wire.bodies import ConsumerRunningInfo, ConsumeStatus, GetConsumerStatusBody, ProcessQueueInfo

if TYPE_CHECKING:
    from pocketmq.client._async.consumer import Consumer
    from pocketmq.client._async.core import Core
    from pocketmq.client._async.reader import QueueReader


def consumer_status(consumer: "Consumer", topic: str) -> GetConsumerStatusBody:
    """The positions in a topic's queues."""
    positions = consumer.positions()
    return GetConsumerStatusBody(
        message_queue_table={queue: position for queue, position in positions.items() if queue.topic == topic}
    )


def running_info(core: "Core", consumer: "Consumer") -> ConsumerRunningInfo:
    """Settings, subscriptions and queues."""
    return ConsumerRunningInfo(
        properties={
            "PROP_NAMESERVER_ADDR": ";".join(core.remoting.name_servers),
            "PROP_CONSUME_TYPE": "CONSUME_PASSIVELY",
            "PROP_CONSUMEORDERLY": "true" if consumer.orderly else "false",
            "PROP_THREADPOOL_CORE_SIZE": str(consumer.options.concurrency),
            "PROP_CONSUMER_START_TIMESTAMP": str(consumer.started_ms),
            "PROP_CLIENT_VERSION": "V5_3_3",
            "clientSdk": "pocketmq (Python)",
        },
        subscription_set=[
            subscription(topic, wanted, consumer.version_ms) for topic, wanted in consumer.subscriptions.items()
        ],
        mq_table={reader.queue: _queue_info(reader) for reader in consumer.assignment.readers()},
        status_table={topic: ConsumeStatus() for topic in consumer.subscriptions},
    )


def _queue_info(reader: "QueueReader") -> ProcessQueueInfo:
    buffer = reader.buffer
    return ProcessQueueInfo(
        commit_offset=reader.position or 0,
        cached_msg_count=0 if buffer is None else buffer.unsettled,
        locked=reader.locked_until > 0.0,
        last_pull_timestamp=reader.pulled_at_ms,
        last_consume_timestamp=reader.settled_at_ms,
        droped=reader.leaving,
    )
