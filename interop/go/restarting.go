package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

// restart: the server dies and comes back while a producer sends and a consumer receives. It prints RUNNING when both work,
// then waits for a line on standard input that says that the server is back; nothing that was acknowledged may be missing
// in the end.
func restart(s *session) string {
	s.createTopic(s.topic(), 4)
	kept, _ := s.collect(s.group(), all())
	from := s.producer(producer.WithSendMsgTimeout(2*time.Second), producer.WithRetry(2))
	var lock sync.Mutex
	acknowledged := map[string]*primitive.SendResult{}
	failed, stop := 0, make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(2 * time.Millisecond):
			}
			body := fmt.Sprintf("body %d", i)
			receipt, err := from.SendSync(s.context, primitive.NewMessage(s.topic(), []byte(body)))
			lock.Lock()
			if err == nil && receipt.Status == primitive.SendOK {
				acknowledged[body] = receipt
			} else {
				failed++
			}
			lock.Unlock()
		}
	}()
	count := func() int {
		lock.Lock()
		defer lock.Unlock()
		return len(acknowledged)
	}
	eventually("a consumer at work", 30*time.Second, func() bool { return kept.count() >= 300 })
	fmt.Println("RUNNING")
	_, err := bufio.NewReader(os.Stdin).ReadString('\n')
	must(err, "waiting for the driver")
	before := count()
	eventually("sends acknowledged again", 60*time.Second, func() bool { return count() >= before+300 })
	close(stop)
	<-stopped
	bodies := map[string]bool{}
	eventually("all acknowledged messages received", 60*time.Second, func() bool {
		for _, message := range kept.received() {
			bodies[string(message.Body)] = true
		}
		for body := range acknowledged {
			if !bodies[body] {
				return false
			}
		}
		return true
	})
	places := map[string]string{}
	queues, err := s.reader(s.topic()).GetTopicRouteInfo(s.topic())
	must(err, "route")
	reader := s.reader(s.topic())
	for _, queue := range queues {
		for _, message := range s.readQueue(reader, queue) {
			places[fmt.Sprintf("%d:%d", message.Queue.QueueId, message.QueueOffset)] = string(message.Body)
		}
	}
	for body, receipt := range acknowledged {
		equal(body, places[fmt.Sprintf("%d:%d", receipt.MessageQueue.QueueId, receipt.QueueOffset)], "message where its receipt says")
	}
	return fmt.Sprintf("%d acknowledged (%d after the restart), %d failed, all acknowledged ones received, %d deliveries more than messages",
		len(acknowledged), len(acknowledged)-before, failed, kept.count()-len(bodies))
}
