package start

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/semaphore"
)

// slots limit how many starts of runs wait for Temporal's answer at a time, whether their callers still wait
// or not. Projects share them: the next free slot is for the project with the fewest. When the process stops, Close
// waits for the starts that remain. They are safe for concurrent use.
type slots struct {
	retry time.Duration // the delay that callers without a slot receive
	limit int
	slots *semaphore.Shared
	// closing is closed by Close, under mu: further starts are refused.
	closing chan struct{}

	mu sync.Mutex
	// ended cancels starts that already had a slot.
	ended bool
	// cut are the functions that cancel the starts in progress, by a number of each.
	cut    map[int]context.CancelFunc
	last   int
	joined sync.WaitGroup
}

// newSlots returns limit slots.
func newSlots(limit int, retry time.Duration) *slots {
	return &slots{retry: retry, limit: limit, slots: semaphore.NewShared(limit), closing: make(chan struct{}),
		cut: map[int]context.CancelFunc{}}
}

// Reserve waits for a slot of the project until ctx ends. A reserved slot is used by Begin, or released.
func (p *slots) Reserve(ctx context.Context, project string) error {
	if _, err := p.slots.Acquire(ctx, project); err != nil {
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"%d starts wait for Temporal's answer already; nothing was started, try again in a moment", p.limit).
			WithRetry(p.retry).WithCause(err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
		p.slots.Release(project)
		return apperror.New(apperror.Unavailable, apperror.EngineUnavailable,
			"this server is stopping; nothing was started, try again").
			WithRetry(p.retry)
	default:
		p.joined.Add(1)
		return nil
	}
}

// Release returns a slot that was not used.
func (p *slots) Release(project string) {
	p.slots.Release(project)
	p.joined.Done()
}

// Begin runs work in the background in a reserved slot of the project, which work returns by calling answered, or by
// ending. The context of work has the values of ctx and ends only when Close cancels it.
func (p *slots) Begin(ctx context.Context, project string, work func(ctx context.Context, answered func())) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	p.mu.Lock()
	p.last++
	number := p.last
	p.cut[number] = cancel
	if p.ended {
		cancel()
	}
	p.mu.Unlock()
	go func() {
		answered := sync.OnceFunc(func() { p.slots.Release(project) })
		defer p.joined.Done()
		defer answered()
		defer func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			delete(p.cut, number)
			cancel()
		}()
		work(ctx, answered)
	}()
}

// Closing returns a channel that is closed when Close is called: what only improves an answer ends then.
func (p *slots) Closing() <-chan struct{} { return p.closing }

func (p *slots) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closing:
	default:
		close(p.closing)
	}
}

// Close refuses further starts, waits for those in progress until ctx ends, and cancels the rest.
func (p *slots) Close(ctx context.Context) error {
	p.close()
	joined := make(chan struct{})
	go func() {
		p.joined.Wait()
		close(joined)
	}()
	select {
	case <-joined:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.ended = true
	for _, cancel := range p.cut {
		cancel()
	}
	left := len(p.cut)
	p.mu.Unlock()
	<-joined
	if left == 0 {
		return nil
	}
	return fmt.Errorf("%d starts had no answer from Temporal yet: %w", left, context.Cause(ctx))
}
