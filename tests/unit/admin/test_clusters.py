"""Clusters: brokers and name servers as they are, and those that do not answer."""

import pytest

from pocketmq.admin import Admin, connect_admin
from pocketmq.admin.clusters import read_runtime, version_name
from pocketmq.model.errors import ConnectError, UsageError
from pocketmq.testing import AsyncEmbeddedServer


async def test_status_names_every_broker_and_name_server(admin: Admin, server: AsyncEmbeddedServer) -> None:
    status = await admin.clusters.status()
    assert [(each.address, each.brokers, each.error) for each in status.name_servers] == [(server.namesrv, 1, None)]
    (broker,) = status.brokers
    assert (broker.cluster, broker.broker, broker.broker_id) == ("DefaultCluster", "broker-a", 0)
    assert broker.address == server.broker_address
    assert broker.version.startswith("PocketMQ ")
    assert broker.writable is True
    assert broker.log_end_position is not None


async def test_runtime_is_what_the_broker_says_about_itself(admin: Admin, server: AsyncEmbeddedServer) -> None:
    address = await admin.clusters.address_of("broker-a")
    assert address == server.broker_address
    assert "bootTimestamp" in await admin.clusters.runtime(address)


async def test_a_name_server_that_is_down_is_shown_as_such(server: AsyncEmbeddedServer) -> None:
    async with connect_admin(f"127.0.0.1:1;{server.namesrv}") as admin:
        status = await admin.clusters.status()
    down, up = status.name_servers
    assert down.error is not None and "127.0.0.1:1" in down.error
    assert up.error is None


async def test_a_broker_that_is_down_is_shown_as_such(admin: Admin, server: AsyncEmbeddedServer) -> None:
    (before,) = (await admin.clusters.status()).brokers
    assert server.server.broker is not None
    await server.server.broker.stop()
    for status in (await admin.clusters.status()).brokers:
        assert status.address == before.address
        assert status.error is not None


async def test_no_name_server_is_an_error_that_names_the_address() -> None:
    async with connect_admin("127.0.0.1:1") as admin:
        with pytest.raises(ConnectError, match=r"127\.0\.0\.1:1"):
            await admin.clusters.status()


async def test_an_unknown_broker_or_cluster_is_an_error_that_lists_the_known_ones(admin: Admin) -> None:
    with pytest.raises(UsageError, match="no broker nobody; known are: broker-a"):
        await admin.clusters.address_of("nobody")
    with pytest.raises(UsageError, match="no cluster Nobody; known are: DefaultCluster"):
        await admin.topics.list(cluster="Nobody")


@pytest.mark.parametrize(
    ("number", "name"),
    [
        (479, "V5_3_3"),
        (413, "V5_0_0"),
        (317, "V4_5_2"),
        (399, "V4_9_3"),
        (213, "V4_0_0"),
        (478, "V5_3_3_SNAPSHOT"),
        (137, "V3 (137)"),
    ],
)
def test_version_numbers_have_names(number: int, name: str) -> None:
    assert version_name(number) == name


def test_a_runtime_table_may_lack_anything() -> None:
    status = read_runtime(
        {"putTps": "12.5 3 1", "bootTimestamp": "soon"}, cluster="c", broker="b", broker_id=0, address="h:1"
    )
    assert status.in_per_second == 12.5
    assert status.started_timestamp is None
    assert status.disk_used_percent is None
    assert status.version == ""
