package handler

import (
	"context"
	"sync"

	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// readSlots bounds the reads of runs that a project has in progress in this process. Further ones wait in order of arrival. A read takes
// processor time here and in the database; without a bound, the callers of one project, reading as fast as they can, would take most of
// both, and the runs of all other projects would wait for it.
//
// A request keeps its slot while the answer is encoded and compressed, which may take as long as the read; see [HeldSlot]. It holds none
// while it writes to its client, which may be slow.
type readSlots struct{ projects *semaphore.Keyed }

func newReadSlots(each int) *readSlots { return &readSlots{semaphore.NewKeyed(each)} }

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
	release, err := s.projects.Acquire(ctx, project)
	if err != nil || !ok {
		return release, err
	}
	held.swap(release)
	return func() {}, nil
}
