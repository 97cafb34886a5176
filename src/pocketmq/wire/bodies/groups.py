"""Consumer groups: their settings and who they are."""

import msgspec

from pocketmq.model.config import DataVersion, GroupConfig, Subscription
from pocketmq.wire.bodies.codec import Body


class SubscriptionGroupWrapper(Body):
    """All groups of a broker (the answer to 201)."""

    data_version: DataVersion = msgspec.field(default_factory=DataVersion)
    subscription_group_table: dict[str, GroupConfig] = {}
    forbidden_table: dict[str, dict[str, int]] = {}


class SubscriptionGroupList(Body):
    """The body of 225."""

    group_config_list: list[GroupConfig] = []


class GroupList(Body):
    """The answer to 300."""

    group_list: list[str] = []


class GroupForbidden(Body):
    """The answer to 353."""

    topic: str
    group: str
    readable: bool


class QuerySubscriptionResponseBody(Body):
    """The answer to 345."""

    group: str
    topic: str
    subscription_data: Subscription | None = None


class SetMessageRequestModeRequestBody(Body):
    """The body of 401; `mode` is PULL or POP."""

    topic: str
    consumer_group: str
    mode: str = "PULL"
    pop_share_queue_num: int = 0


class MessageRequestModeSerializeWrapper(Body):
    """The answer to 402: topic -> group -> mode."""

    message_request_mode_map: dict[str, dict[str, SetMessageRequestModeRequestBody]] = {}
