package pocketmq.interop;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.zip.CRC32;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.MessageClientExt;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Tells everything that clients can see of what {@link StoreFill} left behind, so that two servers can be compared. */
final class StoreDump {
    private StoreDump() {}

    /** The report's detail is JSON of its own. */
    static String play(Session session) throws Exception {
        Map<String, Object> seen = new LinkedHashMap<>();
        Map<String, Object> topics = new TreeMap<>();
        for (String name : List.of("plain", "batch", "bulk", "compressed", "delayed", "refused")) {
            topics.put(session.topic(name), topic(session, session.topic(name)));
        }
        topics.put("%RETRY%" + session.group("picky"), topic(session, "%RETRY%" + session.group("picky")));
        topics.put("%DLQ%" + session.group("picky"), topic(session, "%DLQ%" + session.group("picky")));
        seen.put("topics", topics);
        seen.put("keys", keys(session));
        seen.put("cursors", cursors(session));
        seen.put("retries of the group with settings", session.admin()
            .examineSubscriptionGroupConfig(session.masters().get(0), session.group("settings")).getRetryMaxTimes());
        seen.put("consumed from the beginning", consumed(session));
        return Json.of(seen);
    }

    private static Map<String, Object> topic(Session session, String topic) throws Exception {
        Map<String, Object> result = new LinkedHashMap<>();
        session.waitForRoute(topic);
        var config = session.admin().examineTopicConfig(session.masters().get(0), topic);
        result.put("queues", config.getReadQueueNums() + "/" + config.getWriteQueueNums());
        result.put("permissions", config.getPerm());
        Map<String, Object> queues = new TreeMap<>();
        for (MessageQueue queue : session.reader().fetchSubscribeMessageQueues(topic)) {
            long first = session.reader().minOffset(queue);
            queues.put(Integer.toString(queue.getQueueId()), List.of(first, session.reader().maxOffset(queue)));
        }
        result.put("offsets", queues);
        List<Object> messages = new ArrayList<>();
        Map<Integer, MessageExt> middle = new TreeMap<>();
        for (MessageExt message : session.readAll(topic)) {
            messages.add(message(message));
            middle.put(message.getQueueId(), message);
        }
        messages.sort((a, b) -> a.toString().compareTo(b.toString()));
        result.put("messages", messages);
        Map<String, Object> byTime = new TreeMap<>();
        for (MessageExt last : middle.values()) {
            MessageQueue queue = new MessageQueue(topic, last.getBrokerName(), last.getQueueId());
            byTime.put(Integer.toString(last.getQueueId()), session.reader().searchOffset(queue, last.getStoreTimestamp()));
        }
        result.put("offset by the time of the last message", byTime);
        return result;
    }

    private static Map<String, Object> message(MessageExt message) {
        Map<String, Object> result = new LinkedHashMap<>();
        CRC32 checksum = new CRC32();
        checksum.update(message.getBody());
        result.put("place", message.getQueueId() + ":" + message.getQueueOffset());
        result.put("position", message.getCommitLogOffset());
        result.put("body", message.getBody().length + ":" + checksum.getValue());
        result.put("id", message.getMsgId());
        result.put("offset id", ((MessageClientExt) message).getOffsetMsgId());
        result.put("born", message.getBornTimestamp() + " " + message.getBornHost());
        result.put("stored", message.getStoreTimestamp() + " " + message.getStoreHost());
        result.put("flags", message.getFlag() + " " + message.getSysFlag());
        result.put("reconsume times", message.getReconsumeTimes());
        Map<String, Object> properties = new TreeMap<>(message.getProperties());
        properties.keySet().removeAll(List.of("MIN_OFFSET", "MAX_OFFSET")); // added by the client, compared above
        result.put("properties", properties);
        return result;
    }

    private static Map<String, Object> keys(Session session) throws Exception {
        DefaultMQProducer producer = session.producer();
        Map<String, Object> found = new TreeMap<>();
        String[][] questions = {{"plain", "key-7"}, {"plain", "key-299"}, {"batch", "round-1"}, {"bulk", "bulk-0"}, {"bulk", "bulk-119"},
            {"compressed", "zip"}, {"delayed", "late"}, {"refused", "refused"}};
        for (String[] question : questions) {
            TreeSet<String> ids = new TreeSet<>();
            for (MessageExt message : producer.queryMessage(session.topic(question[0]), question[1], 64, 0, System.currentTimeMillis() + 60_000).getMessageList()) {
                ids.add(message.getMsgId());
            }
            found.put(question[0] + " " + question[1], ids);
        }
        MessageExt one = producer.queryMessage(session.topic("plain"), "key-42", 1, 0, System.currentTimeMillis() + 60_000).getMessageList().get(0);
        found.put("by unique id", Session.text(producer.viewMessage(session.topic("plain"), one.getMsgId())));
        return found;
    }

    private static Map<String, Object> cursors(Session session) throws Exception {
        Map<String, Object> result = new TreeMap<>();
        for (String group : List.of("done", "halfway")) {
            session.admin().examineConsumeStats(session.group(group), session.topic("plain")).getOffsetTable().forEach((queue, offsets) ->
                result.put(group + " " + queue.getQueueId(), offsets.getConsumerOffset() + " of " + offsets.getBrokerOffset()));
        }
        return result;
    }

    /** What a new group that starts at the beginning is given. */
    private static Map<String, Object> consumed(Session session) throws Exception {
        Map<String, Object> result = new TreeMap<>();
        String group = session.group("new-" + System.currentTimeMillis());
        Map<String, Integer> counts = Map.of("plain", 300, "batch", 96, "bulk", 120, "compressed", 1, "delayed", 1, "refused", 1);
        Collector collector = new Collector();
        DefaultMQPushConsumer consumer = session.newConsumer(group);
        for (String topic : counts.keySet()) {
            consumer.subscribe(session.topic(topic), "*");
        }
        consumer.registerMessageListener(collector);
        consumer.start();
        int total = counts.values().stream().mapToInt(Integer::intValue).sum();
        Check.eventually(total + " messages from the beginning", 60, () -> collector.count() >= total);
        for (MessageExt message : collector.received()) {
            result.merge(message.getTopic(), 1, (a, b) -> (Integer) a + (Integer) b);
        }
        counts.forEach((topic, count) -> Check.equal(count, result.get(session.topic(topic)), "messages of " + topic));
        return result;
    }
}
