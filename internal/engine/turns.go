package engine

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/engine/flow"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

const (
	// requestsOfAll is how many requests of runs and events of all projects are in progress at once, requestsPerProcessor
	// how many of one project for each processor, while others are active.
	requestsOfAll, requestsPerProcessor = 64, 1
	// restPerDelay is how long a turn rests for each time by which its request took longer than the fastest ones, and
	// longestRest the longest time that it rests.
	restPerDelay, longestRest = 8, 250 * time.Millisecond
	// fastestPeriod is the time for which the duration of the fastest request is kept, at least.
	fastestPeriod = 2 * time.Minute
)

// Turns are the turns of a process, which its projects share: of the interpreter, and of what runs and events request
// of Temporal and the store, which are starts of children, deliveries, events and listeners. Temporal and the database
// have no order of projects, so what one project has in progress there is what the runs of all others wait behind.
type Turns struct {
	compute, requests *semaphore.Shared

	mu      sync.Mutex
	fastest map[string]*fastest
}

// NewTurns returns the turns of a process with a number of processors.
func NewTurns(processors int) *Turns {
	compute := semaphore.NewShared(processors)
	return &Turns{
		compute:  compute,
		requests: semaphore.NewShared(requestsOfAll).Limit(requestsPerProcessor*processors, compute),
		fastest:  map[string]*fastest{},
	}
}

// computeTurns are the turns of the interpreter.
type computeTurns struct{ shared *semaphore.Shared }

// Enter implements flow.Turns.
func (t computeTurns) Enter(project string, since time.Time) flow.Place {
	return t.shared.Enter(project, since)
}

// Acquire waits for a turn of a request of the project, and returns the function that releases it; done reports whether
// the request was fulfilled, because a refusal takes less time. kind is one of a few kinds of requests that take about
// as long as each other. The error is that of ctx.
//
// While other projects are active in the process, a project has few turns. If more of its requests wait, a turn then
// rests after a request that took longer than the fastest ones of its kind ([rest]): the more a project slows Temporal
// and the store down, the less it requests of them.
func (t *Turns) Acquire(ctx context.Context, project, kind string) (release func(done bool), err error) {
	if _, err := t.requests.Acquire(ctx, project); err != nil {
		return nil, err
	}
	begun := time.Now()
	return func(done bool) {
		now := time.Now()
		took := now.Sub(begun)
		least := took
		if done {
			least = t.least(kind, took, now)
		}
		if t.requests.Contended(project) {
			t.requests.Rest(project, rest(took, least))
			return
		}
		t.requests.Release(project)
	}, nil
}

// do makes a request of the project in a turn.
func (t *Turns) do(ctx context.Context, project, kind string, request func() error) (err error) {
	release, err := t.Acquire(ctx, project, kind)
	if err != nil {
		return err
	}
	defer func() { release(err == nil) }()
	return request()
}

// least records the duration of a request, and returns the shortest duration of its kind within the last minutes.
func (t *Turns) least(kind string, took time.Duration, now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fastest[kind]
	if f == nil {
		f = &fastest{}
		t.fastest[kind] = f
	}
	return f.add(took, now)
}

// rest returns how long a turn rests after a request that took some time, where the fastest of its kind took the least.
func rest(took, least time.Duration) time.Duration {
	slower := float64(took)/float64(max(least, time.Millisecond)) - 1
	return time.Duration(min(float64(longestRest), max(0, restPerDelay*slower*float64(took))))
}

// fastest is the shortest duration of the current and of the last period.
type fastest struct {
	since         time.Time
	current, last time.Duration
}

// add records a duration, and returns the shortest one.
func (f *fastest) add(took time.Duration, now time.Time) time.Duration {
	if now.Sub(f.since) > fastestPeriod {
		f.since, f.last, f.current = now, f.current, took
	}
	f.current = min(f.current, took)
	if f.last == 0 {
		return f.current
	}
	return min(f.last, f.current)
}
