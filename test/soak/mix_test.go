package soak_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	pause     = 700 * time.Millisecond // of each wait of the mix
	waits     = 6                      // of each run that waits
	scheduled = 3 * time.Second        // the interval of the schedule
)

// part is a workflow of the mix, how often it starts and the status with which its runs end.
type part struct {
	name   string
	tasks  string
	head   string
	every  time.Duration // 0: the load does not start it
	status string
}

// document returns the workflow. All are in one workflow namespace, so that they can start each other.
func (p part) document() string {
	return "document: {dsl: '1.0.3', namespace: soak, name: " + p.name + ", version: '1.0.0'}\n" + p.head + "do:\n" +
		p.tasks
}

// mix returns the workflows. Together they start ten runs and set 50 timers per second.
func mix(o *origin.Origin) []part {
	wait := "{wait: {milliseconds: 700}}"
	parts := []part{
		{name: "child", tasks: "  - one: {set: {n: 1}}\n"},
		{name: "steps", every: time.Second,
			tasks: "  - one: {set: {n: '${ .n + 1 }'}}\n  - two: {set: {n: '${ .n * 2 }'}}\n  - three: {set: {n: 3}}\n"},
		{name: "calls", every: 500 * time.Millisecond, tasks: `  - flaky:
      try:
        - send: {call: http, with: {method: post, endpoint: '` + o.URL + `/flaky', body: {n: '${ $workflow.input.n }'}}}
      catch: {errors: {with: {status: 503}}, retry: {delay: {milliseconds: 700}, limit: {attempt: {count: 5}}}}
  - read: {call: http, with: {method: get, endpoint: '` + o.URL + `/read'}}
`},
		{name: "parent", every: time.Second,
			tasks: "  - call:\n      run:\n        workflow: {namespace: soak, name: child, version: '1.0.0'}\n"},
		{name: "forks", every: 500 * time.Millisecond,
			tasks: "  - all:\n      fork:\n        branches:\n          - a: " + wait + "\n          - b: " + wait +
				"\n          - c: " + wait + "\n"},
		{name: "hears", every: time.Second, tasks: `  - ask:
      emit: {event: {with: {type: io.example.soak, source: /soak, data: {n: '${ $workflow.input.n }'}}}}
  - hear:
      listen: {to: {one: {with: {type: io.example.soak}, correlate: {n: {from: .data.n, expect: '${ $workflow.input.n }'}}}}}
`},
		{name: "canceled", every: 2 * time.Second, status: "canceled", tasks: "  - long: {wait: {hours: 1}}\n"},
		{name: "scheduled", head: "schedule: {every: {seconds: 3}}\n", tasks: "  - one: {set: {n: 1}}\n"},
	}
	waiting := part{name: "waits", every: 200 * time.Millisecond}
	for n := range waits {
		waiting.tasks += fmt.Sprintf("  - rest%d: %s\n", n, wait)
	}
	return append(parts, waiting)
}

// serve answers the calls of the mix: the first request of each run to /flaky is refused.
func serve(t *testing.T) *origin.Origin {
	t.Helper()
	o := origin.New(t)
	var mu sync.Mutex
	seen := map[string]bool{}
	o.Handle("POST /flaky", func(c origin.Call) origin.Answer {
		mu.Lock()
		defer mu.Unlock()
		if again := seen[c.Body]; again {
			return origin.Answer{Status: 200, Body: "{}"}
		}
		seen[c.Body] = true
		return origin.Answer{Status: 503, Body: "{}"}
	})
	o.Answer("GET /read", 200, "{}")
	return o
}

// started are the loads of the mix, by the status with which their runs end.
type started struct {
	loads map[string][]*load.Load
	names map[string]string // workflows by the name of their part
}

// begin publishes the mix and starts the loads, each at one of the servers, at a share of the rate.
func begin(t *testing.T, servers []*platform.Server, share int) *started {
	t.Helper()
	m := &started{loads: map[string][]*load.Load{}, names: map[string]string{}}
	for i, p := range mix(serve(t)) {
		s := servers[i%len(servers)]
		m.names[p.name] = s.Publish(t, p.document())
		if p.every == 0 {
			continue
		}
		status := p.status
		if status == "" {
			status = "completed"
		}
		m.loads[status] = append(m.loads[status], load.Start(t, s, m.names[p.name], p.every*time.Duration(share)))
	}
	return m
}

// stop stops the loads.
func (m *started) stop() {
	for _, loads := range m.loads {
		for _, l := range loads {
			l.Stop()
		}
	}
}

// judge checks each run, by the status with which it ends.
func (m *started) judge(t *testing.T, s *platform.Server, temporal *platform.Temporal, limit time.Duration) (runs int) {
	t.Helper()
	for status, loads := range m.loads {
		others := []string{m.names["child"], m.names["scheduled"]}
		for other, theirs := range m.loads {
			for _, l := range theirs {
				if other != status {
					others = append(others, l.Workflow())
				}
			}
		}
		load.Judge(t, load.Evidence{
			Loads: loads, Others: others, Server: s, Temporal: platform.DialTemporal(t, temporal.Address), Limit: limit,
			Status: status,
		})
		for _, l := range loads {
			runs += len(l.Of(load.Accepted))
		}
	}
	return runs
}
