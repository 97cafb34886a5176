"""Names of Java's broker.conf and namesrv.conf that are not in the settings table.

Most tune machinery that does not exist in PocketMQ (thread pools, memory maps, transient pools) and are passed over
with a warning. Some ask for something that matters, and that would be missing without a word: those are refused unless
they are set to what PocketMQ does anyway.
"""

REFUSED_UNLESS: dict[str, tuple[frozenset[str], str]] = {
    name: (frozenset(accepted), reason)
    for names, accepted, reason in (
        (
            ("aclEnable", "authenticationEnabled", "authorizationEnabled"),
            ("false",),
            "there is no access control yet, everybody would be let in",
        ),
        (("useTLS",), ("false",), "there is no TLS yet, everything would be sent in the clear"),
        (("brokerRole",), ("ASYNC_MASTER", "SYNC_MASTER"), "there are no replicas yet"),
        (("inSyncReplicas", "minInSyncReplicas", "totalReplicas"), ("1",), "there are no replicas yet"),
        (
            ("enableDLegerCommitLog", "enableControllerMode", "enableSlaveActingMaster", "duplicationEnable"),
            ("false",),
            "there are no replicas yet",
        ),
        (("enableControllerInNamesrv",), ("false",), "there is no controller in this name server"),
        (("isBrokerContainer", "isInBrokerContainer"), ("false",), "there are no broker containers"),
        (("storeType",), ("default",), "the log is kept in files only"),
        (("messageStorePlugIn",), ("",), "there are no store plug-ins"),
        (("enableMultiDispatch", "enableLmq"), ("false",), "there are no light message queues"),
    )
    for name in names
}
"""Name -> (the values that change nothing here, why others cannot be)."""

HARMLESS_JAVA_NAMES = frozenset(
    """
    abortFile accessMessageInMemoryHotRatio accessMessageInMemoryMaxRatio accountStatsEnable accountStatsPrintZeroValues
    ackMessageThreadPoolNums ackThreadPoolQueueCapacity adminBrokerThreadPoolNums
    adminBrokerThreadPoolQueueCapacity allAckInSyncStateSet allowRecallWhenBrokerNotWriteable appendAckAsync
    appendCkAsync appendTopicForTimerDeleteKey asyncLearner asyncSendEnable autoDeleteUnusedStats
    autoMessageVersionOnTopicLen batchDispatchRequestThreadPoolNums bitMapLengthConsumeQueueExt
    bottomMostCompressionTypeForConsumeQueueStore broadcastOffsetExpireMaxSecond broadcastOffsetExpireSecond
    brokerElectionPriority brokerFastFailureEnable brokerHeartbeatInterval brokerIP2 brokerNotActiveTimeoutMillis
    brokerTopicEnable cgColdReadThreshold channelNotActiveInterval checkCommitLogOffsetOnRecover checkCRCOnRecover
    checkSyncStateSetPeriod checkTransactionMessageEnable checkTransactionMessageThreadPoolNums
    cleanFileForcibly cleanFileForciblyEnable cleanOfflineBrokerInterval
    cleanResourceInterval cleanRocksDBDirtyCQIntervalMin cleanSwapedMapInterval clearRetryTopicWhenDeleteTopic
    clientAsyncSemaphoreValue clientCallbackExecutorThreads clientChannelMaxIdleTimeSeconds
    clientCloseSocketIfTimeout clientManagerThreadPoolQueueCapacity clientManageThreadPoolNums
    clientOnewaySemaphoreValue clientPooledByteBufAllocatorEnable clientRequestThreadPoolNums
    clientRequestThreadPoolQueueCapacity clientSocketRcvBufSize clientSocketSndBufSize clientWorkerThreads
    clusterTest clusterTopicEnable coldCtrStrategyEnable coldDataFlowControlEnable coldDataScanEnable
    combineAssignOffsetCQType combineCQEnableCheckSelf combineCQLoadingCQTypes
    combineCQMaxExtraSearchCommitLogFiles combineCQPreferCQType combineCQUseRocksdbForLmq commercialBaseCount
    commercialEnable commercialSizePerMsg commitCommitLogLeastPages commitCommitLogThoroughInterval
    commitIntervalCommitLog commitLogForceSwapMapInterval commitLogRecoverMaxNum commitLogSwapMapInterval
    commitLogSwapMapReserveFileNum compactionCqMappedFileSize compactionMappedFileSize compactionScheduleInternal
    compactionThreadNum compatibleWithOldNameSrv compressedRegister configBlackList configManagerVersion
    configStorePath connectTimeoutMillis consumerFallbehindThreshold consumerManagerThreadPoolQueueCapacity
    consumerManageThreadPoolNums consumerOffsetUpdateVersionStep controllerAddr controllerHeartBeatTimeoutMills
    correctLogicMinOffsetForceInterval correctLogicMinOffsetSleepInterval dataReadAheadEnable debugLockEnable
    defaultMessageRequestMode defaultPopShareQueueNum defaultQueryMaxNum defaultThreadPoolNums
    defaultThreadPoolQueueCapacity delayOffsetUpdateVersionStep deleteCommitLogFilesInterval
    deleteConsumeQueueFilesInterval deleteFileBatchMax destroyMapedFileIntervalForcibly disableCallbackExecutor
    disableConsumeIfConsumerReadSlowly disableNettyWorkerGroup disappearTimeAfterStart diskFallRecorded
    dispatchCqCacheNum dispatchCqThreads dispatchFromSenderThread enableAcceleratedRecovery enableAsyncReput
    enableAutoInSyncReplicas enableBatchPush enableBroadcastOffsetStore enableBuildConsumeQueueConcurrently
    enableCalcFilterBitMap enableCleanExpiredOffset enableConnectionMetrics enableConsumeQueueExt
    enableCreateSysGroup enableDetailStat enableFastChannelEventProcess enableLagAndDlqMetrics enableLiteEventMode
    enableLitePopLog enableLmqQuota enableLmqStats enableLogConsumeQueueRepeatedlyBuildWhenRecover
    enableMessageStoreMetrics enableMixedMessageType enableNettyPooledByteBufAllocator enableNetWorkFlowControl
    enableNotifyAfterPopOrderLockRelease enableNotifyBeforePopCalculateLag enablePopBatchAck enablePopBufferMerge
    enablePopLog enablePopMessageThreshold enablePopMetrics enableReconnectForGoAway enableRegisterProducer
    enableRemoteEscape enableRemotingMetrics enableRequestMetrics enableRetryTopicV2 enableRocksDBLog
    enableRunningFlagsInFlush enableScheduleAsyncDeliver enableScheduleMessageStats enableShutdownGracefully
    enableSingleTopicRegister enableSkipLongAwaitingAck enableSplitMetadata enableSplitRegistration
    enableStatsMetrics enableTransactionMetrics endTransactionPoolQueueCapacity endTransactionThreadPoolNums
    estimateAccumulation expectConsumerNumUseFilter fastFailIfNoBufferInStorePool fetchControllerAddrByDnsLookup
    fetchNamesrvAddrByAddressServer fetchNameSrvAddrByDnsLookup fetchNamesrvAddrInterval filterDataCleanTimeSpan
    filterServerNums filterSupportRetry flushCommitLogLeastPages flushCommitLogThoroughInterval
    flushCommitLogTimed flushConsumeQueueLeastPages flushConsumeQueueThoroughInterval
    flushConsumerOffsetHistoryInterval flushDelayOffsetInterval flushIntervalConsumeQueue
    flushLeastPagesWhenWarmMapedFile forceRegister forceVerifyPropCRC forwardTimeout globalColdReadThreshold
    haFlowControlEnable haHousekeepingInterval haListenPort haMasterAddress haMaxGapNotInSync
    haMaxTimeSlaveNotCatchup haSendHeartbeatInterval haSlaveFallbehindMax haTransferBatchSize
    heartbeatThreadPoolNums heartbeatThreadPoolQueueCapacity highSpeedMode indexFileReadEnable
    indexFileWriteEnable indexRocksDBEnable initPopOffsetByCheckMsgInMem isolateLogEnable isScanAvailableNameSrv
    iteratorWhenUseRocksdbConsumeQueue liteEventCheckInterval liteEventFullDispatchDelayTime
    liteEventFullDispatchDelayTimeForWildcardGroup liteLagCountMetricsEnable liteLagLatencyCollectEnable
    liteLagLatencyMetricsEnable liteLagLatencyTopK litePullMessageEnable litePullMessageThreadPoolNums
    litePullThreadPoolQueueCapacity liteSubscriptionCheckInterval liteSubscriptionCheckTimeoutMills
    liteTtlCheckInterval loadBalancePollNameServerInterval loadBalanceProcessorThreadPoolNums
    loadBalanceThreadPoolNums loadBalanceThreadPoolQueueCapacity lockInStrictMode
    logicalDiskSpaceCleanForciblyThreshold logicQueueForceSwapMapInterval logicQueueSwapMapInterval
    logicQueueSwapMapReserveFileNum mapedFileSizeConsumeQueue mapedFileSizeConsumeQueueExt
    mappedFileSizeConsumeQueue mappedFileSizeConsumeQueueExt mappedFileSizeTimerLog mappedFileSwapEnable
    mapperFileSizeBatchConsumeQueue maxAsyncPutMessageRequests maxBatchDeleteFilesNum maxChecksumRange
    maxClientEventCount maxConsumeQueueScan maxDelayTime maxErrorRateOfBloomFilter maxFilterMessageSize
    maxHashSlotNum maxHaTransferByteInSecond maxIndexNum maxLiteSubscriptionCount maxLmqConsumeQueueNum
    maxMessageFilterNumForNotification maxMsgsNumBatch maxOffsetMapSize maxPopPollingSize
    maxReconnectIntervalTimeSeconds maxRecoveryCommitlogFiles maxRocksDBIndexQueryDays maxSlaveResendLength
    maxStatsIdleTimeInMinutes maxTopicLength maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory
    maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory memTableFlushIntervalMs messageIndexEnable
    messageIndexSafe metricGrpcExporterIntervalInMills metricGrpcExporterTimeOutInMills
    metricLoggingExporterIntervalInMills metricsExportBatchMaxDataPoints metricsExporterType
    metricsGrpcExporterHeader metricsGrpcExporterTarget metricsInDelta metricsLabel metricsOtelCardinalityLimit
    metricsPromExporterHost metricsPromExporterPort minLiteTTl needWaitForService
    notifyConsumerIdsChangedEnable offsetCheckInSlave osPageCacheBusyTimeOutMills
    persistConsumerOffsetIncrementally popCkMaxBufferSize popCkOffsetMaxQueueSize popCkStayBufferTime
    popCkStayBufferTimeOut popConsumerFSServiceInit popConsumerKVServiceEnable popConsumerKVServiceInit
    popConsumerKVServiceLog popFromRetryProbability popFromRetryProbabilityForPriority popInflightMessageThreshold
    popLongPollingForceNotifyInterval popPollingMapExpireTimeSeconds popPollingMapSize popPollingSize
    popResponseReturnActualRetryTopic popReviveConcurrency popReviveMaxAttemptTimes popReviveMaxReturnSizePerRead
    popReviveSkipIfGroupAbsent printChannelGroups printChannelGroupsMinNum priorityOrderAsc
    processReplyMessageThreadPoolNums productEnvName pullBatchMaxMessageCount pullMessageThreadPoolNums
    pullThreadPoolQueueCapacity putConsumeQueueDataByFileChannel putMessageFutureThreadPoolNums putMessageTimeout
    putMsgIndexHightWater putThreadPoolQueueCapacity queryMessageThreadPoolNums queryThreadPoolQueueCapacity
    readUnCommitted realTimeNotifyConsumerChange realTimePersistRocksDBConfig recallMessageEnable
    recheckReputOffsetFromCq recoverConcurrently recoverThreadPoolNums redeleteHangedFileInterval
    rejectPullConsumerEnable replicasPerDiskPartition replyThreadPoolQueueCapacity
    retrieveMessageFromPopRetryTopicV1 returnOrderTopicConfigToBroker reviveAckWaitMs reviveInterval reviveMaxSlow
    reviveQueueNum reviveScanTime rmqAddressServerDomain rmqAddressServerSubGroup rocketmqHome
    rocksdbCompressionType rocksdbCQDoubleWriteEnable rocksdbFlushWalFrequency rocksdbWalFileRollingThreshold
    sampleCountThreshold sampleSteps scheduleAsyncDeliver scheduleAsyncDeliverMaxPendingLimit
    scheduleAsyncDeliverMaxResendNum2Blocked searchBcqByCacheEnable sendHeartbeatTimeoutMillis
    sendMessageThreadPoolNums sendThreadPoolQueueCapacity serverAsyncSemaphoreValue serverCallbackExecutorThreads
    serverChannelMaxIdleTimeSeconds serverLoadBalancerEnable serverNettyWorkerGroupEnable
    serverOnewaySemaphoreValue serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog
    serverSocketRcvBufSize serverSocketSndBufSize serverWorkerThreads sharedByteBufferNum shutdownWaitTimeSeconds
    skipPreOnline skipWhenCKRePutReachMaxTimes slaveReadEnable slaveTimeout socksProxyConfig
    spinLockCollisionRetreatOptimalDegree splitMetadataSize splitRegistrationSize startAcceptSendRequestTimeStamp
    statRocksDBCQIntervalSec storeCheckpoint storePathAbortFile storePathConsumeQueue storePathIndex
    subscriptionExpiredTimeout syncBrokerMemberGroupPeriod syncBrokerMetadataPeriod
    syncControllerMetadataPeriod syncFromLastFile syncMasterFlushOffsetWhenStartup timerCheckMetricsWhen
    timerColdDataCheckIntervalMs timerCongestNumEachSlot timerEnableCheckMetrics timerEnableDisruptor
    timerEnableRetryUntilSuccess timerFlushIntervalMs timerGetMessageThreadNum timerInterceptDelayLevel
    timerMetricSmallThreshold timerPrecisionMs timerProgressLogIntervalMs timerPutMessageThreadNum
    timerRecallToTimelineEnable timerRecallToTimeWheelEnable timerReputServiceCorePoolSize
    timerReputServiceMaxPoolSize timerReputServiceQueueCapacity timerRocksDBEnable timerRocksDBPrecisionMs
    timerRocksDBRollIntervalHours timerRocksDBRollMaxTps timerRocksDBRollRangeHours timerRocksDBStopScan
    timerRocksDBTimeExpiredMaxTps timerRollWindowSlot timerSkipUnknownError timerStopDequeue timerStopEnqueue
    timerWarmEnable timerWheelEnable timerWheelSnapshotFlush timerWheelSnapshotIntervalMs topicQueueLockNum
    transactionCheckRocksdbCoreThreads
    transactionCheckRocksdbMaxThreads transactionCheckRocksdbQueueCapacity transactionMetricFlushInterval
    transactionOpBatchInterval transactionOpMsgMaxSize transferMsgByHeap
    transientStorePoolEnable transientStorePoolSize transRocksDBEnable transWriteOriginTransHalfEnable
    travelCqFileNumWhenGetMessage unRegisterBrokerQueueCapacity updateNameServerAddrPeriod useABSLock
    useEpollNativeSelector useMessageFilterForNotification usePIDColdCtrStrategy useReentrantLockWhenPutMessage
    useSeparateRetryQueue useSeparateStorePathForRocksdbCQ useServerSideResetOffset useSingleRocksDBForAllConfigs
    useStaticSubscription validateSystemTopicWhenUpdateTopic waitSecondsForService waitTimeMillsInAckQueue
    waitTimeMillsInAdminBrokerQueue waitTimeMillsInHeartbeatQueue waitTimeMillsInLitePullQueue
    waitTimeMillsInPullQueue waitTimeMillsInSendQueue waitTimeMillsInTransactionQueue wakeCommitWhenPutMessage
    wakeFlushWhenPutMessage warmMapedFileEnable writeBufferHighWaterMark writeBufferLowWaterMark writeWithoutMmap
    """.split()
)
