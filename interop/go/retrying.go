package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// A message that a consumer refuses comes again later, and ends in the dead-letter topic when it is refused too often.
var retryingScenarios = []scenario{{"retry", retry}, {"dead-letter", deadLetter}}

type delivery struct {
	time           time.Time
	id             string
	reconsumeTimes int32
}

type deliveries struct {
	lock sync.Mutex
	all  map[string][]delivery
}

func (d *deliveries) of(body string) []delivery {
	d.lock.Lock()
	defer d.lock.Unlock()
	return append([]delivery(nil), d.all[body]...)
}

// refuse starts a consumer that refuses each message as often as its body says, asking for it again after a second.
func refuse(s *session, maxReconsumeTimes int32) *deliveries {
	s.createRetryTopic(s.group())
	seen := &deliveries{all: map[string][]delivery{}}
	opened := s.newConsumer(s.group(), consumer.WithMaxReconsumeTimes(maxReconsumeTimes))
	must(opened.Subscribe(s.topic(), all(), func(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
		concurrently, _ := primitive.GetConcurrentlyCtx(ctx)
		concurrently.DelayLevelWhenNextConsume = 1
		message := messages[0]
		body := string(message.Body)
		seen.lock.Lock()
		defer seen.lock.Unlock()
		seen.all[body] = append(seen.all[body], delivery{time.Now(), message.MsgId, message.ReconsumeTimes})
		refusals, _ := strconv.Atoi(strings.Split(body, " ")[1])
		if int(message.ReconsumeTimes) < refusals {
			return consumer.ConsumeRetryLater, nil
		}
		return consumer.ConsumeSuccess, nil
	}), "subscribing")
	must(opened.Start(), "starting a push consumer")
	return seen
}

func sendRefused(s *session, body string) *primitive.SendResult {
	message := primitive.NewMessage(s.topic(), []byte(body))
	message.WithTag("tag").WithProperty("colour", "green")
	return s.send(s.producer(), message)
}

func retry(s *session) string {
	s.createTopic(s.topic(), 2)
	receipt := sendRefused(s, "refuse 2")
	sendRefused(s, "refuse 0")
	seen := refuse(s, 16)
	eventually("three deliveries", 60*time.Second, func() bool { return len(seen.of("refuse 2")) >= 3 })
	time.Sleep(1500 * time.Millisecond) // a fourth would come now
	all := seen.of("refuse 2")
	equal(3, len(all), "deliveries")
	equal(1, len(seen.of("refuse 0")), "deliveries of the message that was taken at once")
	for i, one := range all {
		equal(int32(i), one.reconsumeTimes, "reconsume times")
		equal(receipt.MsgID, one.id, "unique id")
		if i > 0 {
			pause := one.time.Sub(all[i-1].time)
			that(pause > 950*time.Millisecond && pause < 6*time.Second, "the pause was %v instead of 1 s", pause)
		}
	}
	return "refused twice, delivered three times"
}

func deadLetter(s *session) string {
	s.createTopic(s.topic(), 2)
	receipt := sendRefused(s, "refuse 9")
	seen := refuse(s, 2)
	eventually("three deliveries", 60*time.Second, func() bool { return len(seen.of("refuse 9")) >= 3 })
	dead := s.readAll("%DLQ%"+s.group(), 1, 20*time.Second)[0]
	equal(3, len(seen.of("refuse 9")), "deliveries with two retries")
	equal("refuse 9", string(dead.Body), "body of the dead letter")
	equal("green", dead.GetProperty("colour"), "user property of the dead letter")
	equal(s.topic(), dead.GetProperty("RETRY_TOPIC"), "original topic of the dead letter")
	equal(receipt.OffsetMsgID, dead.GetProperty("ORIGIN_MESSAGE_ID"), "original id of the dead letter")
	return fmt.Sprintf("dead after three deliveries, reconsume times %d", dead.ReconsumeTimes)
}
