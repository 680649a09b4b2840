package stuck_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/notice"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/stuck"
	"github.com/signalbox-dev/signalbox/internal/run/stuck/verdict"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// one is a store with one run, which tells how often it was asked and when a verdict came.
type one struct {
	stuck.Store

	told chan time.Time

	mu    sync.Mutex
	since time.Time
	asked int
}

func (s *one) begin(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = at
}

func (s *one) Overdue(_ context.Context, before time.Time, after stuck.Cursor, _ int) ([]stuck.Candidate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.since.IsZero() || s.since.After(before) || !after.StatusAt.IsZero() {
		return nil, nil
	}
	return []stuck.Candidate{{Row: verdict.Row{ID: "r1", Project: here, Status: run.Queued, QueuedReason: run.QueuedWorker, StatusAt: s.since}}}, nil
}

func (s *one) ChangeVerdicts(context.Context, string, time.Time, []stuck.Change) (stuck.Changed, error) {
	s.told <- time.Now()
	s.begin(time.Time{})
	return stuck.Changed{}, nil
}

func (*one) OverdueWaits(context.Context, time.Time, int) ([]stuck.Candidate, error) { return nil, nil }
func (*one) Suspects(context.Context, time.Time, int) ([]stuck.Candidate, error)     { return nil, nil }
func (*one) Waiting(context.Context, []string) ([]stuck.Candidate, error)            { return nil, nil }
func (*one) Verdicts(context.Context, string, int) ([]stuck.Given, error)            { return nil, nil }
func (*one) ForgetFailures(context.Context) error                                    { return nil }

func (*one) GetProject(context.Context, string) (project.Project, error) {
	return project.Project{}, nil
}

func (*one) ListWorkers(context.Context, time.Duration, int) ([]worker.Worker, error) {
	return nil, nil
}

func (*one) Exclusive(ctx context.Context, _ string, fn func(context.Context) error) (bool, error) {
	return true, fn(ctx)
}

// TestTheVerdictComesInTime has runs begin at all moments between two looks: the verdict is there half a second after they are overdue,
// and where none is about to be, nobody looks more often for it.
func TestTheVerdictComesInTime(t *testing.T) {
	t.Parallel()
	for offset := time.Duration(0); offset < 2*time.Second; offset += 130 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := &one{told: make(chan time.Time, 1)}
			w := stuck.New(s, s, &temporal{queue: stuck.QueueState{Name: "signalbox-default"}}, stuck.Options{
				After: time.Minute, Now: time.Now, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
				Changes: notice.NewBoard(), Committed: func(context.Context, string, bool) {},
			})
			require.NoError(t, w.Start(t.Context()))
			<-time.After(offset)
			since := time.Now()
			s.begin(since)
			took := (<-s.told).Sub(since)
			require.Greater(t, took, time.Minute)
			require.LessOrEqual(t, took, time.Minute+500*time.Millisecond)
			require.NoError(t, w.Stop(t.Context()))
			require.LessOrEqual(t, s.asked, 35, "a look every two seconds, and a few more")
		})
	}
}
