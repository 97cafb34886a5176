"""A data directory that Apache RocketMQ wrote: its messages, settings and cursors are there."""

import pytest

from pocketmq.testing.disk import SimulatedDisk
from pocketmq.wire.hosts import pack_host
from pocketmq.wire.properties import encode_properties
from pocketmq.wire.record import encode_record

TOPICS = """{
	"dataVersion":{"counter":3,"stateVersion":0,"timestamp":1700000000000},
	"topicConfigTable":{
		"orders":{"attributes":{},"order":false,"perm":6,"readQueueNums":4,"topicFilterType":"SINGLE_TAG","topicName":"orders","topicSysFlag":0,"writeQueueNums":4},
		"TBW102":{"order":false,"perm":7,"readQueueNums":8,"topicFilterType":"SINGLE_TAG","topicName":"TBW102","topicSysFlag":0,"writeQueueNums":8}
	}
}"""
GROUPS = """{"dataVersion":{"counter":1,"timestamp":1},"forbiddenTable":{},"subscriptionGroupTable":{
	"billing":{"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"groupName":"billing","retryMaxTimes":5,"retryQueueNums":1,"whichBrokerWhenConsumeSlowly":1}}}"""
OFFSETS = """{"dataVersion":{"counter":1},"offsetTable":{"orders@billing":{0:2,1:7},"%RETRY%billing@billing":{0:1}}}"""
DELAYS = """{"offsetTable":{3:1}}"""

STORED = 1_699_999_999_000


def store(disk: SimulatedDisk, records: list[tuple[str, int, bytes, dict[str, str]]]) -> None:
    """Write a commit log as a Java broker leaves it."""
    position, data, offsets = 0, b"", {}
    for topic, queue_id, body, properties in records:
        offset = offsets.get((topic, queue_id), 0)
        offsets[(topic, queue_id)] = offset + 1
        host = pack_host("10.0.0.9", 10911)
        record = encode_record(
            topic,
            body,
            encode_properties(properties).encode(),
            queue_id=queue_id,
            queue_offset=offset,
            physical_offset=position,
            born_timestamp=STORED - 5,
            born_host=host,
            store_timestamp=STORED,
            store_host=host,
        )
        data += record
        position += len(record)
    write(disk, "commitlog/" + "0" * 20, data, 1024 * 1024)


def write(disk: SimulatedDisk, name: str, data: bytes, size: int | None = None) -> None:
    path = f"/data/{name}"
    disk.make_folder(path.rpartition("/")[0])
    file = disk.open(path, create_size=size or len(data))
    file.write_at(0, data)
    file.close()


RECORDS = [
    ("orders", 0, b"one", {"TAGS": "a"}),
    ("orders", 0, b"two", {}),
    ("orders", 1, b"three", {}),
    ("SCHEDULE_TOPIC_XXXX", 2, b"was delivered", {"REAL_TOPIC": "orders", "REAL_QID": "3", "DELAY": "3"}),
    ("SCHEDULE_TOPIC_XXXX", 2, b"is pending", {"REAL_TOPIC": "orders", "REAL_QID": "3", "DELAY": "3"}),
    ("forgotten", 2, b"no settings", {}),
]


@pytest.fixture
def java_world(world):
    store(world.disk, RECORDS)
    write(world.disk, "config/topics.json", TOPICS.encode())
    write(world.disk, "config/subscriptionGroup.json", GROUPS.encode())
    write(world.disk, "config/consumerOffset.json", OFFSETS.encode())
    write(world.disk, "config/delayOffset.json", DELAYS.encode())
    return world


async def test_every_message_is_given_to_a_consumer_that_starts_at_the_beginning(java_world) -> None:
    await java_world.start()
    peer = await java_world.connect()
    assert [record.body for record in await peer.records()] == [b"one", b"two"]
    assert [record.body for record in await peer.records(subscription="a")] == [b"one"]
    assert [record.body for record in await peer.records(queue_id=1)] == [b"three"]


async def test_settings_and_cursors_are_taken_over(java_world) -> None:
    broker = await java_world.start()
    assert broker.topics.get("orders").write_queue_nums == 4
    assert broker.groups.get("billing").retry_max_times == 5
    assert broker.cursors.get("billing", "orders", 0) == 2
    assert broker.cursors.get("billing", "orders", 1) == 7
    assert broker.cursors.get("billing", "%RETRY%billing", 0) == 1


async def test_a_topic_without_settings_is_inferred_from_its_queues(java_world) -> None:
    broker = await java_world.start()
    assert broker.topics.get("forgotten").read_queue_nums == 3
    peer = await java_world.connect()
    assert [record.body for record in await peer.records("forgotten", queue_id=2)] == [b"no settings"]


async def test_pending_delays_are_delivered_and_delivered_ones_are_not(java_world) -> None:
    await java_world.start()
    peer = await java_world.connect()
    await java_world.clock.sleep(11)
    assert [record.body for record in await peer.records(queue_id=3)] == [b"is pending"]


async def test_the_files_are_read_once(java_world) -> None:
    await java_world.start()
    java_world.broker.journal.commit_later("billing", "orders", 0, 5)
    await java_world.clock.sleep(11)
    await java_world.restart()
    assert java_world.broker.cursors.get("billing", "orders", 0) == 5
    await java_world.clock.sleep(11)
    peer = await java_world.connect()
    assert len(await peer.records(queue_id=3)) == 1


async def test_a_file_cut_in_half_is_replaced_by_its_copy(world, caplog) -> None:
    store(world.disk, RECORDS)
    write(world.disk, "config/topics.json", TOPICS.encode()[:150])
    write(world.disk, "config/topics.json.bak", TOPICS.encode())
    broker = await world.start()
    assert broker.topics.get("orders").write_queue_nums == 4
    assert "topics.json" in caplog.text


async def test_without_any_file_the_messages_are_still_there(world) -> None:
    store(world.disk, RECORDS)
    await world.start()
    assert world.broker.topics.get("orders").read_queue_nums == 2
    peer = await world.connect()
    assert len(await peer.records()) == 2
