"""Prometheus metrics under RocketMQ's names, read from the broker when somebody asks.

Nothing is counted twice: the numbers are those of `pocketmq.broker.statistics` and of the views.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.broker.statistics import MESSAGE_SIZES

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker

_NODE = ["cluster", "node_type", "node_id"]


class BrokerCollector(Collector):
    """All metrics of one broker."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        settings = broker.settings.broker
        self._node = [settings.cluster, "broker", settings.name]

    def collect(self) -> Iterator[Metric]:
        """Called at each scrape."""
        if not self._broker.running:
            return
        yield from self._traffic()
        yield from self._state()
        yield from self._lag()

    def _traffic(self) -> Iterator[Metric]:
        numbers = self._broker.statistics.snapshot()
        messages_in = CounterMetricFamily("rocketmq_messages_in_total", "Messages stored.", labels=[*_NODE, "topic"])
        bytes_in = CounterMetricFamily("rocketmq_throughput_in_total", "Bytes stored.", labels=[*_NODE, "topic"])
        for topic in numbers.topics:
            messages_in.add_metric([*self._node, topic.topic], topic.messages_in)
            bytes_in.add_metric([*self._node, topic.topic], topic.bytes_in)
        labels = [*_NODE, "topic", "consumer_group"]
        messages_out = CounterMetricFamily("rocketmq_messages_out_total", "Messages given to consumers.", labels=labels)
        bytes_out = CounterMetricFamily("rocketmq_throughput_out_total", "Bytes given to consumers.", labels=labels)
        dead = CounterMetricFamily("rocketmq_send_to_dlq_messages_total", "Messages given up on.", labels=labels)
        for group in numbers.groups:
            names = [*self._node, group.topic, group.group]
            messages_out.add_metric(names, group.messages_out)
            bytes_out.add_metric(names, group.bytes_out)
            dead.add_metric(names, group.messages_to_dead_letter)
        sizes = HistogramMetricFamily("rocketmq_message_size", "Bytes of a message.", labels=_NODE)
        total, buckets = 0, []
        for bound, count in zip([*map(str, MESSAGE_SIZES), "+Inf"], numbers.totals.message_sizes, strict=True):
            total += count
            buckets.append((bound, float(total)))
        sizes.add_metric(self._node, buckets, numbers.totals.bytes_in)
        yield from (messages_in, bytes_in, messages_out, bytes_out, dead, sizes)

    def _state(self) -> Iterator[Metric]:
        broker = self._broker
        consumers = sum(len(broker.clients.client_ids(group)) for group in list(broker.clients.consumer_groups))
        producers = sum(len(members) for _, members in broker.clients.producer_groups())
        log = broker.log
        usage = broker.disk.usage(broker.settings.store.data_dir)
        used = 1 - usage.free_bytes / usage.total_bytes if usage.total_bytes else 0.0
        for name, doc, value in (
            (
                "rocketmq_broker_permission",
                "What the broker allows: 2 write, 4 read.",
                broker.settings.broker.permission,
            ),
            ("rocketmq_topic_number", "Topics.", len(broker.topics)),
            ("rocketmq_consumer_group_number", "Consumer groups.", len(broker.groups)),
            ("rocketmq_producer_connections", "Producers connected.", producers),
            ("rocketmq_consumer_connections", "Consumers connected.", consumers),
            ("rocketmq_storage_size", "Bytes of log kept.", log.max_position - log.min_position),
            (
                "rocketmq_storage_flush_behind_bytes",
                "Bytes not yet on the disk.",
                log.written_position - log.durable_position,
            ),
            ("rocketmq_storage_disk_used_ratio", "How full the disk is, 0 to 1.", used),
            ("rocketmq_timing_messages", "Delayed messages that wait.", len(broker.timers)),
            ("rocketmq_held_pulls", "Pulls held because there is nothing new.", len(broker.holds)),
            ("rocketmq_write_failures", "Batches that the disk did not take since the start.", log.write_failures),
        ):
            gauge = GaugeMetricFamily(name, doc, labels=_NODE)
            gauge.add_metric(self._node, float(value))
            yield gauge

    def _lag(self) -> Iterator[Metric]:
        broker = self._broker
        lag = GaugeMetricFamily(
            "rocketmq_consumer_lag_messages",
            "Messages that a group has not finished.",
            labels=[*_NODE, "topic", "consumer_group"],
        )
        behind: dict[tuple[str, str], int] = {}
        for cursor in broker.cursors.listing():
            queue = broker.log.queue(cursor.topic, cursor.queue_id)
            if queue is not None:
                key = (cursor.topic, cursor.group)
                behind[key] = behind.get(key, 0) + max(0, broker.log.max_offset(queue) - cursor.offset)
        for (topic, group), messages in behind.items():
            lag.add_metric([*self._node, topic, group], messages)
        yield lag
