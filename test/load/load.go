package load

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// answerLimit bounds one request. The platform answers far sooner; a frozen one does not answer.
const answerLimit = 20 * time.Second

// A load leaves at most mostOpen of its runs and requests open, and counts its runs every gaugeEvery. A machine with
// time to spare has far fewer open.
const (
	mostOpen   = 100
	gaugeEvery = time.Second
)

// Outcome is how a request ended.
type Outcome string

// Accepted and Refused are the platform's answers. Lost is a request without an answer, or with an answer that leaves
// the outcome open.
const (
	Accepted Outcome = "accepted"
	Refused  Outcome = "refused"
	Lost     Outcome = "lost"
)

// Request is one request to start a run.
type Request struct {
	ID      string // the request ID
	N       int    // its number, as given to the input
	Run     string // the run's ID; empty unless accepted
	Status  string // of the run, as answered
	Queued  string // why it is queued, as answered
	At      time.Time
	Took    time.Duration
	Outcome Outcome
	Reason  string // of a refusal
	Code    connect.Code
	Err     error
}

// Load is a running generator.
type Load struct {
	server   atomic.Pointer[platform.Server]
	workflow string
	name     string
	input    func(id string, n int) string
	cancel   context.CancelFunc
	done     chan struct{}
	flying   sync.WaitGroup
	open     atomic.Int64 // runs that wait for nothing and have not ended, by the newest count
	sent     atomic.Int64 // requests without an answer

	mu       sync.Mutex
	requests []Request
}

// Start starts one run of the workflow each interval, without waiting for the previous answer, until Stop is called.
// Where the platform ends fewer than it starts, because the machine is slow, the load waits: otherwise the open runs
// grew until nothing answers. At full length (SIGNALBOX_PROVE) it does not wait.
func Start(t platform.T, s *platform.Server, workflow string, every time.Duration) *Load {
	return StartWith(t, s, workflow, every, numbered)
}

// numbered is the input of requests that need none.
func numbered(_ string, n int) string { return fmt.Sprintf(`{"n":%d}`, n) }

// StartWith is Start with the input, as JSON, of each request, by its ID and number.
func StartWith(t platform.T, s *platform.Server, workflow string, every time.Duration,
	input func(id string, n int) string) *Load {
	ctx, cancel := context.WithCancel(t.Context())
	l := New(s, workflow)
	l.input = input
	l.cancel, l.done = cancel, make(chan struct{})
	bounded := !promise.Full()
	if bounded {
		l.flying.Go(func() { l.gauge(ctx) })
	}
	go func() {
		defer close(l.done)
		ticker := time.NewTicker(every)
		defer ticker.Stop()
		for n := 0; ; n++ {
			select {
			case <-ticker.C:
				if l.open.Load()+l.sent.Load() >= mostOpen && bounded {
					continue
				}
				l.flying.Go(func() { l.Send(ctx, n) })
			case <-ctx.Done():
				return
			}
		}
	}()
	t.Cleanup(l.Stop)
	return l
}

// gauge counts the open runs until the load is stopped. While they cannot be counted, none counts as open.
func (l *Load) gauge(ctx context.Context) {
	ticker := time.NewTicker(gaugeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		limit, cancel := context.WithTimeout(ctx, answerLimit)
		res, err := l.server.Load().Runs.CountRuns(limit, connect.NewRequest(&signalboxv1.CountRunsRequest{
			Project: platform.DefaultProject,
			Filter:  &signalboxv1.RunFilter{Workflow: l.workflow, Statuses: []string{"running", "queued"}},
		}))
		cancel()
		if err != nil {
			l.open.Store(0)
			continue
		}
		l.open.Store(res.Msg.GetStatuses()["running"] + res.Msg.GetStatuses()["queued"])
	}
}

// New makes a generator that sends only by calls of [Load.Send]. It needs no Stop.
func New(s *platform.Server, workflow string) *Load {
	l := &Load{workflow: workflow, name: fmt.Sprintf("load-%08x", rand.Uint32()), input: numbered, cancel: func() {},
		done: make(chan struct{})}
	close(l.done)
	l.server.Store(s)
	return l
}

// Follow sends subsequent requests to another server: one that was restarted.
func (l *Load) Follow(s *platform.Server) { l.server.Store(s) }

// Workflow returns the name of the workflow.
func (l *Load) Workflow() string { return l.workflow }

// Stop stops sending and waits for the outstanding answers.
func (l *Load) Stop() {
	l.cancel()
	<-l.done
	l.flying.Wait()
}

// Send starts the n-th run, waits for the answer and records it.
func (l *Load) Send(ctx context.Context, n int) Request {
	r := l.send(ctx, fmt.Sprintf("%s-%06d", l.name, n), n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.requests = append(l.requests, r)
	return r
}

// Repeat sends a request once more, as a caller does that did not get the answer. The answer is returned, not recorded.
func (l *Load) Repeat(ctx context.Context, r Request) Request { return l.send(ctx, r.ID, r.N) }

func (l *Load) send(ctx context.Context, id string, n int) Request {
	// A request that was sent is still answered after Stop.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	l.sent.Add(1)
	defer l.sent.Add(-1)
	r := Request{ID: id, N: n, At: time.Now()}
	res, err := l.server.Load().Runs.StartRun(ctx, connect.NewRequest(&signalboxv1.StartRunRequest{
		Project: platform.DefaultProject, Workflow: l.workflow, RequestId: r.ID,
		Input: &signalboxv1.JsonValue{Json: l.input(id, n)},
	}))
	r.Took, r.Err = time.Since(r.At), err
	if err == nil {
		r.Outcome, r.Run, r.Status = Accepted, res.Msg.GetRun().GetId(), res.Msg.GetRun().GetStatus()
		r.Queued = res.Msg.GetRun().GetQueuedReason()
		return r
	}
	r.Reason, r.Code = platform.Reason(err)
	// Only the platform returns reasons: without one the answer is the transport's. A database that does not answer may
	// have written.
	r.Outcome = Lost
	if r.Reason != "" && r.Reason != "STORE_UNAVAILABLE" {
		r.Outcome = Refused
	}
	return r
}

// Requests returns the answered requests so far, in order of sending.
func (l *Load) Requests() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := slices.Clone(l.requests)
	slices.SortFunc(out, func(a, b Request) int { return a.At.Compare(b.At) })
	return out
}

// Of returns the requests with the outcome.
func (l *Load) Of(o Outcome) []Request {
	return slices.DeleteFunc(l.Requests(), func(r Request) bool { return r.Outcome != o })
}

func (l *Load) String() string {
	return fmt.Sprintf("%d accepted, %d refused, %d answers lost", len(l.Of(Accepted)), len(l.Of(Refused)),
		len(l.Of(Lost)))
}
