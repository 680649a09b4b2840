// Package traffic judges by the requests of a program whether Temporal serves them. A frontend may answer every health check and refuse or
// delay everything else: the namespace is over its rate limits, or Temporal's persistence does not keep up.
//
//	t := traffic.New(time.Second, time.Now)
//	ended := t.Begin(method)             // of every request of the program
//	ended(err, answered)
//	verdict, why := t.Judge()            // every second or so
//
// A request is in trouble that Temporal refuses with RESOURCE_EXHAUSTED or UNAVAILABLE, that runs out of time, or that takes longer than it
// should. Requests that wait for something else than Temporal, such as polls and queries, count only where they are refused: they cannot be
// late, and that one is answered says nothing about the others. Every other error is an answer of a Temporal that works, or says nothing.
//
// The package does not check the connection: a caller that judges by it has to know that Temporal answers.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Tracker counts requests. It is safe for concurrent use.
type Tracker struct {
	slowAfter time.Duration
	now       func() time.Time

	mu sync.Mutex
	// seconds are the requests that ended, by the second in which they did, as a ring.
	seconds [int(lately / time.Second)]second
	// open are the requests under way that can be late.
	open  map[int]time.Time
	last  int
	epoch int // counts the resets
	// verdict and why are the result of the last Judge. problem is the last request in trouble.
	verdict Verdict
	why     error
	problem problem
}

type second struct {
	at int64 // Unix time
	Counts
}

// problem is a request in trouble.
type problem struct {
	method string
	took   time.Duration
	err    error // nil: it was late
}

// New returns a tracker for which a request is late after slowAfter.
func New(slowAfter time.Duration, now func() time.Time) *Tracker {
	return &Tracker{slowAfter: slowAfter, now: now, open: map[int]time.Time{}}
}

// Begin counts a request that is sent. The function that it returns is called once, with the request's error and whether the server
// has answered at all: an error may also come of the connection, which is not what the tracker judges.
func (t *Tracker) Begin(method string) func(err error, answered bool) {
	method = path.Base(method)
	began, prompt := t.now(), prompt(method)
	t.mu.Lock()
	t.last++
	number, epoch := t.last, t.epoch
	if prompt {
		t.open[number] = began
	}
	t.mu.Unlock()
	return func(err error, answered bool) {
		now := t.now()
		took := now.Sub(began)
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.open, number)
		if epoch != t.epoch {
			return
		}
		s := t.second(now)
		switch effect(err, answered, prompt, took, t.slowAfter) {
		case failed:
			s.Failed++
			t.problem = problem{method, took, err}
		case late:
			s.Late++
			t.problem = problem{method, took, nil}
		case served:
			s.Served++
		case nothing:
		}
	}
}

// Reset forgets all requests, those under way included: they met an outage, or were sent before it.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch++
	clear(t.open)
	t.seconds, t.verdict, t.why = [len(t.seconds)]second{}, Served, nil
}

// Judge returns how requests are served now, and while they are not, why: the reason from when that began. What was before the end of a
// trouble does not count for the next one.
func (t *Tracker) Judge() (Verdict, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	facts := t.facts(now)
	before := t.verdict
	t.verdict = Judge(facts, before)
	switch {
	case t.verdict == Served && before != Served:
		t.seconds, t.why = [len(t.seconds)]second{}, nil
	case t.verdict != before:
		t.why = t.explain(facts)
	}
	return t.verdict, t.why
}

// second returns the counts of the current second.
func (t *Tracker) second(now time.Time) *second {
	at := now.Unix()
	s := &t.seconds[at%int64(len(t.seconds))]
	if s.at != at {
		*s = second{at: at}
	}
	return s
}

func (t *Tracker) facts(now time.Time) Facts {
	var f Facts
	for _, s := range t.seconds {
		age := time.Duration(now.Unix()-s.at) * time.Second
		if age < lately {
			f.Lately = f.Lately.add(s.Counts)
		}
		if age < recent {
			f.Recent = f.Recent.add(s.Counts)
		}
	}
	for _, began := range t.open {
		if now.Sub(began) > t.slowAfter {
			f.Recent.Late++
			f.Lately.Late++
		}
	}
	return f
}

// explain writes why requests are not served, with what to check.
func (t *Tracker) explain(f Facts) error {
	counts, period := f.Recent, recent
	if counts.Late+counts.Failed == 0 || !counts.most() {
		counts, period = f.Lately, lately
	}
	total := counts.Served + counts.Late + counts.Failed
	text := fmt.Sprintf("Temporal answers health checks, but of %d requests in the last %s %d failed and %d took longer than %s",
		total, period, counts.Failed, counts.Late, t.slowAfter)
	p := t.problem
	if p.err == nil {
		return errors.New(text + "; check the latency of Temporal's persistence")
	}
	s := status.Convert(p.err)
	advice := "check the latency of Temporal's persistence"
	if s.Code() == codes.ResourceExhausted {
		advice = "check the rate limits of the namespace and of Temporal's persistence"
	}
	return fmt.Errorf("%s, the last one %s with %s: %s; %s", text, p.method, s.Code(), s.Message(), advice)
}

// outcome is what a request counts as.
type outcome int

const (
	nothing outcome = iota
	served
	late
	failed
)

func effect(err error, answered, prompt bool, took, slowAfter time.Duration) outcome {
	code := status.Code(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code = codes.DeadlineExceeded
	}
	switch {
	case code == codes.ResourceExhausted && answered && limits(err), code == codes.Unavailable && answered:
		return failed
	case code == codes.DeadlineExceeded && prompt && took > slowAfter: // else the caller was in too much of a hurry
		return failed
	case !prompt || !answers(code):
		return nothing
	case took > slowAfter:
		return late
	default:
		return served
	}
}

// answers reports whether a request with this code was carried out by a Temporal that works.
func answers(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return true
	default:
		return false
	}
}

// limits reports whether RESOURCE_EXHAUSTED comes from a limit that concerns more than the one request: neither from the size of a
// message, which gRPC refuses on this side, nor from one workflow that is busy.
func limits(err error) bool {
	s := status.Convert(err)
	if strings.HasPrefix(s.Message(), "grpc: ") || strings.HasPrefix(s.Message(), "trying to send message") {
		return false
	}
	exhausted, ok := errors.AsType[*serviceerror.ResourceExhausted](serviceerror.FromStatus(s))
	return !ok || exhausted.Cause != enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW
}

// prompt reports whether Temporal answers a method by itself and at once. Others wait for events or for workers, or read from the visibility
// store, which has its own pace.
func prompt(method string) bool {
	for _, slow := range []string{
		"Poll", "Query", "Update", "List", "Count", "Scan", "GetWorkflowExecutionHistory", "ExecuteMultiOperation", "ShutdownWorker",
	} {
		if strings.HasPrefix(method, slow) {
			return false
		}
	}
	return true
}
