"""Prometheus metrics under RocketMQ's names and labels, read from the broker when somebody asks.

Nothing is counted twice: the numbers are those of `pocketmq.broker.statistics`, of the log and of the views.
"""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pocketmq.broker.statistics import MESSAGE_SIZES
from pocketmq.http.lag import GroupLag, group_lags
from pocketmq.model.names import is_system_group, is_system_topic

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.namesrv.server import NameServer

_NODE = ["cluster", "node_type", "node_id"]
_MODES = {"CONSUME_ACTIVELY": "pull", "CONSUME_PASSIVELY": "push", "CONSUME_POP": "pop"}


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
        yield from self._in()
        yield from self._out()
        yield from self._sizes()
        yield from self._connections()
        yield from self._numbers()
        yield from self._storage()
        yield from self._lag()

    def _in(self) -> Iterator[Metric]:
        labels = [*_NODE, "topic", "message_type", "is_system"]
        messages = CounterMetricFamily("rocketmq_messages_in_total", "Messages stored.", labels=labels)
        size = CounterMetricFamily("rocketmq_throughput_in_total", "Bytes stored.", labels=labels)
        for numbers in self._broker.statistics.snapshot().topics:
            config = self._broker.topics.get(numbers.topic)
            kind = (config.attributes.get("message.type") if config is not None else None) or "normal"
            values = [*self._node, numbers.topic, kind.lower(), _flag(is_system_topic(numbers.topic))]
            messages.add_metric(values, numbers.messages_in)
            size.add_metric(values, numbers.bytes_in)
        yield from (messages, size)

    def _out(self) -> Iterator[Metric]:
        labels = [*_NODE, "topic", "consumer_group", "is_system"]
        messages = CounterMetricFamily("rocketmq_messages_out_total", "Messages given to consumers.", labels=labels)
        size = CounterMetricFamily("rocketmq_throughput_out_total", "Bytes given to consumers.", labels=labels)
        dead = CounterMetricFamily("rocketmq_send_to_dlq_messages_total", "Messages given up on.", labels=labels)
        for numbers in self._broker.statistics.snapshot().groups:
            system = is_system_group(numbers.group) or is_system_topic(numbers.topic)
            values = [*self._node, numbers.topic, numbers.group, _flag(system)]
            messages.add_metric(values, numbers.messages_out)
            size.add_metric(values, numbers.bytes_out)
            dead.add_metric(values, numbers.messages_to_dead_letter)
        yield from (messages, size, dead)

    def _sizes(self) -> Iterator[Metric]:
        totals = self._broker.statistics.snapshot().totals
        sizes = HistogramMetricFamily("rocketmq_message_size", "Bytes of a message.", labels=_NODE)
        total, buckets = 0, []
        for bound, count in zip([f"{size}.0" for size in MESSAGE_SIZES] + ["+Inf"], totals.message_sizes, strict=True):
            total += count
            buckets.append((bound, float(total)))
        sizes.add_metric(self._node, buckets, totals.bytes_in)
        yield sizes

    def _connections(self) -> Iterator[Metric]:
        clients = self._broker.clients
        labels = ["language", "version", "protocol_type"]
        producers = GaugeMetricFamily("rocketmq_producer_connections", "Producers connected.", labels=[*_NODE, *labels])
        kinds = Counter((m.language.lower(), str(m.version)) for _, group in clients.producer_groups() for m in group)
        for (language, version), count in kinds.items():
            producers.add_metric([*self._node, language, version, "remoting"], count)
        consumers = GaugeMetricFamily(
            "rocketmq_consumer_connections",
            "Consumers connected.",
            labels=[*_NODE, "consumer_group", "consume_mode", "is_system", *labels],
        )
        for name in list(clients.consumer_groups):
            group = clients.group(name)
            if group is None:
                continue
            mode = _MODES.get(group.consume_type, "push")
            kinds = Counter((m.language.lower(), str(m.version)) for m in group.members.values())
            for (language, version), count in kinds.items():
                values = [*self._node, name, mode, _flag(is_system_group(name)), language, version, "remoting"]
                consumers.add_metric(values, count)
        yield from (producers, consumers)

    def _numbers(self) -> Iterator[Metric]:
        broker = self._broker
        permission = broker.settings.broker.permission
        yield self._gauge("rocketmq_broker_permission", "What the broker allows: 2 write, 4 read.", permission)
        yield self._gauge("rocketmq_topic_number", "Topics.", len(broker.topics))
        yield self._gauge("rocketmq_consumer_group_number", "Consumer groups.", len(broker.groups))
        yield self._gauge("rocketmq_timing_messages", "Delayed messages that wait.", len(broker.timers))
        yield self._gauge("rocketmq_held_pulls", "Pulls held because there is nothing new.", len(broker.holds))

    def _storage(self) -> Iterator[Metric]:
        log = self._broker.log
        numbers = log.statistics()
        medium = "memory" if self._broker.settings.store.ephemeral else "disk"
        oldest = log.segments.find(log.min_position)
        oldest_ms = oldest.timestamp_at(log.min_position) if oldest is not None else None
        reserve_ms = max(0, self._broker.clock.time_ms() - oldest_ms) if oldest_ms else 0
        for name, doc, value in (
            ("rocketmq_storage_size_bytes", "Bytes of log kept.", numbers.max_position - numbers.min_position),
            (
                "rocketmq_storage_flush_behind_bytes",
                "Bytes written and not yet safe on the disk.",
                numbers.max_position - numbers.durable_position,
            ),
            ("rocketmq_storage_dispatch_behind_bytes", "Bytes that consumers cannot see yet.", 0),
            ("rocketmq_storage_message_reserve_time_milliseconds", "Age of the oldest message kept.", reserve_ms),
            ("rocketmq_storage_disk_used_ratio", "How full the disk is, 0 to 1.", numbers.disk_used_percent / 100),
            ("rocketmq_storage_segments", "Files of the log.", numbers.segments),
        ):
            yield self._gauge(name, doc, value, storage_type="local", storage_medium=medium)
        for name, doc, value in (
            ("rocketmq_storage_flushes_total", "Times that the log was made safe on the disk.", numbers.flushes),
            ("rocketmq_storage_write_failures_total", "Batches that the disk did not take.", numbers.write_failures),
        ):
            counter = CounterMetricFamily(name, doc, labels=_NODE)
            counter.add_metric(self._node, value)
            yield counter

    def _lag(self) -> Iterator[Metric]:
        labels = [*_NODE, "topic", "consumer_group", "is_retry", "is_system"]
        messages = GaugeMetricFamily(
            "rocketmq_consumer_lag_messages", "Messages that a group has not finished.", labels=labels
        )
        latency = GaugeMetricFamily(
            "rocketmq_consumer_lag_latency_milliseconds",
            "Age of the oldest message that a group has not finished.",
            labels=labels,
        )
        for lag in group_lags(self._broker):
            values = [*self._node, *_lag_labels(lag)]
            messages.add_metric(values, lag.messages)
            if lag.latency_ms is not None:
                latency.add_metric(values, lag.latency_ms)
        yield from (messages, latency)

    def _gauge(self, name: str, doc: str, value: float, **labels: str) -> Metric:
        gauge = GaugeMetricFamily(name, doc, labels=[*_NODE, *labels])
        gauge.add_metric([*self._node, *labels.values()], float(value))
        return gauge


class NameServerCollector(Collector):
    """What a name server knows."""

    def __init__(self, name_server: "NameServer") -> None:
        self._name_server = name_server

    def collect(self) -> Iterator[Metric]:
        """Called at each scrape."""
        table = self._name_server.table
        for name, doc, value in (
            ("rocketmq_namesrv_brokers", "Brokers that are registered.", len(table.live)),
            ("rocketmq_namesrv_topics", "Topics that have a route.", len(table.topics)),
            ("rocketmq_namesrv_connections", "Connections of clients and brokers.", self._name_server.connections),
        ):
            yield GaugeMetricFamily(name, doc, value=value)


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _lag_labels(lag: GroupLag) -> list[str]:
    system = is_system_group(lag.group) or is_system_topic(lag.topic)
    return [lag.topic, lag.group, _flag(lag.is_retry), _flag(system)]
