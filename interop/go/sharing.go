package main

import (
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// Several consumers of one group: how they divide the queues, and divide them anew.
var sharingScenarios = []scenario{{"shared", shared}, {"rebalance", rebalance}}

const sharedQueues = 8

// waitForShares sends to all queues until both consumers have received something from half of them lately.
func waitForShares(s *session, send func(), first, second *collector) {
	eventually("four queues for each", 45*time.Second, func() bool {
		before, other := first.count(), second.count()
		send()
		time.Sleep(500 * time.Millisecond)
		got := func(kept *collector, from int) int {
			queues := map[int]bool{}
			for _, message := range kept.received()[from:] {
				queues[message.Queue.QueueId] = true
			}
			return len(queues)
		}
		return got(first, before) == sharedQueues/2 && got(second, other) == sharedQueues/2
	})
}

// shared: two consumers divide eight queues; each message goes to exactly one of them.
func shared(s *session) string {
	s.createTopic(s.topic(), sharedQueues)
	from := s.producer()
	first, _ := s.collect(s.group(), all())
	second, _ := s.collect(s.group(), all())
	rounds := 0
	waitForShares(s, func() {
		rounds++
		sendNumbered(s, from, fmt.Sprintf("round %d,", rounds), sharedQueues*2)
	}, first, second)
	before, other := first.count(), second.count()
	sendNumbered(s, from, "body", 400)
	eventually("400 messages", 20*time.Second, func() bool { return first.count()+second.count() >= before+other+400 })
	var messages []*primitive.MessageExt
	messages = append(messages, first.received()[before:]...)
	messages = append(messages, second.received()[other:]...)
	equal(400, len(byBody(messages)), "messages received")
	equal(200, first.count()-before, "messages of the first consumer")
	return "400 messages, 200 for each of 2 consumers"
}

// rebalance: joining takes queues over, leaving gives them back.
func rebalance(s *session) string {
	s.createTopic(s.topic(), sharedQueues)
	from := s.producer()
	first, _ := s.collect(s.group(), all())
	sendNumbered(s, from, "alone", 40)
	eventually("40 messages at the only consumer", 30*time.Second, func() bool { return first.count() >= 40 })
	begin := time.Now()
	second, leaving := s.collect(s.group(), all())
	rounds := 0
	waitForShares(s, func() {
		rounds++
		sendNumbered(s, from, fmt.Sprintf("both %d,", rounds), sharedQueues*2)
	}, first, second)
	joined := time.Since(begin)
	begin = time.Now()
	must(leaving.Shutdown(), "leaving")
	sendNumbered(s, from, "one", 80)
	wanted := 40 + 80 + rounds*sharedQueues*2
	union := func() int {
		bodies := map[string]bool{}
		for _, message := range append(first.received(), second.received()...) {
			bodies[string(message.Body)] = true
		}
		return len(bodies)
	}
	eventually("all messages at the one that stayed", 15*time.Second, func() bool { return union() >= wanted })
	return fmt.Sprintf("joining took %.2f s, leaving %.2f s", joined.Seconds(), time.Since(begin).Seconds())
}
