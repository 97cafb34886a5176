package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// One push consumer: delivery, cursors, filters.
var consumingScenarios = []scenario{
	{"push", push}, {"cursor", cursor}, {"tags", tags}, {"broadcasting", broadcasting},
}

// collector is a listener that keeps what it is given and is content with everything.
type collector struct {
	lock     sync.Mutex
	messages []*primitive.MessageExt
}

func (c *collector) listen(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	c.lock.Lock()
	defer c.lock.Unlock()
	c.messages = append(c.messages, messages...)
	return consumer.ConsumeSuccess, nil
}

func (c *collector) received() []*primitive.MessageExt {
	c.lock.Lock()
	defer c.lock.Unlock()
	return append([]*primitive.MessageExt(nil), c.messages...)
}

func (c *collector) count() int {
	return len(c.received())
}

// queues tells from which queues messages came.
func (c *collector) queues() map[int]bool {
	queues := map[int]bool{}
	for _, message := range c.received() {
		queues[message.Queue.QueueId] = true
	}
	return queues
}

func all() consumer.MessageSelector {
	return consumer.MessageSelector{Type: consumer.TAG, Expression: "*"}
}

// collect starts a consumer that keeps what it is given.
func (s *session) collect(group string, selector consumer.MessageSelector, options ...consumer.Option) (*collector, rocketmq.PushConsumer) {
	kept := &collector{}
	opened := s.newConsumer(group, options...)
	must(opened.Subscribe(s.topic(), selector, kept.listen), "subscribing")
	must(opened.Start(), "starting a push consumer")
	return kept, opened
}

// push receives messages from before and after the start of a consumer, each once, with all that belongs to them.
func push(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	sendNumbered(s, from, "early", 100)
	kept, _ := s.collect(s.group(), all())
	eventually("100 early messages", 30*time.Second, func() bool { return kept.count() >= 100 })
	begin := time.Now()
	sendNumbered(s, from, "late", 100)
	eventually("100 late messages", 5*time.Second, func() bool { return kept.count() >= 200 })
	waited := time.Since(begin)
	received := byBody(kept.received())
	equal(200, len(received), "messages received")
	one := received["late 7"]
	equal("7", one.GetProperty("number"), "user property")
	equal("tag", one.GetTags(), "tag")
	equal(s.topic(), one.Topic, "topic")
	return fmt.Sprintf("200 messages; the last 100 sent and received in %.2f s", waited.Seconds())
}

// cursor: a consumer that leaves and comes back goes on where it stopped.
func cursor(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	sendNumbered(s, from, "first", 60)
	before, opened := s.collect(s.group(), all())
	eventually("60 messages", 30*time.Second, func() bool { return before.count() >= 60 })
	time.Sleep(500 * time.Millisecond) // the client moves its cursor a little after the listener returns
	must(opened.Shutdown(), "shutting down")
	sendNumbered(s, from, "second", 60)
	after, _ := s.collect(s.group(), all())
	eventually("60 more messages", 30*time.Second, func() bool { return after.count() >= 60 })
	for body := range byBody(after.received()) {
		that(strings.HasPrefix(body, "second"), "received again: %s", body)
	}
	return "60 + 60 messages over two lives of a consumer"
}

func tags(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	either, _ := s.collect(s.groupOf("either"), consumer.MessageSelector{Type: consumer.TAG, Expression: "red || green"})
	blue, _ := s.collect(s.groupOf("blue"), consumer.MessageSelector{Type: consumer.TAG, Expression: "blue"})
	colours := []string{"red", "green", "blue", ""}
	for i := 0; i < 60; i++ {
		s.send(from, primitive.NewMessage(s.topic(), []byte(fmt.Sprint(i))).WithTag(colours[i%4]))
	}
	eventually("red and green messages", 30*time.Second, func() bool { return either.count() >= 30 })
	eventually("blue messages", 30*time.Second, func() bool { return blue.count() >= 15 })
	time.Sleep(300 * time.Millisecond) // what should not come, would come now
	equal(30, len(byBody(either.received())), "red and green messages")
	equal(15, len(byBody(blue.received())), "blue messages")
	return "two groups with filters over 60 messages"
}

// broadcasting: each of two consumers gets everything.
func broadcasting(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	sendNumbered(s, from, "early", 20)
	first, _ := s.collect(s.group(), all(), consumer.WithConsumerModel(consumer.BroadCasting))
	second, _ := s.collect(s.group(), all(), consumer.WithConsumerModel(consumer.BroadCasting))
	for _, kept := range []*collector{first, second} {
		eventually("20 early messages at each consumer", 30*time.Second, func() bool { return kept.count() >= 20 })
	}
	sendNumbered(s, from, "late", 20)
	for _, kept := range []*collector{first, second} {
		eventually("40 messages at each consumer", 10*time.Second, func() bool { return kept.count() >= 40 })
		equal(40, len(byBody(kept.received())), "messages at each consumer")
	}
	return "2 consumers x 40 messages"
}
