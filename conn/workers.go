package conn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/link"
)

// Factory makes a worker of the client that it is given, with everything registered and not started. It is called again for
// every generation. The client must go to worker.New as it is; it must not be kept.
type Factory func(client.Client) (worker.Worker, error)

// set is a worker set: what to make a worker of, and the worker that runs now.
type set struct {
	name    string
	factory Factory

	// turn holds one token while somebody starts a worker of the set.
	turn chan struct{}

	mu       sync.Mutex
	running  *running // nil: none
	failures int
	err      error
	retryAt  time.Time
	removed  bool
}

// running is a worker that was started.
type running struct {
	worker     worker.Worker
	link       *link.Link
	generation int
	queues     []string
	since      time.Time
	ended      chan struct{} // closed when it has stopped or died
	err        error         // why it died; read after ended
}

// start makes a worker on a link and starts it. It does not return before the SDK has given up: whoever wants to cut it
// short closes the link.
func (s *set) start(l *link.Link, generation int) (*running, error) {
	var (
		w   worker.Worker
		err error
	)
	queues := l.Workers(func() { w, err = s.build(l.Client()) })
	if err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		return nil, fmt.Errorf("starting the workers of %q: %w", s.name, err)
	}
	l.Acquire()
	r := &running{worker: w, link: l, generation: generation, queues: queues, since: time.Now(), ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.err = w.Run(nil) // it is started already: this waits for its end, and tells why
	}()
	return r, nil
}

// build calls the factory. The SDK panics where it is given options that contradict each other.
func (s *set) build(c client.Client) (w worker.Worker, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("making the workers of %q: panic: %v", s.name, p)
		}
	}()
	w, err = s.factory(c)
	if err != nil {
		return nil, fmt.Errorf("making the workers of %q: %w", s.name, err)
	}
	if w == nil {
		return nil, fmt.Errorf("making the workers of %q: the factory returned none", s.name)
	}
	return w, nil
}

// stop ends the worker; what it has begun goes on within its own stop timeout.
func (r *running) stop() {
	r.worker.Stop()
	<-r.ended
	r.link.Release()
}

// put makes r the running worker and returns the one before it. A removed set takes none.
func (s *set) put(r *running) (before *running, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed {
		return nil, false
	}
	before, s.running = s.running, r
	s.failures, s.err, s.retryAt = 0, nil, time.Time{}
	return before, true
}

// retire takes the running worker away for good: one that is being started meanwhile finds no place.
func (s *set) retire() *running {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.running
	s.running, s.removed = nil, true
	return r
}

// failed notes a failed start and returns how many there were running.
func (s *set) failed(err error, now time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failures++
	s.err = err
	s.retryAt = now.Add(min(backoffFirst<<min(s.failures-1, 10), backoffMost)) //nolint:mnd // far beyond the most
	return s.failures
}

// wanting tells whether a worker of the set should be started now: there is none, it has died, or it is left from an older
// generation.
func (s *set) wanting(now time.Time, generation int) (died *running, wanting bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || now.Before(s.retryAt) {
		return nil, false
	}
	if s.running == nil {
		return nil, true
	}
	select {
	case <-s.running.ended:
		return s.running, true
	default:
		return nil, s.running.generation < generation
	}
}

func (s *set) status(up bool) WorkerStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := WorkerStatus{Name: s.name, Failures: s.failures}
	if s.err != nil {
		out.Error = s.err.Error()
	}
	r := s.running
	if r == nil {
		return out
	}
	out.TaskQueues, out.Generation, out.Since = slices.Clone(r.queues), r.generation, r.since
	select {
	case <-r.ended:
		if r.err != nil {
			out.Error = r.err.Error()
		}
		return out
	default:
	}
	out.Running, out.Polling = true, up
	for _, queue := range r.queues {
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

// sets are all worker sets of a manager.
type sets struct {
	mu  sync.Mutex
	all map[string]*set
}

func (s *sets) add(one *set) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.all[one.name]; taken {
		return fmt.Errorf("a worker set %q is registered already", one.name)
	}
	s.all[one.name] = one
	return nil
}

func (s *sets) remove(name string) (*set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[name]
	if !ok {
		return nil, fmt.Errorf("no worker set %q is registered", name)
	}
	delete(s.all, name)
	return one, nil
}

// list returns all sets by name.
func (s *sets) list() []*set {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*set, 0, len(s.all))
	for _, one := range s.all {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *set) int { return strings.Compare(a.name, b.name) })
	return out
}

// started is what became of starting one set on a new link.
type started struct {
	set     *set
	running *running
	err     error
}

// startAll takes the turns of all sets and starts a worker of each on the link, side by side. When ctx ends first, the link
// is closed, which makes those that are still being started fail. The turns are given back by whoever gets the outcomes.
func startAll(ctx context.Context, all []*set, l *link.Link, generation int) ([]started, error) {
	for i, one := range all {
		select {
		case one.turn <- struct{}{}:
		case <-ctx.Done():
			for _, held := range all[:i] {
				<-held.turn
			}
			return nil, context.Cause(ctx)
		}
	}
	out := make([]started, len(all))
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group sync.WaitGroup
		for i, one := range all {
			group.Go(func() {
				r, err := one.start(l, generation)
				out[i] = started{one, r, err}
			})
		}
		group.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		l.Close()
		<-done
	}
	return out, nil
}

// blame returns the failure among the outcomes that says that the connection does not work, or nil.
func blame(ctx context.Context, outcomes []started) error {
	for _, o := range outcomes {
		if o.err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil {
			return errors.Join(cause, o.err)
		}
		if classify.Suspicious(o.err) {
			return o.err
		}
	}
	return nil
}

// use tells whether the worker of any set runs on the link.
func (s *sets) use(l *link.Link) bool {
	return slices.ContainsFunc(s.list(), func(one *set) bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.running != nil && one.running.link == l
	})
}
