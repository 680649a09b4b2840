package rpc

import (
	"context"
	"sync"
	"time"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/rpc/apierror"
)

// stopping notifies open streams that the server stops.
type stopping struct {
	once sync.Once
	ch   chan struct{}
}

func newStopping() *stopping { return &stopping{ch: make(chan struct{})} }

func (s *stopping) begin() { s.once.Do(func() { close(s.ch) }) }

func (s *stopping) begun() bool {
	select {
	case <-s.ch:
		return true
	default:
		return false
	}
}

// context returns a context that is canceled when the server stops, with a cause that asks clients to reconnect.
func (s *stopping) context(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-s.ch:
			cancel(errStopping())
		}
	})
	return ctx, func() {
		cancel(nil)
		waiting.Wait()
	}
}

func errStopping() error {
	return apperror.New(apperror.Unavailable, apierror.ServerStopping,
		"the server is stopping; connect again and resume with the last sequence seen").WithRetry(time.Second)
}
