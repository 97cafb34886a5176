package pocketmq.interop;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyContext;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.message.MessageExt;

/** A listener that keeps what it is given and is content with everything. */
final class Collector implements MessageListenerConcurrently {
    private final List<MessageExt> received = new ArrayList<>();

    @Override
    public synchronized ConsumeConcurrentlyStatus consumeMessage(List<MessageExt> messages, ConsumeConcurrentlyContext context) {
        received.addAll(messages);
        return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
    }

    synchronized List<MessageExt> received() {
        return new ArrayList<>(received);
    }

    synchronized int count() {
        return received.size();
    }

    synchronized Set<String> bodies() {
        Set<String> bodies = new HashSet<>();
        received.forEach(message -> bodies.add(Session.text(message)));
        return bodies;
    }
}
