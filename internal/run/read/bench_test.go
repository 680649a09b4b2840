package read_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dsl"
	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/read"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const here = project.Default

// inspector replaces Temporal: it returns what a test sets, and knows no run by default.
type inspector struct {
	inspect func(context.Context, run.Run) (run.Execution, error)

	mu    sync.Mutex
	calls []string
}

// called returns the calls since the previous call of called.
func (e *inspector) called() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	return calls
}

func (e *inspector) Inspect(ctx context.Context, r run.Run) (run.Execution, error) {
	e.mu.Lock()
	e.calls = append(e.calls, "inspect "+r.ID)
	e.mu.Unlock()
	if e.inspect == nil {
		return run.Execution{}, run.ErrNotKnown
	}
	return e.inspect(ctx, r)
}

// bench is a reader over the real store, with a fake engine and a clock that the test advances.
type bench struct {
	*read.Reader

	ctx       context.Context // the test's, with the actor ada
	store     *storetest.Plain
	workflows *workflow.Service
	engine    *inspector
	changes   *pubsub.Notifier
	begun     int

	mu  sync.Mutex
	now time.Time
}

func newBench(t testing.TB) *bench {
	t.Helper()
	ctx := t.Context()
	kept, err := storetest.Open(ctx, t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, kept.Stop(context.WithoutCancel(ctx))) })
	require.NoError(t, kept.Start(ctx))
	b := &bench{
		ctx: auth.WithActor(ctx, auth.Actor{Kind: auth.KindLocal, Name: "ada"}), store: kept, engine: &inspector{},
		changes: pubsub.NewNotifier(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
	}
	b.workflows = workflow.NewService(kept, kept, dsl.DefaultLimits(), b.clock)
	b.Reader = read.New(kept, b.engine, b.workflows, b.changes, read.Options{Now: b.clock})
	return b
}

// process returns the reader of one more process, with its own notifications of changes.
func (b *bench) process(over run.Store, holds func(runID string) bool) *read.Reader {
	return read.New(over, b.engine, b.workflows, pubsub.NewNotifier(), read.Options{Holds: holds, Now: b.clock})
}

func (b *bench) clock() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now
}

func (b *bench) advance(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

// insert stores a run that is being handed over.
func (b *bench) insert(t testing.TB) run.Run {
	t.Helper()
	source := "document: {dsl: 1.0.3, namespace: examples, name: hello, version: 1.0.0}\ndo: [{a: {set: {n: 1}}}]\n"
	p, err := b.workflows.Publish(b.ctx, here, workflow.Submission{Source: source}, "ada")
	require.NoError(t, err)
	b.begun++
	id, now := fmt.Sprintf("run-%d", b.begun), b.clock()
	r, created, err := b.store.InsertRun(b.ctx, run.Run{
		ID: id, Project: here, Workflow: "examples/hello", Version: "1.0.0", DocumentHash: p.Version.Hash,
		Status: run.Queued, QueuedReason: run.QueuedStarting, StatusAt: now, CreatedAt: now, RequestID: id,
		Trigger: run.TriggerAPI, Actor: "ada", Input: json.RawMessage("{}"), Interpreter: 7,
	}, entry(b, id))
	require.NoError(t, err)
	require.True(t, created)
	return r
}

// begin stores a run that Temporal has accepted.
func (b *bench) begin(t testing.TB) run.Run {
	t.Helper()
	r := b.insert(t)
	require.NoError(t, b.store.MarkHandedOver(b.ctx, r.ID, "execution-"+r.ID, b.clock()))
	return b.row(t, r.ID)
}

// applyState writes a state as the projection does.
func (b *bench) applyState(t testing.TB, id string, position int64, status run.Status, steps ...run.Step) {
	t.Helper()
	u := run.Update{RunID: id, ExecutionID: "execution-" + id, Position: position, Steps: steps}
	u.State = &run.State{Status: status, Since: b.clock(), StartedAt: b.clock()}
	if status == run.Waiting {
		u.State.WaitingKind = "timer"
	}
	if status.Terminal() {
		u.State.EndedAt = b.clock()
	}
	_, err := b.store.ApplyUpdates(b.ctx, []run.Update{u})
	require.NoError(t, err)
}

func (b *bench) row(t testing.TB, id string) run.Run {
	t.Helper()
	r, err := b.store.GetRun(b.ctx, here, id)
	require.NoError(t, err)
	return r
}

func requireError(t testing.TB, err error, class apperror.Class, reason, says string) {
	t.Helper()
	f, ok := apperror.From(err)
	require.True(t, ok, "not a fault: %v", err)
	require.Equal(t, reason, f.Reason)
	require.Equal(t, class, f.Class)
	require.Contains(t, f.Message, says)
}

func unavailable() error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer")
}

func entry(b *bench, id string) audit.Entry {
	return audit.NewEntry(b.ctx, b.clock(), audit.RunStart, here, id, "")
}
