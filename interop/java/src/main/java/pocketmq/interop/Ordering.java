package pocketmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** Orderly consumers: they lock their queues at the broker and take each queue's messages one after the other. */
final class Ordering {
    private static final int KEYS = 8;
    private static final int STEPS = 12;

    private Ordering() {}

    static void register(Map<String, Scenario> all) {
        all.put("orderly", Ordering::orderly);
        all.put("orderly-dead-letter", Ordering::orderlyDeadLetter);
    }

    private static void send(Session session) throws Exception {
        DefaultMQProducer producer = session.producer();
        for (int step = 0; step < STEPS; step++) {
            for (int key = 0; key < KEYS; key++) {
                Message message = new Message(session.topic(), "", "user-" + key, Session.bytes(Integer.toString(step)));
                producer.send(message, (queues, m, argument) -> queues.get((Integer) argument % queues.size()), key);
            }
        }
    }

    /** Two orderly consumers; step 5 of one key is put off twice, and nothing of its queue overtakes it. */
    private static String orderly(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        Map<String, List<Integer>> done = new ConcurrentHashMap<>();
        AtomicInteger putOff = new AtomicInteger();
        List<Integer> reconsumeTimes = new ArrayList<>();
        List<AtomicInteger> shares = new ArrayList<>();
        List<DefaultMQPushConsumer> consumers = new ArrayList<>();
        for (int i = 0; i < 2; i++) {
            AtomicInteger share = new AtomicInteger();
            shares.add(share);
            DefaultMQPushConsumer consumer = session.newConsumer(session.group());
            consumer.subscribe(session.topic(), "*");
            consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
                for (MessageExt message : messages) {
                    int step = Integer.parseInt(Session.text(message));
                    if (message.getKeys().equals("user-3") && step == 5) {
                        reconsumeTimes.add(message.getReconsumeTimes());
                        if (putOff.incrementAndGet() <= 2) {
                            context.setSuspendCurrentQueueTimeMillis(200);
                            return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
                        }
                    }
                    done.computeIfAbsent(message.getKeys(), k -> new ArrayList<>()).add(step);
                    share.incrementAndGet();
                }
                return ConsumeOrderlyStatus.SUCCESS;
            });
            consumer.start();
            consumers.add(consumer);
        }
        Check.eventually("two queues for each", 30, () -> {
            for (DefaultMQPushConsumer consumer : consumers) {
                Session.rebalanceNow(consumer);
            }
            return consumers.stream().allMatch(c -> Sharing.assigned(c, session.topic()).size() == 2);
        });
        send(session);
        Check.eventually("all steps of all keys", 40, () -> shares.get(0).get() + shares.get(1).get() >= KEYS * STEPS);
        for (int key = 0; key < KEYS; key++) {
            List<Integer> steps = done.get("user-" + key);
            for (int step = 0; step < STEPS; step++) {
                Check.equal(step, steps.get(step), "place " + step + " of user-" + key + " in " + steps);
            }
        }
        Check.equal(3, putOff.get(), "deliveries of the step that was put off twice");
        Check.that(shares.get(0).get() > 0 && shares.get(1).get() > 0, "one consumer got nothing");
        return KEYS + " keys x " + STEPS + " steps in order, shares " + shares + ", reconsume times " + reconsumeTimes;
    }

    /** An orderly consumer with a limit on retries sends the message away and goes on with the next. */
    private static String orderlyDeadLetter(Session session) throws Exception {
        session.createTopic(session.topic(), 1);
        DefaultMQProducer producer = session.producer();
        for (String body : List.of("fine 1", "bad", "fine 2")) {
            producer.send(new Message(session.topic(), Session.bytes(body)));
        }
        List<String> deliveries = new ArrayList<>();
        DefaultMQPushConsumer consumer = session.newConsumer(session.group());
        consumer.setMaxReconsumeTimes(2);
        consumer.setSuspendCurrentQueueTimeMillis(100);
        consumer.subscribe(session.topic(), "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            synchronized (deliveries) {
                deliveries.add(Session.text(messages.get(0)));
            }
            return Session.text(messages.get(0)).equals("bad") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        Check.eventually("the message after the bad one", 30, () -> {
            synchronized (deliveries) {
                return deliveries.contains("fine 2");
            }
        });
        Check.equal(List.of("fine 1", "bad", "bad", "bad", "fine 2"), deliveries, "deliveries");
        MessageExt dead = session.readAll("%DLQ%" + session.group(), 1, 20).get(0);
        Check.equal("bad", Session.text(dead), "body of the dead letter");
        Check.equal(session.topic(), dead.getProperty("RETRY_TOPIC"), "original topic of the dead letter");
        return "given up after three deliveries";
    }
}
