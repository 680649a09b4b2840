package workerset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	"github.com/signalbox-dev/signalbox/conn/internal/link"
)

// Registry holds all worker sets of a manager. It is safe for concurrent use.
type Registry struct {
	mu  sync.Mutex
	all map[string]*Set
}

// NewRegistry returns an empty one.
func NewRegistry() *Registry { return &Registry{all: map[string]*Set{}} }

// Add takes a set in, unless there is one of its name.
func (s *Registry) Add(one *Set) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.all[one.Name]; taken {
		return fmt.Errorf("a worker set %q is registered already", one.Name)
	}
	s.all[one.Name] = one
	return nil
}

// Remove gives a set out of hand; it is for the caller to retire it.
func (s *Registry) Remove(name string) (*Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[name]
	if !ok {
		return nil, fmt.Errorf("no worker set %q is registered", name)
	}
	delete(s.all, name)
	return one, nil
}

// Status returns what is known of all sets, by name. up tells whether the connection is.
func (s *Registry) Status(up bool) (all []Status) {
	for _, one := range s.List() {
		all = append(all, one.Status(up))
	}
	return all
}

// Polling tells whether the set of a name polls; one that there is not does not.
func (s *Registry) Polling(name string, up bool) bool {
	s.mu.Lock()
	one := s.all[name]
	s.mu.Unlock()
	return one != nil && one.Status(up).Polling
}

// List returns all sets by name.
func (s *Registry) List() []*Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Set, 0, len(s.all))
	for _, one := range s.all {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *Set) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Started is what became of starting one set on a new link.
type Started struct {
	Set     *Set
	Running *Running
	Err     error
	// abandoned is a set that was still being started when the time was over: whoever does that gives its turn back.
	abandoned bool
}

// Give gives the set's turn back.
func (s Started) Give() {
	if !s.abandoned {
		s.Set.Give()
	}
}

// StartAll takes the turns of all sets and starts a worker of each on the link, side by side. The turns are given back by
// whoever gets the outcomes. When ctx ends first, those that are still being started have failed: they keep their turn until
// the SDK has given up, for which closing the link is the quickest way, and a worker that starts after all is stopped again.
// Every goroutine is started with spawn.
func StartAll(ctx context.Context, all []*Set, l *link.Link, generation int, spawn func(func())) ([]Started, error) {
	for i, one := range all {
		select {
		case one.turn <- struct{}{}:
		case <-ctx.Done():
			for _, held := range all[:i] {
				held.Give()
			}
			return nil, context.Cause(ctx)
		}
	}
	out := make([]Started, 0, len(all))
	for _, one := range all {
		out = append(out, Started{Set: one, abandoned: true})
	}
	type end struct {
		index int
		Started
	}
	ends, given := make(chan end), make(chan struct{})
	defer close(given)
	for i, one := range all {
		spawn(func() {
			r, err := one.Start(l, generation)
			select {
			case ends <- end{i, Started{Set: one, Running: r, Err: err}}:
			case <-given:
				if err == nil {
					r.Stop()
				}
				one.Give()
			}
		})
	}
	for range all {
		select {
		case e := <-ends:
			out[e.index] = e.Started
		case <-ctx.Done():
			for i := range out {
				if out[i].abandoned {
					out[i].Err = fmt.Errorf("starting the workers of %q: %w", out[i].Set.Name, context.Cause(ctx))
				}
			}
			return out, nil
		}
	}
	return out, nil
}

// Blame returns the failure among the outcomes that says that the connection does not work, or nil.
func Blame(ctx context.Context, outcomes []Started) error {
	for _, o := range outcomes {
		cause := context.Cause(ctx)
		switch {
		case o.Err == nil:
		case cause != nil && !errors.Is(o.Err, cause):
			return errors.Join(cause, o.Err)
		case cause != nil, classify.Suspicious(o.Err):
			return o.Err
		}
	}
	return nil
}

// Uses tells whether the worker of any set runs on the link.
func (s *Registry) Uses(l *link.Link) bool {
	return slices.ContainsFunc(s.List(), func(one *Set) bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.running != nil && one.running.link == l
	})
}
