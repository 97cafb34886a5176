package main

import (
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// Consumers that say themselves what they want to read.
var pullingScenarios = []scenario{{"pull", pull}, {"poll", poll}}

// pull: positions and limits of a plain pull consumer.
func pull(s *session) string {
	s.createTopic(s.topic(), 1)
	sendNumbered(s, s.producer(), "body", 50)
	reader := s.reader(s.topic())
	queues, err := reader.GetTopicRouteInfo(s.topic())
	must(err, "route")
	queue := queues[0]
	at := func(offset int64, count int) *primitive.PullResult {
		result, err := reader.PullFrom(s.context, queue, offset, count)
		must(err, fmt.Sprintf("pulling at %d", offset))
		return result
	}
	first := at(0, 20)
	equal(primitive.PullFound, first.Status, "status at the beginning")
	equal(20, len(first.GetMessageExts()), "messages of a pull of 20")
	equal(int64(20), first.NextBeginOffset, "where to go on")
	equal(int64(0), first.MinOffset, "first offset")
	equal(int64(50), first.MaxOffset, "end")
	equal("body 10", string(at(10, 1).GetMessageExts()[0].Body), "message at 10")
	begin := time.Now()
	equal(primitive.PullNoNewMsg, at(50, 10).Status, "status at the end")
	held := time.Since(begin)
	that(held > 15*time.Second && held < 25*time.Second, "a pull at the end was held for %v instead of 20 s", held)
	beyond := at(1000, 10)
	equal(primitive.PullOffsetIllegal, beyond.Status, "status beyond the end")
	equal(int64(50), beyond.NextBeginOffset, "where to go on from beyond the end")
	offset, err := reader.OffsetForTimestamp(queue, time.Now().Add(-time.Hour).UnixMilli())
	must(err, "offset by time")
	equal(int64(0), offset, "offset of an hour ago")
	return "50 messages, read at will"
}

// poll: a subscribed pull consumer gets all queues, acknowledges, and a second life goes on where the first one stopped.
func poll(s *session) string {
	s.createTopic(s.topic(), 4)
	from := s.producer()
	sendNumbered(s, from, "first", 60)
	opened := s.newPoller()
	pollAll(s, opened, "first", 60)
	must(opened.PersistOffset(s.context, s.topic()), "persisting the cursors")
	must(opened.Shutdown(), "shutting down")
	sendNumbered(s, from, "second", 60)
	pollAll(s, s.newPoller(), "second", 60)
	return "60 + 60 messages over two lives of a consumer"
}

func (s *session) newPoller() rocketmq.PullConsumer {
	opened, err := rocketmq.NewPullConsumer(consumer.WithNsResolver(s.resolver()), consumer.WithInstance(instance()),
		consumer.WithGroupName(s.group()), consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(err, "new pull consumer")
	must(opened.Subscribe(s.topic(), all()), "subscribing")
	must(opened.Start(), "starting a pull consumer")
	s.closeLater(func() { _ = opened.Shutdown() })
	return opened
}

func pollAll(s *session, from rocketmq.PullConsumer, name string, count int) {
	bodies := map[string]bool{}
	eventually(fmt.Sprintf("%d polled messages", count), 40*time.Second, func() bool {
		request, err := from.Poll(s.context, time.Second)
		if err == nil {
			for _, message := range request.GetMsgList() {
				that(len(message.Body) > len(name) && string(message.Body)[:len(name)] == name, "received again: %s", message.Body)
				bodies[string(message.Body)] = true
			}
			from.ACK(s.context, request, consumer.ConsumeSuccess)
		}
		return len(bodies) == count
	})
}
