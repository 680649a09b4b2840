package start_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/sealed"
)

const ttl = time.Hour

// queueing returns the service of one process in queue mode.
func (b *bench) queueing(t testing.TB, over run.Store) *start.Service {
	t.Helper()
	return b.process(t, over, func(o *start.Options) {
		o.Queue = start.QueueOptions{Enabled: true, MaxRuns: 1000, TTL: ttl}
	})
}

// away makes Temporal unavailable until the returned function is called.
func (b *bench) away() (back func()) {
	var here atomic.Bool
	b.engine.mu.Lock()
	defer b.engine.mu.Unlock()
	b.engine.check = func(context.Context) error {
		if here.Load() {
			return nil
		}
		return unavailable()
	}
	return func() { here.Store(true) }
}

// accept starts n runs while Temporal is unavailable, and returns their IDs in that order.
func (b *bench) accept(t testing.TB, s *start.Service, n int) []string {
	t.Helper()
	ids := make([]string, n)
	for i := range ids {
		b.advance(time.Microsecond)
		r, created, err := s.Start(b.ctx, request())
		require.NoError(t, err)
		require.True(t, created)
		ids[i] = r.ID
	}
	return ids
}

// queue returns the queue of a service, over the same store.
func (b *bench) queue(s *start.Service, over run.Store) *start.Queue {
	opts := b.opts
	opts.Queue.Rate = b.rate
	return start.NewQueue(s, over, b.changes, opts)
}

// open starts a queue and stops it when the test ends.
func (b *bench) open(t testing.TB, s *start.Service) *start.Queue {
	t.Helper()
	q := b.queue(s, b.store)
	require.NoError(t, q.Start(b.ctx))
	ctx := b.ctx
	t.Cleanup(func() { require.NoError(t, q.Stop(context.WithoutCancel(ctx))) })
	return q
}

// ledger records what the engine was requested to start, each run once.
type ledger struct {
	mu    sync.Mutex
	known map[string]bool
	order []string
}

func (l *ledger) take(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]bool{}
	}
	if !l.known[id] {
		l.known[id] = true
		l.order = append(l.order, id)
	}
}

func (l *ledger) started() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.order...)
}

func (l *ledger) start(_ context.Context, r run.Run) (string, error) {
	l.take(r.ID)
	return "execution-" + r.ID, nil
}

func TestRunsWaitForTheEngine(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	back := b.away()
	s := b.queueing(t, b.store)
	q := b.open(t, s)
	req := request()
	req.RequestID = "once"
	first, created, err := s.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []any{run.Queued, run.QueuedEngine, int64(1), b.clock().Add(ttl)},
		[]any{first.Status, first.QueuedReason, first.QueuePosition, first.ExpiresAt})
	again, created, err := s.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	require.Equal(t, []string{"run.start"}, b.audited(t))
	b.advance(time.Minute)
	got, err := b.Get(b.ctx, here, first.ID)
	require.NoError(t, err)
	require.Equal(t, first, got, "no request to Temporal for a run that was never handed over")
	second := b.accept(t, s, 1)[0]
	require.Equal(t, int64(2), b.row(t, second).QueuePosition)
	n, err := q.Len(b.ctx)
	require.NoError(t, err)
	require.Equal(t, int64(2), n)

	var l ledger
	b.engine.start = l.start
	back()
	q.Wake()
	b.waitForRow(t, second, func(r run.Run) bool { return r.QueuedReason == run.QueuedWorker })
	require.Equal(t, []string{first.ID, second}, l.started())
	row := b.row(t, first.ID)
	require.Equal(t, []any{"execution-" + first.ID, int64(0), time.Time{}},
		[]any{row.ExecutionID, row.QueuePosition, row.ExpiresAt})
	require.Equal(t, []string{"run.start", "run.start"}, b.audited(t))
	require.Equal(t, []string{"default queued", "default queued"}, b.metrics.lines)
}

// TestRefusedInTheMiddleOfAStartIsQueued makes Temporal unavailable between the check and the start, or makes it reject
// the start for its limits.
func TestRefusedInTheMiddleOfAStartIsQueued(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{
		"away": unavailable(), "over its limits": apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			b.engine.start = func(context.Context, run.Run) (string, error) { return "", refusal }
			r, created, err := b.queueing(t, b.store).Start(b.ctx, request())
			require.NoError(t, err)
			require.True(t, created)
			require.Equal(t, []any{run.QueuedEngine, int64(1)}, []any{r.QueuedReason, r.QueuePosition})
			require.Len(t, b.rows(t), 1)
		})
	}
}

// TestSensitiveInputIsQueuedUnredacted removes and queues a run whose row has a mark: it starts with the requested
// input.
func TestSensitiveInputIsQueuedUnredacted(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	safe := sealed.New(keyring.Random("k1"), b.store.Originals(), documents{b.store})
	var inputs []string
	b.engine.start = func(_ context.Context, r run.Run) (string, error) {
		inputs = append(inputs, string(r.Input))
		return "", unavailable()
	}
	opts := b.opts
	opts.Queue = start.QueueOptions{Enabled: true, MaxRuns: 10, TTL: ttl}
	s := start.New(safe.Rows(b.store.Store), safe.Engine(b.engine), b.workflows, documents{b.store}, b.changes, opts)
	t.Cleanup(func() { require.NoError(t, s.Close(context.WithoutCancel(b.ctx))) })
	req := request()
	req.Input = json.RawMessage(`{"name":"Ada","password":"hunter22"}`)
	r, _, err := s.Start(b.ctx, req)
	require.NoError(t, err)
	require.Equal(t, run.QueuedEngine, r.QueuedReason)
	require.JSONEq(t, redactedInput, string(r.Input))
	_, err = safe.Engine(b.engine).Start(b.ctx, b.row(t, r.ID)) // as the queue does
	require.Error(t, err)
	require.Equal(t, []string{string(req.Input), string(req.Input)}, inputs)
}

func TestFullQueueRefuses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		b.away()
		const callers, limit = 50, 7
		var processes []*start.Service
		for range 2 {
			processes = append(processes, b.process(t, b.store, func(o *start.Options) {
				o.Queue = start.QueueOptions{Enabled: true, MaxRuns: limit, TTL: ttl}
			}))
		}
		errs := make([]error, callers)
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() { _, _, errs[i] = processes[i%2].Start(b.ctx, request()) })
		}
		group.Wait()
		full := 0
		for _, err := range errs {
			if err == nil {
				continue
			}
			full++
			requireError(t, err, apperror.Exhausted, apperror.QueueFull,
				"the queue is full (runs.queue_when_unavailable.max_runs is 7)")
			f, _ := apperror.From(err)
			require.Positive(t, f.RetryAfter)
		}
		require.Equal(t, callers-limit, full)
		require.Len(t, b.rows(t), limit)
	})
}

// TestQueuedRunsExpire lets the time pass while Temporal stays unavailable, in a process with queue mode disabled.
func TestQueuedRunsExpire(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.away()
	early := b.accept(t, b.queueing(t, b.store), 1)[0]
	b.advance(time.Minute)
	late := b.accept(t, b.queueing(t, b.store), 1)[0]
	b.advance(ttl - time.Minute)
	q := b.open(t, b.process(t, b.store, func(*start.Options) {}))
	q.Wake()
	r := b.waitForRow(t, early, func(r run.Run) bool { return r.Status.Terminal() })
	require.Equal(t, run.Failed, r.Status)
	require.Equal(t, []any{run.ErrorTypeQueueExpired, "Queue expired", 503},
		[]any{r.Error.Type, r.Error.Title, r.Error.Status})
	require.Contains(t, r.Error.Detail, "1h0m0s")
	require.Equal(t, run.QueuedEngine, b.row(t, late).QueuedReason)
	require.Equal(t, int64(1), b.row(t, late).QueuePosition)
	entries, err := b.store.ListAudit(b.ctx, audit.Filter{Subject: early, Limit: 1})
	require.NoError(t, err)
	require.Equal(t, []string{audit.RunQueueExpired, "system"}, []string{entries[0].Action, entries[0].Actor.Kind})
}

func TestCancelOfAQueuedRun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.away()
	s := b.controlled(b.queueing(t, b.store), b.store, nil)
	ids := b.accept(t, s.Service, 2)
	b.engine.called()
	r, err := s.Cancel(b.ctx, here, ids[0], "enough")
	require.NoError(t, err)
	require.Equal(t, []any{run.Canceled, true, "enough", ""},
		[]any{r.Status, r.CancelRequested, r.CancelReason, r.QueuedReason})
	require.Empty(t, b.engine.called(), "it was never handed over")
	require.Equal(t, int64(1), b.row(t, ids[1]).QueuePosition)
	_, err = s.Cancel(b.ctx, here, ids[0], "enough")
	requireError(t, err, apperror.Refused, apperror.RunEnded, "canceled")

	// A run that was just taken may be on its way to Temporal.
	took, err := b.store.TakeQueued(b.ctx, ids[1], b.clock())
	require.NoError(t, err)
	require.True(t, took)
	b.engine.cancel = func(context.Context, run.Run) error { return run.ErrNotKnown }
	b.advance(time.Second)
	_, err = s.Cancel(b.ctx, here, ids[1], "enough")
	requireError(t, err, apperror.Refused, apperror.RunStarting, ids[1])
}

// taking is a store in which something happens right before a queued run is ended.
type taking struct {
	run.Store

	first func()
}

func (s taking) FinishQueued(ctx context.Context, r run.Run, e audit.Entry) (bool, error) {
	s.first()
	return s.Store.FinishQueued(ctx, r, e)
}

// TestEndOfARunThatIsTakenMeanwhile takes a run from the queue between the read of it and its end: it is on its way to
// Temporal, which does not have it yet, or has it by the second request.
func TestEndOfARunThatIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	for name, arrives := range map[string]bool{"on its way": false, "arrives": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			b.away()
			queueing := b.queueing(t, b.store)
			id := b.accept(t, queueing, 1)[0]
			s := b.controlled(queueing, taking{b.store, func() {
				_, err := b.store.TakeQueued(b.ctx, id, b.clock())
				require.NoError(t, err)
			}}, nil)
			var requested atomic.Int32
			b.engine.end = func(context.Context, run.Run) error {
				if requested.Add(1) > 1 {
					return nil
				}
				if arrives {
					require.NoError(t, b.store.MarkHandedOver(b.ctx, id, "execution", b.clock()))
				}
				return run.ErrNotKnown
			}
			b.advance(startTimeout)
			_, err := s.Terminate(b.ctx, here, id, "enough")
			if arrives {
				require.NoError(t, err)
				require.EqualValues(t, 2, requested.Load(), "the request is repeated")
				require.Equal(t, run.Terminated, b.row(t, id).Status)
			} else {
				requireError(t, err, apperror.Refused, apperror.RunStarting, id)
				require.Equal(t, run.Queued, b.row(t, id).Status, "the row does not end before the execution")
			}
		})
	}
}

// TestEngineBecomesUnavailableInTheMiddle loses Temporal while the queue is handed over, in each way: runs that were
// not started keep their position.
func TestEngineBecomesUnavailableInTheMiddle(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		reason string
	}{
		"away":            {unavailable(), run.QueuedEngine},
		"over its limits": {apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits"), run.QueuedEngine},
		"unknown":         {run.ErrUnknownOutcome, run.QueuedStarting},
		"another error":   {errors.New("broken"), run.QueuedStarting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			back := b.away()
			s := b.queueing(t, b.store)
			ids := b.accept(t, s, 5)
			back()
			var l ledger
			var lost atomic.Bool
			lost.Store(true)
			met := make(chan struct{}, 100)
			b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
				if r.ID == ids[2] && lost.Load() {
					met <- struct{}{}
					return "", tt.answer
				}
				return l.start(ctx, r)
			}
			first := b.queue(s, b.store)
			require.NoError(t, first.Start(b.ctx))
			<-met
			require.NoError(t, first.Stop(b.ctx))
			var reasons []string
			for _, id := range ids {
				reasons = append(reasons, b.row(t, id).QueuedReason)
			}
			require.Equal(t, []string{run.QueuedWorker, run.QueuedWorker, tt.reason, run.QueuedEngine, run.QueuedEngine},
				reasons)
			lost.Store(false)
			b.open(t, s)
			b.waitForRow(t, ids[4], func(r run.Run) bool { return r.QueuedReason == run.QueuedWorker })
			require.Equal(t, ids, l.started())
		})
	}
}

// TestUnstartableRunsDoNotBlockOthers makes Temporal reject one run permanently, and never answer for another.
func TestUnstartableRunsDoNotBlockOthers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	back := b.away()
	s := b.queueing(t, b.store)
	ids := b.accept(t, s, 4)
	back()
	requested := make(chan struct{}, 100)
	b.engine.start = func(_ context.Context, r run.Run) (string, error) {
		switch r.ID {
		case ids[0]:
			return "", refused()
		case ids[2]:
			requested <- struct{}{}
			return "", run.ErrUnknownOutcome
		}
		return "execution", nil
	}
	q := b.open(t, s)
	<-requested
	q.Wake()
	b.waitForRow(t, ids[3], func(r run.Run) bool { return r.QueuedReason == run.QueuedWorker })
	r := b.row(t, ids[0])
	require.Equal(t, []any{run.Failed, "Not started"}, []any{r.Status, r.Error.Title})
	require.Equal(t, run.QueuedWorker, b.row(t, ids[1]).QueuedReason)
	require.Equal(t, run.QueuedStarting, b.row(t, ids[2]).QueuedReason)
}

func TestQueueIsHandedOverAtItsRate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	back := b.away()
	b.rate = 50
	s := b.queueing(t, b.store)
	ids := b.accept(t, s, 11)
	back()
	begun := time.Now()
	b.open(t, s)
	b.waitForRow(t, ids[10], func(r run.Run) bool { return r.QueuedReason == run.QueuedWorker })
	require.GreaterOrEqual(t, time.Since(begun), 200*time.Millisecond)
}

func TestStopCompletesTheHandOverInProgress(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	back := b.away()
	// At this rate the second one is not begun before the stop.
	b.rate = 0.001
	s := b.queueing(t, b.store)
	ids := b.accept(t, s, 2)
	back()
	f := b.freeze()
	q := b.queue(s, b.store)
	require.NoError(t, q.Start(b.ctx))
	<-f.requested
	stopped := make(chan error)
	go func() { stopped <- q.Stop(b.ctx) }()
	f.answer <- nil
	require.NoError(t, <-stopped)
	require.Equal(t, []string{run.QueuedWorker, run.QueuedEngine},
		[]string{b.row(t, ids[0]).QueuedReason, b.row(t, ids[1]).QueuedReason})

	q = b.queue(s, b.store)
	require.NoError(t, q.Start(b.ctx))
	<-f.requested
	ctx, end := context.WithTimeout(b.ctx, soon)
	defer end()
	require.NoError(t, q.Stop(ctx), "Stop returns within its context")
	require.Equal(t, run.QueuedStarting, b.row(t, ids[1]).QueuedReason)
}

// errDied is the error of every call after the death of a process.
var errDied = errors.New("this process is dead")

// mortal is a store whose process dies at some call: before it, or after it was done and before it returns.
type mortal struct {
	run.Store
	left *atomic.Int64
	late bool
}

func (m mortal) dead() bool { return m.left.Add(-1) < 0 }

// step performs a call that writes, unless the process died before.
func (m mortal) step(do func() error) error {
	switch left := m.left.Add(-1); {
	case left < -1 || (left == -1 && !m.late):
		return errDied
	case left == -1:
		return errors.Join(errDied, do())
	default:
		return do()
	}
}

func (m mortal) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	if m.dead() {
		return run.Run{}, errDied
	}
	return m.Store.GetRun(ctx, project, id)
}

func (m mortal) TakeQueued(ctx context.Context, id string, at time.Time) (took bool, err error) {
	err = m.step(func() (err error) { took, err = m.Store.TakeQueued(ctx, id, at); return err })
	return took, err
}

func (m mortal) MarkHandedOver(ctx context.Context, id, execution string, at time.Time) error {
	return m.step(func() error { return m.Store.MarkHandedOver(ctx, id, execution, at) })
}

// TestCrashesLoseAndDoubleNothing hands over 500 runs through processes that die anywhere, two at a time.
func TestCrashesLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		back := b.away()
		const runs = 500
		ids := b.accept(t, b.queueing(t, b.store), runs)
		back()
		var l ledger
		var alive atomic.Pointer[mortal]
		b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
			if p := alive.Load(); p != nil && p.left.Load() < 0 {
				return "", fmt.Errorf("%w: %w", run.ErrUnknownOutcome, errDied)
			}
			return l.start(ctx, r)
		}
		random := rand.New(rand.NewPCG(7, uint64(time.Now().UnixNano())))
		deaths := 0
		for {
			_, total, err := b.store.CountQueued(b.ctx)
			require.NoError(t, err)
			if total == 0 {
				break
			}
			m := mortal{Store: b.store, left: &atomic.Int64{}, late: random.IntN(2) == 0}
			m.left.Store(random.Int64N(150))
			alive.Store(&m)
			q := b.queue(b.queueing(t, m), m)
			require.NoError(t, q.Start(b.ctx))
			require.Eventually(t, func() bool {
				_, total, err := b.store.CountQueued(b.ctx)
				return m.left.Load() < 0 || (err == nil && total == 0)
			}, 30*time.Second, 100*time.Microsecond)
			require.NoError(t, q.Stop(b.ctx))
			if m.left.Load() < 0 {
				deaths++
			}
		}
		t.Logf("%d processes died", deaths)
		require.Equal(t, ids, l.started(), "in order, each once")
		for _, r := range b.rows(t) {
			require.Equal(t, run.QueuedWorker, r.QueuedReason)
		}
	})
}

// TestQueueOfTwoProcesses has two processes hand over the same queue.
func TestQueueOfTwoProcesses(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		back := b.away()
		s := b.queueing(t, b.store)
		ids := b.accept(t, s, 100)
		back()
		var l ledger
		var calls atomic.Int64
		b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
			calls.Add(1)
			return l.start(ctx, r)
		}
		queues := []*start.Queue{b.open(t, s), b.open(t, b.queueing(t, b.store))}
		require.Eventually(t, func() bool {
			for _, q := range queues {
				q.Wake()
			}
			n, err := queues[1].Len(b.ctx)
			return err == nil && n == 0
		}, 30*time.Second, 10*time.Millisecond)
		b.waitForRow(t, ids[99], func(r run.Run) bool { return r.QueuedReason == run.QueuedWorker })
		require.Equal(t, ids, l.started())
		require.Equal(t, int64(100), calls.Load(), "each was started once")
	})
}
