package pocketmq.interop;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** One push consumer: delivery, cursors, filters, progress. */
final class Consuming {
    private Consuming() {}

    static void register(Map<String, Scenario> all) {
        all.put("push", Consuming::push);
        all.put("cursor", Consuming::cursor);
        all.put("tags", Consuming::tags);
        all.put("broadcasting", Consuming::broadcasting);
    }

    /** Messages from before and after the start of a consumer, each once, with all that belongs to them. */
    private static String push(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        send(producer, session.topic(), "early", 100);
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.subscribe(session.topic(), "*");
        consumer.registerMessageListener(collector);
        consumer.start();
        Check.eventually("100 early messages", 20, () -> collector.count() >= 100);
        long begin = System.nanoTime();
        send(producer, session.topic(), "late", 100);
        Check.eventually("100 late messages", 5, () -> collector.count() >= 200);
        double waited = (System.nanoTime() - begin) / 1e9;
        Map<String, MessageExt> received = Session.byBody(collector.received());
        Check.equal(200, received.size(), "messages received");
        MessageExt one = received.get("late 7");
        Check.equal("key-7", one.getKeys(), "keys");
        Check.equal("7", one.getUserProperty("number"), "user property");
        Check.equal(session.topic(), one.getTopic(), "topic");
        Check.equal("0", one.getProperty("MIN_OFFSET"), "first offset of its queue, as its property says");
        return String.format("200 messages; the last 100 sent and received in %.2f s", waited);
    }

    static void send(DefaultMQProducer producer, String topic, String name, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            Message message = new Message(topic, "tag", "key-" + i, Session.bytes(name + " " + i));
            message.putUserProperty("number", Integer.toString(i));
            producer.send(message);
        }
    }

    /** A consumer that leaves and comes back goes on where it stopped; the server shows nothing left over. */
    private static String cursor(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        send(producer, session.topic(), "first", 60);
        Collector before = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.subscribe(session.topic(), "*");
        consumer.registerMessageListener(before);
        consumer.start();
        Check.eventually("60 messages", 20, () -> before.count() >= 60);
        consumer.shutdown();
        Check.eventually("no message left over", 10,
            () -> session.admin().examineConsumeStats(session.group(), session.topic()).computeTotalDiff() == 0);
        send(producer, session.topic(), "second", 60);
        Check.eventually("60 messages left over", 5,
            () -> session.admin().examineConsumeStats(session.group(), session.topic()).computeTotalDiff() == 60);
        Collector after = new Collector();
        DefaultMQPushConsumer again = session.newConsumer(session.group());
        again.subscribe(session.topic(), "*");
        again.registerMessageListener(after);
        again.start();
        Check.eventually("60 more messages", 20, () -> after.count() >= 60);
        for (String body : after.bodies()) {
            Check.that(body.startsWith("second"), "received again: " + body);
        }
        return "60 + 60 messages over two lives of a consumer";
    }

    private static String tags(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        Collector either = new Collector();
        DefaultMQPushConsumer first = session.newConsumer(session.group("either"));
        first.subscribe(session.topic(), "red || green");
        first.registerMessageListener(either);
        first.start();
        Collector blue = new Collector();
        DefaultMQPushConsumer second = session.newConsumer(session.group("blue"));
        second.subscribe(session.topic(), MessageSelector.byTag("blue"));
        second.registerMessageListener(blue);
        second.start();
        // "Aa" and "BB" have the same hash, so only the client can tell them apart.
        Collector twin = new Collector();
        DefaultMQPushConsumer third = session.newConsumer(session.group("twin"));
        third.subscribe(session.topic(), "Aa");
        third.registerMessageListener(twin);
        third.start();
        String[] colours = {"red", "green", "blue", "Aa", "BB", null};
        for (int i = 0; i < 60; i++) {
            producer.send(new Message(session.topic(), colours[i % 6], Session.bytes(colours[i % 6] + " " + i)));
        }
        Check.eventually("red and green messages", 20, () -> either.count() >= 20);
        Check.eventually("blue messages", 20, () -> blue.count() >= 10);
        Check.eventually("messages of one of two tags with equal hashes", 20, () -> twin.count() >= 10);
        Thread.sleep(300); // what should not come, would come now
        Check.equal(20, Session.byBody(either.received()).size(), "red and green messages");
        Check.equal(10, Session.byBody(blue.received()).size(), "blue messages");
        Check.equal(10, Session.byBody(twin.received()).size(), "messages with tag Aa");
        for (MessageExt message : either.received()) {
            Check.that(Set.of("red", "green").contains(message.getTags()), "received with tag " + message.getTags());
        }
        return "three groups with filters over 60 messages";
    }

    /** Each of two broadcasting consumers gets everything. */
    private static String broadcasting(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        send(producer, session.topic(), "early", 20);
        List<Collector> collectors = List.of(new Collector(), new Collector());
        for (Collector collector : collectors) {
            DefaultMQPushConsumer consumer = session.newConsumer(session.group());
            ClientLine.broadcast(consumer);
            consumer.subscribe(session.topic(), "*");
            consumer.registerMessageListener(collector);
            consumer.start();
        }
        for (Collector collector : collectors) {
            Check.eventually("20 early messages at each consumer", 20, () -> collector.count() >= 20);
        }
        send(producer, session.topic(), "late", 20);
        for (Collector collector : collectors) {
            Check.eventually("40 messages at each consumer", 10, () -> collector.count() >= 40);
        }
        Thread.sleep(200);
        for (Collector collector : collectors) {
            Check.equal(40, new HashSet<>(Session.byBody(collector.received()).keySet()).size(), "messages at each consumer");
        }
        return "2 consumers x 40 messages";
    }
}
