package problem

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/semaphore"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/run"
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

// Every code has a runbook that exists.
func TestRunbooksExist(t *testing.T) {
	t.Parallel()
	var paths []string
	for _, code := range run.Codes() {
		paths = append(paths, stuckRunbook(code))
	}
	for _, code := range []Code{
		DispatcherStale, DispatcherMissing, DispatcherForeign, DispatcherNoWorkers, DispatcherUnknown} {
		paths = append(paths, dispatcherRunbook(code))
	}
	for _, dependency := range []string{"store", "leases", "placement", "certificate"} {
		paths = append(paths, dependencyRunbook(dependency))
	}
	for _, kind := range []conntype.Kind{conntype.Slow, conntype.Limited, conntype.NotPolling} {
		paths = append(paths, connectionRunbook(conntype.Status{State: conntype.Degraded, Kind: kind}))
	}
	paths = append(paths, connectionRunbook(conntype.Status{State: conntype.Down}), deadFinding(DeadDeliveries{}).Runbook,
		webhookFindings(FailingWebhook{Dead: 1})[0].Runbook)
	for _, path := range paths {
		require.FileExists(t, filepath.Join("../..", path))
	}
}
