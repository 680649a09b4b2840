// Package traffic determines from the requests of a program whether Temporal serves them. A frontend may answer every
// health check and refuse or delay all other requests: the namespace is over its rate limits, or Temporal's persistence
// does not keep up.
//
//	t := traffic.New(time.Second, time.Now)
//	ended := t.Begin(method)             // of every request of the program
//	ended(err, answered)
//	verdict, reason := t.Verdict()       // every second or so
//
// A request is in trouble if Temporal refuses it with RESOURCE_EXHAUSTED or UNAVAILABLE, if its deadline passes, or if
// it takes longer than slowAfter. Requests that wait for something else than Temporal, such as polls and queries, count
// only where they are refused: they cannot be late, and an answer to one says nothing about the others. Every other
// error is an answer of a working Temporal, or does not count.
//
// The package does not check the connection: the caller must find out separately whether Temporal answers checks.
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
	// seconds is a ring of the requests that ended, by the second in which they ended.
	seconds [int(lately / time.Second)]second
	// open are the requests under way that can be late.
	open   map[int]time.Time
	lastID int
	resets int // counts the resets
	// verdict and reason are the last result of Verdict. lastTrouble is the last request in trouble.
	verdict     Verdict
	reason      error
	lastTrouble trouble
}

type second struct {
	at int64 // Unix time
	Counts
}

// trouble is a request in trouble.
type trouble struct {
	method string
	err    error // nil: it was late
}

// New returns a tracker for which a request is late after slowAfter.
func New(slowAfter time.Duration, now func() time.Time) *Tracker {
	return &Tracker{slowAfter: slowAfter, now: now, open: map[int]time.Time{}}
}

// Begin records the start of a request. The function that it returns must be called once at its end, with the request's
// error and whether the server has answered at all: errors of the connection itself are not what the tracker measures.
func (t *Tracker) Begin(method string) func(err error, answered bool) {
	method = path.Base(method)
	began, prompt := t.now(), answeredAtOnce(method)
	t.mu.Lock()
	t.lastID++
	number, epoch := t.lastID, t.resets
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
		if epoch != t.resets {
			return
		}
		s := t.second(now)
		switch classify(err, answered, prompt, took, t.slowAfter) {
		case failed:
			s.Failed++
			t.lastTrouble = trouble{method, err}
		case late:
			s.Late++
			t.lastTrouble = trouble{method, nil}
		case served:
			s.Served++
		case ignored:
		}
	}
}

// Reset drops all requests, those under way included: they were affected by an outage, or were sent before it.
func (t *Tracker) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.resets++
	clear(t.open)
	t.seconds, t.verdict, t.reason = [len(t.seconds)]second{}, Served, nil
}

// Verdict returns how requests are served now and, unless they are [Served], the reason as of when that verdict began.
// Requests before the return to Served do not count for later verdicts.
func (t *Tracker) Verdict() (Verdict, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	facts := t.periods(now)
	before := t.verdict
	t.verdict = NextVerdict(facts, before)
	switch {
	case t.verdict == Served && before != Served:
		t.seconds, t.reason = [len(t.seconds)]second{}, nil
	case t.verdict != before:
		t.reason = t.explain(facts)
	}
	return t.verdict, t.reason
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

func (t *Tracker) periods(now time.Time) Periods {
	var f Periods
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

// explain returns why requests are not served, and what to check.
func (t *Tracker) explain(f Periods) error {
	counts, period := f.Recent, recent
	if counts.Late+counts.Failed == 0 || !counts.mostInTrouble() {
		counts, period = f.Lately, lately
	}
	total := counts.Served + counts.Late + counts.Failed
	text := fmt.Sprintf("Temporal answers health checks, but of %d requests in the last %s %d failed and %d took longer "+
		"than %s",
		total, period, counts.Failed, counts.Late, t.slowAfter)
	p := t.lastTrouble
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
	ignored outcome = iota
	served
	late
	failed
)

func classify(err error, answered, prompt bool, took, slowAfter time.Duration) outcome {
	code := status.Code(err)
	if errors.Is(err, context.DeadlineExceeded) {
		code = codes.DeadlineExceeded
	}
	switch {
	case code == codes.ResourceExhausted && answered && isSharedLimit(err), code == codes.Unavailable && answered:
		return failed
	case code == codes.DeadlineExceeded && prompt && took > slowAfter: // otherwise the caller's deadline was too short
		return failed
	case !prompt || !workedFor(code):
		return ignored
	case took > slowAfter:
		return late
	default:
		return served
	}
}

// workedFor reports whether a working Temporal has processed a request that ended with this code.
func workedFor(code codes.Code) bool {
	switch code {
	case codes.OK, codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.FailedPrecondition, codes.OutOfRange:
		return true
	default:
		return false
	}
}

// isSharedLimit reports whether RESOURCE_EXHAUSTED comes from a limit for more than the one request: not from the size
// of a message, which gRPC refuses in the client, and not from one busy workflow.
func isSharedLimit(err error) bool {
	s := status.Convert(err)
	if strings.HasPrefix(s.Message(), "grpc: ") || strings.HasPrefix(s.Message(), "trying to send message") {
		return false
	}
	exhausted, ok := errors.AsType[*serviceerror.ResourceExhausted](serviceerror.FromStatus(s))
	return !ok || exhausted.Cause != enums.RESOURCE_EXHAUSTED_CAUSE_BUSY_WORKFLOW
}

// answeredAtOnce reports whether Temporal answers a method by itself and at once. Others wait for events or for
// workers, or read from the visibility store, which has a latency of its own.
func answeredAtOnce(method string) bool {
	for _, slow := range []string{
		"Poll", "Query", "Update", "List", "Count", "Scan", "GetWorkflowExecutionHistory", "ExecuteMultiOperation",
		"ShutdownWorker",
	} {
		if strings.HasPrefix(method, slow) {
			return false
		}
	}
	return true
}
