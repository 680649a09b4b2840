// Package picture reads a server's state from every output that operators use, and compares the outputs with each
// other:
//
//	p := picture.Take(t, server, platform.DefaultProject)
//	wrong := p.Contradiction() // empty: the answers agree
//	picture.Await(t, time.Minute, server, platform.DefaultProject, func(p picture.Picture) string { … })
//
// [Picture.Contradiction] has no expectation of the state: the test provides it. The outputs are read one after
// another, so a picture of a changing state may contradict itself for a moment: tests use [Await].
package picture

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// Picture is the state that one server shows.
type Picture struct {
	Status Status
	// Listed and Shown are the project's dispatcher in `dispatcher list` and `dispatcher show`; Shown is nil if that was
	// refused.
	Listed, Shown *Dispatcher
	// Workers are the states of `worker list` by server ID; nil if that was refused.
	Workers map[string]string
	// Stuck are the codes of `run list --stuck any` by run; nil if that was refused.
	Stuck map[string]string
	// Ready is the status of /readyz, and Needs its dependencies.
	Ready int
	Needs map[string]string
	Log   string

	project string
	metrics string
}

// Status is the output of `system status`.
type Status struct {
	Roles      []string
	Connection struct {
		State, Kind, LastError string
		Breaker                struct{ State string }
		Statistics             struct{ Outages json.Number }
		WorkerSets             []WorkerSet
	}
	// QueueMode has the number of runs that wait for Temporal, or the error why it is unknown.
	QueueMode struct {
		Runs  json.Number
		Error string
	}
	// Dependencies are the services that the server requires.
	Dependencies []struct{ Name, State, Error string }
	// Workers are the live ones, or WorkersError is the reason why they are unknown.
	Workers      []struct{ ServerID string }
	WorkersError string
}

// WorkerSet is a set of workers that polls task queues.
type WorkerSet struct {
	TaskQueues       []string
	Running, Polling bool
}

// Dispatcher is an entry of `dispatcher list` or `dispatcher show`.
type Dispatcher struct {
	Project, State, Detail string
	Lease                  struct {
		State string
		Owner struct{ ServerID string }
	}
	// Errors name the parts that are unknown.
	Errors []string
	// Progress is nil if it is unknown.
	Progress *struct {
		Pending json.Number
		Lag     string
	}
}

// Take reads all outputs of a server, with a project's dispatcher and runs.
func Take(t platform.T, s *platform.Server, project string) Picture {
	t.Helper()
	p := Picture{project: project, Needs: map[string]string{}}
	ask := func(into any, args ...string) bool {
		r := s.CLI(t, append(args, "-o", "json")...)
		switch r.Code {
		case platform.ExitOK:
			decode(t, r.Stdout, into)
			return true
		case platform.ExitUnavailable:
			return false
		}
		t.Fatalf("%v: %s", args, r)
		return false
	}
	if !ask(&p.Status, "system", "status") {
		t.Fatalf("the status was refused")
	}
	var listed []*Dispatcher
	ask(&listed, "dispatcher", "list")
	if i := slices.IndexFunc(listed, func(d *Dispatcher) bool { return d.Project == project }); i >= 0 {
		p.Listed = listed[i]
	}
	shown := new(Dispatcher)
	if ask(shown, "dispatcher", "show", project) {
		p.Shown = shown
	}
	var workers []struct{ ServerID, State string }
	if ask(&workers, "worker", "list") {
		p.Workers = map[string]string{}
		for _, w := range workers {
			p.Workers[w.ServerID] = w.State
		}
	}
	var runs []struct {
		ID    string
		Stuck struct{ Code string }
	}
	if ask(&runs, "run", "list", "--stuck", "any", "--project", project) {
		p.Stuck = map[string]string{}
		for _, r := range runs {
			p.Stuck[r.ID] = r.Stuck.Code
		}
	}
	var body string
	p.Ready, body = get(t, s, "/readyz")
	var report struct {
		Dependencies []struct{ Name, State string }
	}
	decode(t, body, &report)
	for _, d := range report.Dependencies {
		p.Needs[d.Name] = d.State
	}
	var code int
	if code, p.metrics = get(t, s, "/metrics"); code != http.StatusOK {
		t.Fatalf("/metrics answers %d", code)
	}
	p.Log = s.Output()
	return p
}

func get(t platform.T, s *platform.Server, path string) (int, string) {
	t.Helper()
	code, body, err := s.Get(t.Context(), path)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return code, body
}

func decode(t platform.T, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// Metric returns the sum of a metric's series that have all labels, each as `name="value"`, and whether there are any.
func (p Picture) Metric(name string, labels ...string) (value float64, known bool) {
	sum, series, err := counter.Sum(p.metrics, name, labels...)
	return sum, err == nil && series > 0
}

// Value is [Picture.Metric] with 0 for a metric that is absent.
func (p Picture) Value(name string, labels ...string) float64 {
	value, _ := p.Metric(name, labels...)
	return value
}

// dispatcher is [Picture.Metric] for a metric of the project's dispatcher.
func (p Picture) dispatcher(name string) (value float64, known bool) {
	return p.Metric(name, `project="`+p.project+`"`)
}

// Backlog reports whether every output that includes a backlog shows one.
func (p Picture) Backlog() bool {
	lag, _ := p.dispatcher("dispatcher_inbox_lag_seconds")
	pending, _ := p.dispatcher("dispatcher_inbox_pending")
	return lag > 0 && pending > 0 && p.Listed.Progress != nil && p.Listed.Progress.Pending.String() != "0"
}

// IsWorker reports whether the server has the worker role.
func (p Picture) IsWorker() bool { return slices.Contains(p.Status.Roles, platform.Worker) }

// WorkersIn counts the workers of the list that are in a state.
func (p Picture) WorkersIn(state string) int {
	n := 0
	for _, s := range p.Workers {
		if s == state {
			n++
		}
	}
	return n
}

// Unknown reports whether the dispatcher's list of unknown parts has a line with these words.
func (p Picture) Unknown(words string) bool {
	return slices.ContainsFunc(p.Listed.Errors, func(line string) bool { return strings.Contains(line, words) })
}

// Await takes pictures until one is without contradiction and wrong returns "" for it.
func Await(t platform.T, limit time.Duration, s *platform.Server, project string, wrong func(Picture) string) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		p := Take(t, s, project)
		if contradiction := p.Contradiction(); contradiction != "" {
			return contradiction
		}
		return wrong(p)
	})
}
