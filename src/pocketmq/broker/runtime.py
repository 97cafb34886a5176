"""What a broker says about itself under RocketMQ's names (code 28): for `mqadmin clusterList`, `brokerStatus`, the
Dashboard and exporters. Names of things that PocketMQ does not have (thread pools, a transient store) are there, with
0, where tools parse them.
"""

from typing import TYPE_CHECKING

from pocketmq import __version__
from pocketmq.broker.offsets import store_timestamp_of
from pocketmq.broker.statistics import Rates, Statistics
from pocketmq.model.config import Permission

if TYPE_CHECKING:
    from pocketmq.log.log import Log
    from pocketmq.model.seams import Clock, Disk
    from pocketmq.model.settings import Settings
    from pocketmq.views.timers import Timers

VERSION_NAME = "V5_3_3"
"""The release whose protocol we speak, as RocketMQ names it."""
QUEUE_CAPACITY = 10_000
_WORKERS = ("send", "pull", "litePull", "query", "ack", "endTransaction")
_PUT_TIMES = (
    "[<=0ms]:0 [0~10ms]:0 [10~50ms]:0 [50~100ms]:0 [100~200ms]:0 [200~500ms]:0 [500ms~1s]:0 [1~2s]:0 [2~3s]:0 "
    "[3~4s]:0 [4~5s]:0 [5~10s]:0 [10s~]:0"
)
_NOT_MEASURED = (
    "putMessageEntireTimeMax",
    "getMessageEntireTimeMax",
    "putLatency99",
    "putLatency999",
    "dispatchMaxBuffer",
    "dispatchBehindBytes",
    "pageCacheLockTimeMills",
    "remainTransientStoreBufferNumbs",
    "remainHowManyDataToCommit",
    "startAcceptSendRequestTimeStamp",
    "timerReadBehind",
    "timerOffsetBehind",
)


def runtime_table(
    settings: "Settings",
    clock: "Clock",
    disk: "Disk",
    log: "Log",
    *,
    statistics: Statistics,
    timers: "Timers",
    started_ms: int,
) -> dict[str, str]:
    """Names and values, all text. Times are ms, sizes bytes."""
    now_ms = clock.time_ms()
    table = dict.fromkeys(_NOT_MEASURED, "0")
    table["putMessageDistributeTime"] = _PUT_TIMES
    table["brokerVersionDesc"] = VERSION_NAME
    table["pocketmqVersion"] = __version__
    table["brokerActive"] = "true" if settings.broker.permission & Permission.WRITE else "false"
    table["bootTimestamp"] = str(started_ms)
    table["runtime"] = _duration((now_ms - started_ms) // 1000)
    table |= _message_numbers(statistics)
    table |= _log_numbers(log)
    table |= _disk_numbers(settings, disk)
    table["timerCongestNum"] = str(len(timers))
    table["timerEnqueueTps"] = table["timerDequeueTps"] = "0.0"
    for worker in _WORKERS:
        table[f"{worker}ThreadPoolQueueSize"] = "0"
        table[f"{worker}ThreadPoolQueueCapacity"] = str(QUEUE_CAPACITY)
        table[f"{worker}ThreadPoolQueueHeadWaitTimeMills"] = "0"
    table["EndTransactionQueueSize"] = "0"
    table["EndTransactionThreadPoolQueueCapacity"] = str(QUEUE_CAPACITY)
    return table


def _message_numbers(statistics: Statistics) -> dict[str, str]:
    totals = statistics.snapshot().totals
    missed, found = statistics.missed_rates(), statistics.get_rates()
    transferred = _rates(found)
    return {
        "putMessageTimesTotal": str(totals.puts),
        "putMessageFailedTimes": str(totals.puts_failed),
        "putMessageSizeTotal": str(totals.bytes_in),
        "putMessageAverageSize": str(totals.bytes_in / totals.messages_in if totals.messages_in else 0.0),
        "putTps": _rates(statistics.put_rates()),
        "getFoundTps": transferred,
        "getMissTps": _rates(missed),
        "getTotalTps": _rates(Rates(*(one + other for one, other in zip(found, missed, strict=True)))),
        "getTransferredTps": transferred,
        "getTransferedTps": transferred,
        "msgPutTotalYesterdayMorning": str(statistics.in_yesterday_morning),
        "msgPutTotalTodayMorning": str(statistics.in_today_morning),
        "msgPutTotalTodayNow": str(totals.messages_in),
        "msgGetTotalYesterdayMorning": str(statistics.out_yesterday_morning),
        "msgGetTotalTodayMorning": str(statistics.out_today_morning),
        "msgGetTotalTodayNow": str(totals.messages_out),
    }


def _log_numbers(log: "Log") -> dict[str, str]:
    first = log.record_at(log.min_position) if log.max_position > log.min_position else None
    return {
        "commitLogMinOffset": str(log.min_position),
        "commitLogMaxOffset": str(log.max_position),
        "remainHowManyDataToFlush": f"{max(log.max_position - log.durable_position, 0)} B",
        "earliestMessageTimeStamp": str(store_timestamp_of(first) if first is not None else -1),
    }


def _disk_numbers(settings: "Settings", disk: "Disk") -> dict[str, str]:
    path = settings.store.data_dir
    usage = disk.usage(path)
    used = 1 - usage.free_bytes / usage.total_bytes if usage.total_bytes else 0.0
    ratio = f"{used:.4f}"
    return {
        "commitLogDiskRatio": ratio,
        f"commitLogDiskRatio_{path}": ratio,
        "consumeQueueDiskRatio": ratio,
        "commitLogDirCapacity": f"Total : {_gibibytes(usage.total_bytes)}, Free : {_gibibytes(usage.free_bytes)}.",
    }


def _rates(rates: Rates) -> str:
    return " ".join(f"{rate:.3f}" for rate in rates)


def _gibibytes(size_bytes: int) -> str:
    return f"{size_bytes / 1024**3:.1f} GiB"


def _duration(seconds: int) -> str:
    minutes, seconds = divmod(max(seconds, 0), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return f"[ {days} days, {hours} hours, {minutes} minutes, {seconds} seconds ]"
