package workers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/conn/internal/classify"
	connclient "github.com/signalbox-dev/signalbox/conn/internal/client"
)

// Registry holds all worker sets of a manager. It is safe for concurrent use.
type Registry struct {
	mu   sync.Mutex
	sets map[string]*Set
}

// NewRegistry returns an empty registry.
func NewRegistry() *Registry { return &Registry{sets: map[string]*Set{}} }

// Add adds a set. It fails if there is one with its name.
func (s *Registry) Add(one *Set) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.sets[one.Name]; taken {
		return fmt.Errorf("a worker set %q is registered already", one.Name)
	}
	s.sets[one.Name] = one
	return nil
}

// Remove removes a set and returns it. The caller must retire it.
func (s *Registry) Remove(name string) (*Set, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.sets[name]
	if !ok {
		return nil, fmt.Errorf("no worker set %q is registered", name)
	}
	delete(s.sets, name)
	return one, nil
}

// Status returns the status of all sets, sorted by name. up reports whether the connection is up.
func (s *Registry) Status(up bool) (all []conntype.WorkerStatus) {
	for _, one := range s.List() {
		all = append(all, one.Status(up))
	}
	return all
}

// Polling reports whether the set with a name polls; false if there is no such set.
func (s *Registry) Polling(name string, up bool) bool {
	s.mu.Lock()
	one := s.sets[name]
	s.mu.Unlock()
	return one != nil && one.Status(up).Polling
}

// List returns all sets, sorted by name.
func (s *Registry) List() []*Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]*Set, 0, len(s.sets))
	for _, one := range s.sets {
		out = append(out, one)
	}
	slices.SortFunc(out, func(a, b *Set) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Started is the result of starting one set on a new client.
type Started struct {
	Set     *Set
	Running *Running
	Err     error
	// unfinished: the start was still running when the time was over, and unlocks the set itself.
	unfinished bool
}

// Unlock unlocks the set, unless its start still runs and will do so.
func (s Started) Unlock() {
	if !s.unfinished {
		s.Set.Unlock()
	}
}

// StartAll locks all sets and starts a worker of each on the client, concurrently. The caller must call Unlock on every
// result. When ctx ends first, the starts that still run have failed: their sets stay locked until the SDK returns,
// which closing the client speeds up, and a worker that has started after all is stopped. Every goroutine is started
// with spawn.
func StartAll(ctx context.Context, sets []*Set, c *connclient.Client, generation int,
	spawn func(func())) ([]Started, error) {
	for i, one := range sets {
		select {
		case one.starting <- struct{}{}:
		case <-ctx.Done():
			for _, held := range sets[:i] {
				held.Unlock()
			}
			return nil, context.Cause(ctx)
		}
	}
	out := make([]Started, 0, len(sets))
	for _, one := range sets {
		out = append(out, Started{Set: one, unfinished: true})
	}
	type end struct {
		index int
		Started
	}
	results, done := make(chan end), make(chan struct{})
	defer close(done)
	for i, one := range sets {
		spawn(func() {
			r, err := one.Start(c, generation)
			select {
			case results <- end{i, Started{Set: one, Running: r, Err: err}}:
			case <-done:
				if err == nil {
					r.Stop()
				}
				one.Unlock()
			}
		})
	}
	for range sets {
		select {
		case r := <-results:
			out[r.index] = r.Started
		case <-ctx.Done():
			for i := range out {
				if out[i].unfinished {
					out[i].Err = fmt.Errorf("starting the workers of %q: %w", out[i].Set.Name, context.Cause(ctx))
				}
			}
			return out, nil
		}
	}
	return out, nil
}

// ConnectionError returns the error among the outcomes that shows that the connection does not work, or nil.
func ConnectionError(ctx context.Context, outcomes []Started) error {
	for _, o := range outcomes {
		cause := context.Cause(ctx)
		switch {
		case o.Err == nil:
		case cause != nil && !errors.Is(o.Err, cause):
			return errors.Join(cause, o.Err)
		case cause != nil, classify.SuggestsOutage(o.Err):
			return o.Err
		}
	}
	return nil
}

// UsesClient reports whether the worker of any set runs on the client.
func (s *Registry) UsesClient(c *connclient.Client) bool {
	return slices.ContainsFunc(s.List(), func(one *Set) bool {
		one.mu.Lock()
		defer one.mu.Unlock()
		return one.running != nil && one.running.client == c
	})
}
