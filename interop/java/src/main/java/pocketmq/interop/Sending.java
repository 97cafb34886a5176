package pocketmq.interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Every way to send, and what must be found afterwards. */
final class Sending {
    private Sending() {}

    static void register(Map<String, Scenario> all) {
        all.put("sync", Sending::sync);
        all.put("async", Sending::async);
        all.put("oneway", Sending::oneway);
        all.put("batch", Sending::batch);
        all.put("selector", Sending::selector);
        all.put("compressed", Sending::compressed);
        all.put("large", Sending::large);
        all.put("keys", Sending::keys);
        all.put("delay", Sending::delay);
    }

    /** Sends to a topic that nobody created; what is stored is what was sent, where the receipt says. */
    private static String sync(Session session) throws Exception {
        DefaultMQProducer producer = session.producer();
        Map<String, SendResult> receipts = new HashMap<>();
        for (int i = 0; i < 40; i++) {
            Message message = new Message(session.topic(), "tag-" + i % 3, "key-" + i, Session.bytes("body " + i));
            message.putUserProperty("number", Integer.toString(i));
            message.putUserProperty("title", "Grüße \u4f60\u597d " + i);
            message.setFlag(i);
            SendResult receipt = producer.send(message);
            Check.equal(SendStatus.SEND_OK, receipt.getSendStatus(), "status");
            receipts.put("body " + i, receipt);
        }
        Map<String, MessageExt> stored = Session.byBody(session.readAll(session.topic(), 40, 10));
        Set<Integer> queues = new HashSet<>();
        for (int i = 0; i < 40; i++) {
            MessageExt message = stored.get("body " + i);
            Check.that(message != null, "body " + i + " is missing");
            compareWithReceipt(message, receipts.get("body " + i));
            Check.equal("tag-" + i % 3, message.getTags(), "tag");
            Check.equal("key-" + i, message.getKeys(), "keys");
            Check.equal(Integer.toString(i), message.getUserProperty("number"), "user property");
            Check.equal("Grüße \u4f60\u597d " + i, message.getUserProperty("title"), "user property beyond ASCII");
            Check.equal(i, message.getFlag(), "flag");
            Check.equal(0, message.getReconsumeTimes(), "reconsume times");
            Check.that(message.getStoreTimestamp() >= message.getBornTimestamp() - 1000, "stored before it was born");
            queues.add(message.getQueueId());
        }
        Check.equal(4, queues.size(), "queues used by an automatically created topic");
        return "40 messages over " + queues.size() + " queues";
    }

    private static void compareWithReceipt(MessageExt message, SendResult receipt) {
        Check.equal(receipt.getMsgId(), message.getMsgId(), "unique id");
        Check.equal(receipt.getOffsetMsgId(), ((MessageClientExt) message).getOffsetMsgId(), "offset message id");
        Check.equal(receipt.getMessageQueue().getQueueId(), message.getQueueId(), "queue id");
        Check.equal(receipt.getQueueOffset(), message.getQueueOffset(), "queue offset");
        Check.equal(receipt.getMessageQueue().getBrokerName(), message.getBrokerName(), "broker name");
    }

    private static String async(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        CountDownLatch answered = new CountDownLatch(200);
        Map<String, SendResult> receipts = new ConcurrentHashMap<>();
        List<Throwable> errors = new ArrayList<>();
        for (int i = 0; i < 200; i++) {
            String body = "body " + i;
            producer.send(new Message(session.topic(), Session.bytes(body)), new SendCallback() {
                @Override
                public void onSuccess(SendResult receipt) {
                    receipts.put(body, receipt);
                    answered.countDown();
                }

                @Override
                public void onException(Throwable error) {
                    synchronized (errors) {
                        errors.add(error);
                    }
                    answered.countDown();
                }
            });
        }
        Check.that(answered.await(20, TimeUnit.SECONDS), answered.getCount() + " of 200 sends were never answered");
        Check.that(errors.isEmpty(), errors.size() + " sends failed, one with " + (errors.isEmpty() ? "" : errors.get(0)));
        for (Map.Entry<String, MessageExt> entry : Session.byBody(session.readAll(session.topic(), 200, 10)).entrySet()) {
            compareWithReceipt(entry.getValue(), receipts.get(entry.getKey()));
        }
        return "200 messages, each where its callback said";
    }

    private static String oneway(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        for (int i = 0; i < 50; i++) {
            producer.sendOneway(new Message(session.topic(), Session.bytes("body " + i)));
        }
        Session.byBody(session.readAll(session.topic(), 50, 10));
        return "50 messages arrived unanswered";
    }

    private static String batch(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        int sent = 0;
        for (int size : new int[] {1, 2, 32, 100}) {
            List<Message> messages = new ArrayList<>();
            for (int i = 0; i < size; i++) {
                Message message = new Message(session.topic(), "tag-" + i % 2, "batch-" + size + "-" + i,
                    Session.bytes("batch of " + size + ", " + i));
                message.putUserProperty("place", Integer.toString(i));
                messages.add(message);
            }
            SendResult receipt = size == 2
                ? producer.send(messages, new MessageQueue(session.topic(), producer.fetchPublishMessageQueues(session.topic()).get(0).getBrokerName(), 3))
                : producer.send(messages);
            sent += size;
            Check.equal(SendStatus.SEND_OK, receipt.getSendStatus(), "status of a batch of " + size);
            Check.equal(size, receipt.getMsgId().split(",").length, "unique ids in the receipt of a batch of " + size);
            Check.equal(size, receipt.getOffsetMsgId().split(",").length, "offset ids in the receipt of a batch of " + size);
            Map<String, MessageExt> stored = Session.byBody(session.readAll(session.topic(), sent, 10));
            for (int i = 0; i < size; i++) {
                MessageExt message = stored.get("batch of " + size + ", " + i);
                Check.that(message != null, "message " + i + " of a batch of " + size + " is missing");
                Check.equal(receipt.getQueueOffset() + i, message.getQueueOffset(), "queue offset of message " + i);
                Check.equal(receipt.getMessageQueue().getQueueId(), message.getQueueId(), "queue id of message " + i);
                Check.equal(receipt.getMsgId().split(",")[i], message.getMsgId(), "unique id of message " + i);
                Check.equal(receipt.getOffsetMsgId().split(",")[i], ((MessageClientExt) message).getOffsetMsgId(), "offset id of message " + i);
                Check.equal("tag-" + i % 2, message.getTags(), "tag of message " + i);
                Check.equal(Integer.toString(i), message.getUserProperty("place"), "property of message " + i);
            }
        }
        return "batches of 1, 2, 32 and 100";
    }

    /** A selector sends all messages of one key to one queue, where they stay in order. */
    private static String selector(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        for (int i = 0; i < 10; i++) {
            for (int key = 0; key < 8; key++) {
                Message message = new Message(session.topic(), "", "user-" + key, Session.bytes("user-" + key + " step " + i));
                SendResult receipt = producer.send(message, (queues, m, argument) -> queues.get((Integer) argument % queues.size()), key);
                Check.equal(SendStatus.SEND_OK, receipt.getSendStatus(), "status");
            }
        }
        Map<String, List<String>> steps = new TreeMap<>();
        Map<String, Set<Integer>> queues = new TreeMap<>();
        for (MessageExt message : session.readAll(session.topic(), 80, 10)) {
            String key = message.getKeys();
            queues.computeIfAbsent(key, k -> new HashSet<>()).add(message.getQueueId());
            steps.computeIfAbsent(key, k -> new ArrayList<>()).add(Session.text(message));
        }
        for (int key = 0; key < 8; key++) {
            Check.equal(1, queues.get("user-" + key).size(), "queues of user-" + key);
            for (int i = 0; i < 10; i++) {
                Check.equal("user-" + key + " step " + i, steps.get("user-" + key).get(i), "step " + i);
            }
        }
        return "8 keys x 10 steps in order";
    }

    /** Bodies over 4 KiB travel compressed, and are stored so. */
    private static String compressed(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        byte[] body = Session.bytes("all work and no play makes a dull body. ".repeat(1000));
        int sent = 0;
        for (String compression : ClientLine.compressions()) {
            DefaultMQProducer producer = session.newProducer();
            ClientLine.compressWith(producer, compression);
            producer.start();
            producer.send(new Message(session.topic(), compression, "key-" + compression, body.clone()));
            sent++;
        }
        for (MessageExt message : session.readAll(session.topic(), sent, 10)) {
            Check.that(Arrays.equals(body, message.getBody()), "the body sent with " + message.getTags() + " came back changed");
            Check.that(message.getStoreSize() < body.length / 2, message.getTags() + ": stored with " + message.getStoreSize() + " bytes");
        }
        return String.join(", ", ClientLine.compressions());
    }

    /** Bodies near the limit of 4 MiB that cannot be compressed: what the client makes of them is a little larger still. */
    private static String large(Session session) throws Exception {
        session.createTopic(session.topic(), 1);
        DefaultMQProducer producer = session.producer();
        Random random = new Random(7);
        List<byte[]> bodies = new ArrayList<>();
        for (int size : new int[] {1, 100_000, 1_000_000, 4 * 1024 * 1024 - 16_384}) {
            byte[] body = new byte[size];
            random.nextBytes(body);
            producer.send(new Message(session.topic(), body));
            bodies.add(body);
        }
        List<MessageExt> stored = session.readAll(session.topic(), bodies.size(), 20);
        for (int i = 0; i < bodies.size(); i++) {
            Check.that(Arrays.equals(bodies.get(i), stored.get(i).getBody()), "body " + i + " came back changed");
        }
        return "bodies of 1 byte to nearly 4 MiB";
    }

    /** Messages are found by key, by unique id and by offset id. */
    private static String keys(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        long begin = System.currentTimeMillis() - 60_000;
        List<SendResult> receipts = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            Message message = new Message(session.topic(), "", Session.bytes("body " + i));
            message.setKeys(Arrays.asList("order-" + i, "customer-" + i % 3));
            receipts.add(producer.send(message));
        }
        long end = System.currentTimeMillis() + 60_000;
        for (int i = 0; i < 12; i++) {
            String key = "order-" + i;
            String body = "body " + i;
            Check.eventually("message found by " + key, 10, () -> {
                List<MessageExt> found = producer.queryMessage(session.topic(), key, 32, begin, end).getMessageList();
                return found.size() == 1 && Session.text(found.get(0)).equals(body);
            });
            SendResult receipt = receipts.get(i);
            Check.equal(body, Session.text(producer.viewMessage(session.topic(), receipt.getMsgId())), "found by unique id");
            MessageExt byOffset = producer.viewMessage(session.topic(), receipt.getOffsetMsgId());
            Check.equal(body, Session.text(byOffset), "found by offset id");
            Check.equal(receipt.getMsgId(), byOffset.getMsgId(), "unique id of what was found by offset id");
        }
        List<MessageExt> ofCustomer = producer.queryMessage(session.topic(), "customer-1", 32, begin, end).getMessageList();
        Check.equal(Set.of("body 1", "body 4", "body 7", "body 10"), Session.byBody(ofCustomer).keySet(), "messages of customer-1");
        Check.equal(2, producer.queryMessage(session.topic(), "customer-1", 2, begin, end).getMessageList().size(), "at most 2 of them");
        try {
            Check.equal(0, producer.queryMessage(session.topic(), "nobody", 32, begin, end).getMessageList().size(), "messages of nobody");
        } catch (org.apache.rocketmq.client.exception.MQClientException e) {
            Check.equal(208, e.getResponseCode(), "code when no message has the key");
        }
        return "12 messages by two keys each, by unique id and by offset id";
    }

    /** Delay levels 1 and 2 (1 s and 5 s): not before their time, not long after it. */
    private static String delay(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        Map<String, SendResult> receipts = new HashMap<>();
        for (int i = 0; i < 4; i++) {
            Message message = new Message(session.topic(), "later", "key-" + i, Session.bytes("delayed " + i));
            message.setDelayTimeLevel(i < 3 ? 1 : 2);
            receipts.put("delayed " + i, producer.send(message));
        }
        for (MessageExt message : session.readAll(session.topic(), 4, 15)) {
            int wanted = Session.text(message).equals("delayed 3") ? 5000 : 1000;
            long took = message.getStoreTimestamp() - message.getBornTimestamp();
            Check.that(took >= wanted - 50 && took < wanted + 3000, Session.text(message) + " took " + took + " ms instead of " + wanted);
            Check.equal(receipts.get(Session.text(message)).getMsgId(), message.getMsgId(), "unique id");
            Check.equal("later", message.getTags(), "tag");
        }
        return "levels 1 and 2 were kept";
    }
}
