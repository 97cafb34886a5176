"""The broker itself: its settings, its numbers."""

import asyncio
from typing import Any

import pytest

from pocketmq.wire.bodies.routes import KVTable
from pocketmq.wire.bodies.statistics import BrokerStatsData
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.headers.brokers import ViewBrokerStatsDataRequestHeader

World = Any
Client = Any


async def settings(client: Client) -> dict[str, str]:
    answer = await client.ask(RequestCode.GET_BROKER_CONFIG)
    assert "counter" in answer.ext()["version"]
    return dict(line.split("=", 1) for line in answer.body.decode().splitlines())


async def change(client: Client, text: str, *, expect: int = 0) -> str | None:
    answer = await client.ask(RequestCode.UPDATE_BROKER_CONFIG, None, text.encode(), expect=expect)
    return None if answer.remark is None else str(answer.remark)


async def test_settings_are_shown_under_their_java_names(client: Client) -> None:
    table = await settings(client)
    assert table["brokerName"] == "broker-a"
    assert table["flushDiskType"] == "ASYNC_FLUSH"
    assert table["registerNameServerPeriod"] == "30000"
    assert table["autoCreateTopicEnable"] == "true"


async def test_a_setting_changes_while_the_broker_runs(world: World, client: Client) -> None:
    await change(client, "autoCreateTopicEnable=false\n# a comment\n\nfileReservedTime=48\n")
    assert world.settings.broker.auto_create_topic is False
    assert world.settings.store.retention_hours == 48
    assert (await settings(client))["autoCreateTopicEnable"] == "false"


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("autoCreateTopicEnabel=false", 1, "did you mean"),
        ("autoCreateTopicEnable=maybe", 1, "expected true or false"),
        ("brokerName=other", 1, "cannot change while the server runs"),
        ("brokerConfigPath=/tmp/x", 16, "cannot be changed"),
        ("nonsense", 1, "not name=value"),
        ("fileReservedTime=-3", 1, "not negative"),
    ],
)
async def test_a_change_that_cannot_be(client: Client, text: str, code: int, words: str) -> None:
    assert words in (await change(client, text, expect=code) or "")


async def test_all_changes_or_none(world: World, client: Client) -> None:
    await change(client, "autoCreateTopicEnable=false\nbrokerName=other", expect=1)
    assert world.settings.broker.auto_create_topic is True


async def test_what_the_broker_says_about_itself(world: World, client: Client) -> None:
    await client.create_topic("orders")
    for _ in range(20):
        await client.send(body=b"x" * 100)
    await client.heartbeat(groups=("g",))
    await client.pull("orders", "g", 0)
    await asyncio.sleep(20)
    table = (await client.ask_body(KVTable, RequestCode.GET_BROKER_RUNTIME_INFO)).table
    assert table["brokerVersionDesc"].startswith("V5_")
    assert table["msgPutTotalTodayNow"] == table["msgGetTotalTodayNow"] == "20"
    assert table["putMessageTimesTotal"] == "20"
    assert table["sendThreadPoolQueueSize"] == "0"
    assert int(table["commitLogMaxOffset"]) > int(table["commitLogMinOffset"]) == 0
    assert 0 <= float(table["commitLogDiskRatio"]) < 1
    for name in ("putTps", "getTransferredTps", "getFoundTps", "getMissTps", "getTotalTps"):
        rates = [float(rate) for rate in table[name].split(" ")]
        assert len(rates) == 3
    assert float(table["putTps"].split(" ")[1]) == pytest.approx(1.0, rel=0.1)
    assert table["runtime"] == "[ 0 days, 0 hours, 0 minutes, 20 seconds ]"
    assert world.clock.time_ms() - int(table["earliestMessageTimeStamp"]) < 60_000


async def statistic(client: Client, name: str, key: str, *, expect: int = 0) -> tuple[int, int, int] | None:
    header = ViewBrokerStatsDataRequestHeader(name, key)
    if expect:
        await client.ask(RequestCode.VIEW_BROKER_STATS_DATA, header, expect=expect)
        return None
    found = await client.ask_body(BrokerStatsData, RequestCode.VIEW_BROKER_STATS_DATA, header)
    return found.stats_minute.sum, found.stats_hour.sum, found.stats_day.sum


async def test_statistics_over_a_minute_an_hour_and_a_day(world: World, client: Client) -> None:
    await client.create_topic("orders")
    await client.send()
    await asyncio.sleep(7200)
    client = await world.connect()
    for _ in range(3):
        await client.send()
    assert await statistic(client, "TOPIC_PUT_NUMS", "orders") == (3, 3, 4)
    assert await statistic(client, "BROKER_PUT_NUMS", "DefaultCluster") == (3, 3, 4)


async def test_unknown_statistics(client: Client) -> None:
    await statistic(client, "TOPIC_PUT_NUMS", "unknown", expect=1)
    await statistic(client, "NO_SUCH_NUMS", "orders", expect=1)


async def test_cleaning_up_at_once(client: Client) -> None:
    await client.ask(RequestCode.DELETE_EXPIRED_COMMITLOG)
    await client.ask(RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)


async def test_a_code_that_nobody_knows(client: Client) -> None:
    answer = await client.connection.request(12345, timeout_s=5)
    assert answer.code == 3
