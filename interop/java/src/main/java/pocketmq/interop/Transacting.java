package pocketmq.interop;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.producer.TransactionSendResult;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;

/** A transactional message is seen when its producer has committed it; a producer that says nothing is asked. */
final class Transacting {
    private static final String HALVES = "RMQ_SYS_TRANS_HALF_TOPIC";
    private static final String MARKS = "RMQ_SYS_TRANS_OP_HALF_TOPIC";
    /** A broker asks every half minute; the first round may be too early for a message that was just sent. */
    private static final int ASKED_WITHIN_SECONDS = 80;

    private Transacting() {}

    static void register(Map<String, Scenario> all) {
        all.put("transaction", Transacting::decideAtOnce);
        all.put("transaction-check", Transacting::decideWhenAsked);
    }

    /** Decides as the message's body says: its first word at once, its second one when asked for the first time, and so on. */
    private static final class Listener implements TransactionListener {
        final Map<String, MessageExt> asked = new ConcurrentHashMap<>();
        final Map<String, AtomicInteger> times = new ConcurrentHashMap<>();

        @Override
        public LocalTransactionState executeLocalTransaction(Message message, Object argument) {
            return decision(Session.text(message), 0);
        }

        @Override
        public LocalTransactionState checkLocalTransaction(MessageExt message) {
            String body = Session.text(message);
            asked.put(body, message);
            return decision(body, times.computeIfAbsent(body, k -> new AtomicInteger()).incrementAndGet());
        }

        private static LocalTransactionState decision(String body, int time) {
            switch (body.split(" ")[time]) {
                case "commit": return LocalTransactionState.COMMIT_MESSAGE;
                case "rollback": return LocalTransactionState.ROLLBACK_MESSAGE;
                default: return LocalTransactionState.UNKNOW;
            }
        }
    }

    private static TransactionMQProducer producer(Session session, Listener listener) throws Exception {
        TransactionMQProducer producer = new TransactionMQProducer(session.group("payers"));
        producer.setNamesrvAddr(session.nameServer());
        producer.setInstanceName(Session.instance());
        producer.setSendMsgTimeout(10_000);
        producer.setHeartbeatBrokerInterval(1000);
        producer.setTransactionListener(listener);
        producer.start();
        session.closeLater(producer::shutdown);
        return producer;
    }

    private static TransactionSendResult send(Session session, TransactionMQProducer producer, String body) throws Exception {
        Message message = new Message(session.topic(), "tag", "key", Session.bytes(body));
        message.putUserProperty("colour", "green");
        TransactionSendResult result = producer.sendMessageInTransaction(message, null);
        Check.equal(result.getMsgId(), result.getTransactionId(), "transaction id of " + body);
        return result;
    }

    private static String decideAtOnce(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        TransactionMQProducer producer = producer(session, new Listener());
        TransactionSendResult committed = send(session, producer, "commit");
        TransactionSendResult rolledBack = send(session, producer, "rollback");
        MessageExt seen = session.readAll(session.topic(), 1, 20).get(0);
        Check.equal("commit", Session.text(seen), "the message that is seen");
        Check.equal(committed.getMsgId(), seen.getMsgId(), "unique id");
        Check.equal(committed.getMessageQueue().getQueueId(), seen.getQueueId(), "queue");
        Check.equal(8, seen.getSysFlag() & 12, "transaction type in the sys flag");
        Check.equal("true", seen.getProperty("TRAN_MSG"), "TRAN_MSG");
        Check.equal(producer.getProducerGroup(), seen.getProperty("PGROUP"), "PGROUP");
        Check.equal(null, seen.getProperty("REAL_TOPIC"), "REAL_TOPIC");
        Check.equal(null, seen.getProperty("REAL_QID"), "REAL_QID");
        Check.equal(committed.getMsgId(), seen.getProperty("__transactionId__"), "__transactionId__");
        Check.equal("green", seen.getUserProperty("colour"), "user property");
        Check.equal("tag", seen.getTags(), "tag");

        MessageExt half = half(session, committed);
        Check.equal(half.getCommitLogOffset(), seen.getPreparedTransactionOffset(), "prepared transaction offset");
        Check.equal(half.getBornTimestamp(), seen.getBornTimestamp(), "born timestamp");
        Check.equal(half.getBornHost(), seen.getBornHost(), "born host");
        Check.equal(half.getQueueOffset(), committed.getQueueOffset(), "queue offset in the receipt");
        marked(session, half);
        marked(session, half(session, rolledBack));
        return "one committed and seen, one rolled back";
    }

    private static MessageExt half(Session session, TransactionSendResult sent) throws Exception {
        for (MessageExt half : session.readAll(HALVES)) {
            if (sent.getMsgId().equals(half.getMsgId())) {
                Check.equal(0, half.getSysFlag() & 12, "transaction type of the half");
                Check.equal(0, half.getQueueId(), "queue of the half");
                return half;
            }
        }
        throw new Check.Failure("there is no half of " + sent.getMsgId());
    }

    /** Waits for the record that says that a half has ended; brokers may write it some seconds later. */
    private static void marked(Session session, MessageExt half) throws Exception {
        Check.eventually("a mark for the half at " + half.getQueueOffset(), 20, () -> {
            for (MessageExt mark : session.readAll(MARKS)) {
                if ("d".equals(mark.getTags()) && List.of(Session.text(mark).split(",")).contains(String.valueOf(half.getQueueOffset()))) {
                    return true;
                }
            }
            return false;
        });
    }

    private static String decideWhenAsked(Session session) throws Exception {
        session.createTopic(session.topic(), 2);
        Listener listener = new Listener();
        TransactionMQProducer producer = producer(session, listener);
        TransactionSendResult committed = send(session, producer, "unknown commit");
        send(session, producer, "unknown rollback");
        Check.equal(0, session.readAll(session.topic()).size(), "messages before anybody has decided");
        Check.eventually("both are asked about", ASKED_WITHIN_SECONDS, () -> listener.asked.size() == 2);
        MessageExt question = listener.asked.get("unknown commit");
        Check.equal(session.topic(), question.getTopic(), "topic of the question");
        Check.equal(committed.getMessageQueue().getQueueId(), question.getQueueId(), "queue of the question");
        Check.equal(committed.getMsgId(), question.getTransactionId(), "transaction id of the question");
        Check.equal("green", question.getUserProperty("colour"), "user property of the question");
        Check.equal("1", question.getProperty("TRANSACTION_CHECK_TIMES"), "number of the question");
        MessageExt seen = session.readAll(session.topic(), 1, 20).get(0);
        Check.equal("unknown commit", Session.text(seen), "the message that is seen");
        Check.equal(committed.getMsgId(), seen.getMsgId(), "unique id");
        Check.equal("1", seen.getProperty("TRANSACTION_CHECK_TIMES"), "TRANSACTION_CHECK_TIMES");
        Check.equal(8, seen.getSysFlag() & 12, "transaction type in the sys flag");
        return "one committed and one rolled back when asked";
    }
}
