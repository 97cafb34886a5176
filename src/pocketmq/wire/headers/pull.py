"""Pulling messages from a queue (11, 361)."""

from pocketmq.wire.headers.base import Header, Int32, Int64, TopicHeader, to_json


class PullMessageRequestHeader(TopicHeader):
    """PULL_MESSAGE 11, LITE_PULL_MESSAGE 361."""

    consumer_group: str
    topic: str
    queue_id: Int32
    queue_offset: Int64
    max_msg_nums: Int32
    sys_flag: Int32
    commit_offset: Int64
    suspend_timeout_millis: Int64
    sub_version: Int64
    subscription: str | None = None
    expression_type: str | None = None
    max_msg_bytes: Int32 | None = None
    request_source: Int32 | None = None
    proxy_froward_client_id: str | None = None
    """RocketMQ's spelling."""

    def ext_json(self) -> str:
        """The fields as JSON, by hand: this is in every pull."""
        ext = (
            f'{{"commitOffset":"{self.commit_offset}","consumerGroup":{to_json(self.consumer_group)},'
            f'"maxMsgNums":"{self.max_msg_nums}","queueId":"{self.queue_id}","queueOffset":"{self.queue_offset}",'
            f'"subVersion":"{self.sub_version}","suspendTimeoutMillis":"{self.suspend_timeout_millis}",'
            f'"sysFlag":"{self.sys_flag}","topic":{to_json(self.topic)}'
        )
        if self.subscription is not None:
            ext += f',"subscription":{to_json(self.subscription)}'
        if self.expression_type is not None:
            ext += f',"expressionType":{to_json(self.expression_type)}'
        if self.max_msg_bytes is not None:
            ext += f',"maxMsgBytes":"{self.max_msg_bytes}"'
        if self.request_source is not None:
            ext += f',"requestSource":"{self.request_source}"'
        if self.proxy_froward_client_id is not None:
            ext += f',"proxyFrowardClientId":{to_json(self.proxy_froward_client_id)}'
        return ext + self.common_ext_json() + "}"


class PullMessageResponseHeader(Header):
    """PULL_MESSAGE 11, LITE_PULL_MESSAGE 361: the answer."""

    suggest_which_broker_id: Int64
    next_begin_offset: Int64
    min_offset: Int64
    max_offset: Int64
    offset_delta: Int64 | None = None
    topic_sys_flag: Int32 | None = None
    group_sys_flag: Int32 | None = None
    forbidden_type: Int32 | None = None

    def ext_json(self) -> str:
        """The fields as JSON, by hand: this is in every answer to a pull."""
        ext = (
            f'{{"maxOffset":"{self.max_offset}","minOffset":"{self.min_offset}",'
            f'"nextBeginOffset":"{self.next_begin_offset}","suggestWhichBrokerId":"{self.suggest_which_broker_id}"'
        )
        if self.offset_delta is not None:
            ext += f',"offsetDelta":"{self.offset_delta}"'
        if self.topic_sys_flag is not None:
            ext += f',"topicSysFlag":"{self.topic_sys_flag}"'
        if self.group_sys_flag is not None:
            ext += f',"groupSysFlag":"{self.group_sys_flag}"'
        if self.forbidden_type is not None:
            ext += f',"forbiddenType":"{self.forbidden_type}"'
        return ext + "}"
