package problem

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/internal/dispatcher"
)

// slow lists dispatchers when end is closed.
type slow struct{ begun, end chan struct{} }

// List implements [Dispatchers].
func (s slow) List(context.Context) ([]dispatcher.Dispatcher, error) {
	s.begun <- struct{}{}
	<-s.end
	return []dispatcher.Dispatcher{{}}, nil
}

// A scrape of metrics waits no longer than its deadline for another caller that reads the same.
func TestReaderWaitsOnlyWithinItsDeadline(t *testing.T) {
	t.Parallel()
	r := recent[[]dispatcher.Dispatcher]{turn: semaphore.NewWeighted(1)}
	from, now := slow{make(chan struct{}, 1), make(chan struct{})}, time.Unix(1, 0)
	read := make(chan error, 1)
	go func() {
		_, err := r.read(t.Context(), now, from.List)
		read <- err
	}()
	<-from.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := r.read(ctx, now, from.List)
	require.ErrorIs(t, err, context.Canceled)
	close(from.end)
	require.NoError(t, <-read)
	list, err := r.read(t.Context(), now, from.List)
	require.NoError(t, err)
	require.Len(t, list, 1, "the list is reused")
}
