package handler

import (
	"context"
	"sync"

	"golang.org/x/sync/semaphore"
)

// readSlots bounds the reads of runs that a project has in progress in this process. Further ones wait in order of arrival. A read takes
// processor time here and in the database; without a bound, the callers of one project, reading as fast as they can, would take most of
// both, and the runs of all other projects would wait for it.
//
// It bounds what is read, not what is written to a client: a client that reads slowly holds no slot.
type readSlots struct {
	each int64 // slots of each project

	mu       sync.Mutex
	projects map[string]*projectSlots
}

type projectSlots struct {
	*semaphore.Weighted

	users int // reads that hold a slot or wait for one; guarded by readSlots.mu
}

func newReadSlots(each int) *readSlots {
	return &readSlots{each: int64(max(each, 1)), projects: map[string]*projectSlots{}}
}

// acquire waits for a slot of the project, and returns the function that releases it. Its error is that of ctx.
func (s *readSlots) acquire(ctx context.Context, project string) (release func(), err error) {
	s.mu.Lock()
	p := s.projects[project]
	if p == nil {
		p = &projectSlots{Weighted: semaphore.NewWeighted(s.each)}
		s.projects[project] = p
	}
	p.users++
	s.mu.Unlock()

	if err := p.Acquire(ctx, 1); err != nil {
		s.leave(project, p)
		return nil, err //nolint:wrapcheck // the context's own
	}
	return func() {
		p.Release(1)
		s.leave(project, p)
	}, nil
}

// leave forgets a project without reads.
func (s *readSlots) leave(project string, p *projectSlots) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(s.projects, project)
	}
}
