"""Topics, as operators change them and ask about them: 17, 18, 21, 202, 215, 305, 316, 351."""

from typing import TYPE_CHECKING

import msgspec

from pocketmq.broker.attributes import parse_edits
from pocketmq.broker.dispatcher import Answer, Dispatcher
from pocketmq.broker.remoting.answers import success, success_body, success_table
from pocketmq.broker.topic_admin import PAGE_MAX, TopicAdmin
from pocketmq.model.config import DataVersion, TopicConfig
from pocketmq.model.message import MessageQueue
from pocketmq.wire.bodies.codec import decode_body
from pocketmq.wire.bodies.registration import (
    CreateTopicListRequestBody,
    TopicConfigAndMappingSerializeWrapper,
    TopicConfigAndQueueMapping,
)
from pocketmq.wire.bodies.routes import TopicList
from pocketmq.wire.bodies.statistics import TopicOffset, TopicStatsTable
from pocketmq.wire.codes import RequestCode
from pocketmq.wire.command import Command
from pocketmq.wire.headers.topics import (
    CreateTopicRequestHeader,
    DeleteTopicRequestHeader,
    GetAllTopicConfigRequestHeader,
    GetAllTopicConfigResponseHeader,
    GetTopicConfigRequestHeader,
    GetTopicStatsInfoRequestHeader,
)

if TYPE_CHECKING:
    from pocketmq.broker.broker import Broker
    from pocketmq.net.remoting import RemotingConnection


class TopicRequests:
    """Translates operators' requests for `TopicAdmin`."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._topics = TopicAdmin(
            broker.topic_service, broker.topics, broker.log, offsets=broker.offsets, statistics=broker.statistics
        )

    async def put(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_AND_CREATE_TOPIC 17."""
        header = command.header(CreateTopicRequestHeader)
        config = TopicConfig(
            topic_name=header.topic,
            read_queue_nums=header.read_queue_nums,
            write_queue_nums=header.write_queue_nums,
            perm=header.perm,
            topic_filter_type=header.topic_filter_type,
            topic_sys_flag=header.topic_sys_flag or 0,
            order=header.order,
        )
        await self._topics.put(config, parse_edits(header.attributes))
        return success(command)

    async def put_all(self, connection: "RemotingConnection", command: Command) -> Answer:
        """UPDATE_AND_CREATE_TOPIC_LIST 18. Attributes of its topics are written `+name`, as in 17."""
        await self._topics.put_all(decode_body(command.body, CreateTopicListRequestBody).topic_config_list)
        return success(command)

    async def delete(self, connection: "RemotingConnection", command: Command) -> Answer:
        """DELETE_TOPIC_IN_BROKER 215."""
        topic = command.header(DeleteTopicRequestHeader).topic
        await self._topics.delete(topic)
        self._broker.statistics.forget_topic(topic)
        return success(command)

    def get(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_TOPIC_CONFIG 351."""
        config = self._topics.get(command.header(GetTopicConfigRequestHeader).topic)
        return success_body(command, TopicConfigAndQueueMapping(**msgspec.structs.asdict(config)))

    def get_all(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_ALL_TOPIC_CONFIG 21: all of them, or one page when the request has a header."""
        header = command.header(GetAllTopicConfigRequestHeader)
        table = self._broker.topics
        if header.topic_seq is None:
            configs, total = list(table), len(table)
        else:
            count_max = PAGE_MAX if header.max_topic_num is None else header.max_topic_num
            known = decode_body(header.data_version.encode(), DataVersion) if header.data_version else None
            configs, total = self._topics.page(header.topic_seq, count_max, known)
        body = TopicConfigAndMappingSerializeWrapper(
            data_version=table.data_version, topic_config_table={config.topic_name: config for config in configs}
        )
        return success_table(command, body, GetAllTopicConfigResponseHeader(total))

    def numbers(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_TOPIC_STATS_INFO 202."""
        topic = command.header(GetTopicStatsInfoRequestHeader).topic
        numbers = self._topics.numbers(topic)
        name = self._broker.settings.broker.name
        table = {
            MessageQueue(topic, name, each.queue_id): TopicOffset(each.min_offset, each.max_offset, each.last_update_ms)
            for each in numbers.queues
        }
        return success_body(command, TopicStatsTable(table, numbers.puts_per_second))

    def system_topics(self, connection: "RemotingConnection", command: Command) -> Answer:
        """GET_SYSTEM_TOPIC_LIST_FROM_BROKER 305."""
        return success_body(command, TopicList(self._topics.system_topics()))

    def drop_unused(self, connection: "RemotingConnection", command: Command) -> Answer:
        """CLEAN_UNUSED_TOPIC 316."""
        self._topics.drop_unused()
        return success(command)


def register(dispatcher: Dispatcher, broker: "Broker") -> None:
    """Answer the codes about topics."""
    requests = TopicRequests(broker)
    dispatcher.on_async(RequestCode.UPDATE_AND_CREATE_TOPIC, requests.put)
    dispatcher.on_async(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST, requests.put_all)
    dispatcher.on_async(RequestCode.DELETE_TOPIC_IN_BROKER, requests.delete)
    dispatcher.on(RequestCode.GET_TOPIC_CONFIG, requests.get)
    dispatcher.on(RequestCode.GET_ALL_TOPIC_CONFIG, requests.get_all)
    dispatcher.on(RequestCode.GET_TOPIC_STATS_INFO, requests.numbers)
    dispatcher.on(RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_BROKER, requests.system_topics)
    dispatcher.on(RequestCode.CLEAN_UNUSED_TOPIC, requests.drop_unused)
