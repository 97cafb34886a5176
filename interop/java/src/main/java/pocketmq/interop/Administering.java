package pocketmq.interop;

import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** What an operator asks for: topics, groups, statistics, connections. */
final class Administering {
    private Administering() {}

    static void register(Map<String, Scenario> all) {
        all.put("create-topic", Administering::createTopic);
        all.put("topic-admin", Administering::topicAdmin);
        all.put("group-admin", Administering::groupAdmin);
    }

    /** A topic created through a producer, with the template topic as its pattern. */
    private static String createTopic(Session session) throws Exception {
        DefaultMQProducer producer = session.producer();
        ClientLine.createTopic(producer, "TBW102", session.topic(), 3);
        session.waitForRoute(session.topic());
        Set<Integer> queues = new HashSet<>();
        for (int i = 0; i < 9; i++) {
            queues.add(producer.send(new Message(session.topic(), Session.bytes("body " + i))).getMessageQueue().getQueueId());
        }
        Check.equal(Set.of(0, 1, 2), queues, "queues used");
        Check.equal(9, session.readAll(session.topic(), 9, 10).size(), "messages");
        return "3 queues";
    }

    private static String topicAdmin(Session session) throws Exception {
        DefaultMQAdminExt admin = session.admin();
        session.createTopic(session.topic(), 2);
        Check.that(admin.fetchAllTopicList().getTopicList().contains(session.topic()), "the new topic is not listed");
        session.createTopic(session.topic(), 5);
        Check.eventually("five queues in the route", 10,
            () -> admin.examineTopicRouteInfo(session.topic()).getQueueDatas().get(0).getWriteQueueNums() == 5);
        DefaultMQProducer producer = session.producer();
        for (int i = 0; i < 10; i++) {
            producer.send(new Message(session.topic(), Session.bytes("body " + i)));
        }
        Map<MessageQueue, ?> statistics = admin.examineTopicStats(session.topic()).getOffsetTable();
        Check.equal(5, statistics.size(), "queues in the statistics");
        Check.equal(10L, admin.examineTopicStats(session.topic()).getOffsetTable().values().stream().mapToLong(o -> o.getMaxOffset() - o.getMinOffset()).sum(), "messages in the statistics");
        Check.equal(5, admin.examineTopicConfig(session.masters().get(0), session.topic()).getWriteQueueNums(), "queues in the broker's settings");
        ClientLine.deleteTopic(admin, admin.examineBrokerClusterInfo().getClusterAddrTable().keySet().iterator().next(), session.topic());
        Check.eventually("the topic gone", 10, () -> !admin.fetchAllTopicList().getTopicList().contains(session.topic()));
        return "created, widened, counted, deleted";
    }

    private static String groupAdmin(Session session) throws Exception {
        DefaultMQAdminExt admin = session.admin();
        session.createTopic(session.topic(), 2);
        String master = session.masters().get(0);
        ClientLine.createGroup(admin, master, session.group(), 5);
        Check.equal(5, admin.examineSubscriptionGroupConfig(master, session.group()).getRetryMaxTimes(), "retries of the new group");
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.subscribe(session.topic(), "red || green");
        consumer.registerMessageListener(collector);
        consumer.start();
        Check.eventually("the consumer's connection", 10, () -> {
            var connection = admin.examineConsumerConnectionInfo(session.group());
            return connection.getConnectionSet().size() == 1 && connection.getSubscriptionTable().containsKey(session.topic());
        });
        var connection = admin.examineConsumerConnectionInfo(session.group());
        Check.equal("red || green", connection.getSubscriptionTable().get(session.topic()).getSubString(), "its subscription");
        Check.equal("CLUSTERING", connection.getMessageModel().name(), "its model");
        DefaultMQProducer producer = session.producer();
        for (int i = 0; i < 20; i++) {
            producer.send(new Message(session.topic(), "red", Session.bytes("body " + i)));
        }
        Check.eventually("20 messages", 20, () -> collector.count() >= 20);
        Check.eventually("all of them counted as consumed", 15,
            () -> admin.examineConsumeStats(session.group(), session.topic()).computeTotalDiff() == 0);
        Check.eventually("one producer connected", 10,
            () -> admin.examineProducerConnectionInfo(session.group("producer"), session.topic()).getConnectionSet().size() == 1);
        consumer.shutdown();
        admin.deleteSubscriptionGroup(master, session.group());
        return "created, seen at work, deleted";
    }
}
