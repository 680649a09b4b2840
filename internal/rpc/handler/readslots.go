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
// A request keeps its slot while the answer is encoded and compressed, which may take as long as the read; see [HeldSlot]. It holds none
// while it writes to its client, which may be slow.
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

// HeldSlot is the slot that a request holds between a read and the next write to its client.
type HeldSlot struct {
	mu      sync.Mutex
	release func() // nil: none is held
}

type heldSlotKey struct{}

// WithHeldSlot returns the context of a request whose reads keep their slot until Release is called.
func WithHeldSlot(ctx context.Context) (context.Context, *HeldSlot) {
	held := &HeldSlot{}
	return context.WithValue(ctx, heldSlotKey{}, held), held
}

// Release releases the slot, if one is held. The next read acquires one again.
func (h *HeldSlot) Release() {
	if release := h.swap(nil); release != nil {
		release()
	}
}

func (h *HeldSlot) swap(release func()) func() {
	h.mu.Lock()
	defer h.mu.Unlock()
	before := h.release
	h.release = release
	return before
}

func (h *HeldSlot) held() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.release != nil
}

// acquire waits for a slot of the project, and returns the function to call after the read. In a request with a [HeldSlot] that function
// does nothing. The error is that of ctx.
func (s *readSlots) acquire(ctx context.Context, project string) (done func(), err error) {
	held, ok := ctx.Value(heldSlotKey{}).(*HeldSlot)
	if ok && held.held() {
		return func() {}, nil
	}
	release, err := s.wait(ctx, project)
	if err != nil || !ok {
		return release, err
	}
	held.swap(release)
	return func() {}, nil
}

// wait waits for a slot of the project, and returns the function that releases it.
func (s *readSlots) wait(ctx context.Context, project string) (release func(), err error) {
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
