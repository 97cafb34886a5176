"""What an operator asks of a cluster, PocketMQ's or Apache's: `connect_admin` gives an `Admin`.

The command line and the console both call it. Names are loaded when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pocketmq.admin.admin import Admin as Admin
    from pocketmq.admin.admin import connect_admin as connect_admin
    from pocketmq.admin.clusters import BrokerStatus as BrokerStatus
    from pocketmq.admin.clusters import ClusterStatus as ClusterStatus
    from pocketmq.admin.clusters import NameServerStatus as NameServerStatus
    from pocketmq.admin.groups import GroupDetails as GroupDetails
    from pocketmq.admin.groups import GroupInfo as GroupInfo
    from pocketmq.admin.members import GroupMember as GroupMember
    from pocketmq.admin.offsets import PositionChange as PositionChange
    from pocketmq.admin.progress import GroupProgress as GroupProgress
    from pocketmq.admin.progress import QueueProgress as QueueProgress
    from pocketmq.admin.topics import QueueStatus as QueueStatus
    from pocketmq.admin.topics import TopicDetails as TopicDetails
    from pocketmq.admin.topics import TopicInfo as TopicInfo
    from pocketmq.admin.traces import TraceEvent as TraceEvent

_HOMES = {
    "Admin": "admin",
    "BrokerStatus": "clusters",
    "ClusterStatus": "clusters",
    "GroupDetails": "groups",
    "GroupInfo": "groups",
    "GroupMember": "members",
    "GroupProgress": "progress",
    "NameServerStatus": "clusters",
    "PositionChange": "offsets",
    "QueueProgress": "progress",
    "QueueStatus": "topics",
    "TopicDetails": "topics",
    "TopicInfo": "topics",
    "TraceEvent": "traces",
    "connect_admin": "admin",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
