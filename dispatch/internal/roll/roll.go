// Package roll enters a process with the dispatchers that it works for, and again whenever one may have forgotten it.
package roll

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
)

const (
	// perSecond is the pace of registrations, concurrent how many may be under way.
	perSecond  = 50
	concurrent = 8
	// The pauses before a registration is tried again.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
)

// Dispatchers are whom to register with.
type Dispatchers interface {
	Register(ctx context.Context, name inbox.Name, r contract.Registration) error
}

// Roll registers a process.
type Roll struct {
	dispatchers Dispatchers
	serverID    string
	build       string
	log         *slog.Logger

	mu    sync.Mutex
	due   map[inbox.Name]*entry
	order []inbox.Name
	wake  chan struct{}
}

// entry is a registration to be made.
type entry struct {
	failures int
	again    bool // it was asked for while under way
	under    bool
}

// New returns the roll of a process.
func New(dispatchers Dispatchers, serverID, build string, log *slog.Logger) *Roll {
	return &Roll{dispatchers: dispatchers, serverID: serverID, build: build, log: log, due: map[inbox.Name]*entry{}, wake: make(chan struct{}, 1)}
}

// Add has the process registered with dispatchers, soon.
func (r *Roll) Add(names ...inbox.Name) {
	r.mu.Lock()
	for _, name := range names {
		if e := r.due[name]; e != nil {
			e.again = e.under
			continue
		}
		r.due[name] = &entry{}
		r.order = append(r.order, name)
	}
	r.mu.Unlock()
	r.poke()
}

// Remove forgets a dispatcher that the process does not work for any more, or that knows it.
func (r *Roll) Remove(name inbox.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, name)
}

func (r *Roll) poke() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run registers until ctx ends.
func (r *Roll) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	slots := make(chan struct{}, concurrent)
	ticker := time.NewTicker(time.Second / perSecond)
	defer ticker.Stop()
	for {
		name, ok := r.next()
		if !ok {
			select {
			case <-ctx.Done():
				return
			case <-r.wake:
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		select {
		case <-ctx.Done():
			return
		case slots <- struct{}{}:
		}
		under.Go(func() {
			defer func() { <-slots }()
			r.register(ctx, name)
		})
	}
}

// next takes the next registration that is due.
func (r *Roll) next() (inbox.Name, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		name := r.order[0]
		r.order = r.order[1:]
		if e := r.due[name]; e != nil && !e.under {
			e.under = true
			return name, true
		}
	}
	return inbox.Name{}, false
}

func (r *Roll) register(ctx context.Context, name inbox.Name) {
	err := r.dispatchers.Register(ctx, name, contract.Registration{ServerID: r.serverID, TaskQueue: name.TaskQueue, Build: r.build})
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.due[name]
	if e == nil || ctx.Err() != nil {
		return
	}
	e.under = false
	switch {
	case err == nil && !e.again:
		delete(r.due, name)
		return
	case err == nil:
		e.again, e.failures = false, 0
		r.order = append(r.order, name)
		r.poke()
		return
	case !errors.Is(err, remote.ErrGone) && e.failures == 0:
		r.log.WarnContext(ctx, "Registration failed; trying again", "project", name.Project, "task_queue", name.TaskQueue, "error", err)
	}
	pause := min(retryFirst<<min(e.failures, 10), retryMost)
	e.failures++
	time.AfterFunc(pause/2+rand.N(pause/2+1), func() { //nolint:gosec // spreads load, guards nothing
		r.mu.Lock()
		r.order = append(r.order, name)
		r.mu.Unlock()
		r.poke()
	})
}
