package handler

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// maxRest is the longest time for which a slot stays unused between two reads.
const maxRest = 100 * time.Millisecond

// readSlots bounds the reads of runs that a project has in progress in this process. Further ones wait in order of
// arrival. A read takes processor time here and in the database; without a bound, the callers of one project, reading
// as fast as they can, would take most of both, and the runs of all other projects would wait for it.
//
// A token has as many slots as its project, and waits for one of its own first. So a caller of the project waits for
// few reads of each other token, however many these have requested.
//
// While reads wait for a slot, it stays unused after each read for as long as the read took: the project's reads take
// half the time of the slot. Reads that do not wait are not delayed.
//
// A request keeps its slot while the answer is encoded and compressed, which may take as long as the read; see
// [HeldSlot]. It holds none while it writes to its client, which may be slow.
type readSlots struct{ projects, tokens *semaphore.Keyed }

func newReadSlots(each int) *readSlots {
	return &readSlots{projects: semaphore.NewKeyed(each), tokens: semaphore.NewKeyed(each)}
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

// acquire waits for a slot of the project, and returns the function to call after the read. In a request with a
// [HeldSlot] that function does nothing. The error is that of ctx.
func (s *readSlots) acquire(ctx context.Context, project string) (done func(), err error) {
	held, ok := ctx.Value(heldSlotKey{}).(*HeldSlot)
	if ok && held.held() {
		return func() {}, nil
	}
	actor, _ := auth.ActorFrom(ctx)
	own := project + "\x00" + actor.ID
	freeOwn := func() {}
	if actor.ID != "" {
		if freeOwn, err = s.tokens.Acquire(ctx, own); err != nil {
			return nil, err
		}
	}
	freeProject, err := s.projects.Acquire(ctx, project)
	if err != nil {
		freeOwn()
		return nil, err
	}
	begun := time.Now()
	free := func() {
		freeProject()
		freeOwn()
	}
	release := func() {
		if s.projects.Contended(project) || s.tokens.Contended(own) {
			time.AfterFunc(min(time.Since(begun), maxRest), free)
			return
		}
		free()
	}
	if !ok {
		return release, nil
	}
	held.swap(release)
	return func() {}, nil
}
