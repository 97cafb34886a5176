package pocketmq.interop;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;

/** Consumers that say themselves what they want to read. */
final class Pulling {
    private Pulling() {}

    static void register(Map<String, Scenario> all) {
        all.put("pull", Pulling::pull);
        all.put("lite-pull", Pulling::litePull);
        all.put("lite-assign", Pulling::liteAssign);
    }

    /** Positions, limits, filters and cursors of a plain pull consumer. */
    private static String pull(Session session) throws Exception {
        session.createTopic(session.topic(), 1);
        DefaultMQProducer producer = session.producer();
        for (int i = 0; i < 50; i++) {
            producer.send(new Message(session.topic(), i % 2 == 0 ? "even" : "odd", Session.bytes("body " + i)));
        }
        DefaultMQPullConsumer consumer = session.reader();
        MessageQueue queue = consumer.fetchSubscribeMessageQueues(session.topic()).iterator().next();
        Check.equal(0L, consumer.minOffset(queue), "first offset");
        Check.equal(50L, consumer.maxOffset(queue), "offset after the last");

        PullResult first = consumer.pull(queue, "*", 0, 20);
        Check.equal(PullStatus.FOUND, first.getPullStatus(), "status at the beginning");
        Check.equal(20, first.getMsgFoundList().size(), "messages of a pull of 20");
        Check.equal(20L, first.getNextBeginOffset(), "where to go on");
        Check.equal(0L, first.getMinOffset(), "first offset in the answer");
        Check.equal(50L, first.getMaxOffset(), "end in the answer");
        PullResult odd = consumer.pull(queue, "odd", 10, 10);
        Check.equal(10, odd.getMsgFoundList().size(), "odd messages of a pull of 10");
        Check.equal("body 11", Session.text(odd.getMsgFoundList().get(0)), "first odd message from 10");
        Check.equal(PullStatus.NO_MATCHED_MSG, consumer.pull(queue, "neither", 0, 10).getPullStatus(), "status when no tag matches");
        PullResult atEnd = consumer.pull(queue, "*", 50, 10);
        Check.equal(PullStatus.NO_NEW_MSG, atEnd.getPullStatus(), "status at the end");
        Check.equal(50L, atEnd.getNextBeginOffset(), "where to go on from the end");
        PullResult beyond = consumer.pull(queue, "*", 1000, 10);
        Check.equal(PullStatus.OFFSET_ILLEGAL, beyond.getPullStatus(), "status beyond the end");
        Check.equal(50L, beyond.getNextBeginOffset(), "where to go on from beyond the end");

        MessageExt tenth = consumer.pull(queue, "*", 10, 1).getMsgFoundList().get(0);
        long byTime = consumer.searchOffset(queue, tenth.getStoreTimestamp());
        Check.that(byTime <= 10 && byTime >= 0, "offset by time: " + byTime);
        Check.equal(50L, consumer.searchOffset(queue, System.currentTimeMillis() + 60_000), "offset of a time to come");
        Check.equal(0L, consumer.searchOffset(queue, tenth.getStoreTimestamp() - 3_600_000), "offset of an hour ago");

        consumer.updateConsumeOffset(queue, 17);
        consumer.getOffsetStore().persist(queue);
        Check.eventually("the cursor that was committed", 5, () -> consumer.fetchConsumeOffset(queue, true) == 17);
        return "50 messages, read at will";
    }

    private static DefaultLitePullConsumer newLite(Session session) {
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer(session.group());
        consumer.setNamesrvAddr(session.nameServer());
        consumer.setInstanceName(Session.instance());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setPullBatchSize(16);
        session.closeLater(consumer::shutdown);
        return consumer;
    }

    private static Set<String> poll(DefaultLitePullConsumer consumer, int count, int seconds) {
        Set<String> bodies = new TreeSet<>();
        long end = System.nanoTime() + seconds * 1_000_000_000L;
        while (bodies.size() < count && System.nanoTime() < end) {
            for (MessageExt message : consumer.poll(500)) {
                Check.that(bodies.add(Session.text(message)), "received twice: " + Session.text(message));
            }
        }
        Check.equal(count, bodies.size(), "messages polled within " + seconds + " s");
        return bodies;
    }

    /** Subscribes, polls, commits, and a second life goes on where the first one stopped. */
    private static String litePull(Session session) throws Exception {
        session.createTopic(session.topic(), 4);
        DefaultMQProducer producer = session.producer();
        Consuming.send(producer, session.topic(), "first", 60);
        DefaultLitePullConsumer consumer = newLite(session);
        consumer.setAutoCommit(false);
        consumer.subscribe(session.topic(), "*");
        consumer.start();
        poll(consumer, 60, 20);
        consumer.commitSync();
        consumer.shutdown();
        Consuming.send(producer, session.topic(), "second", 60);
        DefaultLitePullConsumer again = newLite(session);
        again.subscribe(session.topic(), "*");
        again.start();
        for (String body : poll(again, 60, 20)) {
            Check.that(body.startsWith("second"), "received again: " + body);
        }
        return "60 + 60 messages over two lives of a consumer";
    }

    /** Polls until both queues' messages from an offset to 19 came; a pull under way during a seek may bring others too. */
    private static void pollAll(DefaultLitePullConsumer consumer, int from, int seconds) throws Exception {
        Set<String> places = new TreeSet<>();
        Check.eventually("the messages from offset " + from, seconds, () -> {
            for (MessageExt message : consumer.poll(500)) {
                if (message.getQueueOffset() >= from) {
                    places.add(message.getQueueId() + ":" + message.getQueueOffset());
                }
            }
            return places.size() == 2 * (20 - from);
        });
    }

    /** Takes queues by hand, and reads from where it says. */
    private static String liteAssign(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        DefaultMQProducer producer = session.producer();
        Consuming.send(producer, session.topic(), "body", 40);
        DefaultLitePullConsumer consumer = newLite(session);
        consumer.start();
        List<MessageQueue> queues = new ArrayList<>(consumer.fetchMessageQueues(session.topic()));
        Check.equal(2, queues.size(), "queues");
        consumer.assign(queues);
        for (MessageQueue queue : queues) {
            consumer.seek(queue, 15);
        }
        pollAll(consumer, 15, 20);
        for (MessageQueue queue : queues) {
            consumer.seekToBegin(queue);
        }
        pollAll(consumer, 0, 20);
        return "40 messages, from 15 and again from the beginning";
    }
}
