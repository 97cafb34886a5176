package main

import (
	"fmt"
	"reflect"
	"time"
)

// failure is what a broken expectation panics with; play turns it into a report.
type failure string

func fail(format string, arguments ...any) {
	panic(failure(fmt.Sprintf(format, arguments...)))
}

func that(holds bool, format string, arguments ...any) {
	if !holds {
		fail(format, arguments...)
	}
}

func equal(expected, actual any, what string) {
	that(reflect.DeepEqual(expected, actual), "%s: expected %v, got %v", what, expected, actual)
}

func must(err error, what string) {
	if err != nil {
		fail("%s: %v", what, err)
	}
}

// eventually waits until the condition holds.
func eventually(what string, limit time.Duration, condition func() bool) {
	for end := time.Now().Add(limit); !condition(); time.Sleep(50 * time.Millisecond) {
		that(time.Now().Before(end), "not within %v: %s", limit, what)
	}
}
