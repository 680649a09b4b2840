package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
)

// served are the projects for which a process has a worker set each, in one role.
type served struct {
	manager *conn.Manager
	// prefix begins the names of the worker sets; the name of the project follows.
	prefix string
	// queue is what errors call the task queue of a project.
	queue string
	// connected returns the reason why Temporal cannot be used, or nil.
	connected func() error

	mu      sync.Mutex
	serving map[string]bool
	listErr error
}

// register registers the worker set of a project that has none, and reports whether it did. The caller holds mu.
func (s *served) register(project string, build func(client.Client) (worker.Worker, error)) bool {
	if s.serving[project] {
		return false
	}
	if err := s.manager.Register(s.prefix+project, build); err != nil {
		s.listErr = err
		return false
	}
	if s.serving == nil {
		s.serving = map[string]bool{}
	}
	s.serving[project] = true
	return true
}

// unregister stops all worker sets at the same time. The caller holds mu.
func (s *served) unregister(ctx context.Context) error {
	var (
		group sync.WaitGroup
		errs  = make([]error, len(s.serving))
		i     = 0
	)
	for name := range s.serving {
		at := &errs[i]
		group.Go(func() { *at = s.manager.Unregister(ctx, s.prefix+name) })
		i++
	}
	group.Wait()
	s.serving = nil
	return errors.Join(errs...)
}

// Check returns the reason why this process does not serve a project, or nil.
func (s *served) Check(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listErr != nil {
		return s.listErr
	}
	if len(s.serving) == 0 {
		return errors.New("no project is served yet")
	}
	if err := s.connected(); err != nil {
		return err
	}
	for _, set := range s.manager.Status().Workers {
		name, of := strings.CutPrefix(set.Name, s.prefix)
		switch {
		case !of || !s.serving[name] || set.Polling:
		case set.Error != "":
			return fmt.Errorf("%s of project %q is not polled: %s", s.queue, name, set.Error)
		default:
			return fmt.Errorf("%s of project %q is not polled yet", s.queue, name)
		}
	}
	return nil
}
