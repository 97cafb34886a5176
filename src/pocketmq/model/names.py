"""Names that the RocketMQ protocol fixes: system topics, prefixes, and which names are allowed."""

import re

from pocketmq.model.errors import InvalidNameError
from pocketmq.model.limits import GROUP_CHARS_MAX, RETRY_TOPIC_CHARS_MAX, TOPIC_CHARS_MAX

AUTO_CREATE_TOPIC = "TBW102"
SCHEDULE_TOPIC = "SCHEDULE_TOPIC_XXXX"
TIMER_TOPIC = "rmq_sys_wheel_timer"
HALF_TOPIC = "RMQ_SYS_TRANS_HALF_TOPIC"
HALF_OP_TOPIC = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
CHECK_MAX_TOPIC = "TRANS_CHECK_MAX_TIME_TOPIC"
TRACE_TOPIC = "RMQ_SYS_TRACE_TOPIC"
BENCHMARK_TOPIC = "BenchmarkTest"
SELF_TEST_TOPIC = "SELF_TEST_TOPIC"
OFFSET_MOVED_TOPIC = "OFFSET_MOVED_EVENT"
JOURNAL_TOPIC = "rmq_sys_pocketmq_journal"
"""Where PocketMQ writes state changes that are not messages; Java brokers see one more system topic."""

RETRY_PREFIX = "%RETRY%"
DLQ_PREFIX = "%DLQ%"
SYSTEM_PREFIX = "rmq_sys_"
SYSTEM_GROUP_PREFIX = "CID_RMQ_SYS_"
TOOLS_GROUP = "TOOLS_CONSUMER"
CLIENT_INNER_PRODUCER = "CLIENT_INNER_PRODUCER"
DEFAULT_CLUSTER = "DefaultCluster"
DEFAULT_BROKER = "broker-a"
ORDER_TOPIC_NAMESPACE = "ORDER_TOPIC_CONFIG"

SYSTEM_TOPICS = frozenset(
    {
        AUTO_CREATE_TOPIC,
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        CHECK_MAX_TOPIC,
        TRACE_TOPIC,
        BENCHMARK_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        JOURNAL_TOPIC,
    }
)
SEND_FORBIDDEN_TOPICS = frozenset(
    {
        SCHEDULE_TOPIC,
        TIMER_TOPIC,
        HALF_TOPIC,
        HALF_OP_TOPIC,
        CHECK_MAX_TOPIC,
        SELF_TEST_TOPIC,
        OFFSET_MOVED_TOPIC,
        JOURNAL_TOPIC,
    }
)
SYSTEM_GROUPS = frozenset(
    {
        TOOLS_GROUP,
        "SCHEDULE_CONSUMER",
        "FILTERSRV_CONSUMER",
        "SELF_TEST_C_GROUP",
        "SELF_TEST_P_GROUP",
        CLIENT_INNER_PRODUCER,
        "__MONITOR_CONSUMER",
        "DEFAULT_PRODUCER",
        "DEFAULT_CONSUMER",
        "CID_ONS-HTTP-PROXY",
        "CID_ONSAPI_PERMISSION",
        "CID_ONSAPI_OWNER",
        "CID_ONSAPI_PULL",
        "CID_RMQ_SYS_TRANS",
    }
)

_NAME = re.compile(r"[%|a-zA-Z0-9_-]+\Z")


def retry_topic(group: str) -> str:
    """The topic that a consumer group's messages come back through: `%RETRY%<group>`."""
    return RETRY_PREFIX + group


def dead_letter_topic(group: str) -> str:
    """The topic that takes what a consumer group gave up on: `%DLQ%<group>`."""
    return DLQ_PREFIX + group


def is_system_topic(topic: str) -> bool:
    """True for topics that the broker itself owns."""
    return topic in SYSTEM_TOPICS or topic.startswith(SYSTEM_PREFIX)


def is_system_group(group: str) -> bool:
    """True for groups that exist without being created."""
    return group in SYSTEM_GROUPS or group.startswith(SYSTEM_GROUP_PREFIX)


def check_topic(topic: str) -> str:
    """Return the name, or raise InvalidNameError with the reason in one sentence."""
    chars_max = RETRY_TOPIC_CHARS_MAX if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)) else TOPIC_CHARS_MAX
    return _check("topic", topic, chars_max)


def check_group(group: str) -> str:
    """Return the name, or raise InvalidNameError with the reason in one sentence."""
    return _check("group", group, GROUP_CHARS_MAX)


def _check(kind: str, name: str, chars_max: int) -> str:
    if not name or name.isspace():
        raise InvalidNameError(f"the {kind} name is empty")
    if len(name) > chars_max:
        raise InvalidNameError(f"the {kind} name has {len(name)} characters; at most {chars_max} are allowed")
    if not _NAME.match(name):
        raise InvalidNameError(f"the {kind} name {name!r} may hold only letters, digits and %|_-")
    return name
