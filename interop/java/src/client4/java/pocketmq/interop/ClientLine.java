package pocketmq.interop;

import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.common.subscription.SubscriptionGroupConfig;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What is spelt differently in the 4.x and the 5.x client. This is the 4.x spelling. */
final class ClientLine {
    private ClientLine() {}

    static void broadcast(DefaultMQPushConsumer consumer) {
        consumer.setMessageModel(MessageModel.BROADCASTING);
    }

    /** The compressions that a producer of this line can be told to use. */
    static List<String> compressions() {
        return List.of("ZLIB");
    }

    static void compressWith(DefaultMQProducer producer, String compression) {
        // This line knows one kind only.
    }

    static void createGroup(DefaultMQAdminExt admin, String brokerAddress, String group, int retries) throws Exception {
        SubscriptionGroupConfig config = new SubscriptionGroupConfig();
        config.setGroupName(group);
        config.setRetryMaxTimes(retries);
        admin.createAndUpdateSubscriptionGroupConfig(brokerAddress, config);
    }

    static void createTopic(DefaultMQProducer producer, String template, String topic, int queues) throws Exception {
        producer.createTopic(template, topic, queues);
    }

    static void deleteTopic(DefaultMQAdminExt admin, String cluster, String topic) throws Exception {
        Set<String> masters = new HashSet<>();
        for (String broker : admin.examineBrokerClusterInfo().getClusterAddrTable().get(cluster)) {
            masters.add(admin.examineBrokerClusterInfo().getBrokerAddrTable().get(broker).getBrokerAddrs().get(0L));
        }
        admin.deleteTopicInBroker(masters, topic);
        admin.deleteTopicInNameServer(new HashSet<>(admin.getNameServerAddressList()), topic, cluster);
    }
}
