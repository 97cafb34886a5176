package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// Orderly consumers: they lock their queues at the broker and take each queue's messages one after the other.
var orderingScenarios = []scenario{{"orderly", orderly}}

const (
	orderlyKeys  = 8
	orderlySteps = 12
)

// orderly: step 5 of one key is put off twice, and nothing of its key overtakes it.
func orderly(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer(producer.WithQueueSelector(producer.NewHashQueueSelector()))
	for step := 0; step < orderlySteps; step++ {
		for key := 0; key < orderlyKeys; key++ {
			name := fmt.Sprintf("user-%d", key)
			s.send(from, primitive.NewMessage(s.topic(), []byte(fmt.Sprint(step))).WithShardingKey(name).WithKeys([]string{name}))
		}
	}
	var lock sync.Mutex
	done := map[string][]int{}
	total, putOff := 0, 0
	opened := s.newConsumer(s.group(), consumer.WithConsumerOrder(true), consumer.WithMaxReconsumeTimes(5),
		consumer.WithSuspendCurrentQueueTimeMillis(200*time.Millisecond))
	must(opened.Subscribe(s.topic(), all(), func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		lock.Lock()
		defer lock.Unlock()
		for _, message := range messages {
			step, _ := strconv.Atoi(string(message.Body))
			if message.GetKeys() == "user-3" && step == 5 {
				if putOff++; putOff <= 2 {
					return consumer.SuspendCurrentQueueAMoment, nil
				}
			}
			done[message.GetKeys()] = append(done[message.GetKeys()], step)
			total++
		}
		return consumer.ConsumeSuccess, nil
	}), "subscribing")
	must(opened.Start(), "starting an orderly consumer")
	eventually("all steps of all keys", 60*time.Second, func() bool {
		lock.Lock()
		defer lock.Unlock()
		return total >= orderlyKeys*orderlySteps
	})
	lock.Lock()
	defer lock.Unlock()
	for key := 0; key < orderlyKeys; key++ {
		steps := done[fmt.Sprintf("user-%d", key)]
		for step := 0; step < orderlySteps; step++ {
			equal(step, steps[step], fmt.Sprintf("place %d of user-%d in %v", step, key, steps))
		}
	}
	equal(3, putOff, "deliveries of the step that was put off twice")
	return fmt.Sprintf("%d keys x %d steps in order", orderlyKeys, orderlySteps)
}
