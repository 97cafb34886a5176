package pocketmq.interop;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.PullResult;
import org.apache.rocketmq.client.consumer.PullStatus;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.TopicConfig;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** The names and clients of one scenario; closing it shuts down every client that was opened through it. */
final class Session implements AutoCloseable {
    private static final AtomicInteger INSTANCES = new AtomicInteger();

    private final String nameServer;
    private final String prefix;
    private final Deque<Runnable> closers = new ArrayDeque<>();
    private DefaultMQAdminExt admin;
    private DefaultMQPullConsumer reader;

    Session(String nameServer, String run, String scenario) {
        this.nameServer = nameServer;
        this.prefix = run + "-" + scenario.replace('.', '-');
    }

    String nameServer() {
        return nameServer;
    }

    String topic() {
        return prefix;
    }

    String topic(String suffix) {
        return prefix + "-" + suffix;
    }

    String group() {
        return "group-" + prefix;
    }

    String group(String suffix) {
        return group() + "-" + suffix;
    }

    /** A name that no other client of this process has, so that two consumers of one group stay two clients. */
    static String instance() {
        return ProcessHandle.current().pid() + "-" + INSTANCES.incrementAndGet();
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static String text(Message message) {
        return new String(message.getBody(), StandardCharsets.UTF_8);
    }

    DefaultMQProducer producer() throws Exception {
        DefaultMQProducer producer = newProducer();
        producer.start();
        return producer;
    }

    /** Not started yet. */
    DefaultMQProducer newProducer() {
        DefaultMQProducer producer = new DefaultMQProducer(group("producer"));
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName(instance());
        producer.setSendMsgTimeout(10_000);
        producer.setHeartbeatBrokerInterval(1000);
        closers.push(producer::shutdown);
        return producer;
    }

    /** Starts at the first message of its topics; not subscribed and not started yet. */
    DefaultMQPushConsumer newConsumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(instance());
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        // Half a minute is too long to notice that the topic of a group's retries exists now (it does after the first heartbeat),
        // or to repeat a heartbeat that the client left out because it was busy (its pulls are refused with code 25 until then).
        consumer.setPollNameServerInterval(1000);
        consumer.setHeartbeatBrokerInterval(1000);
        consumer.setConsumeThreadMin(4);
        consumer.setConsumeThreadMax(4);
        closers.push(consumer::shutdown);
        return consumer;
    }

    /**
     * Waits until a consumer also takes its group's retries. The topic of these appears with the group's first heartbeat, and a
     * consumer looks for it only now and then; this makes it look at once.
     */
    void waitForRetries(DefaultMQPushConsumer consumer) throws Exception {
        String retries = "%RETRY%" + consumer.getConsumerGroup();
        Check.eventually("the queue of " + retries, 30, () -> {
            if (!Sharing.assigned(consumer, retries).isEmpty()) {
                return true;
            }
            consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().updateTopicRouteInfoFromNameServer(retries);
            rebalanceNow(consumer);
            return false;
        });
    }

    /** Makes a consumer do at once what it does every twenty seconds anyway. */
    static void rebalanceNow(DefaultMQPushConsumer consumer) throws InterruptedException {
        consumer.getDefaultMQPushConsumerImpl().getmQClientFactory().rebalanceImmediately();
        Thread.sleep(200);
    }

    void closeLater(Runnable closer) {
        closers.push(closer);
    }

    DefaultMQAdminExt admin() throws Exception {
        if (admin == null) {
            DefaultMQAdminExt opened = new DefaultMQAdminExt(10_000L);
            opened.setNamesrvAddr(nameServer);
            opened.setInstanceName(instance());
            opened.start();
            closers.push(opened::shutdown);
            admin = opened;
        }
        return admin;
    }

    /** The addresses of the masters of the cluster. */
    List<String> masters() throws Exception {
        List<String> masters = new ArrayList<>();
        var cluster = admin().examineBrokerClusterInfo();
        for (var broker : cluster.getBrokerAddrTable().values()) {
            masters.add(broker.getBrokerAddrs().get(0L));
        }
        Check.that(!masters.isEmpty(), "the name server knows no broker");
        return masters;
    }

    /** Creates a topic on every master and waits until the name server gives out its route. */
    String createTopic(String topic, int queues) throws Exception {
        TopicConfig config = new TopicConfig(topic);
        config.setReadQueueNums(queues);
        config.setWriteQueueNums(queues);
        config.setPerm(6);
        for (String master : masters()) {
            admin().createAndUpdateTopicConfig(master, config);
        }
        waitForRoute(topic);
        return topic;
    }

    void waitForRoute(String topic) throws Exception {
        Check.eventually("a route for " + topic, 15,
            () -> !admin().examineTopicRouteInfo(topic).getQueueDatas().isEmpty());
    }

    DefaultMQPullConsumer reader() throws Exception {
        if (reader == null) {
            DefaultMQPullConsumer opened = new DefaultMQPullConsumer(group("reader"));
            opened.setNamesrvAddr(nameServer);
            opened.setInstanceName(instance());
            opened.start();
            closers.push(opened::shutdown);
            reader = opened;
        }
        return reader;
    }

    /** Everything that is in a topic now, in order within each queue. */
    List<MessageExt> readAll(String topic) throws Exception {
        waitForRoute(topic);
        List<MessageExt> messages = new ArrayList<>();
        for (MessageQueue queue : reader().fetchSubscribeMessageQueues(topic)) {
            long offset = reader().minOffset(queue);
            long end = reader().maxOffset(queue);
            while (offset < end) {
                PullResult result = reader().pull(queue, "*", offset, 32, 10_000);
                Check.that(result.getNextBeginOffset() > offset,
                    "a pull of " + queue + " at " + offset + " (end " + end + ") went nowhere: " + result.getPullStatus());
                if (result.getPullStatus() == PullStatus.FOUND) {
                    messages.addAll(result.getMsgFoundList());
                }
                offset = result.getNextBeginOffset();
            }
        }
        return messages;
    }

    /** Reads the topic again and again until it holds this many messages. */
    List<MessageExt> readAll(String topic, int count, int seconds) throws Exception {
        List<MessageExt> messages = new ArrayList<>();
        Check.eventually(count + " messages in " + topic, seconds, () -> {
            List<MessageExt> now = readAll(topic);
            messages.clear();
            messages.addAll(now);
            return now.size() >= count;
        });
        Check.equal(count, messages.size(), "messages in " + topic);
        return messages;
    }

    /** Messages by body, which must differ. */
    static <M extends Message> Map<String, M> byBody(List<M> messages) {
        Map<String, M> result = new TreeMap<>();
        for (M message : messages) {
            Check.that(result.put(text(message), message) == null, "received twice: " + text(message));
        }
        return result;
    }

    /** Nobody waits for the clients to end: each takes up to three seconds to join its own threads. */
    @Override
    public void close() {
        while (!closers.isEmpty()) {
            Thread closing = new Thread(closers.pop());
            closing.setDaemon(true);
            closing.start();
        }
    }
}
