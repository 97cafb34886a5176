"""What a member says about itself when an operator asks (221, 307)."""

from typing import TYPE_CHECKING

from pocketmq.client.filters import subscription
from pocketmq.wire.bodies import ConsumerRunningInfo, ConsumeStatus, GetConsumerStatusBody, ProcessQueueInfo

if TYPE_CHECKING:
    from pocketmq.client._async.core import Core
    from pocketmq.client._async.member import Member
    from pocketmq.client._async.reader import QueueReader


def consumer_status(member: "Member", topic: str) -> GetConsumerStatusBody:
    """The positions in a topic's queues."""
    positions = member.positions()
    return GetConsumerStatusBody(
        message_queue_table={queue: position for queue, position in positions.items() if queue.topic == topic}
    )


def running_info(core: "Core", member: "Member") -> ConsumerRunningInfo:
    """Settings, subscriptions and queues."""
    return ConsumerRunningInfo(
        properties={
            "PROP_NAMESERVER_ADDR": ";".join(core.remoting.name_servers),
            "PROP_CONSUME_TYPE": member.consume_type,
            "PROP_CONSUMEORDERLY": "true" if member.orderly else "false",
            "PROP_THREADPOOL_CORE_SIZE": str(member.options.concurrency),
            "PROP_CONSUMER_START_TIMESTAMP": str(member.started_ms),
            "PROP_CLIENT_VERSION": "V5_3_3",
            "clientSdk": "pocketmq (Python)",
        },
        subscription_set=[
            subscription(topic, wanted, member.version_ms) for topic, wanted in member.subscriptions.items()
        ],
        mq_table={reader.queue: _queue_info(reader) for reader in member.assignment.readers()},
        status_table={topic: ConsumeStatus() for topic in member.subscriptions},
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
