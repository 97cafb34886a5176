package pocketmq.interop;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Fills a server with some of everything, so that another server can be tried on its store. */
final class StoreFill {
    private StoreFill() {}

    /** Topics, messages of every kind, cursors, a dead letter. */
    static String play(Session session) throws Exception {
        DefaultMQProducer producer = session.producer();
        fillPlain(session, producer);
        fillBatches(session, producer);
        fillBulk(session, producer);
        producer.send(new Message(session.topic("compressed"), "tag", "zip", Session.bytes("squeeze me. ".repeat(2000))));
        Message delayed = new Message(session.topic("delayed"), "tag", "late", Session.bytes("a second late"));
        delayed.setDelayTimeLevel(1);
        producer.send(delayed);
        session.readAll(session.createTopic(session.topic("delayed"), 4), 1, 20);
        consumeAll(session);
        refuse(session, producer);
        ClientLine.createGroup(session.admin(), session.masters().get(0), session.group("settings"), 5);
        return "filled";
    }

    private static void fillPlain(Session session, DefaultMQProducer producer) throws Exception {
        session.createTopic(session.topic("plain"), 5);
        for (int i = 0; i < 300; i++) {
            Message message = new Message(session.topic("plain"), "tag-" + i % 3, "key-" + i + " all", Session.bytes("plain " + i));
            message.putUserProperty("title", "Grüße \u4f60\u597d " + i);
            message.setFlag(i);
            producer.send(message);
        }
    }

    private static void fillBatches(Session session, DefaultMQProducer producer) throws Exception {
        session.createTopic(session.topic("batch"), 2);
        for (int round = 0; round < 3; round++) {
            List<Message> messages = new ArrayList<>();
            for (int i = 0; i < 32; i++) {
                messages.add(new Message(session.topic("batch"), "tag", "round-" + round, Session.bytes("batch " + round + " " + i)));
            }
            producer.send(messages);
        }
    }

    /** Enough for several files of the commit log, when these are of 1 MiB. */
    private static void fillBulk(Session session, DefaultMQProducer producer) throws Exception {
        session.createTopic(session.topic("bulk"), 3);
        Random random = new Random(3);
        for (int i = 0; i < 120; i++) {
            byte[] body = new byte[20_000 + random.nextInt(30_000)];
            random.nextBytes(body);
            producer.send(new Message(session.topic("bulk"), "tag", "bulk-" + i, body));
        }
    }

    /** One group consumes everything, the cursors of another are set by hand. */
    private static void consumeAll(Session session) throws Exception {
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group("done"));
        consumer.subscribe(session.topic("plain"), "*");
        consumer.registerMessageListener(collector);
        consumer.start();
        Check.eventually("300 messages", 30, () -> collector.count() >= 300);
        consumer.shutdown();
        // A cursor of a group that the broker does not know would be refused, and this consumer never introduces itself.
        ClientLine.createGroup(session.admin(), session.masters().get(0), session.group("halfway"), 16);
        DefaultMQPullConsumer halfway = new DefaultMQPullConsumer(session.group("halfway"));
        halfway.setNamesrvAddr(session.nameServer());
        halfway.setInstanceName(Session.instance());
        halfway.start();
        session.closeLater(halfway::shutdown);
        for (MessageQueue queue : halfway.fetchSubscribeMessageQueues(session.topic("plain"))) {
            halfway.updateConsumeOffset(queue, 10 + queue.getQueueId());
            halfway.getOffsetStore().persist(queue);
            Check.eventually("a cursor", 10, () -> halfway.fetchConsumeOffset(queue, true) == 10 + queue.getQueueId());
        }
    }

    private static void refuse(Session session, DefaultMQProducer producer) throws Exception {
        session.createTopic(session.topic("refused"), 1);
        producer.send(new Message(session.topic("refused"), "tag", "refused", Session.bytes("nobody wants me")));
        AtomicInteger deliveries = new AtomicInteger();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group("picky"));
        consumer.setMaxReconsumeTimes(1);
        consumer.subscribe(session.topic("refused"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            deliveries.incrementAndGet();
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        session.waitForRetries(consumer);
        Check.eventually("two deliveries", 30, () -> deliveries.get() == 2);
        session.readAll("%DLQ%" + session.group("picky"), 1, 20);
        consumer.shutdown();
    }

    /** What is still to come when the server stops: a delayed message, and one that was refused; both due in 30 s. */
    static String pending(Session session) throws Exception {
        session.createTopic(session.topic("pending"), 1);
        DefaultMQProducer producer = session.producer();
        Message delayed = new Message(session.topic("pending"), "tag", "pending", Session.bytes("half a minute late"));
        delayed.setDelayTimeLevel(4);
        producer.send(delayed);
        session.createTopic(session.topic("put-off"), 1);
        producer.send(new Message(session.topic("put-off"), "tag", "put-off", Session.bytes("not now")));
        AtomicInteger deliveries = new AtomicInteger();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group("later"));
        consumer.subscribe(session.topic("put-off"), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(4);
            deliveries.incrementAndGet();
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        Check.eventually("one delivery", 30, () -> deliveries.get() == 1);
        consumer.shutdown();
        return "two messages are due in half a minute";
    }

    /** Both of them arrive, whoever delivers them: the delayed one in its topic, the refused one at its group. */
    static String awaitPending(Session session) throws Exception {
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group("later"));
        consumer.subscribe(session.topic("put-off"), "*");
        consumer.registerMessageListener(collector);
        consumer.start();
        session.readAll(session.topic("pending"), 1, 50);
        // A broker that was killed may also deliver it anew as it was, since it forgot that it was taken.
        Check.eventually("the message that was put off", 50, () -> reconsumeTimes(collector).contains(1));
        Thread.sleep(500);
        Check.equal(1, Collections.frequency(reconsumeTimes(collector), 1), "deliveries of the message that was put off");
        Check.equal(Set.of("not now"), collector.bodies(), "bodies");
        Check.equal(1, session.readAll(session.topic("pending")).size(), "delayed messages");
        return "both arrived";
    }

    private static List<Integer> reconsumeTimes(Collector collector) {
        return collector.received().stream().map(MessageExt::getReconsumeTimes).collect(Collectors.toList());
    }
}
