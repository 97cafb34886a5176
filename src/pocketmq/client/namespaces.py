"""Namespaces as clients of RocketMQ 4 have them: a prefix of topics and groups, `namespace%topic`. Pure.

The prefix of a retry or dead-letter topic stands before it: `%RETRY%namespace%group`. Names that belong to the system
have no namespace.
"""

import msgspec

from pocketmq.model.errors import InvalidNameError
from pocketmq.model.message import MessageQueue
from pocketmq.model.names import DLQ_PREFIX, RETRY_PREFIX, SYSTEM_GROUP_PREFIX, check_group, is_system_topic

SEPARATOR = "%"


def check_namespace(namespace: str) -> str:
    """Return the namespace, or raise InvalidNameError. Empty: none."""
    if not namespace:
        return namespace
    check_group(namespace)
    if SEPARATOR in namespace:
        raise InvalidNameError(f"the namespace {namespace!r} may not hold {SEPARATOR}")
    return namespace


def with_namespace(name: str, namespace: str) -> str:
    """A topic or group as it goes on the wire; one that has the namespace already stays as it is."""
    if not namespace or not name or is_system_topic(name) or name.startswith(SYSTEM_GROUP_PREFIX):
        return name
    prefix, rest = _split(name)
    if rest.startswith(namespace + SEPARATOR):
        return name
    return f"{prefix}{namespace}{SEPARATOR}{rest}"


def without_namespace(name: str, namespace: str) -> str:
    """A topic or group as its users call it."""
    if not namespace or namespace not in name:
        return name
    prefix, rest = _split(name)
    return prefix + rest.removeprefix(namespace + SEPARATOR)


def queue_with_namespace(queue: MessageQueue, namespace: str) -> MessageQueue:
    """A queue as it goes on the wire."""
    return msgspec.structs.replace(queue, topic=with_namespace(queue.topic, namespace)) if namespace else queue


def queue_without_namespace(queue: MessageQueue, namespace: str) -> MessageQueue:
    """A queue as its users call it."""
    return msgspec.structs.replace(queue, topic=without_namespace(queue.topic, namespace)) if namespace else queue


def _split(name: str) -> tuple[str, str]:
    for prefix in (RETRY_PREFIX, DLQ_PREFIX):
        if name.startswith(prefix):
            return prefix, name[len(prefix) :]
    return "", name
