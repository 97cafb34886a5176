// Plays scenarios against a name server with the RocketMQ Go client:
//
//	interop --namesrv HOST:PORT --run NAME [--parallel N] SCENARIO...
//
// --list prints the scenarios. One JSON line per scenario on standard output; exit code 0 when all went well.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/apache/rocketmq-client-go/v2/rlog"
)

const scenarioLimit = 120 * time.Second

// A scenario returns a sentence about what happened; it calls fail, or one of the checks, when something went wrong.
type scenario struct {
	name string
	play func(*session) string
}

type report struct {
	Scenario string  `json:"scenario"`
	Ok       bool    `json:"ok"`
	Detail   string  `json:"detail"`
	Seconds  float64 `json:"seconds"`
}

func main() {
	nameServer := flag.String("namesrv", "127.0.0.1:9876", "name server, HOST:PORT")
	run := flag.String("run", fmt.Sprintf("run%d", time.Now().UnixMilli()), "prefix of all topics and groups")
	parallel := flag.Int("parallel", 1, "scenarios at a time")
	list := flag.Bool("list", false, "print the scenarios")
	flag.Parse()
	if *list {
		for _, s := range scenarios() {
			fmt.Println(s.name)
		}
		return
	}
	if os.Getenv("INTEROP_LOG") == "" {
		rlog.SetLogLevel("fatal")
	}
	if !playAll(chosen(flag.Args()), *nameServer, *run, *parallel) {
		os.Exit(1)
	}
}

func scenarios() []scenario {
	var all []scenario
	all = append(all, sendingScenarios...)
	all = append(all, consumingScenarios...)
	all = append(all, sharingScenarios...)
	all = append(all, retryingScenarios...)
	all = append(all, orderingScenarios...)
	all = append(all, pullingScenarios...)
	all = append(all, transactingScenarios...)
	return append(all, administeringScenarios...)
}

func chosen(names []string) []scenario {
	if len(names) == 0 {
		return scenarios()
	}
	if len(names) == 1 && names[0] == "restart" {
		return []scenario{{"special", restart}}
	}
	var result []scenario
	for _, name := range names {
		found := false
		for _, s := range scenarios() {
			if s.name == name {
				result = append(result, s)
				found = true
			}
		}
		if !found {
			fmt.Fprintf(os.Stderr, "there is no scenario %s; --list shows them\n", name)
			os.Exit(2)
		}
	}
	return result
}

func playAll(all []scenario, nameServer, run string, parallel int) bool {
	slots := make(chan struct{}, parallel)
	var players sync.WaitGroup
	var printing sync.Mutex
	good := true
	for _, s := range all {
		players.Add(1)
		slots <- struct{}{}
		go func(s scenario) {
			defer players.Done()
			result := play(s, nameServer, run)
			printing.Lock()
			line, _ := json.Marshal(result)
			fmt.Println(string(line))
			good = good && result.Ok
			printing.Unlock()
			<-slots
		}(s)
	}
	players.Wait()
	return good
}

// play plays one scenario with a limit on its time.
func play(s scenario, nameServer, run string) report {
	begin := time.Now()
	played := make(chan report, 1)
	session := newSession(nameServer, run, s.name)
	go func() {
		defer func() {
			if problem := recover(); problem != nil {
				if failure, ok := problem.(failure); ok {
					played <- report{Scenario: s.name, Detail: string(failure)}
					return
				}
				fmt.Fprintf(os.Stderr, "%v\n%s", problem, debug.Stack())
				played <- report{Scenario: s.name, Detail: fmt.Sprintf("panic: %v", problem)}
			}
		}()
		played <- report{Scenario: s.name, Ok: true, Detail: s.play(session)}
	}()
	var result report
	select {
	case result = <-played:
	case <-time.After(scenarioLimit):
		result = report{Scenario: s.name, Detail: fmt.Sprintf("not over within %v", scenarioLimit)}
	}
	go session.close()
	result.Seconds = float64(time.Since(begin).Milliseconds()/100) / 10
	return result
}
