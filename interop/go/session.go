package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var instances atomic.Int64

// session holds the names and clients of one scenario; closing it shuts down every client that was opened through it.
type session struct {
	nameServer string
	prefix     string
	context    context.Context
	closers    []func()
	lock       sync.Mutex
}

func newSession(nameServer, run, scenario string) *session {
	return &session{nameServer: nameServer, prefix: run + "-" + scenario, context: context.Background()}
}

func (s *session) topic() string              { return s.prefix }
func (s *session) group() string              { return "group-" + s.prefix }
func (s *session) groupOf(name string) string { return s.group() + "-" + name }

func (s *session) resolver() primitive.NsResolver {
	return primitive.NewPassthroughResolver(strings.Split(s.nameServer, ";"))
}

// instance returns a name that no other client of this process has, so that two consumers of one group stay two clients.
func instance() string {
	return fmt.Sprintf("%d-%d", os.Getpid(), instances.Add(1))
}

func (s *session) closeLater(closer func()) {
	s.lock.Lock()
	defer s.lock.Unlock()
	s.closers = append(s.closers, closer)
}

func (s *session) close() {
	s.lock.Lock()
	defer s.lock.Unlock()
	for i := len(s.closers) - 1; i >= 0; i-- {
		s.closers[i]()
	}
}

// producer is started already.
func (s *session) producer(options ...producer.Option) rocketmq.Producer {
	options = append([]producer.Option{
		producer.WithNsResolver(s.resolver()), producer.WithGroupName(s.groupOf("producer")),
		producer.WithInstanceName(instance()), producer.WithSendMsgTimeout(10 * time.Second),
	}, options...)
	opened, err := rocketmq.NewProducer(options...)
	must(err, "new producer")
	must(opened.Start(), "starting a producer")
	s.closeLater(func() { _ = opened.Shutdown() })
	return opened
}

// newConsumer starts at the first message of its topics; it is not subscribed and not started yet.
func (s *session) newConsumer(group string, options ...consumer.Option) rocketmq.PushConsumer {
	options = append([]consumer.Option{
		consumer.WithNsResolver(s.resolver()), consumer.WithGroupName(group), consumer.WithInstance(instance()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
	}, options...)
	opened, err := rocketmq.NewPushConsumer(options...)
	must(err, "new push consumer")
	s.closeLater(func() { _ = opened.Shutdown() })
	return opened
}

// brokerAddress is found out from the receipt of a message, since this client has no call for it.
func (s *session) brokerAddress() string {
	receipt := s.send(s.producer(), primitive.NewMessage("interop-scratch", []byte("where are you?")))
	raw, err := hex.DecodeString(receipt.OffsetMsgID)
	must(err, "decoding the offset id "+receipt.OffsetMsgID)
	that(len(raw) == 16, "offset id %s has %d bytes", receipt.OffsetMsgID, len(raw))
	port := int(raw[4])<<24 | int(raw[5])<<16 | int(raw[6])<<8 | int(raw[7])
	return fmt.Sprintf("%s:%d", net.IP(raw[:4]), port)
}

func (s *session) createTopic(topic string, queues int) string {
	opened, err := admin.NewAdmin(admin.WithResolver(s.resolver()))
	must(err, "new admin")
	s.closeLater(func() { _ = opened.Close() })
	must(opened.CreateTopic(s.context, admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(s.brokerAddress()),
		admin.WithReadQueueNums(queues), admin.WithWriteQueueNums(queues)), "creating topic "+topic)
	eventually("a route for "+topic, 15*time.Second, func() bool {
		found, err := opened.FetchPublishMessageQueues(s.context, topic)
		return err == nil && len(found) == queues
	})
	return topic
}

// createRetryTopic makes the topic of a group's retries before its first consumer starts: this client looks for new topics
// only every thirty seconds, so it would notice the one that the first heartbeat creates much later.
func (s *session) createRetryTopic(group string) {
	s.createTopic("%RETRY%"+group, 1)
}

func (s *session) send(from rocketmq.Producer, messages ...*primitive.Message) *primitive.SendResult {
	receipt, err := from.SendSync(s.context, messages...)
	must(err, "sending to "+messages[0].Topic)
	equal(primitive.SendOK, receipt.Status, "status")
	return receipt
}

// reader opens a pull consumer for a topic that exists.
func (s *session) reader(topic string) rocketmq.PullConsumer {
	reader, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(s.resolver()), consumer.WithInstance(instance()),
		consumer.WithGroupName(s.groupOf("reader"+instance())))
	must(err, "new pull consumer")
	must(reader.Assign(topic, nil), "assigning nothing")
	eventually("a reader of "+topic, 20*time.Second, func() bool { return reader.Start() == nil })
	s.closeLater(func() { _ = reader.Shutdown() })
	return reader
}

// readAll reads the topic again and again until it holds this many messages, in order within each queue.
func (s *session) readAll(topic string, count int, limit time.Duration) []*primitive.MessageExt {
	reader := s.reader(topic)
	queues, err := reader.GetTopicRouteInfo(topic)
	must(err, "route of "+topic)
	var messages []*primitive.MessageExt
	eventually(fmt.Sprintf("%d messages in %s", count, topic), limit, func() bool {
		messages = nil
		for _, queue := range queues {
			messages = append(messages, s.readQueue(reader, queue)...)
		}
		return len(messages) >= count
	})
	equal(count, len(messages), "messages in "+topic)
	return messages
}

// endOf asks far beyond the end of a queue, which is answered at once; a pull at the end would be held for twenty seconds.
func (s *session) endOf(reader rocketmq.PullConsumer, queue *primitive.MessageQueue) int64 {
	result, err := reader.PullFrom(s.context, queue, 1<<40, 1)
	must(err, fmt.Sprintf("pulling %v beyond its end", queue))
	equal(primitive.PullOffsetIllegal, result.Status, "status beyond the end")
	return result.NextBeginOffset
}

func (s *session) readQueue(reader rocketmq.PullConsumer, queue *primitive.MessageQueue) []*primitive.MessageExt {
	var messages []*primitive.MessageExt
	for offset, end := int64(0), s.endOf(reader, queue); offset < end; {
		result, err := reader.PullFrom(s.context, queue, offset, 32)
		must(err, fmt.Sprintf("pulling %v at %d", queue, offset))
		messages = append(messages, result.GetMessageExts()...)
		that(result.NextBeginOffset > offset, "a pull of %v at %d went nowhere: %v", queue, offset, result.Status)
		offset = result.NextBeginOffset
	}
	return messages
}

// byBody sorts messages by their bodies, which must differ.
func byBody(messages []*primitive.MessageExt) map[string]*primitive.MessageExt {
	result := map[string]*primitive.MessageExt{}
	for _, message := range messages {
		body := string(message.Body)
		that(result[body] == nil, "received twice: %s", body)
		result[body] = message
	}
	return result
}
