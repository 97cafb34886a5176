package main

import (
	"fmt"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"
)

// What an operator asks for.
var administeringScenarios = []scenario{{"topic-admin", topicAdmin}}

func topicAdmin(s *session) string {
	s.createTopic(s.topic(), 3)
	opened, err := admin.NewAdmin(admin.WithResolver(s.resolver()))
	must(err, "new admin")
	s.closeLater(func() { _ = opened.Close() })
	listed := func() bool {
		list, err := opened.FetchAllTopicList(s.context)
		must(err, "listing topics")
		for _, topic := range list.TopicList {
			if topic == s.topic() {
				return true
			}
		}
		return false
	}
	that(listed(), "the new topic is not listed")
	queues := map[int]bool{}
	from := s.producer()
	for i := 0; i < 9; i++ {
		queues[s.send(from, primitive.NewMessage(s.topic(), []byte(fmt.Sprint(i)))).MessageQueue.QueueId] = true
	}
	equal(map[int]bool{0: true, 1: true, 2: true}, queues, "queues used")
	groups, err := opened.GetAllSubscriptionGroup(s.context, s.brokerAddress(), 5*time.Second)
	must(err, "listing groups")
	that(len(groups.SubscriptionGroupTable) > 0, "no group is listed")
	must(opened.DeleteTopic(s.context, admin.WithTopicDelete(s.topic()), admin.WithBrokerAddrDelete(s.brokerAddress()),
		admin.WithNameSrvAddr([]string{s.nameServer})), "deleting the topic")
	eventually("the topic gone", 10*time.Second, func() bool { return !listed() })
	return "created, listed, used, deleted"
}
