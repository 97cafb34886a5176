"""Sending messages (10, 310, 320, 324, 325) and the answer to it."""

import msgspec

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader, to_json, to_text


class SendMessageRequestHeader(TopicHeader):
    """SEND_MESSAGE 10, SEND_REPLY_MESSAGE 324."""

    producer_group: str
    topic: str
    default_topic: str
    default_topic_queue_nums: Int32
    queue_id: Int32
    sys_flag: Int32
    born_timestamp: Int64
    flag: Int32
    properties: str | None = None
    reconsume_times: Int32 | None = None
    unit_mode: bool | None = None
    batch: bool | None = None
    max_reconsume_times: Int32 | None = None


class SendMessageRequestHeaderV2(TopicHeader):
    """SEND_MESSAGE_V2 310, SEND_BATCH_MESSAGE 320, SEND_REPLY_MESSAGE_V2 325: the same fields under one-letter names.

    The Python names are those of the first version, so that a server reads both alike.
    """

    producer_group: str = msgspec.field(name="a")
    topic: str = msgspec.field(name="b")
    default_topic: str = msgspec.field(name="c")
    default_topic_queue_nums: Int32 = msgspec.field(name="d")
    queue_id: Int32 = msgspec.field(name="e")
    sys_flag: Int32 = msgspec.field(name="f")
    born_timestamp: Int64 = msgspec.field(name="g")
    flag: Int32 = msgspec.field(name="h")
    properties: str | None = msgspec.field(name="i", default=None)
    reconsume_times: Int32 | None = msgspec.field(name="j", default=None)
    unit_mode: bool | None = msgspec.field(name="k", default=None)
    max_reconsume_times: Int32 | None = msgspec.field(name="l", default=None)
    batch: bool | None = msgspec.field(name="m", default=None)
    broker_name: str | None = msgspec.field(name="n", default=None)

    def ext_json(self) -> str:
        """The fields as JSON, by hand: this is in every send of a busy client."""
        ext = (
            f'{{"a":{to_json(self.producer_group)},"b":{to_json(self.topic)},"c":{to_json(self.default_topic)},'
            f'"d":"{self.default_topic_queue_nums}","e":"{self.queue_id}","f":"{self.sys_flag}",'
            f'"g":"{self.born_timestamp}","h":"{self.flag}"'
        )
        if self.properties is not None:
            ext += f',"i":{to_json(self.properties)}'
        if self.reconsume_times is not None:
            ext += f',"j":"{self.reconsume_times}"'
        if self.unit_mode is not None:
            ext += f',"k":"{to_text(self.unit_mode)}"'
        if self.max_reconsume_times is not None:
            ext += f',"l":"{self.max_reconsume_times}"'
        if self.batch is not None:
            ext += f',"m":"{to_text(self.batch)}"'
        if self.broker_name is not None:
            ext += f',"n":{to_json(self.broker_name)}'
        return ext + self.common_ext_json() + "}"


class SendMessageResponseHeader(Header):
    """The answer to every kind of send. Java clients read the last two fields without asking whether they are there."""

    msg_id: str
    queue_id: Int32
    queue_offset: Int64
    transaction_id: str | None = None
    batch_uniq_id: str | None = None
    recall_handle: str | None = None
    message_region: str = msgspec.field(name="MSG_REGION", default="DefaultRegion")
    trace_on: str = msgspec.field(name="TRACE_ON", default="true")

    def ext_json(self) -> str:
        """The fields as JSON, by hand: this is in every answer of a busy broker."""
        ext = f'{{"MSG_REGION":{to_json(self.message_region)},"TRACE_ON":{to_json(self.trace_on)},'
        if self.batch_uniq_id is not None:
            ext += f'"batchUniqId":{to_json(self.batch_uniq_id)},'
        ext += f'"msgId":{to_json(self.msg_id)},"queueId":"{self.queue_id}","queueOffset":"{self.queue_offset}"'
        if self.recall_handle is not None:
            ext += f',"recallHandle":{to_json(self.recall_handle)}'
        if self.transaction_id is not None:
            ext += f',"transactionId":{to_json(self.transaction_id)}'
        return ext + "}"
