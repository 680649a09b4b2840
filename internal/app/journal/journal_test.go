package journal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch"
	"github.com/signalbox-dev/signalbox/internal/app/journal"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/fresh"
)

// TestEvictionsOfManyAreKept: when a machine with many workers goes, they are struck off in one.
func TestEvictionsOfManyAreKept(t *testing.T) {
	t.Parallel()
	s, err := store.Open(t.Context(), store.Options{Driver: store.SQLite, DSN: fresh.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, s.Stop(ctx)) })
	require.NoError(t, s.Start(ctx))
	j := journal.New(event.NewService(s.Events(), s, notice.NewBoard(), nil, event.Options{Limits: event.DefaultLimits(), Now: time.Now}), s)
	eviction := dispatch.Eviction{Name: dispatch.Name{Project: project.Default, TaskQueue: "signalbox-default"}, By: "server-0", At: time.Now()}
	for i := range 100 {
		eviction.Evicted = append(eviction.Evicted, fmt.Sprintf("server-%02d.of.some.machine.example.com-12345-0197a6a0", i))
	}
	require.NoError(t, j.Evicted(t.Context(), eviction))
	require.NoError(t, j.Evicted(t.Context(), eviction), "told again")
	events, err := s.Events().ListEvents(t.Context(), event.ListFilter{Project: project.Default, Type: event.Own + "worker.evicted", Limit: 10})
	require.NoError(t, err)
	require.Len(t, events, 1)
	entries, err := s.ListAudit(t.Context(), audit.Filter{Action: audit.WorkerEvict, Limit: 10})
	require.NoError(t, err)
	require.NotEmpty(t, entries)
}
