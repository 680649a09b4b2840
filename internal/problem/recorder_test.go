package problem_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/conn/conntype"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/health"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/problem"
	"github.com/signalbox-dev/signalbox/internal/server"
)

// unreadable are dispatchers that cannot be read. It counts the attempts.
type unreadable struct{ tries atomic.Int64 }

// List implements [problem.Dispatchers].
func (u *unreadable) List(context.Context) ([]dispatcher.Dispatcher, error) {
	u.tries.Add(1)
	return nil, errors.New("no answer")
}

// TestRecorderAwaitsTheFirstConnection starts while the first attempt to connect is in progress: that nothing is known
// yet is no trouble. Trouble of each pass is one line in the log.
func TestRecorderAwaitsTheFirstConnection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var looks atomic.Int64
	var failed atomic.Bool
	var log bytes.Buffer
	u := &unreadable{}
	service := problem.NewService(problem.Options{
		LostServers: func(context.Context) ([]server.Server, bool, error) { return nil, true, nil },
		Source:      b.store.Problems(), Store: b.store.Problems(), Projects: b.store, Dispatchers: u, Metrics: b,
		Connection: func() conntype.Status {
			looks.Add(1)
			if failed.Load() {
				return conntype.Status{State: conntype.Down}
			}
			return conntype.Status{State: conntype.Connecting}
		},
		Health: func(context.Context) health.Report {
			return health.Report{}
		}, TaskQueue: func(project string) string { return project },
		Now: time.Now, StartedAt: time.Now(),
	})
	r := problem.NewRecorder(service, b.store.Problems())
	ctx := logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, r.Start(ctx))
	require.Eventually(t, func() bool { return looks.Load() > 2 }, time.Minute, time.Millisecond)
	require.Zero(t, u.tries.Load())
	failed.Store(true)
	require.Eventually(t, func() bool { return u.tries.Load() >= 2 }, time.Minute, time.Millisecond)
	require.NoError(t, r.Stop(t.Context()))
	require.Equal(t, 1, strings.Count(log.String(), "Problems are not known completely"))
}
