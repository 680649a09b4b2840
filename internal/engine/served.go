package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/signalbox-dev/signalbox/conn"
)

const (
	// refreshEvery is the interval of checks for projects that are to be served, or no longer.
	refreshEvery = 500 * time.Millisecond
	// ownerStays is for how much longer than others the owner of a parked project's dispatcher serves the project. A
	// process that still serves it would start the dispatcher again.
	ownerStays = 2 * time.Second
	// retireAgain is the delay after a dispatcher could not be ended.
	retireAgain = 5 * time.Second
	// pollsWithin is how long a project that has just been woken may have no poll without the process being unready.
	pollsWithin = 10 * time.Second
	// leavesAtOnce is how many projects a process ceases to serve at the same time.
	leavesAtOnce = 16
)

// Projects lists the projects to serve.
type Projects interface {
	// Served returns the names of the projects that are not parked.
	Served(ctx context.Context) ([]string, error)
}

// projectService is the service of one project.
type projectService struct {
	begun time.Time
	// woken: the process served others before.
	woken bool
	// unlisted is since when the project is not to be served; zero while it is.
	unlisted time.Time
	// leaving: the process is ceasing to serve it.
	leaving bool
}

// changes decides which projects a process begins to serve, and which it ceases to serve, at a time. listed are those to
// serve. owns reports whether the process owns the dispatcher of a project. It updates the services. A project that the
// process is ceasing to serve begins again only after that.
func changes(serving map[string]*projectService, listed []string, owns func(project string) bool,
	now time.Time) (begin, cease []string) {
	wanted := make(map[string]bool, len(listed))
	for _, name := range listed {
		wanted[name] = true
		if s := serving[name]; s == nil {
			begin = append(begin, name)
		} else if !s.leaving {
			s.unlisted = time.Time{}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(serving)) {
		s := serving[name]
		if s.leaving || wanted[name] {
			continue
		}
		if s.unlisted.IsZero() {
			s.unlisted = now
		}
		if !owns(name) || now.Sub(s.unlisted) >= ownerStays {
			s.leaving = true
			cease = append(cease, name)
		}
	}
	return begin, cease
}

// served are the projects for which a process has a worker set each, in one role.
type served struct {
	manager *conn.Manager
	// prefix begins the names of the worker sets; the name of the project follows.
	prefix string
	// queue is what errors call the task queue of a project.
	queue string
	// connected returns the reason why Temporal cannot be used, or nil.
	connected func() error
	// leaves has a value for each project that is being left.
	leaves chan struct{}

	mu      sync.Mutex
	serving map[string]*projectService
	listed  bool // once
	listErr error
}

func newServed(manager *conn.Manager, prefix, queue string, connected func() error) served {
	return served{manager: manager, prefix: prefix, queue: queue, connected: connected,
		leaves: make(chan struct{}, leavesAtOnce), serving: map[string]*projectService{}}
}

// list returns the projects to serve: those of the given names that are not parked, or all. Without projects, it
// returns the given ones.
func list(ctx context.Context, given []string, projects Projects) ([]string, error) {
	if projects == nil {
		return given, nil
	}
	names, err := projects.Served(ctx)
	if len(given) > 0 {
		names = slices.DeleteFunc(names, func(name string) bool { return !slices.Contains(given, name) })
	}
	return names, err
}

// register registers the worker set of a project. The caller holds mu.
func (s *served) register(project string, now time.Time, build func(client.Client) (worker.Worker, error)) bool {
	if err := s.manager.Register(s.prefix+project, build); err != nil {
		s.listErr = err
		return false
	}
	s.serving[project] = &projectService{begun: now, woken: s.listed}
	return true
}

// leave ceases to serve a project. retire ends its dispatcher, if this process owns it; nil: there is none. It reports
// whether the project has been left.
func (s *served) leave(ctx context.Context, project string, retire func(context.Context, string) error) (bool, error) {
	select {
	case s.leaves <- struct{}{}:
		defer func() { <-s.leaves }()
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	if retire != nil {
		if err := retire(ctx, project); err != nil {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.serving[project].leaving, s.serving[project].unlisted = false, time.Now().Add(retireAgain)
			return false, err
		}
	}
	err := s.manager.Unregister(ctx, s.prefix+project)
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.serving, project)
	return true, err
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

// Check returns the reason why this process does not serve a project, or nil. Parked projects are not served.
func (s *served) Check(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listErr != nil {
		return s.listErr
	}
	if !s.listed {
		return errors.New("the projects to serve are not known yet")
	}
	if err := s.connected(); err != nil {
		return err
	}
	for _, set := range s.manager.Status().Workers {
		name, of := strings.CutPrefix(set.Name, s.prefix)
		project := s.serving[name]
		switch {
		case !of || project == nil || project.leaving || set.Polling:
		case set.Error != "":
			return fmt.Errorf("%s of project %q is not polled: %s", s.queue, name, set.Error)
		case project.woken && time.Since(project.begun) < pollsWithin:
		default:
			return fmt.Errorf("%s of project %q is not polled yet", s.queue, name)
		}
	}
	return nil
}
