package main

import (
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// A transactional message is seen when its producer has committed it; a producer that says nothing is asked.
var transactingScenarios = []scenario{{"transaction", decideAtOnce}, {"transaction-check", decideWhenAsked}}

// A broker asks every half minute; the first round may be too early for a message that was just sent.
const askedWithin = 80 * time.Second

// listener decides as the message's body says: its first word at once, its second one when asked.
type listener struct {
	lock  sync.Mutex
	asked map[string]*primitive.MessageExt
}

func (l *listener) ExecuteLocalTransaction(message *primitive.Message) primitive.LocalTransactionState {
	return decision(string(message.Body), 0)
}

func (l *listener) CheckLocalTransaction(message *primitive.MessageExt) primitive.LocalTransactionState {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.asked[string(message.Body)] = message
	return decision(string(message.Body), 1)
}

func (l *listener) question(body string) *primitive.MessageExt {
	l.lock.Lock()
	defer l.lock.Unlock()
	return l.asked[body]
}

func decision(body string, time int) primitive.LocalTransactionState {
	switch strings.Split(body, " ")[time] {
	case "commit":
		return primitive.CommitMessageState
	case "rollback":
		return primitive.RollbackMessageState
	}
	return primitive.UnkonwnState
}

func (s *session) transactionProducer() (rocketmq.TransactionProducer, *listener) {
	decider := &listener{asked: map[string]*primitive.MessageExt{}}
	opened, err := rocketmq.NewTransactionProducer(decider, producer.WithNsResolver(s.resolver()),
		producer.WithGroupName(s.groupOf("payers")), producer.WithInstanceName(instance()),
		producer.WithSendMsgTimeout(10*time.Second))
	must(err, "new transaction producer")
	must(opened.Start(), "starting a transaction producer")
	s.closeLater(func() { _ = opened.Shutdown() })
	return opened, decider
}

func sendInTransaction(s *session, from rocketmq.TransactionProducer, body string) *primitive.TransactionSendResult {
	message := primitive.NewMessage(s.topic(), []byte(body))
	message.WithTag("tag").WithProperty("colour", "green")
	receipt, err := from.SendMessageInTransaction(s.context, message)
	must(err, "sending "+body)
	equal(primitive.SendOK, receipt.Status, "status of "+body)
	return receipt
}

func decideAtOnce(s *session) string {
	s.createTopic(s.topic(), 2)
	from, _ := s.transactionProducer()
	committed := sendInTransaction(s, from, "commit")
	sendInTransaction(s, from, "rollback")
	seen := s.readAll(s.topic(), 1, 20*time.Second)[0]
	equal("commit", string(seen.Body), "the message that is seen")
	equal(committed.MsgID, seen.MsgId, "unique id")
	equal(int32(8), seen.SysFlag&12, "transaction type in the sys flag")
	that(seen.PreparedTransactionOffset > 0, "the prepared transaction offset is %d", seen.PreparedTransactionOffset)
	equal("green", seen.GetProperty("colour"), "user property")
	equal("", seen.GetProperty("REAL_TOPIC"), "REAL_TOPIC")
	return "one committed and seen, one rolled back"
}

func decideWhenAsked(s *session) string {
	s.createTopic(s.topic(), 2)
	from, decider := s.transactionProducer()
	committed := sendInTransaction(s, from, "unknown commit")
	sendInTransaction(s, from, "unknown rollback")
	s.readAll(s.topic(), 0, 5*time.Second)
	eventually("both are asked about", askedWithin, func() bool {
		return decider.question("unknown commit") != nil && decider.question("unknown rollback") != nil
	})
	question := decider.question("unknown commit")
	equal(s.topic(), question.Topic, "topic of the question")
	equal("green", question.GetProperty("colour"), "user property of the question")
	seen := s.readAll(s.topic(), 1, 20*time.Second)[0]
	equal("unknown commit", string(seen.Body), "the message that is seen")
	equal(committed.MsgID, seen.MsgId, "unique id")
	return "one committed and one rolled back when asked"
}
