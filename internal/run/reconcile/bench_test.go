package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/migrate"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
	"github.com/signalbox-dev/signalbox/internal/workflow"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	here         = project.Default
	startTimeout = 10 * time.Second
	hash         = "sha256:aa"
)

// fakeEngine stands for the engine, with answers that a test sets. The tests of the whole platform use the real one.
type fakeEngine struct {
	run.Engine // for the methods that the reconciler does not call

	mu          sync.Mutex
	unavailable error
	cluster     run.ClusterID
	listed      []run.Execution
	known       map[string]run.Execution
	lookup      func(run.Run) (run.Execution, error) // instead of known
	rebuilt     map[string]run.Update
	origins     map[string]run.Origin
	ended       []run.Execution
	retention   time.Duration
	start       func(run.Run) (string, error)
	calls       []string
}

func (e *fakeEngine) note(format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, fmt.Sprintf(format, args...))
}

// called returns the calls since the previous call of called.
func (e *fakeEngine) called() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	calls := e.calls
	e.calls = nil
	slices.Sort(calls)
	return calls
}

func (e *fakeEngine) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

func (e *fakeEngine) Check(context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.unavailable
}

func (e *fakeEngine) ClusterID(context.Context) (run.ClusterID, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.cluster, e.unavailable
}

func (e *fakeEngine) Start(_ context.Context, r run.Run) (string, error) {
	e.note("start %s", r.ID)
	if e.start == nil {
		return "execution-" + r.ID, nil
	}
	return e.start(r)
}

func (e *fakeEngine) Executions(context.Context, time.Time) iter.Seq2[run.Execution, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	listed := slices.Clone(e.listed)
	return func(yield func(run.Execution, error) bool) {
		for _, x := range listed {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func (e *fakeEngine) EndedExecutions(_ context.Context, from, to time.Time) iter.Seq2[run.Execution, error] {
	e.mu.Lock()
	defer e.mu.Unlock()
	ended := slices.Clone(e.ended)
	return func(yield func(run.Execution, error) bool) {
		for _, x := range ended {
			if !x.ClosedAt.Before(from) && x.ClosedAt.Before(to) && !yield(x, nil) {
				return
			}
		}
	}
}

func (e *fakeEngine) Retention(context.Context) (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.retention, nil
}

func (e *fakeEngine) Inspect(_ context.Context, r run.Run) (run.Execution, error) {
	e.note("look %s", r.ID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.lookup != nil {
		return e.lookup(r)
	}
	x, ok := e.known[r.ID]
	if !ok {
		return x, run.ErrNotKnown
	}
	if x.Relation == run.RelationReset && x.ExecutionID == r.ExecutionID {
		x.Relation = run.RelationSame // the row has followed it
	}
	return x, nil
}

// histories serves the repairer of the bench. Its queries of Temporal are not recorded as calls.
type histories struct{ *fakeEngine }

func (h histories) Inspect(_ context.Context, r run.Run) (run.Execution, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x, ok := h.known[r.ID]; ok {
		x.Relation = run.RelationSame
		return x, nil
	}
	return run.Execution{Open: true}, nil
}

func (h histories) Rebuild(ctx context.Context, r run.Run, _ string, w run.RebuildWriter) error {
	h.note("rebuild %s", r.ID)
	h.mu.Lock()
	u, ok := h.rebuilt[r.ID]
	h.mu.Unlock()
	if !ok {
		return fmt.Errorf("the history of %s cannot be read", r.ID)
	}
	return w.Write(ctx, u)
}

func (e *fakeEngine) Origin(_ context.Context, id string) (run.Origin, error) {
	e.note("origin %s", id)
	e.mu.Lock()
	defer e.mu.Unlock()
	o, ok := e.origins[id]
	if !ok {
		return o, run.ErrNotKnown
	}
	return o, nil
}

// metrics counts what the reconciler reports.
type metrics struct {
	mu    sync.Mutex
	kinds map[string]int
	ended []string
}

func (m *metrics) Corrected(_ context.Context, kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds[kind]++
}

func (m *metrics) Count(_ context.Context, projectName, status string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ended = append(m.ended, projectName+" "+status)
}

func (m *metrics) Rebuilt(context.Context, string, int64) {}

// bench is a reconciler over the real store, in a synctest bubble.
type bench struct {
	*reconcile.Reconciler
	ctx       context.Context
	file      string
	store     *storetest.Plain
	engine    *fakeEngine
	metrics   *metrics
	changes   *pubsub.Notifier
	repairs   *reconcile.Repairer
	held      []string // the reasons for which new runs were held
	holdFails error
}

// inBubble runs a test in a synctest bubble, where time advances once all goroutines wait.
func inBubble(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	t.Parallel()
	file := filepath.Join(t.TempDir(), "signalbox.db")
	synctest.Test(t, func(t *testing.T) {
		kept, err := storetest.Open(t.Context(), t, store.Options{
			Driver: store.SQLite, DSN: file, AutoMigrate: true, CallTimeout: time.Hour,
		})
		require.NoError(t, err)
		ctx := t.Context()
		t.Cleanup(func() { require.NoError(t, kept.Stop(context.WithoutCancel(ctx))) })
		require.NoError(t, kept.Start(ctx))
		b := &bench{
			ctx: auth.WithActor(ctx, auth.Actor{Kind: auth.KindLocal, Name: "ada"}), file: file, store: kept,
			metrics: &metrics{kinds: map[string]int{}},
			changes: pubsub.NewNotifier(), engine: &fakeEngine{
				cluster: run.ClusterID{Address: "host:7233", Namespace: "ns", NamespaceID: "n1"},
				known:   map[string]run.Execution{}, rebuilt: map[string]run.Update{}, origins: map[string]run.Origin{},
			},
		}
		b.repairs = reconcile.NewRepairer(kept, histories{b.engine}, reconcile.RepairerOptions{
			Suspended: func() bool { return false },
			Holds: func(string) bool {
				return false
			}, Permanent: func(error) bool { return false }, Changes: b.changes, Metrics: b.metrics, Now: time.Now,
			Changed: func(ctx context.Context, transitions []run.Transition) {
				for _, c := range transitions {
					if c.To.Terminal() {
						b.metrics.Count(ctx, c.Project, string(c.To))
					}
				}
			},
		})
		require.NoError(t, b.repairs.Start(ctx))
		t.Cleanup(func() { require.NoError(t, b.repairs.Stop(context.WithoutCancel(ctx))) })
		b.restart()
		_, _, err = kept.Publish(ctx,
			workflow.Version{Project: here, Workflow: "a/b", Version: "1.0.0", Hash: hash, Canonical: []byte("{}"),
				PublishedAt: time.Now()},
			func(string, string) bool { return true }, audit.NewEntry(ctx, time.Now(), audit.WorkflowPublish, here, "a/b", ""))
		require.NoError(t, err)
		test(t, b)
	})
}

// restart replaces the reconciler by a new one.
func (b *bench) restart() {
	runs := start.New(b.store, b.engine, nil, nil, b.changes, start.Options{StartTimeout: startTimeout, Now: time.Now})
	b.Reconciler = reconcile.New(b.store, b.engine, runs, reconcile.Options{
		StartTimeout: startTimeout, Now: time.Now, Metrics: b.metrics, Changes: b.changes,
		Imports:   migrate.New(b.store.Store, config.Migration{}, nil).Rows(),
		Requested: b.repairs.Wake,
		Hold: func(_ context.Context, reason string) error {
			b.held = append(b.held, reason)
			return b.holdFails
		},
	})
}

// begin inserts a run with a start in progress.
func (b *bench) begin(t *testing.T, id string) run.Run {
	t.Helper()
	r, made, err := b.store.InsertRun(b.ctx, run.Run{
		ID: id, Project: here, Workflow: "a/b", Version: "1.0.0", DocumentHash: hash, Status: run.Queued,
		QueuedReason: run.QueuedStarting,
		StatusAt:     time.Now(), CreatedAt: time.Now(), RequestID: id, Trigger: run.TriggerAPI,
		Input: json.RawMessage(`{"n":1}`),
	}, audit.NewEntry(b.ctx, time.Now(), audit.RunStart, here, id, ""))
	require.NoError(t, err)
	require.True(t, made)
	return r
}

// waiting inserts runs that have waited for an hour, on both sides.
func (b *bench) waiting(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		b.begin(t, id)
		require.NoError(t, b.store.MarkHandedOver(b.ctx, id, "x-"+id, time.Now()))
		b.apply(t, b.update(id, 20, run.Waiting))
		x := b.execution(id)
		b.engine.set(func() {
			b.engine.listed = append(b.engine.listed, x)
			b.engine.known[id] = x
		})
	}
	<-time.After(time.Hour)
}

// execution returns an open execution with 20 accepted events.
func (b *bench) execution(id string) run.Execution {
	return run.Execution{
		RunID: id, ExecutionID: "x-" +
			id, Open: true, StartedAt: time.Now(), Relation: run.RelationSame, Accepted: 20, AcceptedAt: time.Now(),
	}
}

func (b *bench) update(id string, position int64, status run.Status) run.Update {
	u := run.Update{
		RunID: id, ExecutionID: "x-" +
			id, Position: position, State: &run.State{Status: status, Since: time.Now(), StartedAt: time.Now()},
		Steps: []run.Step{{Number: 1, Status: "completed", Position: position}},
	}
	if status.Terminal() {
		u.State.EndedAt = time.Now()
	}
	return u
}

func (b *bench) apply(t *testing.T, u run.Update) {
	t.Helper()
	_, err := b.store.ApplyUpdates(b.ctx, []run.Update{u})
	require.NoError(t, err)
}

// unlist removes a run from Temporal's list, and sets its execution; nil for none.
func (b *bench) unlist(id string, x *run.Execution) {
	b.engine.set(func() {
		b.engine.listed = slices.DeleteFunc(b.engine.listed, func(x run.Execution) bool { return x.RunID == id })
		delete(b.engine.known, id)
		if x != nil {
			b.engine.known[id] = *x
		}
	})
}

func (b *bench) row(t *testing.T, id string) run.Run {
	t.Helper()
	r, err := b.store.GetRun(b.ctx, here, id)
	require.NoError(t, err)
	return r
}

// pass makes a pass and returns its corrections, as "kind run applied".
func (b *bench) pass(t *testing.T, dry bool) []string {
	t.Helper()
	report, err := b.Reconcile(b.ctx, dry)
	require.NoError(t, err)
	require.Equal(t, dry, report.DryRun)
	return corrections(report)
}

func corrections(report run.Report) []string {
	var out []string
	for _, c := range report.Corrections {
		out = append(out, fmt.Sprintf("%s %s %t", c.Kind, c.RunID, c.Applied))
	}
	slices.Sort(out)
	return out
}

// audited returns the audit actions on a run, oldest first, without its start.
func (b *bench) audited(t *testing.T, id string) []string {
	t.Helper()
	list, err := b.store.ListAudit(b.ctx, audit.Filter{Subject: id, Limit: 100})
	require.NoError(t, err)
	var out []string
	for _, e := range slices.Backward(list) {
		if e.Action != audit.RunStart {
			out = append(out, e.Action+" by "+e.Actor.Name)
		}
	}
	return out
}

func unavailable() error {
	return apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer")
}
