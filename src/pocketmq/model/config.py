"""Topics, groups and subscriptions: settings that live in the log. Field names on the wire are the camel-case ones."""

from enum import IntFlag
from typing import Any

import msgspec


class Permission(IntFlag):
    """Permission bits of a topic or broker (`perm`)."""

    NONE = 0
    INHERIT = 1
    WRITE = 2
    READ = 4
    READ_WRITE = 6
    PRIORITY = 8


class DataVersion(msgspec.Struct, rename="camel"):
    """Which state of a table a peer has seen; equal only when all three are."""

    counter: int = 0
    state_version: int = 0
    timestamp: int = 0


class TopicConfig(msgspec.Struct, rename="camel", kw_only=True):
    """One topic on one broker (JSON shape: TopicConfig)."""

    topic_name: str
    read_queue_nums: int = 16
    write_queue_nums: int = 16
    perm: int = 6
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    order: bool = False
    attributes: dict[str, str] = {}


class GroupConfig(msgspec.Struct, rename="camel", kw_only=True):
    """One consumer group on one broker (JSON shape: SubscriptionGroupConfig); the defaults are RocketMQ's."""

    group_name: str
    consume_enable: bool = True
    consume_from_min_enable: bool = True
    consume_broadcast_enable: bool = True
    consume_message_orderly: bool = False
    retry_queue_nums: int = 1
    retry_max_times: int = 16
    broker_id: int = 0
    which_broker_when_consume_slowly: int = 1
    notify_consumer_ids_changed_enable: bool = True
    group_sys_flag: int = 0
    consume_timeout_minute: int = 15
    group_retry_policy: dict[str, Any] = msgspec.field(default_factory=lambda: {"type": "CUSTOMIZED"})
    subscription_data_set: list[Any] | None = None
    attributes: dict[str, str] = {}


class Subscription(msgspec.Struct, rename="camel", kw_only=True):
    """What a consumer wants of one topic (JSON shape: SubscriptionData). Empty sets mean everything."""

    topic: str
    sub_string: str = "*"
    tags_set: list[str] = []
    code_set: list[int] = []
    sub_version: int = 0
    expression_type: str | None = "TAG"
    class_filter_mode: bool = False
    filter_class_source: str | None = None
