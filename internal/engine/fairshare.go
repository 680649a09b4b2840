package engine

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/sdk/worker"
)

// backlogPerTurn is the number of pieces of one project, per turn, that may wait before the worker stops polling for
// its tasks.
const backlogPerTurn = 4

// fairShare divides the processors of a worker process among its projects. It is safe for concurrent use.
//
//	s := newFairShare(runtime.GOMAXPROCS(0))
//	if s.Acquire(project, wait) { compute(); s.Release(project) }   // around each bounded piece of compute
//	slots, err := s.Slots(project, size)                            // for the worker of the project's task queue
//
// A piece of compute is one Advance of the interpreter, which is bounded. At most as many pieces run at the same time
// as there are turns. When pieces of several projects wait, the project with the fewest running pieces is next, and
// among equals the one that was served least recently. A project with hundreds of busy runs thus delays a run of
// another project by one piece, not by hundreds.
//
// A worker reserves a slot before it polls for a task. Its supplier reserves none while many pieces of the project
// wait: the tasks then stay in Temporal's queue, where they do not time out, instead of timing out half done in the
// process.
//
// It does not bound the cost of a piece, and it does not divide work between processes.
type fairShare struct {
	width int

	mu       sync.Mutex
	free     int
	served   int64 // turns assigned so far
	projects map[string]*projectShare
}

// projectShare is the state of one project in the process. It is removed when it is empty.
type projectShare struct {
	running int
	served  int64 // the number of its last turn
	waiting []*turnWaiter
	// below is closed when fewer pieces than the backlog wait. It is nil while no caller waits for that.
	below chan struct{}
}

type turnWaiter struct {
	turn  chan struct{} // closed when it has a turn
	given bool
}

// newFairShare returns a scheduler with width turns.
func newFairShare(width int) *fairShare {
	width = max(width, 1)
	return &fairShare{width: width, free: width, projects: map[string]*projectShare{}}
}

// Acquire waits for a turn and reports whether it got one in time. Release ends the turn.
func (s *fairShare) Acquire(name string, wait time.Duration) bool {
	s.mu.Lock()
	p := s.project(name)
	if s.free > 0 { // nothing waits while turns are free
		s.assign(p)
		s.mu.Unlock()
		return true
	}
	w := &turnWaiter{turn: make(chan struct{})}
	p.waiting = append(p.waiting, w)
	s.mu.Unlock()

	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-w.turn:
		return true
	case <-timer.C:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.given { // assigned just after the timeout
		return true
	}
	for i, other := range p.waiting {
		if other == w {
			p.waiting = append(p.waiting[:i], p.waiting[i+1:]...)
			break
		}
	}
	s.drained(name, p)
	return false
}

// Release ends a turn. The next waiting piece gets it.
func (s *fairShare) Release(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[name]
	p.running--
	s.free++
	if next, nextName := s.next(); next != nil {
		w := next.waiting[0]
		next.waiting = next.waiting[1:]
		w.given = true
		close(w.turn)
		s.assign(next)
		s.drained(nextName, next)
	}
	s.drained(name, p)
}

// next returns the project that gets the next turn, nil if none waits.
func (s *fairShare) next() (next *projectShare, name string) {
	for n, p := range s.projects {
		if len(p.waiting) == 0 {
			continue
		}
		if next == nil || p.running < next.running || p.running == next.running && p.served < next.served {
			next, name = p, n
		}
	}
	return next, name
}

func (s *fairShare) assign(p *projectShare) {
	s.free--
	s.served++
	p.running++
	p.served = s.served
}

func (s *fairShare) project(name string) *projectShare {
	p := s.projects[name]
	if p == nil {
		p = &projectShare{}
		s.projects[name] = p
	}
	return p
}

func (s *fairShare) backlog() int { return s.width * backlogPerTurn }

// drained notifies the callers that wait for a smaller backlog, and removes an empty project.
func (s *fairShare) drained(name string, p *projectShare) {
	if p.below != nil && len(p.waiting) < s.backlog() {
		close(p.below)
		p.below = nil
	}
	if p.running == 0 && len(p.waiting) == 0 {
		delete(s.projects, name)
	}
}

// crowded returns a channel that is closed when fewer pieces of the project wait than the backlog, or nil if that is
// already the case.
func (s *fairShare) crowded(name string) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.projects[name]
	if p == nil || len(p.waiting) < s.backlog() {
		return nil
	}
	if p.below == nil {
		p.below = make(chan struct{})
	}
	return p.below
}

// Slots returns the supplier of at most size slots for the workflow tasks of a project.
func (s *fairShare) Slots(name string, size int) (worker.SlotSupplier, error) {
	fixed, err := worker.NewFixedSizeSlotSupplier(size)
	if err != nil {
		return nil, fmt.Errorf("making the slots of project %q: %w", name, err)
	}
	return &fairSlots{SlotSupplier: fixed, scheduler: s, project: name}, nil
}

// fairSlots supplies none while the project has a backlog in the process.
type fairSlots struct {
	worker.SlotSupplier

	scheduler *fairShare
	project   string
}

// ReserveSlot implements worker.SlotSupplier.
func (s *fairSlots) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	for {
		below := s.scheduler.crowded(s.project)
		if below == nil {
			return s.SlotSupplier.ReserveSlot(ctx, info) //nolint:wrapcheck // the SDK's own error, for the SDK
		}
		select {
		case <-below:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// TryReserveSlot implements worker.SlotSupplier.
func (s *fairSlots) TryReserveSlot(info worker.SlotReservationInfo) *worker.SlotPermit {
	if s.scheduler.crowded(s.project) != nil {
		return nil
	}
	return s.SlotSupplier.TryReserveSlot(info)
}
