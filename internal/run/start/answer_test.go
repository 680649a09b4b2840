package start_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
	"github.com/signalbox-dev/signalbox/internal/stopwatch"
)

// soon is how long callers wait in tests without an answer.
const soon = 100 * time.Millisecond

func answerSoon(o *start.Options) { o.AnswerWithin = soon }

func refused() error { return apperror.New(apperror.Refused, apperror.EngineRefused, "no permission") }

// frozen is an engine that does not answer until the test unblocks it.
type frozen struct {
	requested chan string
	answer    chan error
}

func (b *bench) freeze() frozen {
	f := frozen{requested: make(chan string, 100), answer: make(chan error)}
	b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
		f.requested <- r.ID
		select {
		case err := <-f.answer:
			return "execution-" + r.ID, err
		case <-ctx.Done():
			return "", fmt.Errorf("%w: %w", run.ErrUnknownOutcome, ctx.Err())
		}
	}
	return f
}

// waitForRow waits until a row meets the condition.
func (b *bench) waitForRow(t testing.TB, id string, so func(run.Run) bool) run.Run {
	t.Helper()
	require.Eventually(t, func() bool { return so(b.row(t, id)) }, time.Minute, time.Millisecond)
	return b.row(t, id)
}

func starting(r run.Run) bool { return r.QueuedReason == run.QueuedStarting }

// TestFrozenEngineIsAnsweredSoon has a Temporal that does not answer: the caller receives the run as `queued: starting`
// soon, and the run shows Temporal's later answer.
func TestFrozenEngineIsAnsweredSoon(t *testing.T) {
	t.Parallel()
	exhausted := apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits")
	tests := []struct {
		name   string
		answer error
		want   func(run.Run) bool
		says   []string
	}{
		{"taken", nil, func(r run.Run) bool {
			return r.QueuedReason == run.QueuedWorker && r.ExecutionID == "execution-"+r.ID
		}, nil},
		{"rejected permanently", refused(), func(r run.Run) bool {
			return r.Status == run.Failed && r.Error.Title == "Not started" && r.Error.Detail == "no permission"
		}, []string{"run.start_refused no permission"}},
		{"unavailable by now", unavailable(), starting, nil},
		{"over its limits", exhausted, starting, nil},
		{"cut", run.ErrUnknownOutcome, starting, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			f := b.freeze()
			s := b.process(t, b.store, answerSoon)
			r, created, err := s.Start(b.ctx, request())
			require.NoError(t, err)
			require.True(t, created)
			require.Equal(t, run.QueuedStarting, r.QueuedReason)
			require.Equal(t, r, b.row(t, r.ID))
			f.answer <- tt.answer
			require.NoError(t, s.Close(b.ctx), "waits for starts in progress")
			require.True(t, tt.want(b.row(t, r.ID)), "%+v", b.row(t, r.ID))
			require.Equal(t, append([]string{"run.start"}, tt.says...), b.audited(t))
		})
	}
}

// TestUnansweredStartsAreRepeatedAfterReconnect loses the answer to a start: when the connection is back, the request
// is repeated at once, and a refusal then removes no row, since the first request may have arrived.
func TestUnansweredStartsAreRepeatedAfterReconnect(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		want   func(run.Run) bool
	}{
		"taken": {nil, func(r run.Run) bool {
			return r.QueuedReason == run.QueuedWorker && r.ExecutionID == "execution-"+r.ID
		}},
		"refused": {refused(), starting},
		"away":    {unavailable(), starting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			f := b.freeze()
			s := b.process(t, b.store, func(o *start.Options) { o.AnswerWithin, o.StartTimeout = soon, time.Hour })
			r, _, err := s.Start(b.ctx, request())
			require.NoError(t, err)
			require.True(t, starting(r))
			require.Equal(t, r.ID, <-f.requested)
			s.Resume()
			require.Equal(t, r.ID, <-f.requested, "the same run, again")
			f.answer <- tt.answer
			require.NoError(t, s.Close(b.ctx))
			require.True(t, tt.want(b.row(t, r.ID)), "%+v", b.row(t, r.ID))
		})
	}
}

// TestStartOutlivesItsCaller cancels the caller's context during a start: the request to Temporal continues, and the
// row is right.
func TestStartOutlivesItsCaller(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		rows   int
	}{
		"taken":                   {nil, 1},
		"rejected, not disclosed": {refused(), 0},
		"unknown":                 {run.ErrUnknownOutcome, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			f := b.freeze()
			inner := b.engine.start
			b.engine.start = func(ctx context.Context, r run.Run) (string, error) {
				actor, _ := auth.ActorFrom(ctx)
				if actor.Name != "ada" {
					t.Errorf("%v starts", actor)
				}
				return inner(ctx, r)
			}
			ctx, leave := context.WithCancel(b.ctx)
			left := make(chan error)
			go func() { _, _, err := b.Start(ctx, request()); left <- err }()
			<-f.requested
			leave()
			require.ErrorIs(t, <-left, context.Canceled)
			f.answer <- tt.answer
			require.NoError(t, b.Close(b.ctx))
			rows := b.rows(t)
			require.Len(t, rows, tt.rows)
			if tt.answer == nil {
				require.Equal(t, run.QueuedWorker, rows[0].QueuedReason)
			}
		})
	}
}

func TestHandOversAreBounded(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	f := b.freeze()
	s := b.process(t, b.store, func(o *start.Options) { o.AnswerWithin, o.MaxHandOvers = soon, 2 })
	for range 2 {
		_, _, err := s.Start(b.ctx, request())
		require.NoError(t, err)
	}
	_, _, err := s.Start(b.ctx, request())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "2 starts wait")
	require.Len(t, b.rows(t), 2, "a refused start leaves no row")
	<-f.requested
	<-f.requested
	b.engine.start = nil
	r, _, err := b.process(t, b.store, func(*start.Options) {}).Start(b.ctx, request())
	require.NoError(t, err)
	require.Equal(t, run.QueuedWorker, r.QueuedReason)
}

func TestCloseCancelsUnansweredStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.freeze()
	s := b.process(t, b.store, answerSoon)
	r, _, err := s.Start(b.ctx, request())
	require.NoError(t, err)
	ctx, end := context.WithTimeout(b.ctx, soon)
	defer end()
	require.ErrorContains(t, s.Close(ctx), "1 starts had no answer")
	require.True(t, starting(b.row(t, r.ID)), "for the reconciler")
	_, _, err = s.Start(b.ctx, request())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "stopping")
	require.Len(t, b.rows(t), 1)
}

func TestContractMismatchStartsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	mismatch := apperror.New(apperror.Refused, apperror.ContractMismatch, "this server has a, worker w has b")
	s := b.process(t, b.store, func(o *start.Options) {
		o.Workers, o.Queue = agreed{mismatch}, start.QueueOptions{Enabled: true, MaxRuns: 9, TTL: time.Hour}
	})
	_, _, err := s.Start(b.ctx, request())
	require.Equal(t, mismatch, err)
	require.Empty(t, b.rows(t))
	require.Equal(t, []string{"check"}, b.engine.called())
}

func TestRunOfAnUnservedProjectIsRefusedOrQueued(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	unserved := serving{&atomic.Bool{}}
	s := b.process(t, b.store, func(o *start.Options) { o.Workers = unserved })
	_, _, err := s.Start(b.ctx, request())
	requireError(t, err, apperror.Unavailable, apperror.NoWorkerForProject, "none serves "+here)
	require.Empty(t, b.rows(t))
	require.Equal(t, []string{"check"}, b.engine.called())

	s = b.process(t, b.store, func(o *start.Options) {
		o.Workers, o.Queue = unserved, start.QueueOptions{Enabled: true, MaxRuns: 1, TTL: time.Hour}
	})
	q := b.open(t, s)
	r, created, err := s.Start(b.ctx, request())
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, []any{run.Queued, run.QueuedEngine}, []any{r.Status, r.QueuedReason})
	_, _, err = s.Start(b.ctx, request())
	requireError(t, err, apperror.Exhausted, apperror.QueueFull, "none serves "+here)
	unserved.served.Store(true)
	q.Wake()
	require.Eventually(t, func() bool {
		return b.row(t, r.ID).QueuedReason == run.QueuedWorker
	}, time.Minute, 5*time.Millisecond)
}

// serving is a set of workers that serve a project or do not.
type serving struct{ served *atomic.Bool }

func (s serving) Check(_ context.Context, project string) error {
	if s.served.Load() {
		return nil
	}
	return apperror.New(apperror.Unavailable, apperror.NoWorkerForProject, "none serves %s", project)
}

func TestStartNearTheMemoryLimitIsRefusedWithoutARow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	full := apperror.New(apperror.Exhausted, apperror.MemoryExhausted, "near the limit").WithRetry(time.Second)
	s := b.process(t, b.store, func(o *start.Options) {
		o.Admit, o.Queue = func() error { return full }, start.QueueOptions{Enabled: true, MaxRuns: 9, TTL: time.Hour}
	})
	_, _, err := s.Start(b.ctx, request())
	require.Equal(t, full, err)
	require.Empty(t, b.rows(t))
	require.Empty(t, b.engine.called(), "no call of Temporal")
}

// joining reports when a caller has found the run that another one made.
type joining struct {
	run.Store
	found chan struct{}
}

func (j joining) GetRun(ctx context.Context, project, id string) (run.Run, error) {
	r, err := j.Store.GetRun(ctx, project, id)
	select {
	case j.found <- struct{}{}:
	default:
	}
	return r, err
}

// TestSecondCallerGetsNoRemovedRun has two callers with one request ID, in one process and in two, the first of which
// Temporal rejects: neither receives a run that is then removed.
func TestSecondCallerGetsNoRemovedRun(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		for i, changes := range []*pubsub.Notifier{b.changes, pubsub.NewNotifier()} {
			found := make(chan struct{}, 1)
			second := start.New(joining{b.store, found}, b.engine, b.workflows, documents{b.store}, changes, b.opts)
			f := b.freeze()
			req := request()
			req.RequestID = fmt.Sprintf("once %d", i)
			errs := make(chan error)
			ask := func(s *start.Service) { _, _, err := s.Start(b.ctx, req); errs <- err }
			go ask(b.Service)
			<-f.requested
			go ask(second)
			<-found
			f.answer <- refused()
			requireError(t, <-errs, apperror.Refused, apperror.EngineRefused, "no permission")
			<-f.requested // the second caller makes a run of its own
			f.answer <- refused()
			requireError(t, <-errs, apperror.Refused, apperror.EngineRefused, "no permission")
			require.Empty(t, b.rows(t))
		}
	})
}

// TestDisclosedRunStays has the second caller's timeout expire first.
func TestDisclosedRunStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	f := b.freeze()
	req := request()
	req.RequestID = "once"
	type answer struct {
		r   run.Run
		err error
	}
	first := make(chan answer)
	go func() { r, _, err := b.Start(b.ctx, req); first <- answer{r, err} }()
	id := <-f.requested
	r, created, err := b.process(t, b.store, answerSoon).Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, []string{id, run.QueuedStarting}, []string{r.ID, r.QueuedReason})
	f.answer <- refused()
	a := <-first
	require.NoError(t, a.err)
	require.Equal(t, []any{id, run.Failed, "Not started"}, []any{a.r.ID, a.r.Status, a.r.Error.Title})
}

// TestAbandonedStartIsNotWaitedFor repeats the request of a run whose process died long ago.
func TestAbandonedStartIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.engine.start = func(context.Context, run.Run) (string, error) { return "", run.ErrUnknownOutcome }
	req := request()
	req.RequestID = "once"
	first, _, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	b.advance(startTimeout)
	watch := stopwatch.Start(t)
	again, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
	require.Less(t, watch.Elapsed(), startTimeout/2)
}

func TestTheSameRequestTwentyTimesAtOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		processes := []*start.Service{b.Service, b.process(t, b.store, func(*start.Options) {})}
		req := request()
		req.RequestID = "once"
		const callers = 20
		runs, made := make([]run.Run, callers), make([]bool, callers)
		gate := make(chan struct{})
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				<-gate
				var err error
				if runs[i], made[i], err = processes[i%2].Start(b.ctx, req); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		close(gate)
		group.Wait()
		makers, starts := 0, 0
		for i := range callers {
			require.Equal(t, runs[0], runs[i])
			if made[i] {
				makers++
			}
		}
		for _, call := range b.engine.called() {
			if strings.HasPrefix(call, "start") {
				starts++
			}
		}
		require.Equal(t, []int{1, 1}, []int{makers, starts})
		require.Len(t, b.rows(t), 1)
	})
}
