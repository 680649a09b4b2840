package heartbeat

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/remote"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/internal/backoff"
)

const (
	// perSecond is the rate of registrations, concurrent the number of simultaneous ones.
	perSecond  = 50
	concurrent = 8
	// The first and the longest pause before a registration is repeated.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
)

// Dispatchers sends registrations.
type Dispatchers interface {
	Register(ctx context.Context, name inbox.Name, r wire.Registration) error
}

// Registrations registers a process with its dispatchers, and again whenever one may have lost the registration.
type Registrations struct {
	dispatchers Dispatchers
	serverID    string
	build       string
	log         *slog.Logger

	mu    sync.Mutex
	due   map[inbox.Name]*entry
	order []inbox.Name
	wake  chan struct{}
}

// entry is a pending registration.
type entry struct {
	failures int
	again    bool // it was requested while running
	running  bool
}

// NewRegistrations returns the registrations of a process.
func NewRegistrations(dispatchers Dispatchers, serverID, build string, log *slog.Logger) *Registrations {
	return &Registrations{dispatchers: dispatchers, serverID: serverID, build: build, log: log,
		due: map[inbox.Name]*entry{}, wake: make(chan struct{}, 1)}
}

// Add schedules the registration with dispatchers.
func (r *Registrations) Add(names ...inbox.Name) {
	r.mu.Lock()
	for _, name := range names {
		if e := r.due[name]; e != nil {
			e.again = e.running
			continue
		}
		r.due[name] = &entry{}
		r.order = append(r.order, name)
	}
	r.mu.Unlock()
	r.notify()
}

// Remove cancels the registration with a dispatcher that the process no longer serves.
func (r *Registrations) Remove(name inbox.Name) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.due, name)
}

func (r *Registrations) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// Run makes the registrations until ctx ends.
func (r *Registrations) Run(ctx context.Context) {
	var under sync.WaitGroup
	defer under.Wait()
	slots := make(chan struct{}, concurrent)
	limit := rate.NewLimiter(perSecond, 1)
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
		if limit.Wait(ctx) != nil {
			return
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

// next returns the next due registration.
func (r *Registrations) next() (inbox.Name, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.order) > 0 {
		name := r.order[0]
		r.order = r.order[1:]
		if e := r.due[name]; e != nil && !e.running {
			e.running = true
			return name, true
		}
	}
	return inbox.Name{}, false
}

func (r *Registrations) register(ctx context.Context, name inbox.Name) {
	err := r.dispatchers.Register(ctx, name,
		wire.Registration{ServerID: r.serverID, TaskQueue: name.TaskQueue, Build: r.build})
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.due[name]
	if e == nil || ctx.Err() != nil {
		return
	}
	e.running = false
	switch {
	case err == nil && !e.again:
		delete(r.due, name)
		return
	case err == nil:
		e.again, e.failures = false, 0
		r.order = append(r.order, name)
		r.notify()
		return
	case !errors.Is(err, remote.ErrGone) && e.failures == 0:
		r.log.WarnContext(ctx, "Registration failed; trying again", "project", name.Project, "task_queue", name.TaskQueue,
			"error", err)
	}
	e.failures++
	time.AfterFunc(backoff.Jitter(backoff.Delay(retryFirst, retryMost, e.failures)), func() {
		r.mu.Lock()
		r.order = append(r.order, name)
		r.mu.Unlock()
		r.notify()
	})
}
