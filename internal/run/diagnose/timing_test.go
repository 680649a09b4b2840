package diagnose_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/diagnose"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

// oneRunStore is a store with oneRunStore run. It counts queries and sends the time of each verdict.
type oneRunStore struct {
	diagnose.Store

	verdicts chan time.Time

	mu      sync.Mutex
	since   time.Time
	queries int
}

func (s *oneRunStore) begin(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since = at
}

func (s *oneRunStore) Overdue(_ context.Context, before time.Time, after diagnose.Cursor,
	_ int) ([]diagnose.Candidate, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queries++
	if s.since.IsZero() || s.since.After(before) || !after.StatusAt.IsZero() {
		return nil, nil
	}
	return []diagnose.Candidate{
		{Row: diagnose.Row{ID: "r1", Project: projectName, Status: run.Queued, QueuedReason: run.QueuedWorker,
			StatusAt: s.since}}}, nil
}

func (s *oneRunStore) ChangeVerdicts(context.Context, string, time.Time, []diagnose.Change) (diagnose.Changed, error) {
	s.verdicts <- time.Now()
	s.begin(time.Time{})
	return diagnose.Changed{}, nil
}

func (*oneRunStore) OverdueWaits(context.Context, time.Time, int) ([]diagnose.Candidate, error) {
	return nil, nil
}
func (*oneRunStore) Suspects(context.Context, time.Time, int) ([]diagnose.Candidate, error) {
	return nil, nil
}
func (*oneRunStore) Left(context.Context, int) ([]diagnose.Candidate, error)         { return nil, nil }
func (*oneRunStore) Waiting(context.Context, []string) ([]diagnose.Candidate, error) { return nil, nil }
func (*oneRunStore) Verdicts(context.Context, string, int) ([]diagnose.StoredVerdict, error) {
	return nil, nil
}
func (*oneRunStore) ForgetFailures(context.Context) error { return nil }

func (*oneRunStore) GetProject(context.Context, string) (project.Project, error) {
	return project.Project{}, nil
}

func (*oneRunStore) ListWorkers(context.Context, time.Duration, int) ([]worker.Worker, error) {
	return nil, nil
}

func (*oneRunStore) Exclusive(ctx context.Context, _ string, fn func(context.Context) error) (bool, error) {
	return true, fn(ctx)
}

// TestVerdictFollowsWithinHalfASecond has runs begin at many times between two passes: the verdict is there half a
// second after they are overdue. Where none is about to be, passes are not more frequent.
func TestVerdictFollowsWithinHalfASecond(t *testing.T) {
	t.Parallel()
	for offset := time.Duration(0); offset < 2*time.Second; offset += 130 * time.Millisecond {
		synctest.Test(t, func(t *testing.T) {
			s := &oneRunStore{verdicts: make(chan time.Time, 1)}
			w := diagnose.New(s, s, &fakeEngine{queue: diagnose.QueueState{Name: "signalbox-default"}}, diagnose.Options{
				After: time.Minute, Now: time.Now, Fingerprint: func() worker.Fingerprint { return worker.Fingerprint{} },
				Changes: pubsub.NewNotifier(), Committed: func(context.Context, string, bool) {},
			})
			require.NoError(t, w.Start(t.Context()))
			<-time.After(offset)
			since := time.Now()
			s.begin(since)
			took := (<-s.verdicts).Sub(since)
			require.Greater(t, took, time.Minute)
			require.LessOrEqual(t, took, time.Minute+500*time.Millisecond)
			require.NoError(t, w.Stop(t.Context()))
			require.LessOrEqual(t, s.queries, 35, "a pass every two seconds, and a few more")
		})
	}
}
