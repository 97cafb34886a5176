package pocketmq.interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Several consumers of one group: how they divide the queues, and divide them anew. */
final class Sharing {
    private Sharing() {}

    static void register(Map<String, Scenario> all) {
        all.put("shared", Sharing::shared);
        all.put("rebalance", Sharing::rebalance);
    }

    /** A consumer with what it received. */
    private static final class Member {
        final Collector collector = new Collector();
        final DefaultMQPushConsumer consumer;
        private final String topic;

        Member(Session session, String topic) throws Exception {
            this.topic = topic;
            consumer = session.newConsumer(session.group());
            consumer.subscribe(topic, "*");
            consumer.registerMessageListener(collector);
            consumer.start();
        }

        int queues() {
            return assigned(consumer, topic).size();
        }
    }

    /** The queues of a topic that a consumer takes messages from at the moment. */
    static Set<MessageQueue> assigned(DefaultMQPushConsumer consumer, String topic) {
        Set<MessageQueue> queues = new HashSet<>();
        for (MessageQueue queue : consumer.getDefaultMQPushConsumerImpl().getRebalanceImpl().getProcessQueueTable().keySet()) {
            if (queue.getTopic().equals(topic)) {
                queues.add(queue);
            }
        }
        return queues;
    }

    /** Two consumers divide eight queues; each message goes to exactly one of them. */
    private static String shared(Session session) throws Exception {
        session.createTopic(session.topic(), 8);
        Member first = new Member(session, session.topic());
        Member second = new Member(session, session.topic());
        Check.eventually("four queues for each", 30, () -> first.queues() == 4 && second.queues() == 4);
        DefaultMQProducer producer = session.producer();
        Consuming.send(producer, session.topic(), "body", 400);
        Check.eventually("400 messages", 20, () -> first.collector.count() + second.collector.count() >= 400);
        List<MessageExt> all = new ArrayList<>(first.collector.received());
        all.addAll(second.collector.received());
        Check.equal(400, Session.byBody(all).size(), "messages received");
        Check.equal(200, first.collector.count(), "messages of the first consumer");
        Check.equal(200, second.collector.count(), "messages of the second consumer");
        return "400 messages, 200 for each of 2 consumers";
    }

    /** Joining takes queues over, leaving gives them back, both noticed by the others without waiting for their timers. */
    private static String rebalance(Session session) throws Exception {
        session.createTopic(session.topic(), 8);
        DefaultMQProducer producer = session.producer();
        Member first = new Member(session, session.topic());
        Check.eventually("all queues for the only consumer", 30, () -> first.queues() == 8);
        long begin = System.nanoTime();
        Member second = new Member(session, session.topic());
        Check.eventually("four queues for each", 15, () -> first.queues() == 4 && second.queues() == 4);
        double joining = (System.nanoTime() - begin) / 1e9;
        Consuming.send(producer, session.topic(), "both", 80);
        waitFor(80, first, second);
        begin = System.nanoTime();
        second.consumer.shutdown();
        Check.eventually("all queues for the one that stayed", 15, () -> first.queues() == 8);
        double leaving = (System.nanoTime() - begin) / 1e9;
        Consuming.send(producer, session.topic(), "one", 80);
        waitFor(160, first, second);
        return String.format("joining took %.2f s, leaving %.2f s", joining, leaving);
    }

    private static void waitFor(int count, Member first, Member second) throws Exception {
        try {
            Check.eventually(count + " messages", 20, () -> union(first, second).size() >= count);
        } catch (Check.Failure e) {
            throw new Check.Failure(e.getMessage() + "; received " + union(first, second).size());
        }
    }

    private static Set<String> union(Member first, Member second) {
        Set<String> bodies = first.collector.bodies();
        bodies.addAll(second.collector.bodies());
        return bodies;
    }
}
