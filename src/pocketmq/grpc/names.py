"""Topics and groups as requests name them, checked."""

from pocketmq.model.errors import InvalidNameError
from pocketmq.model.names import check_group, check_topic, is_system_group, is_system_topic
from pocketmq.wire.grpc.codes import Code, CodedError
from pocketmq.wire.grpc.schema import Proto


def full_name(resource: Proto) -> str:
    """The name that a resource has in the broker: `namespace%name` in a namespace."""
    namespace = resource.resource_namespace
    return f"{namespace}%{resource.name}" if namespace else str(resource.name)


def topic_of(resource: Proto) -> str:
    """A topic that clients may use. Raises CodedError ILLEGAL_TOPIC."""
    name = full_name(resource)
    try:
        check_topic(name)
    except InvalidNameError as error:
        raise CodedError(Code.ILLEGAL_TOPIC, error.message) from None
    if is_system_topic(name):
        raise CodedError(Code.ILLEGAL_TOPIC, f"the topic {name} belongs to the broker; clients cannot use it")
    return name


def group_of(resource: Proto) -> str:
    """A consumer group that clients may use. Raises CodedError ILLEGAL_CONSUMER_GROUP."""
    name = full_name(resource)
    try:
        check_group(name)
    except InvalidNameError as error:
        raise CodedError(Code.ILLEGAL_CONSUMER_GROUP, error.message) from None
    if is_system_group(name):
        raise CodedError(Code.ILLEGAL_CONSUMER_GROUP, f"the group {name} belongs to the broker; clients cannot use it")
    return name
