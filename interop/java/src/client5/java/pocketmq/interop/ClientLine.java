package pocketmq.interop;

import java.util.List;
import java.util.Map;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.compression.CompressionType;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.remoting.protocol.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What is spelt differently in the 4.x and the 5.x client. This is the 5.x spelling. */
final class ClientLine {
    private ClientLine() {}

    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    /** The compressions that a producer of this line can be told to use. */
    static List<String> compressions() {
        return List.of("ZLIB", "LZ4", "ZSTD");
    }

    static void compressWith(DefaultMQProducer producer, String compression) {
        producer.setCompressType(CompressionType.valueOf(compression));
    }

    static void createGroup(DefaultMQAdminExt admin, String brokerAddress, String group, int retries) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        config.setRetryMaxTimes(retries);
        admin.createAndUpdateSubscriptionGroupConfig(brokerAddress, config);
    }

    static void createTopic(DefaultMQProducer producer, String template, String topic, int queues) throws Exception {
        producer.createTopic(template, topic, queues, Map.of());
    }

    static void deleteTopic(DefaultMQAdminExt admin, String cluster, String topic) throws Exception {
        admin.deleteTopic(topic, cluster);
    }
}
