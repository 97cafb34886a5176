"""The broker itself: settings (25, 26), what it says about itself (28), statistics (315), cleaning up (306, 329)."""

import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body
from pocketmq.broker.runtime import runtime_table
from pocketmq.broker.series import WindowStatistics
from pocketmq.model.config import DataVersion
from pocketmq.model.errors import PocketMQError
from pocketmq.model.setting_table import change_dynamic, java_properties
from pocketmq.wire.bodies.routes import KVTable
from pocketmq.wire.bodies.statistics import BrokerStatsData, BrokerStatsItem
from pocketmq.wire.codes import RequestCode, ResponseCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.brokers import GetBrokerConfigResponseHeader, ViewBrokerStatsDataRequestHeader

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection

logger = logging.getLogger(__name__)

SECTIONS = ("broker", "store", "log")
UNTOUCHABLE = frozenset({"brokerConfigPath", "configBlackList"})
"""Settings that RocketMQ never lets be changed from afar."""


class AdminRequests:
    """Operators' requests about the broker itself."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._changes = 0
        self._changed_ms = 0

    def change_settings(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_BROKER_CONFIG 25: all of the changes or none, until the broker stops."""
        changes = list(_properties(command.body))
        for name, _ in changes:
            if name in UNTOUCHABLE:
                raise PocketMQError(f"{name} cannot be changed from afar", code=ResponseCode.NO_PERMISSION)
        try:
            rows = change_dynamic(self._broker.settings, changes, section="broker")
        except PocketMQError as error:
            raise PocketMQError(error.message, code=ResponseCode.SYSTEM_ERROR, cause=error) from error
        if rows:
            self._changes += 1
            self._changed_ms = self._broker.clock.time_ms()
            logger.info(
                "%s changed %s; it stays so until the broker stops",
                connection.peer,
                ", ".join(row.name for row in rows),
            )
        if any(row.name == "log.level" for row in rows):
            logging.getLogger("pocketmq").setLevel(self._broker.settings.log.level.upper())
        if any(row.name == "broker.permission" for row in rows):
            self._broker.registration.permission_changed()
        return success(command)

    def settings(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_BROKER_CONFIG 26: properties text, under the Java names where there are any."""
        version = DataVersion(self._changes, 0, self._changed_ms)
        text = java_properties(self._broker.settings, SECTIONS)
        header = GetBrokerConfigResponseHeader(msgspec.json.encode(version).decode())
        return success(command, header, text.encode())

    def runtime(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_BROKER_RUNTIME_INFO 28."""
        broker = self._broker
        table = runtime_table(
            broker.settings,
            broker.clock,
            broker.disk,
            broker.log,
            statistics=broker.statistics,
            timers=broker.timers,
            started_ms=broker.started_ms,
        )
        return success_body(command, KVTable(table))

    def statistics(self, connection: "RemotingConnection", command: Command) -> Answer:
        """VIEW_BROKER_STATS_DATA 315."""
        header = command.header(ViewBrokerStatsDataRequestHeader)
        found = self._broker.statistics.named(header.stats_name, header.stats_key)
        if found is None:
            raise PocketMQError(
                f"The stats <{header.stats_name}> <{header.stats_key}> not exist", code=ResponseCode.SYSTEM_ERROR
            )
        series, of_bytes = found
        now_ms = self._broker.clock.time_ms()
        windows = (series.minute(now_ms), series.hour(now_ms), series.day(now_ms))
        return success_body(command, BrokerStatsData(*(_item(window, of_bytes) for window in windows)))

    async def clean_up(self, connection: "RemotingConnection", command: Command) -> Answer:
        """CLEAN_EXPIRED_CONSUMEQUEUE 306 and DELETE_EXPIRED_COMMITLOG 329: do now what retention does by itself."""
        await self._broker.log.retention.check()
        return success(command)


def _item(window: WindowStatistics, of_bytes: bool) -> BrokerStatsItem:
    total = window.size_bytes if of_bytes else window.messages
    rate = window.bytes_per_second if of_bytes else window.messages_per_second
    return BrokerStatsItem(total, rate, total / window.calls if window.calls else 0.0)


def _properties(body: bytes) -> Iterator[tuple[str, str]]:
    """Names and values of Java properties text.

    Raises:
        PocketMQError: code 1, the text is none.
    """
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise PocketMQError("the properties are not UTF-8", code=ResponseCode.SYSTEM_ERROR, cause=error) from None
    for line in text.splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        name, equals, value = stripped.partition("=")
        if not equals:
            raise PocketMQError(f"{stripped!r} is not name=value", code=ResponseCode.SYSTEM_ERROR)
        yield name.strip(), value.strip()


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about the broker itself."""
    requests = AdminRequests(broker)
    dispatcher.on(RequestCode.UPDATE_BROKER_CONFIG, requests.change_settings)
    dispatcher.on(RequestCode.GET_BROKER_CONFIG, requests.settings)
    dispatcher.on(RequestCode.GET_BROKER_RUNTIME_INFO, requests.runtime)
    dispatcher.on(RequestCode.VIEW_BROKER_STATS_DATA, requests.statistics)
    dispatcher.on_async(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE, requests.clean_up)
    dispatcher.on_async(RequestCode.DELETE_EXPIRED_COMMITLOG, requests.clean_up)
