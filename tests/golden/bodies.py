"""JSON bodies as RocketMQ's own classes write them (golden), and other forms that must be read all the same."""

from dataclasses import dataclass
from typing import Any

from pocketmq.model.config import DataVersion, GroupConfig, Subscription, TopicConfig
from pocketmq.model.message import MessageQueue
from pocketmq.wire import bodies

DV = '{"counter":0,"stateVersion":0,"timestamp":1700000000000}'
MQ = '{"brokerName":"b","queueId":1,"topic":"t"}'
SUB = (
    '{"classFilterMode":false,"codeSet":[65,66],"expressionType":"TAG","subString":"A || B",'
    '"subVersion":1700000000000,"tagsSet":["A","B"],"topic":"T1"}'
)
TOPIC = (
    '{"attributes":{},"order":false,"perm":6,"readQueueNums":16,"topicFilterType":"SINGLE_TAG","topicName":"T1",'
    '"topicSysFlag":0,"writeQueueNums":16}'
)
GROUP = (
    '{"attributes":{},"brokerId":0,"consumeBroadcastEnable":true,"consumeEnable":true,"consumeFromMinEnable":true,'
    '"consumeMessageOrderly":false,"consumeTimeoutMinute":15,"groupName":"g","groupRetryPolicy":{"type":"CUSTOMIZED"},'
    '"groupSysFlag":0,"notifyConsumerIdsChangedEnable":true,"retryMaxTimes":16,"retryQueueNums":1,'
    '"whichBrokerWhenConsumeSlowly":1}'
)
WRAPPER = (
    f'{{"dataVersion":{DV},"mappingDataVersion":{DV},"topicConfigTable":{{"T1":{TOPIC}}},'
    '"topicQueueMappingDetailMap":{},"topicQueueMappingInfoMap":{}}'
)

QUEUE = MessageQueue("t", "b", 1)
VERSION = DataVersion(timestamp=1_700_000_000_000)
SUBSCRIPTION = Subscription(
    topic="T1", sub_string="A || B", tags_set=["A", "B"], code_set=[65, 66], sub_version=1_700_000_000_000
)
TOPIC_CONFIG = TopicConfig(topic_name="T1")
GROUP_CONFIG = GroupConfig(group_name="g")
TOPIC_TABLE = bodies.TopicConfigAndMappingSerializeWrapper(
    data_version=VERSION, mapping_data_version=VERSION, topic_config_table={"T1": TOPIC_CONFIG}
)
BROKER = bodies.BrokerData("broker-a", "DefaultCluster", {0: "1.2.3.4:10911", 1: "1.2.3.5:10911"})
BROKER_JSON = (
    '{"brokerAddrs":{0:"1.2.3.4:10911",1:"1.2.3.5:10911"},"brokerName":"broker-a","cluster":"DefaultCluster",'
    '"enableActingMaster":false}'
)


@dataclass(frozen=True)
class GoldenBody:
    """The text of a body, and the value that it stands for, both ways."""

    text: str
    value: Any

    @property
    def data(self) -> bytes:
        """The bytes on the wire."""
        return self.text.encode()


BODIES = [
    GoldenBody(DV, VERSION),
    GoldenBody(TOPIC, TOPIC_CONFIG),
    GoldenBody(GROUP, GROUP_CONFIG),
    GoldenBody(SUB, SUBSCRIPTION),
    GoldenBody(
        f'{{"brokerDatas":[{BROKER_JSON}],"filterServerTable":{{}},"queueDatas":[{{"brokerName":"broker-a","perm":6,'
        '"readQueueNums":4,"topicSysFlag":0,"writeQueueNums":4}]}',
        bodies.TopicRouteData([BROKER], [bodies.QueueData("broker-a", 4, 4, 6)]),
    ),
    GoldenBody(
        f'{{"brokerAddrTable":{{"broker-a":{BROKER_JSON}}},"clusterAddrTable":{{"DefaultCluster":["broker-a"]}}}}',
        bodies.ClusterInfo({"broker-a": BROKER}, {"DefaultCluster": ["broker-a"]}),
    ),
    GoldenBody('{"topicList":["a"]}', bodies.TopicList(["a"])),
    GoldenBody(
        '{"brokerMemberGroup":{"brokerAddrs":{0:"1.2.3.4:10911"},"brokerName":"b","cluster":"c"}}',
        bodies.GetBrokerMemberGroupResponseBody(bodies.BrokerMemberGroup("c", "b", {0: "1.2.3.4:10911"})),
    ),
    GoldenBody('{"table":{"k":"v"}}', bodies.KVTable({"k": "v"})),
    GoldenBody(
        f'{{"filterServerList":[],"topicConfigSerializeWrapper":{WRAPPER}}}', bodies.RegisterBrokerBody(TOPIC_TABLE)
    ),
    GoldenBody(WRAPPER, TOPIC_TABLE),
    GoldenBody(f'{{"topicConfigList":[{TOPIC}]}}', bodies.CreateTopicListRequestBody([TOPIC_CONFIG])),
    GoldenBody(TOPIC, bodies.TopicConfigAndQueueMapping(topic_name="T1")),
    GoldenBody(
        '{"clientID":"ip@inst","consumerDataSet":[{"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET",'
        '"consumeType":"CONSUME_PASSIVELY","groupName":"cg","messageModel":"CLUSTERING",'
        f'"subscriptionDataSet":[{SUB}],"unitMode":false}}],"heartbeatFingerprint":0,'
        '"producerDataSet":[{"groupName":"pg"}],"withoutSub":false}',
        bodies.HeartbeatData(
            "ip@inst",
            [bodies.ProducerData("pg")],
            [bodies.ConsumerData("cg", subscription_data_set=[SUBSCRIPTION])],
        ),
    ),
    GoldenBody(
        f'{{"clientId":"c","group":"g","subscriptionData":{SUB}}}',
        bodies.CheckClientRequestBody("c", "g", SUBSCRIPTION),
    ),
    GoldenBody('{"consumerIdList":["a","b"]}', bodies.GetConsumerListByGroupResponseBody(["a", "b"])),
    GoldenBody(
        f'{{"clientId":"c","consumerGroup":"g","mqSet":[{MQ}],"onlyThisBroker":false}}',
        bodies.LockBatchRequestBody("g", "c", [QUEUE]),
    ),
    GoldenBody(f'{{"lockOKMQSet":[{MQ}]}}', bodies.LockBatchResponseBody([QUEUE])),
    GoldenBody(
        f'{{"offsetTable":{{{MQ}:{{"lastUpdateTimestamp":0,"maxOffset":3,"minOffset":0}}}},"topicPutTps":0.0}}',
        bodies.TopicStatsTable({QUEUE: bodies.TopicOffset(0, 3)}),
    ),
    GoldenBody(
        f'{{"consumeTps":0.0,"offsetTable":{{{MQ}:{{"brokerOffset":0,"consumerOffset":0,"lastTimestamp":0,'
        '"pullOffset":0}}}',
        bodies.ConsumeStats({QUEUE: bodies.OffsetWrapper(0, 0)}),
    ),
    GoldenBody(
        '{"brokerAddr":"a","consumeStatsList":[{"g":[{"consumeTps":0.0,"offsetTable":{}}]}],"totalDiff":0,'
        '"totalInflightDiff":0}',
        bodies.ConsumeStatsList("a", [{"g": [bodies.ConsumeStats()]}]),
    ),
    GoldenBody(
        '{"connectionSet":[{"clientAddr":"1.1.1.1:1","clientId":"x","language":"JAVA","version":5}],'
        '"consumeFromWhere":"CONSUME_FROM_LAST_OFFSET","consumeType":"CONSUME_PASSIVELY","messageModel":"CLUSTERING",'
        f'"subscriptionTable":{{"T1":{SUB}}}}}',
        bodies.ConsumerConnection(
            [bodies.Connection("x", "1.1.1.1:1", "JAVA", 5)],
            {"T1": SUBSCRIPTION},
            "CONSUME_PASSIVELY",
            "CLUSTERING",
            "CONSUME_FROM_LAST_OFFSET",
        ),
    ),
    GoldenBody(
        '{"connectionSet":[{"clientAddr":"1.1.1.1:1","clientId":"x","language":"GO","version":317}]}',
        bodies.ProducerConnection([bodies.Connection("x", "1.1.1.1:1", "GO", 317)]),
    ),
    GoldenBody(
        '{"data":{"pg":[{"clientId":"c","language":"JAVA","lastUpdateTimestamp":1,"remoteIP":"1.1.1.1:2","version":3}]}}',
        bodies.ProducerTableInfo({"pg": [bodies.ProducerInfo("c", "1.1.1.1:2", "JAVA", 3, 1)]}),
    ),
    GoldenBody(
        f'{{"dataVersion":{DV},"forbiddenTable":{{"g":{{"t":1}}}},"subscriptionGroupTable":{{"g":{GROUP}}}}}',
        bodies.SubscriptionGroupWrapper(VERSION, {"g": GROUP_CONFIG}, {"g": {"t": 1}}),
    ),
    GoldenBody(f'{{"groupConfigList":[{GROUP}]}}', bodies.SubscriptionGroupList([GROUP_CONFIG])),
    GoldenBody('{"offsetTable":{"T1@g":{0:5}}}', bodies.ConsumerOffsetSerializeWrapper(offset_table={"T1@g": {0: 5}})),
    GoldenBody(f'{{"dataVersion":{DV},"offsetTable":{{1:5}}}}', bodies.DelayOffsetSerializeWrapper(VERSION, {1: 5})),
    GoldenBody(
        '{"messageRequestModeMap":{"t":{"g":{"consumerGroup":"g","mode":"POP","popShareQueueNum":0,"topic":"t"}}}}',
        bodies.MessageRequestModeSerializeWrapper(
            {"t": {"g": bodies.SetMessageRequestModeRequestBody("t", "g", mode="POP")}}
        ),
    ),
    GoldenBody(
        '{"clientId":"c","consumerGroup":"g","messageModel":"CLUSTERING","strategyName":"AVG","topic":"t"}',
        bodies.QueryAssignmentRequestBody("t", "g", "c"),
    ),
    GoldenBody(
        f'{{"messageQueueAssignments":[{{"messageQueue":{MQ},"mode":"PULL"}}]}}',
        bodies.QueryAssignmentResponseBody([bodies.MessageQueueAssignment(QUEUE)]),
    ),
    GoldenBody(
        '{"acks":[{"b":"AQI=","c":"g","it":60000,"pt":3,"q":1,"r":"0","rq":2,"so":5,"t":"t"}],"brokerName":"b"}',
        bodies.BatchAckMessageRequestBody("b", [bodies.BatchAck("g", "t", 5, 1, 2, 3, 60_000, "AQI=")]),
    ),
    GoldenBody(f'{{"offsetTable":{{{MQ}:5}}}}', bodies.ResetOffsetBody({QUEUE: 5})),
    GoldenBody(
        '{"offsetTable":[{"brokerName":"b","offset":5,"queueId":1,"topic":"t"}]}',
        bodies.ResetOffsetBodyForC([bodies.QueueOffset("b", "t", 1, 5)]),
    ),
    GoldenBody(f'{{"consumerTable":{{}},"messageQueueTable":{{{MQ}:3}}}}', bodies.GetConsumerStatusBody({QUEUE: 3})),
    GoldenBody(
        f'{{"consumerTable":{{"clientId":{{{MQ}:3}}}},"messageQueueTable":{{}}}}',
        bodies.GetConsumerStatusBody(consumer_table={"clientId": {QUEUE: 3}}),
    ),
    GoldenBody('{"groupList":["g"]}', bodies.GroupList(["g"])),
    GoldenBody(
        '{"consumeTimeSpanSet":[{"consumeTimeStamp":0,"delayTime":0,"maxTimeStamp":0,"messageQueue":'
        f'{MQ},"minTimeStamp":0,"minTimeStampStr":"2023-11-14#22:13:20:000"}}]}}',
        bodies.QueryConsumeTimeSpanBody([bodies.QueueTimeSpan(QUEUE, min_time_stamp_str="2023-11-14#22:13:20:000")]),
    ),
    GoldenBody('{"correctionOffsets":{1:2}}', bodies.QueryCorrectionOffsetBody({1: 2})),
    GoldenBody(
        f'{{"group":"g","subscriptionData":{SUB},"topic":"t"}}',
        bodies.QuerySubscriptionResponseBody("g", "t", SUBSCRIPTION),
    ),
    GoldenBody(
        '{"maxQueueIndex":0,"minQueueIndex":0,"queueData":[{"eval":false,"physicOffset":0,"physicSize":0,"tagsCode":0}]'
        f',"subscriptionData":{SUB}}}',
        bodies.QueryConsumeQueueResponseBody([bodies.ConsumeQueueData(0, 0, 0)], subscription_data=SUBSCRIPTION),
    ),
    GoldenBody(
        '{"statsDay":{"avgpt":0.0,"sum":0,"tps":0.0},"statsHour":{"avgpt":0.0,"sum":0,"tps":0.0},'
        '"statsMinute":{"avgpt":0.0,"sum":0,"tps":0.0}}',
        bodies.BrokerStatsData(bodies.BrokerStatsItem(), bodies.BrokerStatsItem(), bodies.BrokerStatsItem()),
    ),
    GoldenBody(
        f'{{"jstack":"s","mqPopTable":{{{MQ}:{{"droped":false,"lastPopTimestamp":0,"waitAckCount":0}}}},'
        f'"mqTable":{{{MQ}:{{"cachedMsgCount":0,"cachedMsgMaxOffset":0,"cachedMsgMinOffset":0,"cachedMsgSizeInMiB":0,'
        '"commitOffset":0,"droped":false,"lastConsumeTimestamp":0,"lastLockTimestamp":0,"lastPullTimestamp":0,'
        '"locked":false,"transactionMsgCount":0,"transactionMsgMaxOffset":0,"transactionMsgMinOffset":0,'
        '"tryUnlockTimes":0}},"properties":{"PROP_CONSUMEORDERLY":"false"},"statusTable":{"T1":{"consumeFailedMsgs":0,'
        '"consumeFailedTPS":0.0,"consumeOKTPS":0.0,"consumeRT":0.0,"pullRT":0.0,"pullTPS":0.0}},'
        f'"subscriptionSet":[{SUB}],"userConsumerInfo":{{}}}}',
        bodies.ConsumerRunningInfo(
            {"PROP_CONSUMEORDERLY": "false"},
            [SUBSCRIPTION],
            {QUEUE: bodies.ProcessQueueInfo()},
            {QUEUE: bodies.PopProcessQueueInfo()},
            {"T1": bodies.ConsumeStatus()},
            jstack="s",
        ),
    ),
    GoldenBody(
        '{"autoCommit":true,"consumeResult":"CR_SUCCESS","order":false,"spentTimeMills":0}',
        bodies.ConsumeMessageDirectlyResult("CR_SUCCESS"),
    ),
    GoldenBody('{"group":"g","readable":true,"topic":"t"}', bodies.GroupForbidden("t", "g", True)),
    GoldenBody(
        '{"password":"p","userStatus":"enable","userType":"Normal","username":"u"}',
        bodies.UserInfo("u", "p", "Normal", "enable"),
    ),
    GoldenBody(
        '{"policies":[{"entries":[{"actions":["Pub"],"decision":"Allow","resource":"Topic:*","sourceIps":["1.1.1.1"]}],'
        '"policyType":"Custom"}],"subject":"User:u"}',
        bodies.AclInfo(
            "User:u", [bodies.PolicyInfo("Custom", [bodies.PolicyEntryInfo("Topic:*", ["Pub"], ["1.1.1.1"], "Allow")])]
        ),
    ),
    GoldenBody(
        '{"haClientRuntimeInfo":{"lastReadTimestamp":0,"lastWriteTimestamp":0,"masterFlushOffset":0,"maxOffset":0,'
        '"transferredByteInSecond":0},"haConnectionInfo":[{"addr":"a","diff":0,"inSync":false,"slaveAckOffset":0,'
        '"transferFromWhere":0,"transferredByteInSecond":0}],"inSyncSlaveNums":0,"master":true,'
        '"masterCommitLogMaxOffset":0}',
        bodies.HARuntimeInfo(master=True, ha_connection_info=[bodies.HAConnectionRuntimeInfo("a")]),
    ),
]

OTHER_FORMS = [
    (
        "quoted integer keys",
        '{"brokerAddrs":{"0":"a:1"},"brokerName":"b","cluster":"c"}',
        bodies.BrokerData("b", "c", {0: "a:1"}),
    ),
    (
        "single quotes, unquoted names and stray commas",
        "{brokerAddrs:{0:'a:1',},'brokerName':\"b\",cluster:'c',}",
        bodies.BrokerData("b", "c", {0: "a:1"}),
    ),
    (
        "nulls, quoted numbers and unknown fields",
        '{"topic":"T1","codeSet":null,"tagsSet":null,"subVersion":"12","expressionType":null,"more":{"x":[1]}}',
        Subscription(topic="T1", sub_version=12),
    ),
    (
        "blanks everywhere",
        ' { "table" : { "k" : "v" } } \n',
        bodies.KVTable({"k": "v"}),
    ),
    (
        "a reference as a key loses the entry",
        '{"mqTable":{{"$ref":"$.mqPopTable.null"}:{"commitOffset":1}},"properties":{}}',
        bodies.ConsumerRunningInfo(),
    ),
    (
        "escapes",
        "{'table':{'k\\u0041\\x42\\n':'\\'\\\\\\ud83d\\ude00',},}",
        bodies.KVTable({"kAB\n": "'\\😀"}),
    ),
]
"""(what is special, text, value)"""

BAD_BODIES = [
    ("nothing", b"", "empty"),
    ("not JSON", b"hello", "is no value"),
    ("cut off", b'{"clientID":"a","producerDataSet":[', "cannot be read"),
    ("cut off in a text", b'{"clientID":"a', "cannot be read"),
    ("not UTF-8", b'{"clientID":"\xff"}', "not UTF-8"),
    ("another type", b'{"clientID":["a"]}', "not a HeartbeatData"),
    ("a required field missing", b'{"producerDataSet":[]}', "clientID"),
    ("too deep", b"[" * 100_000, "deep"),
    ("too deep in keys", b"{" * 100_000, "deep"),
    ("a missing colon", b'{a "b"}', "colon"),
    ("more after the end", b'{clientID:"a"} x', "more after the end"),
]
"""(what is wrong, a body that should be HeartbeatData, part of the error)"""

COMPRESSED_REGISTRATION_INFLATED = (
    bytes.fromhex("00000038") + DV.encode() + bytes.fromhex("00000001 00000016") + b"T1 4 4 6 SINGLE_TAG {}"
    + bytes.fromhex("00000002") + b"[]" + bytes.fromhex("00000000")
)  # fmt: skip
"""Golden: what a compressed registration of one topic inflates to."""
