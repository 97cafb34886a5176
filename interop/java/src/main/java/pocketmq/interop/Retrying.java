package pocketmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A message that a consumer refuses comes again later, and ends in the dead-letter topic when it is refused too often. */
final class Retrying {
    private Retrying() {}

    static void register(Map<String, Scenario> all) {
        all.put("retry", Retrying::retry);
        all.put("dead-letter", Retrying::deadLetter);
        all.put("dead-letter-at-once", Retrying::deadLetterAtOnce);
    }

    /** What one delivery of a message looked like. */
    private static final class Delivery {
        final long time = System.currentTimeMillis();
        final String topic;
        final String id;
        final int reconsumeTimes;
        final String property;

        Delivery(MessageExt message) {
            topic = message.getTopic();
            id = message.getMsgId();
            reconsumeTimes = message.getReconsumeTimes();
            property = message.getUserProperty("colour");
        }
    }

    /** Starts a consumer that refuses each message as often as its body says, asking for it again at the given level. */
    private static Map<String, List<Delivery>> consume(Session session, int maxReconsumeTimes, int level) throws Exception {
        Map<String, List<Delivery>> deliveries = new ConcurrentHashMap<>();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.setMaxReconsumeTimes(maxReconsumeTimes);
        consumer.subscribe(session.topic(), "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(level);
            MessageExt message = messages.get(0);
            deliveries.computeIfAbsent(Session.text(message), k -> new ArrayList<>()).add(new Delivery(message));
            int refusals = Integer.parseInt(Session.text(message).split(" ")[1]);
            return message.getReconsumeTimes() < refusals ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        session.waitForRetries(consumer);
        return deliveries;
    }

    private static SendResult send(Session session, DefaultMQProducer producer, String body) throws Exception {
        Message message = new Message(session.topic(), "tag", "key", Session.bytes(body));
        message.putUserProperty("colour", "green");
        return producer.send(message);
    }

    private static int count(Map<String, List<Delivery>> deliveries, String body) {
        return deliveries.getOrDefault(body, List.of()).size();
    }

    private static String retry(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        DefaultMQProducer producer = session.producer();
        SendResult receipt = send(session, producer, "refuse 2");
        send(session, producer, "refuse 0");
        Map<String, List<Delivery>> all = consume(session, 16, 1);
        Check.eventually("three deliveries", 30, () -> count(all, "refuse 2") >= 3);
        Thread.sleep(1500); // a fourth would come now
        List<Delivery> deliveries = all.get("refuse 2");
        Check.equal(3, deliveries.size(), "deliveries");
        Check.equal(1, count(all, "refuse 0"), "deliveries of the message that was taken at once");
        for (int i = 0; i < 3; i++) {
            Delivery delivery = deliveries.get(i);
            Check.equal(i, delivery.reconsumeTimes, "reconsume times at delivery " + i);
            Check.equal(session.topic(), delivery.topic, "topic at delivery " + i);
            Check.equal(receipt.getMsgId(), delivery.id, "unique id at delivery " + i);
            Check.equal("green", delivery.property, "user property at delivery " + i);
            if (i > 0) {
                long pause = delivery.time - deliveries.get(i - 1).time;
                Check.that(pause >= 950 && pause < 6000, "the pause before delivery " + i + " was " + pause + " ms instead of 1000");
            }
        }
        return "refused twice, delivered three times";
    }

    private static String deadLetter(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        DefaultMQProducer producer = session.producer();
        SendResult receipt = send(session, producer, "refuse 9");
        Map<String, List<Delivery>> all = consume(session, 2, 1);
        Check.eventually("three deliveries", 30, () -> count(all, "refuse 9") >= 3);
        MessageExt dead = session.readAll("%DLQ%" + session.group(), 1, 15).get(0);
        Check.equal(3, count(all, "refuse 9"), "deliveries with two retries");
        Check.equal("refuse 9", Session.text(dead), "body of the dead letter");
        Check.equal("green", dead.getUserProperty("colour"), "user property of the dead letter");
        Check.equal("tag", dead.getTags(), "tag of the dead letter");
        Check.equal(session.topic(), dead.getProperty("RETRY_TOPIC"), "original topic of the dead letter");
        Check.equal(receipt.getOffsetMsgId(), dead.getProperty("ORIGIN_MESSAGE_ID"), "original id of the dead letter");
        Check.equal(receipt.getMsgId(), dead.getMsgId(), "unique id of the dead letter");
        return "dead after three deliveries, reconsume times " + dead.getReconsumeTimes();
    }

    /** Level -1 asks for no retry at all. */
    private static String deadLetterAtOnce(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        DefaultMQProducer producer = session.producer();
        send(session, producer, "refuse 9");
        Map<String, List<Delivery>> all = consume(session, 16, -1);
        Check.equal("refuse 9", Session.text(session.readAll("%DLQ%" + session.group(), 1, 30).get(0)), "body of the dead letter");
        Check.equal(1, count(all, "refuse 9"), "deliveries");
        return "dead after one delivery";
    }
}
