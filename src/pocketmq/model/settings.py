"""The one table of settings: each field carries its Java name, unit, whether it may change while running, and a line.

Names are `section.key` in snake case; TOML, `--set`, the environment (`POCKETMQ__SECTION__KEY`) and Java's
`broker.conf` all resolve to this table, through `pocketmq.model.setting_table`. Nothing here reads files; see
`pocketmq.server.config`.
"""

from typing import Annotated, Literal

import msgspec


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """What the table says about one setting beyond its name, type and default."""

    doc: str
    java: str | None = None
    unit: str = ""
    dynamic: bool = False


class BrokerSettings(msgspec.Struct, kw_only=True):
    """Who the broker is and what it allows."""

    cluster: Annotated[str, Setting(java="brokerClusterName", doc="Cluster the broker belongs to.")] = "DefaultCluster"
    name: Annotated[str, Setting(java="brokerName", doc="Name of the broker set; master and replicas share it.")] = (
        "broker-a"
    )
    id: Annotated[int, Setting(java="brokerId", doc="0 is the master, above 0 a replica.")] = 0
    namesrv: Annotated[
        str, Setting(java="namesrvAddr", doc="Name servers to register with, `host:port;host:port`.")
    ] = ""
    host: Annotated[str, Setting(java="bindAddress", doc="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Setting(java="listenPort", unit="port", doc="Main port; the fast port is two below it.")] = (
        10911
    )
    advertise: Annotated[
        str,
        Setting(
            java="brokerIP1",
            doc="Address that clients are told. Empty: the one that each client used to reach the name server.",
        ),
    ] = ""
    permission: Annotated[
        int, Setting(java="brokerPermission", dynamic=True, doc="What the broker allows: 2 write, 4 read, 6 both.")
    ] = 6
    region: Annotated[str, Setting(java="regionId", doc="Region stamped on messages.")] = "DefaultRegion"
    trace_on: Annotated[bool, Setting(java="traceOn", doc="Whether clients are told to write traces.")] = True
    trace_topic: Annotated[
        bool, Setting(java="traceTopicEnable", doc="Create the topic of message traces at start.")
    ] = True
    trace_topic_name: Annotated[
        str, Setting(java="msgTraceTopicName", doc="Topic that message traces are written to.")
    ] = "RMQ_SYS_TRACE_TOPIC"
    store_replies: Annotated[
        bool,
        Setting(
            java="storeReplyMessageEnable",
            dynamic=True,
            doc="Keep replies to requests in the cluster's reply topic, besides passing them on.",
        ),
    ] = True
    auto_create_topic: Annotated[
        bool, Setting(java="autoCreateTopicEnable", dynamic=True, doc="A send to an unknown topic creates it.")
    ] = True
    auto_create_group: Annotated[
        bool,
        Setting(java="autoCreateSubscriptionGroup", dynamic=True, doc="A consumer of an unknown group creates it."),
    ] = True
    default_topic_queues: Annotated[
        int, Setting(java="defaultTopicQueueNums", doc="Most queues that an automatically created topic gets.")
    ] = 8
    register_period_s: Annotated[
        float, Setting(java="registerNameServerPeriod", unit="s", doc="How often the broker tells the name servers.")
    ] = 30.0
    register_timeout_s: Annotated[
        float, Setting(java="registerBrokerTimeoutMills", unit="s", doc="How long it waits for a name server.")
    ] = 24.0
    client_expire_s: Annotated[
        float,
        Setting(java="channelExpiredTimeout", unit="s", doc="A connection that says nothing for this long is closed."),
    ] = 120.0
    queue_lock_s: Annotated[float, Setting(unit="s", doc="How long a queue lock lasts without renewal.")] = 60.0
    long_polling: Annotated[
        bool, Setting(java="longPollingEnable", dynamic=True, doc="Hold pulls that find nothing.")
    ] = True
    short_polling_s: Annotated[
        float, Setting(java="shortPollingTimeMills", unit="s", doc="How long a pull is held with long polling off.")
    ] = 1.0
    held_pulls_max: Annotated[int, Setting(unit="requests", doc="Most pulls held at once.")] = 100_000
    delay_levels: Annotated[str, Setting(java="messageDelayLevel", doc="The delay of each level, from level 1.")] = (
        "1s 5s 10s 30s 1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m 1h 2h"
    )
    delay_max_s: Annotated[
        float, Setting(java="timerMaxDelaySec", unit="s", doc="Longest delay that is accepted, for all protocols.")
    ] = 40 * 86_400.0
    cursor_lag_s: Annotated[
        float,
        Setting(
            java="flushConsumerOffsetInterval",
            unit="s",
            doc="Longest time before a one-way cursor commit is in the log.",
        ),
    ] = 1.0
    transaction_timeout_s: Annotated[
        float,
        Setting(
            java="transactionTimeOut",
            unit="s",
            dynamic=True,
            doc="How old an open transaction must be before its producers are asked about it.",
        ),
    ] = 6.0
    transaction_check_interval_s: Annotated[
        float,
        Setting(
            java="transactionCheckInterval",
            unit="s",
            dynamic=True,
            doc="How often producers are asked about open transactions.",
        ),
    ] = 30.0
    transaction_checks_max: Annotated[
        int,
        Setting(
            java="transactionCheckMax",
            unit="checks",
            dynamic=True,
            doc="A transaction asked about so often is given up: its message goes to TRANS_CHECK_MAX_TIME_TOPIC.",
        ),
    ] = 15
    transaction_age_max_s: Annotated[
        float,
        Setting(unit="s", dynamic=True, doc="A transaction open for this long is given up, whoever was asked."),
    ] = 40 * 86_400.0
    reject_transactions: Annotated[
        bool, Setting(java="rejectTransactionMessage", dynamic=True, doc="Take no transactional messages.")
    ] = False
    sql_filter: Annotated[bool, Setting(java="enablePropertyFilter", dynamic=True, doc="Accept SQL92 filters.")] = True
    broadcast: Annotated[bool, Setting(java="consumeBroadcastEnable", doc="Allow broadcasting consumers.")] = True


class StoreSettings(msgspec.Struct, kw_only=True):
    """Where and how the log is kept."""

    data_dir: Annotated[str, Setting(java="storePathRootDir", doc="Folder of the log and its views.")] = "pocketmq-data"
    ephemeral: Annotated[bool, Setting(doc="Keep everything in memory; nothing survives the process.")] = False
    segment_bytes: Annotated[
        int, Setting(java="mappedFileSizeCommitLog", unit="bytes", doc="Size of a commit-log file.")
    ] = 1024 * 1024 * 1024
    flush: Annotated[
        Literal["async", "sync"],
        Setting(java="flushDiskType", doc="`sync` answers a send when it is on disk; `async` within a bounded lag."),
    ] = "async"
    flush_interval_s: Annotated[
        float, Setting(java="flushIntervalCommitLog", unit="s", doc="Longest time between two flushes in async mode.")
    ] = 0.5
    flush_timeout_s: Annotated[
        float, Setting(java="syncFlushTimeout", unit="s", doc="How long a send waits for its flush in sync mode.")
    ] = 5.0
    message_bytes_max: Annotated[
        int, Setting(java="maxMessageSize", unit="bytes", dynamic=True, doc="Largest body that is accepted.")
    ] = 4 * 1024 * 1024
    record_crc: Annotated[
        bool, Setting(java="enabledAppendPropCRC", doc="Add a checksum over the whole record to its properties.")
    ] = False
    index_stretch_bytes: Annotated[
        int, Setting(unit="bytes", doc="Newest part of the log whose queue index is kept in memory only.")
    ] = 64 * 1024 * 1024
    index_runs_open_max: Annotated[int, Setting(unit="files", doc="Most index files kept open.")] = 64
    retention_hours: Annotated[
        float, Setting(java="fileReservedTime", unit="h", dynamic=True, doc="Segments older than this are deleted.")
    ] = 72.0
    delete_when: Annotated[
        str,
        Setting(
            java="deleteWhen", dynamic=True, doc="Hours of the day for deletion by age; `*` spreads it over the day."
        ),
    ] = "*"
    disk_used_max: Annotated[
        float, Setting(java="diskMaxUsedSpaceRatio", unit="%", dynamic=True, doc="Above this, old segments go early.")
    ] = 75.0
    disk_used_clean: Annotated[
        float,
        Setting(
            java="diskSpaceCleanForciblyRatio",
            unit="%",
            dynamic=True,
            doc="Above this, old segments go at once, whatever their age.",
        ),
    ] = 85.0
    disk_used_refuse: Annotated[
        float,
        Setting(
            java="diskSpaceWarningLevelRatio",
            unit="%",
            dynamic=True,
            doc="Above this, writes are refused with code 14.",
        ),
    ] = 90.0
    accept_damage: Annotated[
        bool, Setting(doc="Start although part of the log is damaged: what is damaged is left out, and reported.")
    ] = False
    snapshot_interval_s: Annotated[
        float, Setting(unit="s", doc="Longest time between two stored states of the views.")
    ] = 60.0


class NamesrvSettings(msgspec.Struct, kw_only=True):
    """The name server."""

    host: Annotated[str, Setting(java="bindAddress", doc="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Setting(java="listenPort", unit="port", doc="Port to listen on.")] = 9876
    broker_expire_s: Annotated[float, Setting(unit="s", doc="A broker silent for this long is forgotten.")] = 120.0
    scan_interval_s: Annotated[
        float, Setting(java="scanNotActiveBrokerInterval", unit="s", doc="How often that is checked.")
    ] = 5.0
    kv_file: Annotated[
        str, Setting(java="kvConfigPath", doc="JSON file of the KV table; empty keeps it in memory.")
    ] = ""
    order_message: Annotated[
        bool, Setting(java="orderMessageEnable", dynamic=True, doc="Give out order configurations.")
    ] = False
    all_topic_list: Annotated[
        bool, Setting(java="enableAllTopicList", dynamic=True, doc="Answer requests for the list of all topics.")
    ] = True
    topic_list: Annotated[
        bool, Setting(java="enableTopicList", dynamic=True, doc="Answer requests for lists of some topics.")
    ] = True
    delete_topic_with_registration: Annotated[
        bool, Setting(java="deleteTopicWithBrokerRegistration", doc="A topic missing in a registration is forgotten.")
    ] = False
    acting_master: Annotated[
        bool,
        Setting(java="supportActingMaster", doc="Show the smallest replica as the master while there is none."),
    ] = False
    notify_min_broker_id: Annotated[
        bool,
        Setting(java="notifyMinBrokerIdChanged", doc="Tell a broker set when the smallest id among it changes."),
    ] = False


class GrpcSettings(msgspec.Struct, kw_only=True):
    """The gRPC endpoint."""

    host: Annotated[str, Setting(doc="Address to listen on.")] = "127.0.0.1"
    port: Annotated[
        int, Setting(java="grpcServerPort", unit="port", doc="Port to listen on; -1 is off. Needs the extra `grpc`.")
    ] = 8081
    advertise: Annotated[
        str, Setting(doc="Endpoint that clients are told, `host:port`. Empty: the one that each client used.")
    ] = ""
    tls: Annotated[bool, Setting(doc="Take TLS connections too, on the same port.")] = True
    certificate: Annotated[
        str,
        Setting(java="tlsCertPath", doc="PEM file of the certificate. Empty: one made at the start, signed by itself."),
    ] = ""
    private_key: Annotated[str, Setting(java="tlsKeyPath", doc="PEM file of the certificate's private key.")] = ""
    message_type_check: Annotated[
        bool,
        Setting(java="enableTopicMessageTypeCheck", dynamic=True, doc="A topic takes only messages of its type."),
    ] = True
    long_polling_max_s: Annotated[
        float,
        Setting(
            java="grpcClientConsumerMaxLongPollingTimeoutMillis",
            unit="s",
            dynamic=True,
            doc="How long a receive waits for messages at most.",
        ),
    ] = 20.0
    renew_receipts: Annotated[
        bool,
        Setting(
            java="enableProxyAutoRenew",
            dynamic=True,
            doc="Keep messages of push consumers invisible until they are done, as long as the consumer lives.",
        ),
    ] = True
    connections_max: Annotated[int, Setting(unit="connections", doc="Most connections at once.")] = 10_000
    idle_s: Annotated[
        float,
        Setting(java="grpcClientIdleTimeMills", unit="s", doc="A connection without any call for this long is closed."),
    ] = 120.0


class HttpSettings(msgspec.Struct, kw_only=True):
    """The HTTP port: health, metrics, console."""

    host: Annotated[str, Setting(doc="Address to listen on.")] = "127.0.0.1"
    port: Annotated[int, Setting(unit="port", doc="Port to listen on; -1 is off.")] = 8082


class LogSettings(msgspec.Struct, kw_only=True):
    """What the process says about itself."""

    level: Annotated[
        Literal["debug", "info", "warning", "error"], Setting(dynamic=True, doc="Least severity written.")
    ] = "info"
    format: Annotated[Literal["text", "json"], Setting(doc="For people or for machines.")] = "text"


class Settings(msgspec.Struct, kw_only=True):
    """All settings of a server process."""

    broker: BrokerSettings = msgspec.field(default_factory=BrokerSettings)
    store: StoreSettings = msgspec.field(default_factory=StoreSettings)
    namesrv: NamesrvSettings = msgspec.field(default_factory=NamesrvSettings)
    grpc: GrpcSettings = msgspec.field(default_factory=GrpcSettings)
    http: HttpSettings = msgspec.field(default_factory=HttpSettings)
    log: LogSettings = msgspec.field(default_factory=LogSettings)
