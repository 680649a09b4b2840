package quota_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/quota"
	"github.com/signalbox-dev/signalbox/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one project: its quota, its waiting runs, and the notifications that they got.
type world struct {
	quota.Store

	mu      sync.Mutex
	usage   quota.Usage
	waiting []string
	resumed []string
	unused  []string // of the resumed runs
	told    []string
	ended   int
	answer  error
}

func (w *world) GetQuota(_ context.Context, project string) (quota.Usage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if project != "shop" {
		return quota.Usage{}, apperror.New(apperror.NotFound, apperror.ProjectNotFound, "project %q does not exist", project)
	}
	u := w.usage
	u.Waiting = int64(len(w.waiting))
	return u, nil
}

func (w *world) SetQuota(ctx context.Context, project string, q quota.Quota, _ audit.Entry) (quota.Usage, error) {
	w.mu.Lock()
	w.usage.Quota = q
	w.usage.Left = max(0, q.Steps-w.usage.Used)
	w.mu.Unlock()
	return w.GetQuota(ctx, project)
}

func (w *world) WaitingForSteps(_ context.Context, _ string, most int) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.waiting[:min(most, len(w.waiting))]), nil
}

func (w *world) ResumeSteps(_ context.Context, _, id string) (bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.resumed = append(w.resumed, id)
	return slices.Contains(w.waiting, id), nil
}

func (w *world) ResumedSteps(context.Context, string, int) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.unused), nil
}

func (w *world) ReturnSteps(_ context.Context, most int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(most, w.ended)
	w.ended -= n
	w.usage.Left += int64(n)
	return n, nil
}

func (w *world) HeldUp(context.Context) ([]quota.Held, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return []quota.Held{{Project: "idle"}, {Project: "shop", Waiting: int64(len(w.waiting))}}, nil
}

func (w *world) Exclusive(ctx context.Context, _ string, fn func(context.Context) error) (bool, error) {
	return true, fn(ctx)
}

// Control implements [quota.Engine].
func (w *world) Control(_ context.Context, r run.Run, op, _ string) error {
	return w.notify(r.ID + " " + op)
}

func (w *world) notify(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, what)
	return w.answer
}

// Get implements [quota.Runs].
func (w *world) Get(_ context.Context, _, id string) (run.Run, error) {
	if id == "none" {
		return run.Run{}, apperror.New(apperror.NotFound, apperror.RunNotFound, "run %q does not exist", id)
	}
	if id == "over" {
		return run.Run{ID: id, Status: run.Completed}, nil
	}
	return run.Run{ID: id, Status: run.Waiting}, nil
}

// ResumeQuota implements [quota.Runs].
func (w *world) ResumeQuota(_ context.Context, _, id, reason string) (run.Run, error) {
	return run.Run{ID: id}, w.notify(id + " because " + reason)
}

// received returns the notifications of runs since the last call.
func (w *world) received() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	told := w.told
	w.told = nil
	slices.Sort(told)
	return told
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func (w *world) service() *quota.Service {
	return quota.NewService(w, quota.Options{Now: time.Now, Admit: func(string) {}, Engine: w, Runs: w})
}

func newWorld() *world {
	return &world{
		usage:   quota.Usage{Quota: quota.Quota{Steps: 100, Period: time.Hour}, Used: 100, Age: time.Minute},
		waiting: []string{"a", "b", "c"},
	}
}

func TestResume(t *testing.T) {
	t.Parallel()
	w := newWorld()
	s, ctx := w.service(), t.Context()
	n, err := s.Resume(ctx, "shop", nil, "closing")
	require.NoError(t, err)
	require.Equal(t, 3, n)
	require.Equal(t, []string{"a because closing", "b because closing", "c because closing"}, w.received())
	n, err = s.Resume(ctx, "shop", []string{"b", "z"}, "")
	require.NoError(t, err)
	require.Equal(t, 1, n, "z does not wait")
	require.Equal(t, []string{"b because "}, w.received())

	_, err = s.Resume(ctx, "shop", []string{"a", "none"}, "")
	require.True(t, apperror.Is(err, apperror.RunNotFound), "%v", err)
	_, err = s.Resume(ctx, "shop", []string{"a", "over"}, "")
	require.True(t, apperror.Is(err, apperror.RunEnded), "%v", err)
	_, err = s.Resume(ctx, "none", nil, "")
	require.True(t, apperror.Is(err, apperror.ProjectNotFound), "%v", err)
	_, err = s.Resume(ctx, "shop", make([]string, 10_001), "")
	require.True(t, apperror.Is(err, apperror.InvalidArgument), "%v", err)
	require.Empty(t, w.received())

	w.answer = apperror.New(apperror.Refused, apperror.RunEnded, "it has ended")
	n, err = s.Resume(ctx, "shop", nil, "")
	require.NoError(t, err)
	require.Zero(t, n)
	w.answer = apperror.New(apperror.Unavailable, apperror.EngineUnavailable, "temporal is unavailable")
	_, err = s.Resume(ctx, "shop", nil, "")
	require.True(t, apperror.Is(err, apperror.EngineUnavailable), "%v", err)
}

// As many runs are notified as there are steps.
func TestHigherLimitNotifiesWaitingRuns(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		steps int64
		told  int
	}{{100, 0}, {50, 0}, {102, 2}, {1000, 3}, {0, 3}} {
		t.Run(fmt.Sprint(tt.steps), func(t *testing.T) {
			t.Parallel()
			w := newWorld()
			q := quota.Quota{Steps: tt.steps}
			if q.Steps > 0 {
				q.Period = time.Hour
			}
			_, err := w.service().Set(t.Context(), "shop", q)
			require.NoError(t, err)
			want := []string{"a resume_quota", "b resume_quota", "c resume_quota"}[:tt.told]
			require.Equal(t, want, append([]string{}, w.received()...))
		})
	}
}

// Runs end without using their steps: waiting runs are notified, and not repeatedly.
func TestUnusedStepsAreOffered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.service()
		require.NoError(t, s.Start(t.Context()))
		pass := func(d time.Duration) []string {
			<-time.After(d)
			synctest.Wait()
			return w.received()
		}
		require.Empty(t, pass(time.Minute))
		w.change(func() { w.ended = 2 })
		require.Equal(t, []string{"a resume_quota", "b resume_quota"}, pass(1500*time.Millisecond))
		require.Empty(t, pass(30*time.Second), "they were notified")
		require.Equal(t, []string{"a resume_quota", "b resume_quota"}, pass(40*time.Second), "they may have missed it")

		// At the start of a period, no run is notified.
		w.change(func() { w.usage.Age, w.usage.Left, w.waiting = time.Second, 100, []string{"d"} })
		require.Empty(t, pass(10*time.Second))
		w.change(func() { w.usage.Age = 4 * time.Second })
		require.Equal(t, []string{"d resume_quota"}, pass(2*time.Second))
		require.NoError(t, s.Stop(t.Context()))
	})
}

// A run that is resumed while it requests steps misses the resume; no steps of the limit are left.
func TestMissedResumeIsRepeated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		s := w.service()
		require.NoError(t, s.Start(t.Context()))
		pass := func(d time.Duration) []string {
			<-time.After(d)
			synctest.Wait()
			return w.received()
		}
		require.Empty(t, pass(time.Minute))
		w.change(func() { w.unused = []string{"b"} })
		require.Equal(t, []string{"b resume_quota"}, pass(1500*time.Millisecond))
		require.Empty(t, pass(30*time.Second), "it was notified")
		require.Equal(t, []string{"b resume_quota"}, pass(40*time.Second), "it may have missed it")
		w.change(func() { w.unused = nil })
		require.Empty(t, pass(2*time.Minute))
		require.NoError(t, s.Stop(t.Context()))
	})
}
