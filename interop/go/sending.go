package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Every way to send, and what must be found afterwards.
var sendingScenarios = []scenario{
	{"sync", sendSync}, {"async", sendAsync}, {"oneway", sendOneWay}, {"batch", sendBatch}, {"selector", sendSelected},
	{"compressed", sendCompressed}, {"large", sendLarge}, {"delay", sendDelayed},
}

func compareWithReceipt(message *primitive.MessageExt, receipt *primitive.SendResult) {
	equal(receipt.MsgID, message.MsgId, "unique id")
	equal(receipt.OffsetMsgID, message.OffsetMsgId, "offset message id")
	equal(receipt.MessageQueue.QueueId, message.Queue.QueueId, "queue id")
	equal(receipt.QueueOffset, message.QueueOffset, "queue offset")
}

// sendSync sends to a topic that nobody created; what is stored is what was sent, where the receipt says.
func sendSync(s *session) string {
	from := s.producer()
	receipts := map[string]*primitive.SendResult{}
	for i := 0; i < 40; i++ {
		body := fmt.Sprintf("body %d", i)
		message := primitive.NewMessage(s.topic(), []byte(body))
		message.WithTag(fmt.Sprintf("tag-%d", i%3)).WithKeys([]string{fmt.Sprintf("key-%d", i), "all"})
		message.WithProperty("title", fmt.Sprintf("Grüße 你好 %d", i))
		receipts[body] = s.send(from, message)
	}
	stored := byBody(s.readAll(s.topic(), 40, 10*time.Second))
	queues := map[int]bool{}
	for i := 0; i < 40; i++ {
		message := stored[fmt.Sprintf("body %d", i)]
		that(message != nil, "body %d is missing", i)
		compareWithReceipt(message, receipts[fmt.Sprintf("body %d", i)])
		equal(fmt.Sprintf("tag-%d", i%3), message.GetTags(), "tag")
		equal(fmt.Sprintf("key-%d all", i), message.GetKeys(), "keys")
		equal(fmt.Sprintf("Grüße 你好 %d", i), message.GetProperty("title"), "user property beyond ASCII")
		equal(int32(0), message.ReconsumeTimes, "reconsume times")
		queues[message.Queue.QueueId] = true
	}
	equal(4, len(queues), "queues used by an automatically created topic")
	return fmt.Sprintf("40 messages over %d queues", len(queues))
}

func sendAsync(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	var answered sync.WaitGroup
	var lock sync.Mutex
	receipts := map[string]*primitive.SendResult{}
	var problem error
	answered.Add(200)
	for i := 0; i < 200; i++ {
		body := fmt.Sprintf("body %d", i)
		must(from.SendAsync(s.context, func(_ context.Context, receipt *primitive.SendResult, err error) {
			lock.Lock()
			defer lock.Unlock()
			if err != nil {
				problem = err
			}
			receipts[body] = receipt
			answered.Done()
		}, primitive.NewMessage(s.topic(), []byte(body))), "sending")
	}
	answered.Wait()
	must(problem, "an asynchronous send")
	for body, message := range byBody(s.readAll(s.topic(), 200, 10*time.Second)) {
		compareWithReceipt(message, receipts[body])
	}
	return "200 messages, each where its callback said"
}

func sendOneWay(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	for i := 0; i < 50; i++ {
		must(from.SendOneWay(s.context, primitive.NewMessage(s.topic(), []byte(fmt.Sprintf("body %d", i)))), "sending")
	}
	byBody(s.readAll(s.topic(), 50, 10*time.Second))
	return "50 messages arrived unanswered"
}

func sendBatch(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	sent := 0
	for _, size := range []int{2, 32, 100} {
		var messages []*primitive.Message
		for i := 0; i < size; i++ {
			message := primitive.NewMessage(s.topic(), []byte(fmt.Sprintf("batch of %d, %d", size, i)))
			message.WithTag(fmt.Sprintf("tag-%d", i%2)).WithProperty("place", fmt.Sprint(i))
			messages = append(messages, message)
		}
		receipt := s.send(from, messages...)
		sent += size
		equal(size, len(strings.Split(receipt.OffsetMsgID, ",")), "offset ids in the receipt")
		stored := byBody(s.readAll(s.topic(), sent, 10*time.Second))
		for i := 0; i < size; i++ {
			message := stored[fmt.Sprintf("batch of %d, %d", size, i)]
			that(message != nil, "message %d of a batch of %d is missing", i, size)
			equal(receipt.QueueOffset+int64(i), message.QueueOffset, "queue offset")
			equal(receipt.MessageQueue.QueueId, message.Queue.QueueId, "queue id")
			equal(strings.Split(receipt.OffsetMsgID, ",")[i], message.OffsetMsgId, "offset id")
			equal(fmt.Sprintf("tag-%d", i%2), message.GetTags(), "tag")
			equal(fmt.Sprint(i), message.GetProperty("place"), "property")
		}
	}
	return "batches of 2, 32 and 100"
}

// sendSelected sends all messages of one key to one queue, where they stay in order.
func sendSelected(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for step := 0; step < 10; step++ {
		for key := 0; key < 8; key++ {
			message := primitive.NewMessage(s.topic(), []byte(fmt.Sprintf("user-%d step %d", key, step)))
			message.WithShardingKey(fmt.Sprintf("user-%d", key)).WithKeys([]string{fmt.Sprintf("user-%d", key)})
			s.send(from, message)
		}
	}
	steps := map[string][]string{}
	queues := map[string]map[int]bool{}
	for _, message := range s.readAll(s.topic(), 80, 10*time.Second) {
		key := message.GetKeys()
		if queues[key] == nil {
			queues[key] = map[int]bool{}
		}
		queues[key][message.Queue.QueueId] = true
		steps[key] = append(steps[key], string(message.Body))
	}
	for key := 0; key < 8; key++ {
		name := fmt.Sprintf("user-%d", key)
		equal(1, len(queues[name]), "queues of "+name)
		for step := 0; step < 10; step++ {
			equal(fmt.Sprintf("%s step %d", name, step), steps[name][step], "step")
		}
	}
	return "8 keys x 10 steps in order"
}

func sendCompressed(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	body := bytes.Repeat([]byte("all work and no play makes a dull body. "), 1000)
	s.send(from, primitive.NewMessage(s.topic(), body))
	message := s.readAll(s.topic(), 1, 10*time.Second)[0]
	that(bytes.Equal(body, message.Body), "the body came back changed")
	that(int(message.StoreSize) < len(body)/2, "stored with %d bytes", message.StoreSize)
	return fmt.Sprintf("%d bytes stored in %d", len(body), message.StoreSize)
}

// sendLarge sends bodies near the limit of 4 MiB that cannot be compressed.
func sendLarge(s *session) string {
	s.createTopic(s.topic(), 1)
	from := s.producer()
	random := rand.New(rand.NewSource(7))
	var bodies [][]byte
	for _, size := range []int{1, 100_000, 1_000_000, 4*1024*1024 - 16_384} {
		body := make([]byte, size)
		random.Read(body)
		s.send(from, primitive.NewMessage(s.topic(), body))
		bodies = append(bodies, body)
	}
	for i, message := range s.readAll(s.topic(), len(bodies), 20*time.Second) {
		that(bytes.Equal(bodies[i], message.Body), "body %d came back changed", i)
	}
	return "bodies of 1 byte to nearly 4 MiB"
}

func sendDelayed(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	for i := 0; i < 4; i++ {
		level := 1
		if i == 3 {
			level = 2
		}
		message := primitive.NewMessage(s.topic(), []byte(fmt.Sprintf("delayed %d", i)))
		s.send(from, message.WithTag("later").WithDelayTimeLevel(level))
	}
	for _, message := range s.readAll(s.topic(), 4, 15*time.Second) {
		wanted := int64(1000)
		if string(message.Body) == "delayed 3" {
			wanted = 5000
		}
		took := message.StoreTimestamp - message.BornTimestamp
		that(took >= wanted-50 && took < wanted+3000, "%s took %d ms instead of %d", message.Body, took, wanted)
		equal("later", message.GetTags(), "tag")
	}
	return "levels 1 and 2 were kept"
}

// sendNumbered sends count messages one after the other.
func sendNumbered(s *session, from rocketmq.Producer, name string, count int) {
	for i := 0; i < count; i++ {
		message := primitive.NewMessage(s.topic(), []byte(fmt.Sprintf("%s %d", name, i)))
		message.WithTag("tag").WithProperty("number", fmt.Sprint(i))
		s.send(from, message)
	}
}
