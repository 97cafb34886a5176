import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.message.Message;

/**
 * Arguments: name server, topic, group, messages a second, seconds to warm up, seconds to measure. One producer sends one
 * message after the other at that rate, one push consumer in the same process takes them; so there is one clock. Prints one
 * JSON line with percentiles in milliseconds, of the send alone and from before the send until the listener has the message.
 */
public class Latency {
    private static final int BODY_BYTES = 128;

    public static void main(String[] arguments) throws Exception {
        String nameServer = arguments[0];
        String topic = arguments[1];
        double rate = Double.parseDouble(arguments[3]);
        double warmUpSeconds = Double.parseDouble(arguments[4]);
        double seconds = Double.parseDouble(arguments[5]);
        DefaultMQProducer producer = new DefaultMQProducer("latency-producer");
        producer.setNamesrvAddr(nameServer);
        producer.setSendMsgTimeout(10_000); // a machine under load is slow just after the start
        producer.start();
        producer.send(message(topic, 0)); // makes the topic

        List<Long> delays = new ArrayList<>();
        AtomicInteger received = new AtomicInteger();
        long[] measuring = {Long.MAX_VALUE};
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(arguments[2]);
        consumer.setNamesrvAddr(nameServer);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            long now = System.nanoTime();
            synchronized (delays) {
                messages.forEach(m -> {
                    long sent = ByteBuffer.wrap(m.getBody()).getLong();
                    received.incrementAndGet();
                    if (sent >= measuring[0]) {
                        delays.add(now - sent);
                    }
                });
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        run(producer, topic, rate, warmUpSeconds, new ArrayList<>());
        for (int i = 0; received.get() == 0 && i < 600; i++) {
            Thread.sleep(50);
        }
        synchronized (delays) {
            measuring[0] = System.nanoTime();
        }
        List<Long> sends = new ArrayList<>();
        run(producer, topic, rate, seconds, sends);
        for (int i = 0; i < 100; i++) {
            Thread.sleep(50);
            synchronized (delays) {
                if (delays.size() >= sends.size()) {
                    break;
                }
            }
        }
        synchronized (delays) {
            System.out.println("{\"sent\": " + sends.size() + ", \"received\": " + delays.size() + percentiles("send", sends)
                + percentiles("consume", delays) + "}");
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    private static void run(DefaultMQProducer producer, String topic, double rate, double seconds, List<Long> took) throws Exception {
        long begin = System.nanoTime();
        for (int i = 0; i < rate * seconds; i++) {
            long due = begin + (long) (i / rate * 1e9);
            for (long wait = due - System.nanoTime(); wait > 0; wait = due - System.nanoTime()) {
                LockSupport.parkNanos(wait);
            }
            long now = System.nanoTime();
            producer.send(message(topic, now));
            took.add(System.nanoTime() - now);
        }
    }

    private static Message message(String topic, long time) {
        byte[] body = new byte[BODY_BYTES];
        ByteBuffer.wrap(body).putLong(time);
        return new Message(topic, body);
    }

    private static String percentiles(String name, List<Long> nanoseconds) {
        Collections.sort(nanoseconds);
        StringBuilder text = new StringBuilder();
        for (int percent : new int[] {50, 99}) {
            int place = Math.min(nanoseconds.size() - 1, nanoseconds.size() * percent / 100);
            double value = nanoseconds.isEmpty() ? Double.NaN : nanoseconds.get(place) / 1e6;
            text.append(String.format(Locale.ROOT, ", \"%s_p%d_ms\": %.3f", name, percent, value));
        }
        return text.toString();
    }
}
