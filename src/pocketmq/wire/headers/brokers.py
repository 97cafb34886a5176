"""A broker's own settings and statistics."""

from pocketmq.wire.headers.base import Header


class GetBrokerConfigResponseHeader(Header):
    """GET_BROKER_CONFIG 26: the answer."""

    version: str


class ViewBrokerStatsDataRequestHeader(Header):
    """VIEW_BROKER_STATS_DATA 315."""

    stats_name: str
    stats_key: str
