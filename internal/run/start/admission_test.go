package start_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

// allow sets the limit of concurrent runs.
func (b *bench) allow(t testing.TB, runs int64) {
	t.Helper()
	_, err := b.store.Quotas().SetQuota(b.ctx, here, quota.Quota{ConcurrentRuns: runs},
		audit.NewEntry(b.ctx, b.clock(), audit.QuotaSet, here, here, ""))
	require.NoError(t, err)
}

// startAdmission starts the admission of a service and notifies it of changes of this process until the test ends.
func (b *bench) startAdmission(t testing.TB, s *start.Service) *start.Admission {
	t.Helper()
	a := start.NewAdmission(s, b.store.Quotas(), b.store, b.changes, b.opts)
	b.store.OnAdmissible(a.Wake)
	require.NoError(t, a.Start(b.ctx))
	ctx := b.ctx
	t.Cleanup(func() { require.NoError(t, a.Stop(context.WithoutCancel(ctx))) })
	return a
}

// startMany starts n runs, one after the other.
func (b *bench) startMany(t testing.TB, n int) []run.Run {
	t.Helper()
	runs := make([]run.Run, n)
	for i := range runs {
		var created bool
		var err error
		runs[i], created, err = b.Start(b.ctx, request())
		require.NoError(t, err)
		require.True(t, created)
	}
	return runs
}

func (b *bench) ends(t testing.TB, id string) { b.applyState(t, id, 5, run.Completed) }

func handedOver(r run.Run) bool { return r.QueuedReason == run.QueuedWorker }

// reasons returns the reasons of runs, in their order.
func (b *bench) reasons(t testing.TB, runs []run.Run) []string {
	t.Helper()
	var all []string
	for _, r := range runs {
		now := b.row(t, r.ID)
		if now.Status == run.Queued {
			all = append(all, now.QueuedReason)
		} else {
			all = append(all, string(now.Status))
		}
	}
	return all
}

// TestOneRunAtATime has ten callers of two processes request the only slot: one gets it, and the others after it, in
// order of acceptance.
func TestOneRunAtATime(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		b.allow(t, 1)
		b.startAdmission(t, b.Service)
		processes := []*start.Service{b.Service, b.process(t, b.store, func(*start.Options) {})}
		const callers = 10
		got := make([]run.Run, callers)
		var group sync.WaitGroup
		for i := range callers {
			group.Go(func() {
				var err error
				if got[i], _, err = processes[i%2].Start(b.ctx, request()); err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
			})
		}
		group.Wait()
		slices.SortFunc(got, func(a, b run.Run) int { return int(a.QueuePosition - b.QueuePosition) })
		require.Equal(t, []any{run.QueuedWorker, int64(0)}, []any{got[0].QueuedReason, got[0].QueuePosition})
		for i, r := range got[1:] {
			require.Equal(t, []any{run.QueuedAdmission, int64(i + 1)}, []any{r.QueuedReason, r.QueuePosition})
		}
		for i, r := range got {
			b.waitForRow(t, r.ID, handedOver)
			for _, later := range got[i+1:] {
				require.Equal(t, run.QueuedAdmission, b.row(t, later.ID).QueuedReason)
			}
			b.ends(t, r.ID)
		}
		var started []string
		for _, call := range b.engine.called() {
			if id, ok := cut(call, "start "); ok {
				started = append(started, id)
			}
		}
		require.Equal(t, ids(got), started)
		require.Len(t, b.audited(t), callers)
	})
}

func ids(runs []run.Run) []string {
	all := make([]string, len(runs))
	for i, r := range runs {
		all[i] = r.ID
	}
	return all
}

func cut(text, prefix string) (string, bool) {
	if len(text) < len(prefix) || text[:len(prefix)] != prefix {
		return "", false
	}
	return text[len(prefix):], true
}

// TestNoMoreThanAllowed starts and ends runs concurrently: there are never more at a time than allowed, and each is
// executed.
func TestNoMoreThanAllowed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, b *bench) {
		b.publish(t, "examples/hello", "1.0.0")
		const limit, callers = 3, 40
		b.allow(t, limit)
		b.startAdmission(t, b.Service)
		var open atomic.Int64
		begun := make(chan string, callers)
		b.engine.start = func(_ context.Context, r run.Run) (string, error) {
			if n := open.Add(1); n > limit {
				t.Errorf("%d runs at a time", n)
			}
			begun <- r.ID
			return "execution-" + r.ID, nil
		}
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				if _, _, err := b.Start(b.ctx, request()); err != nil {
					t.Errorf("start: %v", err)
				}
			})
		}
		for range callers {
			id := <-begun
			group.Go(func() {
				open.Add(-1)
				b.ends(t, id)
			})
		}
		group.Wait()
		for _, r := range b.rows(t) {
			require.Equal(t, run.Completed, r.Status)
		}
	})
}

func TestCancelOfARunThatWaitsForASlot(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 1)
	b.startAdmission(t, b.Service)
	runs := b.startMany(t, 4)
	b.engine.called()
	r, err := b.Cancel(b.ctx, here, runs[1].ID, "enough")
	require.NoError(t, err)
	require.Equal(t, []any{run.Canceled, true, "enough", ""},
		[]any{r.Status, r.CancelRequested, r.CancelReason, r.QueuedReason})
	b.advance(time.Hour)
	_, err = b.Get(b.ctx, here, runs[2].ID)
	require.NoError(t, err)
	for _, call := range b.engine.called() {
		require.Equal(t, "check", call, "Temporal never had them")
	}
	require.Equal(t, []int64{1, 2}, []int64{b.row(t, runs[2].ID).QueuePosition, b.row(t, runs[3].ID).QueuePosition})
	b.ends(t, runs[0].ID)
	b.waitForRow(t, runs[2].ID, handedOver)
	require.Equal(t, []string{"completed", "canceled", "worker", "admission"}, b.reasons(t, runs))
}

// TestEndOfRunFreesSlot frees a slot in each way in which a run can end.
func TestEndOfRunFreesSlot(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(t *testing.T, b *bench, id string){
		"completed": func(t *testing.T, b *bench, id string) { b.ends(t, id) },
		"missing": func(t *testing.T, b *bench, id string) {
			_, err := b.store.FinishMissing(b.ctx, id, run.Failed, nil, b.clock(), entry(b, id))
			require.NoError(t, err)
		},
		"corrected": func(t *testing.T, b *bench, id string) {
			_, err := b.store.CorrectRun(b.ctx,
				run.Update{RunID: id, Position: 9, State: &run.State{Status: run.Terminated, EndedAt: b.clock()}}, nil)
			require.NoError(t, err)
		},
		"reset": func(t *testing.T, b *bench, id string) {
			u := run.Update{RunID: id, ExecutionID: "other", Position: 9,
				State: &run.State{Status: run.Failed, EndedAt: b.clock()}}
			_, err := b.store.FollowExecution(b.ctx, u, "execution-"+id, nil, entry(b, id))
			require.NoError(t, err)
		},
		"a higher limit": func(t *testing.T, b *bench, _ string) { b.allow(t, 2) },
		"no limit":       func(t *testing.T, b *bench, _ string) { b.allow(t, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			b.allow(t, 1)
			a := b.startAdmission(t, b.Service)
			runs := b.startMany(t, 2)
			end(t, b, runs[0].ID)
			if name == "a higher limit" || name == "no limit" {
				a.Wake(here)
			}
			b.waitForRow(t, runs[1].ID, handedOver)
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		b := newBench(t)
		b.publish(t, "examples/hello", "1.0.0")
		b.allow(t, 1)
		b.startAdmission(t, b.Service)
		f := b.freeze()
		errs := make(chan error)
		go func() { _, _, err := b.Start(b.ctx, request()); errs <- err }()
		<-f.requested
		second := b.startMany(t, 1)[0]
		require.Equal(t, run.QueuedAdmission, second.QueuedReason)
		f.answer <- refused()
		require.Error(t, <-errs)
		require.Equal(t, second.ID, <-f.requested)
		f.answer <- nil
		b.waitForRow(t, second.ID, handedOver)
	})
}

// TestAdmittedRunThatEngineRejects makes Temporal reject an admitted run, in each way.
func TestAdmittedRunThatEngineRejects(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answer error
		want   []string
	}{
		"away": {unavailable(), []string{"completed", "admission", "admission"}},
		"over its limits": {
			apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits"),
			[]string{"completed", "admission", "admission"}},
		"unknown":              {run.ErrUnknownOutcome, []string{"completed", "starting", "admission"}},
		"another error":        {errors.New("broken"), []string{"completed", "starting", "admission"}},
		"rejected permanently": {refused(), []string{"completed", "failed", "worker"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.publish(t, "examples/hello", "1.0.0")
			b.allow(t, 1)
			a := b.startAdmission(t, b.Service)
			runs := b.startMany(t, 3)
			requested := make(chan struct{}, 100)
			var heals atomic.Bool
			b.engine.start = func(_ context.Context, r run.Run) (string, error) {
				if r.ID == runs[1].ID && !heals.Load() {
					requested <- struct{}{}
					return "", tt.answer
				}
				return "execution-" + r.ID, nil
			}
			b.ends(t, runs[0].ID)
			<-requested
			require.Eventually(t, func() bool {
				return slices.Equal(b.reasons(t, runs), tt.want)
			}, time.Minute, time.Millisecond,
				"%v", b.reasons(t, runs))
			if tt.want[1] != "admission" {
				return
			}
			heals.Store(true)
			a.Wake(here)
			b.waitForRow(t, runs[1].ID, handedOver)
			require.Equal(t, run.QueuedAdmission, b.row(t, runs[2].ID).QueuedReason)
		})
	}
}

// TestAdmissionBacksOffAfterRefusal makes Temporal reject all of many runs for a while, each of which has a slot.
func TestAdmissionBacksOffAfterRefusal(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 1)
	b.startMany(t, 21)
	var requested atomic.Int32
	b.engine.start = func(context.Context, run.Run) (string, error) {
		requested.Add(1)
		return "", apperror.New(apperror.Exhausted, apperror.EngineRefused, "over its limits")
	}
	b.allow(t, 50)
	b.startAdmission(t, b.Service)
	require.Eventually(t, func() bool { return requested.Load() > 0 }, time.Minute, time.Millisecond)
	require.Never(t, func() bool {
		return requested.Load() > 20
	}, time.Second, 50*time.Millisecond, "at most one request per run")
}

// TestSlotsWhileTheEngineIsUnavailable frees slots meanwhile: none is assigned, and new runs queue behind those that
// wait.
func TestSlotsWhileTheEngineIsUnavailable(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 1)
	runs := b.startMany(t, 2)
	back := b.away()
	// one that had found Temporal available just before would assign the slot, and take it back
	a := b.startAdmission(t, b.Service)
	b.ends(t, runs[0].ID)
	_, _, err := b.Start(b.ctx, request())
	requireError(t, err, apperror.Unavailable, apperror.EngineUnavailable, "does not answer")
	queueing := b.queueing(t, b.store)
	b.advance(time.Microsecond) // the third run is later than the others
	third, _, err := queueing.Start(b.ctx, request())
	require.NoError(t, err)
	require.Equal(t, []any{run.QueuedAdmission, int64(2), time.Time{}},
		[]any{third.QueuedReason, third.QueuePosition, third.ExpiresAt})
	require.Equal(t, []string{"completed", "admission", "admission"}, b.reasons(t, append(runs, third)))
	back()
	a.WakeAll()
	b.waitForRow(t, runs[1].ID, handedOver)
	b.ends(t, runs[1].ID)
	b.waitForRow(t, third.ID, handedOver)
}

// TestRunsThatWaitForTheEngineHoldSlots counts runs that were accepted while Temporal was unavailable.
func TestRunsThatWaitForTheEngineHoldSlots(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 2)
	back := b.away()
	s := b.queueing(t, b.store)
	var reasons []string
	for range 3 {
		r, _, err := s.Start(b.ctx, request())
		require.NoError(t, err)
		reasons = append(reasons, fmt.Sprint(r.QueuedReason, " ", r.QueuePosition))
	}
	require.Equal(t, []string{"engine 1", "engine 2", "admission 1"}, reasons)
	back()
}

func TestTheSameRequestWaitsOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 1)
	b.startMany(t, 1)
	req := request()
	req.RequestID = "once"
	first, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.True(t, created)
	require.Equal(t, run.QueuedAdmission, first.QueuedReason)
	again, created, err := b.Start(b.ctx, req)
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, again)
}

// TestScanFindsFreeSlots ends an earlier process in the middle of an admission: a scan finds what it left.
func TestScanFindsFreeSlots(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.publish(t, "examples/hello", "1.0.0")
	b.allow(t, 1)
	runs := b.startMany(t, 3)
	b.ends(t, runs[0].ID) // without a notification
	a := b.startAdmission(t, b.Service)
	b.waitForRow(t, runs[1].ID, handedOver)
	b.store.OnAdmissible(nil)
	b.ends(t, runs[1].ID)
	b.waitForRow(t, runs[2].ID, handedOver)
	require.NotNil(t, a)
}
