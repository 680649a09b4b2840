package reconcile_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/reconcile"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

// timeout is long enough for busy machines.
const timeout = time.Minute

// temporal returns the executions and histories that a test sets.
type temporal struct {
	mu       sync.Mutex
	x        run.Execution
	rebuild  func(ctx context.Context, r run.Run, after string, w run.RebuildWriter) error
	rebuilds []string
	looks    int
	away     int // this many calls of Inspect are not answered
}

func (e *temporal) Inspect(context.Context, run.Run) (run.Execution, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.looks++
	if e.looks <= e.away {
		return run.Execution{}, apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal does not answer")
	}
	return e.x, nil
}

func (e *temporal) Rebuild(ctx context.Context, r run.Run, after string, w run.RebuildWriter) error {
	e.mu.Lock()
	e.rebuilds = append(e.rebuilds, r.ID+" after "+after)
	do := e.rebuild
	e.mu.Unlock()
	return do(ctx, r, after, w)
}

func (e *temporal) rebuilt() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.rebuilds...)
}

// tally counts as the metrics of the repairers.
type tally struct {
	mu       sync.Mutex
	outcomes map[string]int64
	kinds    []string
}

func (m *tally) Rebuilt(_ context.Context, outcome string, n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.outcomes[outcome] += n
}

func (m *tally) Corrected(_ context.Context, kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kinds = append(m.kinds, kind)
}

func (m *tally) of(outcome string) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.outcomes[outcome]
}

// bench is a store with one run, whose updates were lost, and a Temporal in which it ended a minute ago.
type repairBench struct {
	store   *storetest.Plain
	engine  *temporal
	metrics *tally
	opts    reconcile.RepairerOptions
	changed []run.Transition
}

func newBench(t *testing.T) *repairBench {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: timeout})
	require.NoError(t, err)
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, s.Stop(ctx)) })
	require.NoError(t, s.Start(t.Context()))
	now := time.Now()
	_, _, err = s.InsertRun(t.Context(), run.Run{
		ID: "r1", Project: here, Workflow: "a/b", Version: "1.0.0", Status: run.Queued, QueuedReason: run.QueuedWorker,
		StatusAt: now.Add(-time.Hour), CreatedAt: now.Add(-time.Hour), RequestID: "r1",
	}, audit.NewEntry(t.Context(), now, audit.RunStart, here, "r1", ""))
	require.NoError(t, err)
	b := &repairBench{store: s, metrics: &tally{outcomes: map[string]int64{}}, engine: &temporal{
		x: run.Execution{
			RunID: "r1", ExecutionID: "x", Relation: run.RelationSame, StartedAt: now.Add(-time.Hour),
			ClosedAt: now.Add(-time.Minute), Accepted: 9,
			AcceptedAt: now.Add(-time.Minute),
		},
		rebuild: func(ctx context.Context, _ run.Run, _ string, w run.RebuildWriter) error { return w.Write(ctx, end()) },
	}}
	b.opts = reconcile.RepairerOptions{
		Holds: func(string) bool {
			return false
		}, Suspended: func() bool { return false }, Permanent: func(error) bool { return false },
		Changed: func(_ context.Context, transitions []run.Transition) { b.changed = append(b.changed, transitions...) },
		Changes: pubsub.NewNotifier(), Metrics: b.metrics, Now: time.Now,
	}
	return b
}

// end returns the update that the run's history contains.
func end() run.Update {
	now := time.Now()
	return run.Update{
		RunID: "r1", ExecutionID: "x", Position: 9,
		State: &run.State{Status: run.Completed, Since: now, StartedAt: now, EndedAt: now},
		Steps: []run.Step{{Number: 1, Status: "completed", Position: 9, EndedAt: now}},
	}
}

func (b *repairBench) repairer(t *testing.T) *reconcile.Repairer {
	t.Helper()
	r := reconcile.NewRepairer(b.store, b.engine, b.opts)
	require.NoError(t, r.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, r.Stop(ctx)) })
	return r
}

func (b *repairBench) request(t *testing.T, r run.RepairRequest) {
	t.Helper()
	r.RunID = "r1"
	require.NoError(t, b.store.RequestRepairs(t.Context(), []run.RepairRequest{r}))
}

func (b *repairBench) row(t *testing.T) run.Run {
	t.Helper()
	r, err := b.store.GetRun(t.Context(), here, "r1")
	require.NoError(t, err)
	return r
}

// done waits until there is no request.
func (b *repairBench) done(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return b.row(t).Behind == nil }, timeout, 10*time.Millisecond)
}

func TestOneOfTwoRepairersRebuildsARun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.request(t, run.RepairRequest{Reason: "it ended", Behind: true, Correction: run.CorrectionFinished})
	b.repairer(t)
	b.repairer(t)
	b.done(t)
	require.Equal(t, []string{"r1 after "}, b.engine.rebuilt())
	require.Equal(t, run.Completed, b.row(t).Status)
	require.Eventually(t, func() bool { return b.metrics.of(reconcile.Rebuilt) == 1 }, timeout, 10*time.Millisecond)
	require.Equal(t, []string{string(run.CorrectionFinished)}, b.metrics.kinds)
	list, err := b.store.ListAudit(t.Context(), audit.Filter{Subject: "r1", Action: audit.RunFinish, Limit: 10})
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Equal(t, "it ended: completed", list[0].Reason)
	require.Len(t, b.changed, 1)
	require.Equal(t, []run.Status{run.Queued, run.Completed}, []run.Status{b.changed[0].From, b.changed[0].To})
}

func TestRowsThatAreNotBehindAreLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	_, err := b.store.ApplyUpdates(t.Context(), []run.Update{end()})
	require.NoError(t, err)
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	b.repairer(t)
	b.done(t)
	require.Empty(t, b.engine.rebuilt(), "they are compared, and their history is not interpreted")

	b.request(t, run.RepairRequest{Reason: "dropped", Force: true})
	b.done(t)
	require.Len(t, b.engine.rebuilt(), 1, "updates that were dropped leave no trace in the position")
}

func TestRowsAboutToBeWrittenAreLeft(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	held := make(chan struct{}, 1)
	b.opts.Holds = func(id string) bool {
		select {
		case held <- struct{}{}:
		default:
		}
		return id == "r1"
	}
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	b.repairer(t)
	<-held
	require.Empty(t, b.engine.rebuilt())
	require.NotNil(t, b.row(t).Behind)
}

func TestFailedRepairIsRetriedLater(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	gone := errors.New("document \"sha256:aa\" does not exist\nstack trace")
	b.engine.rebuild = func(context.Context, run.Run, string, run.RebuildWriter) error { return gone }
	b.opts.Permanent = func(err error) bool { return errors.Is(err, gone) }
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	r := b.repairer(t)
	require.Eventually(t, func() bool { return b.row(t).Behind.Failure != "" }, timeout, 10*time.Millisecond)
	require.Equal(t, `document "sha256:aa" does not exist`, b.row(t).Behind.Failure)
	b.request(t, run.RepairRequest{Reason: "read again", Behind: true})
	r.Wake()
	polled, stop := context.WithTimeout(t.Context(), 1500*time.Millisecond) // more than one poll
	defer stop()
	<-polled.Done()
	require.Len(t, b.engine.rebuilt(), 1)
	require.EqualValues(t, 1, b.metrics.of(reconcile.Failed))
}

// TestUnavailableTemporalIsNoAttempt: back-off counts only failures of the run, which is repaired soon after Temporal
// is back.
func TestUnavailableTemporalIsNoAttempt(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.away = 2
	var failures []string
	b.engine.rebuild = func(ctx context.Context, _ run.Run, _ string, w run.RebuildWriter) error {
		failures = append(failures, b.row(t).Behind.Failure)
		return w.Write(ctx, end())
	}
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	b.repairer(t)
	b.done(t)
	require.Equal(t, []string{""}, failures, "the outage is no failure of the run")
	require.Zero(t, b.metrics.of(reconcile.Failed))
}

// forgetful is a store that is unavailable for the first calls that end or postpone claims.
type forgetful struct {
	reconcile.RepairerStore

	mu   sync.Mutex
	away int
}

func (s *forgetful) answers() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away--; s.away >= 0 {
		return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "the store is unavailable")
	}
	return nil
}

func (s *forgetful) EndRepair(ctx context.Context, r run.Repair) error {
	if err := s.answers(); err != nil {
		return err
	}
	return s.RepairerStore.EndRepair(ctx, r)
}

func (s *forgetful) PostponeRepair(ctx context.Context, r run.Repair, after time.Duration, problem string) error {
	if err := s.answers(); err != nil {
		return err
	}
	return s.RepairerStore.PostponeRepair(ctx, r, after, problem)
}

// TestClaimIsReturnedWhenTheStoreIsBack has a store that is unavailable when an attempt ends. The claim is returned,
// and neither its lease nor its attempt delays the next one.
func TestClaimIsReturnedWhenTheStoreIsBack(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.engine.away = 1
	var attempts []string
	b.engine.rebuild = func(ctx context.Context, _ run.Run, after string, w run.RebuildWriter) error {
		attempts = append(attempts, after)
		return w.Write(ctx, end())
	}
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	r := reconcile.NewRepairer(&forgetful{RepairerStore: b.store, away: 2}, b.engine, b.opts)
	watch := stopwatch.Start(t)
	require.NoError(t, r.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, r.Stop(ctx)) })
	b.done(t)
	require.Len(t, attempts, 1)
	require.Less(t, watch.Elapsed(), 15*time.Second, "no claim had to expire")
}

func TestRepairStopsWithItsProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	begun := make(chan struct{}, 1)
	b.engine.rebuild = func(ctx context.Context, _ run.Run, _ string, w run.RebuildWriter) error {
		if err := w.Done(ctx, "x-1"); err != nil {
			return err
		}
		begun <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	}
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	first := reconcile.NewRepairer(b.store, b.engine, b.opts)
	require.NoError(t, first.Start(t.Context()))
	<-begun
	watch := stopwatch.Start(t)
	require.NoError(t, first.Stop(t.Context()))
	require.Less(t, watch.Elapsed(), 10*time.Second)
	require.EqualValues(t, 1, b.metrics.of(reconcile.Canceled))

	// Another process continues where this one ended.
	b.engine.mu.Lock()
	b.engine.rebuild = func(ctx context.Context, _ run.Run, _ string, w run.RebuildWriter) error {
		return w.Write(ctx, end())
	}
	b.engine.mu.Unlock()
	b.repairer(t)
	b.done(t)
	require.Equal(t, []string{"r1 after ", "r1 after x-1"}, b.engine.rebuilt())
	require.Equal(t, run.Completed, b.row(t).Status)
}

func TestRepairStopsForLackOfMemory(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	short := false
	b.opts.Suspended = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return short
	}
	b.engine.rebuild = func(ctx context.Context, _ run.Run, _ string, _ run.RebuildWriter) error {
		mu.Lock()
		short = true
		mu.Unlock()
		<-ctx.Done()
		return context.Cause(ctx)
	}
	b.request(t, run.RepairRequest{Reason: "read", Behind: true})
	b.repairer(t)
	require.Eventually(t, func() bool { return b.metrics.of(reconcile.Canceled) == 1 }, timeout, 10*time.Millisecond)
	require.Eventually(t, func() bool { return b.row(t).Behind.Failure != "" }, timeout, 10*time.Millisecond)
	require.Contains(t, b.row(t).Behind.Failure, "not enough memory")
}
