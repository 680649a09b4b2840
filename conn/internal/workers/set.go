// Package workers holds the worker sets of a connection manager: their factories, the workers that run now, and how
// workers are started, replaced and retired.
//
// A set has one worker at a time, which belongs to one [client.Client]. To start a worker, lock the set, so that no
// second one is started meanwhile; Retire needs no lock. The manager decides which sets to start and when.
package workers

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	connclient "github.com/signalbox-dev/signalbox/conn/internal/client"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

// A failed start of a set is retried after firstRetry, doubled after each further failure up to longestRetry.
const (
	firstRetry   = time.Second
	longestRetry = 30 * time.Second
)

// Factory makes a worker of a client, with workflows and activities registered and not started. It is called again for
// every generation. The client must be passed to worker.New as it is, and must not be kept.
type Factory func(client.Client) (worker.Worker, error)

// busy is a worker that reports since when its pollers wait for a free slot, which keeps them from polling; zero while
// they do not.
type busy interface{ BusySince() time.Time }

// Set is a worker set: a factory, and the worker that runs now.
type Set struct {
	Name    string
	factory Factory

	// starting is the set's lock, as a channel with one token while a worker of the set is being started.
	starting chan struct{}

	mu       sync.Mutex
	running  *Running // nil: none
	failures int
	err      error
	retryAt  time.Time
	removed  bool
}

// Running is a worker that was started.
type Running struct {
	worker        worker.Worker
	client        *connclient.Client
	generation    int
	info          connclient.Workers
	since         time.Time
	err           error // why it died; guarded by the set's mutex, as deathReported is
	deathReported bool
}

// New returns a set without a worker.
func New(name string, factory Factory) *Set {
	return &Set{Name: name, factory: factory, starting: make(chan struct{}, 1)}
}

// TryLock locks the set for a start, unless a start is under way. Unlock undoes it.
func (s *Set) TryLock() bool {
	select {
	case s.starting <- struct{}{}:
		return true
	default:
		return false
	}
}

// Unlock unlocks the set.
func (s *Set) Unlock() { <-s.starting }

// Start makes a worker on a client and starts it. It does not return before the SDK does, which closing the client
// speeds up. A factory cannot be interrupted. The worker may have received tasks before Start returns, so the client is
// in use from then on.
func (s *Set) Start(c *connclient.Client, generation int) (*Running, error) {
	var (
		w   worker.Worker
		err error
	)
	info := c.RecordWorkers(func() { w, err = s.build(c.SDK()) })
	if err != nil {
		return nil, err
	}
	c.Acquire()
	if err := w.Start(); err != nil {
		c.Release()
		return nil, fmt.Errorf("starting the workers of %q: %w", s.Name, err)
	}
	return &Running{worker: w, client: c, generation: generation, info: info, since: time.Now()}, nil
}

// build calls the factory. The SDK panics on options that contradict each other.
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

// TaskQueues returns the task queues of the worker.
func (r *Running) TaskQueues() []string { return r.info.Queues }

// deathCause returns the fatal error of the worker; nil while it has none. The set's mutex is held.
func (r *Running) deathCause() error {
	select {
	case r.err = <-r.info.Died:
	default:
	}
	return r.err
}

// Stop stops the worker. Tasks that it has begun may finish within its stop timeout.
func (r *Running) Stop() {
	defer r.client.StopWaiting(r.info.Queues)()
	r.worker.Stop()
	r.client.Release()
}

// Replace makes r the running worker and returns the previous one. ok is false for a retired set, which takes no
// worker.
func (s *Set) Replace(r *Running) (before *Running, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil, false
	}
	before, s.running = s.running, r
	s.failures, s.err, s.retryAt = 0, nil, time.Time{}
	return before, true
}

// Retire removes the running worker and returns it. A worker that is being started meanwhile is refused by Replace.
func (s *Set) Retire() *Running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	s.running, s.removed = nil, true
	return r
}

// StartFailed records a failed start and returns the number of consecutive failures.
func (s *Set) StartFailed(err error, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.err = err
	s.retryAt = now.Add(backoff.Delay(firstRetry, longestRetry, s.failures))
	return s.failures
}

// NeedsWorker reports whether a worker of the set should be started now: there is none, it has died, or it belongs to
// an older generation.
func (s *Set) NeedsWorker(now time.Time, generation int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || now.Before(s.retryAt) {
		return false
	}
	return s.running == nil || s.running.deathCause() != nil || s.running.generation < generation
}

// TakeDeath returns the fatal error of the set's worker, once; nil while it has none.
func (s *Set) TakeDeath() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	if r == nil || r.deathReported || r.deathCause() == nil {
		return nil
	}
	r.deathReported = true
	return r.err
}

// Status returns the status of the set. Over a connection that is not up, no set polls.
func (s *Set) Status(up bool) conntype.WorkerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := conntype.WorkerStatus{Name: s.Name, Failures: s.failures}
	if s.err != nil {
		out.Error = s.err.Error()
	}
	r := s.running
	if r == nil {
		return out
	}
	out.TaskQueues, out.Generation, out.Since = slices.Clone(r.info.Queues), r.generation, r.since
	if died := r.deathCause(); died != nil {
		out.Error = died.Error()
		return out
	}
	out.Running, out.Polling = true, up
	if b, reports := r.worker.(busy); reports {
		out.BusySince = b.BusySince()
	}
	for _, queue := range r.info.Queues {
		p := r.client.Polls().Queue(queue)
		if p.Last.After(out.LastPoll) {
			out.LastPoll = p.Last
		}
		out.Polling = out.Polling && (p.OK || p.Err == nil && !out.BusySince.IsZero())
		if !p.OK && p.Err != nil {
			out.Error = p.Err.Error()
		}
	}
	return out
}
