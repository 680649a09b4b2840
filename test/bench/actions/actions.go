// Package actions measures how many billable actions of Temporal Cloud, and how many bytes of history, runs and idle
// projects make, beside the same workflows written by hand with the SDK. Those of runs are read from histories; those
// of idle projects from the metric of the server, because heartbeats are in no history.
package actions

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/bench/bare"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const (
	// patience bounds the wait for one outcome.
	patience = 2 * time.Minute
	// routing is shorter than the time after which a dispatcher parks.
	routing = 30 * time.Second
	// month is the number of minutes of 30 days.
	month = 30 * 24 * 60
)

// Plan is the amount of measurement.
type Plan struct {
	Runs int           // of each kind
	Idle time.Duration // how long idle projects are observed
}

// Full is the plan for the page.
func Full() Plan { return Plan{Runs: 20, Idle: 3 * time.Minute} }

// Short is the plan for a quick check.
func Short() Plan { return Plan{Runs: 2, Idle: 15 * time.Second} }

// row is one kind of run: what it made here and by hand, in the mean.
type row struct {
	what         string
	here, byHand use
	runs         int64
	// counted is what the metric of the server counted for these runs, with what the platform did beside them.
	counted int64
}

// idle is what a server made in a minute while nothing ran.
type idle struct {
	what      string
	perMinute map[string]float64
}

// Report has all measurements.
type Report struct {
	rows  []row
	idles []idle
}

// environment is a platform, and the bare program on the same Temporal.
type environment struct {
	server *platform.Server
	bare   *bare.Program
	client client.Client
	// refusals is how many requests the service refuses from now on.
	refusals atomic.Int64
	service  string
}

// Measure executes a plan. It calls progress with the name of each part that begins.
func Measure(t platform.T, p Plan, progress func(string)) Report {
	temporal := platform.StartTemporal(t)
	e := &environment{
		server: platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)}),
		bare:   bare.Start(t, temporal),
	}
	e.client = e.bare.Client
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if e.refusals.Add(-1) >= 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"ok":true}`)) // the caller has the error
	}))
	t.Cleanup(service.Close)
	e.service = service.URL
	var r Report
	for _, k := range e.kinds(t) {
		progress("actions of " + k.what)
		r.rows = append(r.rows, e.measure(t, p, k))
	}
	progress("actions of an idle project")
	r.idles = append(r.idles,
		e.idle(t, min(p.Idle, routing), "routing", "within `dispatch.idle` (a minute) of its last event"),
		e.idle(t, p.Idle, "parked", "later: its dispatcher is parked"))
	return r
}

// kind is one kind of run: how one is executed here and by hand. Both return the workflow ID of a completed execution.
type kind struct {
	what         string
	here, byHand func(ctx context.Context) (workflowID string, err error)
}

// measure runs one kind, one after the other.
func (e *environment) measure(t platform.T, p Plan, k kind) row {
	r := row{what: k.what, runs: int64(p.Runs)}
	before := total(e.counted(t))
	for range p.Runs {
		r.here = r.here.plus(e.use(t, k.here))
	}
	r.counted = total(e.counted(t)) - before
	for range p.Runs {
		r.byHand = r.byHand.plus(e.use(t, k.byHand))
	}
	return r
}

func (e *environment) use(t platform.T, run func(context.Context) (string, error)) use {
	id, err := run(t.Context())
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	u, err := useOf(t.Context(), e.client, id, "")
	if err != nil {
		t.Fatalf("%v", err)
	}
	return u
}

// idle observes the server for a while in which nothing runs, once its dispatcher has the state.
func (e *environment) idle(t platform.T, length time.Duration, state, what string) idle {
	wanted := regexp.MustCompile(`"state":\s*"` + state + `"`)
	platform.Eventually(t, patience, func() string {
		_, page, err := e.server.Get(t.Context(), "/v1/dispatchers")
		if err != nil {
			return err.Error()
		}
		if !wanted.MatchString(page) {
			return "the dispatcher is not " + state + ": " + page
		}
		return ""
	})
	before, began := e.counted(t), time.Now()
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	minutes := time.Since(began).Minutes()
	i := idle{what: what, perMinute: map[string]float64{}}
	for name, n := range e.counted(t) {
		if n > before[name] {
			i.perMinute[name] = float64(n-before[name]) / minutes
		}
	}
	return i
}

var sample = regexp.MustCompile(`(?m)^signalbox_temporal_actions_total\{.*kind="([a-z_]+)".*\} (\S+)$`)

// counted reads the metric of the server, by kind.
func (e *environment) counted(t platform.T) map[string]int64 {
	_, page, err := e.server.Get(t.Context(), "/metrics")
	if err != nil {
		t.Fatalf("read the metrics: %v", err)
	}
	found := map[string]int64{}
	for _, m := range sample.FindAllStringSubmatch(page, -1) {
		value, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("%s: %v", m[0], err)
		}
		found[m[1]] += int64(value)
	}
	if len(found) == 0 {
		t.Fatalf("the server has no signalbox_temporal_actions_total")
	}
	return found
}

func total(counts map[string]int64) (sum int64) {
	for _, n := range counts {
		sum += n
	}
	return sum
}

// kinds publishes the workflows and returns what is measured.
func (e *environment) kinds(t platform.T) []kind {
	var hundred strings.Builder
	for i := range 100 {
		fmt.Fprintf(&hundred, "  - s%d: {set: {n: '${ .n + 1 }'}}\n", i)
	}
	call := "  - ask: {call: http, with: {method: get, endpoint: '" + e.service + "'}}\n"
	retried := "  - ask:\n      try:\n        - again: {call: http, with: {method: get, endpoint: '" + e.service + "'}}\n" +
		"      catch: {retry: {delay: {milliseconds: 100}, limit: {attempt: {count: 5}}}}\n"
	child := platform.Document("below", "  - s: {set: {n: 1}}\n")
	full := e.server.Publish(t, child)
	namespace, name, _ := strings.Cut(full, "/")
	parent := fmt.Sprintf("  - below: {run: {workflow: {namespace: %s, name: %s, version: '1.0.0'}}}\n", namespace, name)
	refuse := func(f func(context.Context) (string, error)) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			e.refusals.Store(2)
			return f(ctx)
		}
	}
	by := func(workflow string, in bare.Input) func(context.Context) (string, error) {
		in.URL = e.service
		return func(ctx context.Context) (string, error) {
			run, err := e.bare.Begin(ctx, workflow, in)
			if err != nil {
				return "", err
			}
			if workflow == bare.Wait {
				if err := e.client.SignalWorkflow(ctx, run.GetID(), "", bare.Signal, map[string]int{"n": 1}); err != nil {
					return "", err
				}
			}
			return run.GetID(), run.Get(ctx, nil)
		}
	}
	return []kind{
		{"one step", e.completes(t, "one", "  - s: {set: {n: 1}}\n"), by(bare.One, bare.Input{})},
		{"100 steps", e.completes(t, "hundred", hundred.String()), by(bare.Compute, bare.Input{Steps: 100})},
		{"one call", e.completes(t, "call", call), by(bare.Call, bare.Input{})},
		{"one call that is answered at the third try", refuse(e.completes(t, "retried", retried)),
			refuse(by(bare.Call, bare.Input{}))},
		{"a wait of a second", e.completes(t, "pause", "  - w: {wait: {seconds: 1}}\n"), by(bare.Sleep, bare.Input{})},
		{"a child that is awaited", e.completes(t, "parent", parent), by(bare.Parent, bare.Input{})},
		{"a wait for one event", e.woken(t), by(bare.Wait, bare.Input{})},
		{"started by an event", e.startedByEvent(t), by(bare.One, bare.Input{})},
	}
}

// completes publishes a workflow and returns how one run of it is executed.
func (e *environment) completes(t platform.T, name, tasks string) func(context.Context) (string, error) {
	workflow := e.server.Publish(t, platform.Document(name, tasks))
	return func(ctx context.Context) (string, error) {
		run, err := e.server.TryStart(ctx, workflow, `{"n":0}`)
		if err != nil {
			return "", err
		}
		return e.closed(ctx, run.GetId())
	}
}

// closed waits for the end of a run in Temporal.
func (e *environment) closed(ctx context.Context, id string) (string, error) {
	return id, e.client.GetWorkflow(ctx, id, "").Get(ctx, nil)
}

func (e *environment) woken(t platform.T) func(context.Context) (string, error) {
	const kind = "io.example.actions.wake"
	workflow := e.server.Publish(t, platform.Document("woken", "  - hear: {listen: {to: {one: {with: {type: "+kind+
		"}, correlate: {n: {from: .data.n, expect: '${ .n }'}}}}}}\n"))
	events, next := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{e.server}}), 0
	return func(ctx context.Context) (string, error) {
		next++
		run, err := e.server.TryStart(ctx, workflow, fmt.Sprintf(`{"n":%d}`, next))
		if err != nil {
			return "", err
		}
		if len(events.Send(ctx, next, 1)) == 0 {
			return "", fmt.Errorf("event %d was not accepted", next)
		}
		return e.closed(ctx, run.GetId())
	}
}

func (e *environment) startedByEvent(t platform.T) func(context.Context) (string, error) {
	const kind = "io.example.actions.start"
	workflow := e.server.Publish(t, platform.Document("begun", "  - s: {set: {n: 1}}\n",
		"schedule: {on: {one: {with: {type: "+kind+"}}}}\n"))
	events, next := feed.New(feed.Options{Type: kind, Servers: []*platform.Server{e.server}}), 0
	return func(ctx context.Context) (string, error) {
		next++
		if len(events.Send(ctx, next, 1)) == 0 {
			return "", fmt.Errorf("event %d was not accepted", next)
		}
		var id string
		platform.Eventually(t, patience, func() string {
			res, err := e.server.Runs.ListRuns(ctx, connect.NewRequest(&signalboxv1.ListRunsRequest{
				Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: workflow}, PageSize: 100,
			}))
			if err != nil {
				return err.Error()
			}
			if len(res.Msg.GetRuns()) < next {
				return "the event has not started its run yet"
			}
			id = res.Msg.GetRuns()[0].GetId()
			return ""
		})
		return e.closed(ctx, id)
	}
}
