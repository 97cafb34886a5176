"""Names of Java's broker.conf and namesrv.conf that mean nothing here.

They tune machinery which does not exist in PocketMQ (thread pools, memory maps, transient pools...). A file with them
works as it is: they are passed over with a warning, so that only a real mistake is refused.
"""

HARMLESS_JAVA_NAMES = frozenset(
    """
    accessMessageInMemoryMaxRatio ackMessageThreadPoolNums adminBrokerThreadPoolNums aclEnable
    asyncSendEnable autoDeleteUnusedStats bindAddress brokerClusterName brokerFastFailureEnable brokerIP2 brokerRole
    brokerTopicEnable channelNotActiveInterval checkCRCOnRecover cleanFileForcibly cleanResourceInterval
    clientManageThreadPoolNums clientSocketRcvBufSize clientSocketSndBufSize clusterTopicEnable
    commercialEnable compressedRegister configStorePath consumerManageThreadPoolNums
    debugLockEnable deleteCommitLogFilesInterval deleteConsumeQueueFilesInterval destroyMapedFileIntervalForcibly
    diskFallRecorded duplicationEnable enableCalcFilterBitMap enableConsumeQueueExt enableControllerMode
    enableDLegerCommitLog enableNettyPooledByteBufAllocator enableScheduleMessageStats
    endTransactionThreadPoolNums expectConsumerNumUseFilter filterServerNums filterSupportRetry
    flushCommitLogLeastPages flushCommitLogThoroughInterval flushCommitLogTimed flushConsumeQueueLeastPages
    flushConsumeQueueThoroughInterval flushConsumerOffsetHistoryInterval flushDelayOffsetInterval
    flushIntervalConsumeQueue flushLeastPagesWhenWarmMapedFile forceRegister haHousekeepingInterval haListenPort
    haMasterAddress haSendHeartbeatInterval haSlaveFallbehindMax haTransferBatchSize heartbeatThreadPoolNums
    highSpeedMode inSyncReplicas kvConfigPath
    litePullMessageEnable litePullMessageThreadPoolNums loadBalanceThreadPoolNums
    longPollingEnable mapedFileSizeConsumeQueue mapedFileSizeConsumeQueueExt maxDelayTime maxErrorRateOfBloomFilter
    maxHashSlotNum maxIndexNum maxMsgsNumBatch maxTransferBytesOnMessageInDisk maxTransferBytesOnMessageInMemory
    maxTransferCountOnMessageInDisk maxTransferCountOnMessageInMemory messageIndexEnable messageIndexSafe
    metricsExporterType metricsPromExporterHost metricsPromExporterPort minInSyncReplicas msgTraceTopicName
    notifyConsumerIdsChangedEnable offsetCheckInSlave osPageCacheBusyTimeOutMills processReplyMessageThreadPoolNums
    productEnvName pullMessageThreadPoolNums putMsgIndexHightWater queryMessageThreadPoolNums redeleteHangedFileInterval
    rejectTransactionMessage replyThreadPoolQueueCapacity rocketmqHome rmqAddressServerDomain
    rmqAddressServerSubGroup scheduleAsyncDeliver sendMessageThreadPoolNums sendThreadPoolQueueCapacity
    serverAsyncSemaphoreValue serverCallbackExecutorThreads serverChannelMaxIdleTimeSeconds serverOnewaySemaphoreValue
    serverPooledByteBufAllocatorEnable serverSelectorThreads serverSocketBacklog serverSocketRcvBufSize
    serverSocketSndBufSize serverWorkerThreads slaveReadEnable slaveTimeout startAcceptSendRequestTimeStamp
    storePathAbortFile storePathCommitLog storePathConsumeQueue storePathIndex storeCheckpoint storeReplyMessageEnable
    transactionCheckInterval transactionCheckMax transactionTimeOut transferMsgByHeap transientStorePoolEnable
    transientStorePoolSize traceTopicEnable useEpollNativeSelector useReentrantLockWhenPutMessage useTLS
    waitTimeMillsInHeartbeatQueue waitTimeMillsInPullQueue waitTimeMillsInSendQueue warmMapedFileEnable
    clusterTest productEnvName configBlackList clientRequestThreadPoolNums defaultThreadPoolNums
    needWaitForService waitSecondsForService unRegisterBrokerQueueCapacity supportActingMaster enableTopicList
    notifyMinBrokerIdChanged returnOrderTopicConfigToBroker enableControllerInNamesrv
    """.split()
)
"""Only names that the settings table does not know matter here."""
