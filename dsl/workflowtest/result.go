package workflowtest

import (
	"time"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/dsl/interp"
)

// Result is what the run of a case did.
type Result struct {
	Case string
	// Pos is the position of the case in its file; zero for a case without one.
	Pos dsl.Pos
	// Status is the status of the run, waiting if nothing was left that could continue it, and empty if it could not go
	// on.
	Status interp.Status
	Output any
	Error  *dsl.Error
	// Duration is the length of the run by its own clock.
	Duration time.Duration
	Steps    []Step
	Requests []Request
	Events   []map[string]any
	Children []Child
	// Mismatches are the expectations that the run does not meet, and what kept it from going on. A case has passed if
	// there are none.
	Mismatches []Mismatch

	// Live are the responses to the requests that were sent, as mocks, without secrets.
	Live []Mock

	coverage   *Coverage
	sharedUsed []int // numbers of responses used of each mock of the file
}

// Passed reports whether the run met all expectations.
func (r *Result) Passed() bool { return len(r.Mismatches) == 0 }

// Mismatch is one expectation that a run does not meet, or the cause for which the run could not go on.
type Mismatch struct {
	// What is the part of the case that it concerns, such as output or requests[1].body.
	What    string
	Message string
	// Diff is a unified diff from the expected to the actual value; empty if the message says it all.
	Diff string
	// Pos is the position in the test file; zero for a case without one.
	Pos dsl.Pos
}

// Step is one entry into a task.
type Step struct {
	Path, Pointer, Task, Kind string
	Status                    interp.Status
	// At is the time from the start of the run, Duration that from At to the end of the step.
	At, Duration time.Duration
	// Attempt is the number of attempts of a try.
	Attempt int
	Error   *dsl.Error
	// Pos is the position of the task in the document; zero for a task outside of it.
	Pos dsl.Pos
}

// Request is a request that a call sent, with the secrets of the case in it.
type Request struct {
	Task, Pointer string
	Method, URL   string
	Path          string
	Query         map[string]string
	Headers       map[string]string // by names in lower case
	Body          any
	HasBody       bool
	At            time.Duration
	// Status is the status of the response; 0: there was none.
	Status int
	// Response is the response of the mock that answered it.
	Response *Response
}

// Value returns a request as expressions see it.
func (q *Request) Value() map[string]any {
	return map[string]any{
		"task": q.Task, "method": q.Method, "url": q.URL, "path": q.Path, "query": plain(q.Query),
		"headers": plain(q.Headers), "body": q.Body,
	}
}

func plain(texts map[string]string) map[string]any {
	out := make(map[string]any, len(texts))
	for name, text := range texts {
		out[name] = text
	}
	return out
}

// Child is a run that a task started.
type Child struct {
	Task, Pointer     string
	Workflow, Version string
	Input             any
	At                time.Duration
}

// Value returns a child as expressions see it.
func (c *Child) Value() map[string]any {
	return map[string]any{"task": c.Task, "workflow": c.Workflow, "version": c.Version, "input": c.Input}
}
