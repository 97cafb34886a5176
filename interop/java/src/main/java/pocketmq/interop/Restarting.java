package pocketmq.interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/**
 * The server dies and comes back while a producer sends and a consumer receives. Prints {@code RUNNING} when both work, then
 * waits for a line on standard input that says that the server is back; nothing that was acknowledged may be missing in the end.
 */
final class Restarting {
    private Restarting() {}

    static String play(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.setPersistConsumerOffsetInterval(1000);
        consumer.subscribe(session.topic(), "*");
        consumer.registerMessageListener(collector);
        consumer.start();
        DefaultMQProducer producer = session.newProducer();
        producer.setSendMsgTimeout(2000);
        producer.start();

        Map<String, SendResult> acknowledged = new ConcurrentHashMap<>();
        AtomicBoolean sending = new AtomicBoolean(true);
        AtomicInteger failed = new AtomicInteger();
        Thread sender = new Thread(() -> send(session.topic(), producer, sending, acknowledged, failed));
        sender.start();
        Check.eventually("a consumer at work", 30, () -> collector.count() >= 300);
        System.out.println("RUNNING");
        System.out.flush();
        String line = new BufferedReader(new InputStreamReader(System.in)).readLine();
        Check.that(line != null, "the driver left");
        int before = acknowledged.size();
        Check.eventually("sends acknowledged again", 60, () -> acknowledged.size() >= before + 300);
        sending.set(false);
        sender.join(10_000);
        Check.eventually("all acknowledged messages received", 60, () -> collector.bodies().containsAll(acknowledged.keySet()));
        compare(acknowledged, session.readAll(session.topic()));
        int received = collector.count();
        Set<String> bodies = collector.bodies();
        return acknowledged.size() + " acknowledged (" + (acknowledged.size() - before) + " after the restart), " + failed
            + " failed, all acknowledged ones received, " + (received - bodies.size()) + " of them again";
    }

    private static void send(String topic, DefaultMQProducer producer, AtomicBoolean sending, Map<String, SendResult> acknowledged, AtomicInteger failed) {
        for (int i = 0; sending.get(); i++) {
            try {
                SendResult receipt = producer.send(new Message(topic, "", "key-" + i, Session.bytes("body " + i)));
                if (receipt.getSendStatus() == SendStatus.SEND_OK) {
                    acknowledged.put("body " + i, receipt);
                }
                Thread.sleep(2);
            } catch (InterruptedException e) {
                return;
            } catch (Exception e) {
                failed.incrementAndGet();
            }
        }
    }

    /** Each acknowledged message is still where its receipt said. */
    private static void compare(Map<String, SendResult> acknowledged, List<MessageExt> stored) {
        Map<String, String> places = new HashMap<>();
        for (MessageExt message : stored) {
            places.put(message.getQueueId() + ":" + message.getQueueOffset(), Session.text(message));
        }
        acknowledged.forEach((body, receipt) -> Check.equal(body,
            places.get(receipt.getMessageQueue().getQueueId() + ":" + receipt.getQueueOffset()), "message at " + receipt.getMessageQueue()));
    }
}
