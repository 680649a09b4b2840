package dispatcher_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/dispatcher"
	"github.com/signalbox-dev/signalbox/internal/event"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func open(t *testing.T) (*storetest.Plain, dispatcher.Journal) {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, s.Stop(ctx)) })
	require.NoError(t, s.Start(ctx))
	return s, dispatcher.NewJournal(
		event.NewService(s.Events(), s, pubsub.NewNotifier(), nil,
			event.Options{Limits: event.DefaultLimits(), Now: time.Now}), s)
}

// TestEvictionOfManyWorkersIsRecorded: when a machine with many workers fails, one eviction covers all of them.
func TestEvictionOfManyWorkersIsRecorded(t *testing.T) {
	t.Parallel()
	s, j := open(t)
	eviction := dispatchtype.Eviction{
		Name: inbox.Name{Project: project.Default, TaskQueue: "signalbox-default"}, By: "server-0", At: time.Now()}
	for i := range 100 {
		eviction.Evicted = append(eviction.Evicted, fmt.Sprintf("server-%02d.of.some.machine.example.com-12345-0197a6a0", i))
	}
	require.NoError(t, j.Evicted(t.Context(), eviction))
	require.NoError(t, j.Evicted(t.Context(), eviction), "repeated report")
	events, err := s.Events().ListEvents(t.Context(),
		event.ListFilter{Project: project.Default, Type: event.Own + "worker.evicted", Limit: 10})
	require.NoError(t, err)
	require.Len(t, events, 1)
	entries, err := s.ListAudit(t.Context(), audit.Filter{Action: audit.WorkerEvict, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.Less(t, len(entries[0].Subject), 1100, "an index of Postgres takes no more than 2,700 bytes")
	require.Contains(t, entries[0].Subject, eviction.Evicted[0]+" "+eviction.Evicted[1])
	require.Regexp(t, ` and 8[0-9] more$`, entries[0].Subject)
	require.Contains(t, string(entries[0].Detail), eviction.Evicted[99])
	eviction.Evicted, eviction.At = eviction.Evicted[:1], eviction.At.Add(time.Second)
	require.NoError(t, j.Evicted(t.Context(), eviction))
	entries, err = s.ListAudit(t.Context(), audit.Filter{Action: audit.WorkerEvict, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 2)
	require.Equal(t, eviction.Evicted[0], entries[0].Subject)
}

// TestTerminationIsAuditedOnce: the database may have committed a write without answering.
func TestTerminationIsAuditedOnce(t *testing.T) {
	t.Parallel()
	s, j := open(t)
	name := inbox.Name{Project: project.Default, TaskQueue: "signalbox-default"}
	ended := dispatchtype.Termination{
		Name: name, WorkflowID: name.DispatcherID(), RunID: "r1", Kind: "crashed", Reason: "why", At: time.Now()}
	require.NoError(t, j.Terminated(t.Context(), ended))
	require.NoError(t, j.Terminated(t.Context(), ended))
	entries, err := s.ListAudit(t.Context(), audit.Filter{Action: audit.DispatcherTerminate, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 1)
	ended.RunID, ended.At = "r2", ended.At.Add(time.Second)
	require.NoError(t, j.Terminated(t.Context(), ended))
	entries, err = s.ListAudit(t.Context(), audit.Filter{Action: audit.DispatcherTerminate, Limit: 10})
	require.NoError(t, err)
	require.Len(t, entries, 2)
}

// TestForeignWorkflowCausesOneEvent: every worker of the project reports it.
func TestForeignWorkflowCausesOneEvent(t *testing.T) {
	t.Parallel()
	s, j := open(t)
	name := inbox.Name{Project: project.Default, TaskQueue: "signalbox-default"}
	for _, by := range []string{"a", "b"} {
		require.NoError(t, j.Foreign(t.Context(), dispatchtype.ForeignWorkflow{
			Name: name, WorkflowID: name.DispatcherID(), RunID: "theirs", Type: "theirs.type", By: by, At: time.Now(),
		}))
	}
	events, err := s.Events().ListEvents(t.Context(),
		event.ListFilter{Project: project.Default, Type: event.Own + "dispatcher.foreign", Limit: 10})
	require.NoError(t, err)
	require.Len(t, events, 1)
}
