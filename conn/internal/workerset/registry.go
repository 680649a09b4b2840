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
}

// StartAll takes the turns of all sets and starts a worker of each on the link, side by side. When ctx ends first, the link
// is closed, which makes those that are still being started fail. The turns are given back by whoever gets the outcomes.
func StartAll(ctx context.Context, all []*Set, l *link.Link, generation int) ([]Started, error) {
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
	out := make([]Started, len(all))
	done := make(chan struct{})
	go func() {
		defer close(done)
		var group sync.WaitGroup
		for i, one := range all {
			group.Go(func() {
				r, err := one.Start(l, generation)
				out[i] = Started{one, r, err}
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

// Blame returns the failure among the outcomes that says that the connection does not work, or nil.
func Blame(ctx context.Context, outcomes []Started) error {
	for _, o := range outcomes {
		if o.Err == nil {
			continue
		}
		if cause := context.Cause(ctx); cause != nil {
			return errors.Join(cause, o.Err)
		}
		if classify.Suspicious(o.Err) {
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
