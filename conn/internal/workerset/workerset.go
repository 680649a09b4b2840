// Package workerset keeps the worker sets of a connection manager: what to make workers of, the workers that run now, and
// how they are started, replaced and retired.
//
// A set has one worker at a time, which belongs to one [link.Link]. Starting takes the set's turn, so that nobody starts
// a second one meanwhile; taking the worker away does not wait for it. Who starts what and when is the manager's business.
package workerset

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn/internal/link"
)

// A set that fails to start is tried again after first, then twice as late each time, and after most at most.
const (
	first = time.Second
	most  = 30 * time.Second
)

// Factory makes a worker of the client that it is given, with everything registered and not started. It is called again for
// every generation. The client must go to worker.New as it is; it must not be kept.
type Factory func(client.Client) (worker.Worker, error)

// Set is a worker set: what to make a worker of, and the worker that runs now.
type Set struct {
	Name    string
	factory Factory

	// turn holds one token while somebody starts a worker of the set.
	turn chan struct{}

	mu       sync.Mutex
	running  *Running // nil: none
	failures int
	err      error
	retryAt  time.Time
	removed  bool
}

// Status is what is known of one worker set.
type Status struct {
	Name       string
	TaskQueues []string
	// Running tells that a worker was started and has not died; Polling that its task queues are really polled and the
	// connection is up.
	Running, Polling bool
	// Generation is the one that the running worker belongs to.
	Generation int
	// Since is when the running worker was started.
	Since time.Time
	// LastPoll is when a poll was last answered or sent.
	LastPoll time.Time
	// Failures counts failed starts running; Error is the last of them, or why the worker died or does not poll.
	Failures int
	Error    string
}

// Running is a worker that was started.
type Running struct {
	worker     worker.Worker
	link       *link.Link
	generation int
	made       link.Made
	since      time.Time
	err        error // why it died; guarded by its set, as told is
	told       bool  // that it died
}

// New returns a set without a worker.
func New(name string, factory Factory) *Set {
	return &Set{Name: name, factory: factory, turn: make(chan struct{}, 1)}
}

// Take takes the set's turn unless somebody else has it; Give gives it back.
func (s *Set) Take() bool {
	select {
	case s.turn <- struct{}{}:
		return true
	default:
		return false
	}
}

// Give gives the turn back.
func (s *Set) Give() { <-s.turn }

// Start makes a worker on a link and starts it. It does not return before the SDK has given up: whoever wants to cut it
// short closes the link. A factory cannot be cut short.
func (s *Set) Start(l *link.Link, generation int) (*Running, error) {
	var (
		w   worker.Worker
		err error
	)
	made := l.Workers(func() { w, err = s.build(l.Client()) })
	if err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("starting the workers of %q: %w", s.Name, err)
	}
	l.Acquire()
	return &Running{worker: w, link: l, generation: generation, made: made, since: time.Now()}, nil
}

// build calls the factory. The SDK panics where it is given options that contradict each other.
func (s *Set) build(c client.Client) (w worker.Worker, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("making the workers of %q: panic: %v", s.Name, p)
		}
	}()
	w, err = s.factory(c)
	if err != nil {
		return nil, fmt.Errorf("making the workers of %q: %w", s.Name, err)
	}
	if w == nil {
		return nil, fmt.Errorf("making the workers of %q: the factory returned none", s.Name)
	}
	return w, nil
}

// Queues are the task queues that the worker was made for.
func (r *Running) Queues() []string { return r.made.Queues }

// death returns why the worker died, nil while it lives. The set's lock is held.
func (r *Running) death() error {
	select {
	case r.err = <-r.made.Died:
	default:
	}
	return r.err
}

// Stop ends the worker; what it has begun goes on within its own stop timeout.
func (r *Running) Stop() {
	defer r.link.Leave(r.made.Queues)()
	r.worker.Stop()
	r.link.Release()
}

// Put makes r the running worker and returns the one before it. A removed set takes none.
func (s *Set) Put(r *Running) (before *Running, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil, false
	}
	before, s.running = s.running, r
	s.failures, s.err, s.retryAt = 0, nil, time.Time{}
	return before, true
}

// Retire takes the running worker away for good: one that is being started meanwhile finds no place.
func (s *Set) Retire() *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	s.running, s.removed = nil, true
	return r
}

// Failed notes a failed start and returns how many there were running.
func (s *Set) Failed(err error, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.err = err
	s.retryAt = now.Add(min(first<<min(s.failures-1, 10), most)) //nolint:mnd // far beyond the most
	return s.failures
}

// Wanting tells whether a worker of the set should be started now: there is none, it has died, or it is left from an older
// generation.
func (s *Set) Wanting(now time.Time, generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || now.Before(s.retryAt) {
		return false
	}
	return s.running == nil || s.running.death() != nil || s.running.generation < generation
}

// Obituary returns why the set's worker has died, once; nil while it lives.
func (s *Set) Obituary() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	if r == nil || r.told || r.death() == nil {
		return nil
	}
	r.told = true
	return r.err
}

// Status returns what is known of the set. Nothing polls over a connection that is not up.
func (s *Set) Status(up bool) Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := Status{Name: s.Name, Failures: s.failures}
	if s.err != nil {
		out.Error = s.err.Error()
	}
	r := s.running
	if r == nil {
		return out
	}
	out.TaskQueues, out.Generation, out.Since = slices.Clone(r.made.Queues), r.generation, r.since
	if died := r.death(); died != nil {
		out.Error = died.Error()
		return out
	}
	out.Running, out.Polling = true, up
	for _, queue := range r.made.Queues {
		p := r.link.Polls().Queue(queue)
		if p.Last.After(out.LastPoll) {
			out.LastPoll = p.Last
		}
		out.Polling = out.Polling && p.OK
		if !p.OK && p.Err != nil {
			out.Error = p.Err.Error()
		}
	}
	return out
}
