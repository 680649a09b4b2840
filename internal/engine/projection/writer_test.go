package projection_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// fakeStore is a store that can be unavailable or slow, and the observer of its writes.
type fakeStore struct {
	mu      sync.Mutex
	away    error
	hold    chan struct{} // if set, a call waits for it
	tries   []time.Time
	batches [][]run.Update
	written []string
	poison  string // the run whose updates it rejects
	refuses error  // the error of requests for repairs
	asked   []run.RepairRequest
	asking  func() // if set, called during a request
}

// unavailable returns the error of an unavailable store.
func unavailable(why string) error {
	return apperror.New(apperror.Unavailable, apperror.StoreUnavailable, "%s", why)
}

func (l *fakeStore) RequestRepairs(_ context.Context, list []run.RepairRequest) error {
	if l.asking != nil {
		l.asking()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refuses == nil {
		l.asked = append(l.asked, list...)
	}
	return l.refuses
}

// requests returns the requests for repairs so far.
func (l *fakeStore) requests() []run.RepairRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

func (l *fakeStore) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
	l.mu.Lock()
	l.tries = append(l.tries, time.Now())
	away, hold := l.away, l.hold
	l.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if away != nil {
		return nil, away
	}
	if slices.ContainsFunc(updates, func(u run.Update) bool { return u.RunID == l.poison }) {
		return nil, errors.New("a value out of range")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.batches = append(l.batches, slices.Clone(updates))
	return []run.Transition{{RunID: updates[0].RunID, To: run.Running}}, nil
}

func (l *fakeStore) Written(_ context.Context, runIDs []string, transitions []run.Transition, lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = append(l.written, fmt.Sprintf("%s %s %s", strings.Join(runIDs, ","), transitions[0].RunID, lag))
}

func (l *fakeStore) set(away error, hold chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.hold = away, hold
}

// writtenRuns returns the written batches as runs with their positions.
func (l *fakeStore) writtenRuns() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for _, batch := range l.batches {
		var line []string
		for _, u := range batch {
			line = append(line, fmt.Sprintf("%s@%d/%d", u.RunID, u.Position, len(u.Steps)))
		}
		lines = append(lines, strings.Join(line, " "))
	}
	return lines
}

func update(id string, position int64, steps ...run.Step) run.Update {
	for i := range steps {
		steps[i].Position = position
	}
	return run.Update{
		RunID: id, ExecutionID: "e", Position: position, Steps: steps,
		State: &run.State{Status: run.Running, Since: at(int(position)), StartedAt: at(int(position))},
	}
}

func steps(from, to int64) []run.Step {
	var list []run.Step
	for n := from; n <= to; n++ {
		list = append(list, run.Step{Number: n, Status: "running"})
	}
	return list
}

// begin starts a writer that logs to the returned buffer, which may be read when the writer has stopped.
func begin(t *testing.T, l *fakeStore) (*projection.Writer, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	w := projection.NewWriter(l, l, time.Now)
	ctx, cancel := context.WithCancel(logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, w.Start(ctx))
	cancel() // the writer outlives the context of its start
	return w, &log
}

// queue is the task queue of all runs in tests with a single one.
const queue = "q"

func TestWriterWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w, _ := begin(t, l)
		w.Accept(queue, update("a", 3, steps(1, 2)...), time.Now().Add(-time.Second))
		synctest.Wait()
		require.Equal(t, []string{"a@3/2"}, l.writtenRuns())
		require.Equal(t, []string{"a a 1s"}, l.written)
		w.Accept(queue, update("a", 5), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"a@3/2", "a@5/0"}, l.writtenRuns())
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterGathersWhileItWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{})}
		w, _ := begin(t, l)
		w.Accept(queue, update("a", 3, steps(1, 1)...), time.Now())
		synctest.Wait()
		time.AfterFunc(time.Second, func() {
			w.Accept(queue, update("b", 3), time.Now())
			w.Accept(queue, update("a", 5, steps(1, 2)...), time.Now())
			w.Accept(queue, update("c", 3), time.Now())
			w.Accept(queue, update("a", 9, steps(2, 3)...), time.Now())
			close(l.hold)
		})
		<-l.hold
		synctest.Wait()
		require.Equal(t, []string{"a@3/1", "b@3/0 a@9/3 c@3/0"}, l.writtenRuns(), "oldest first, each run once")
		require.Equal(t, []string{"a a 1s", "b,a,c b 0s"}, l.written)
		merged := l.batches[1][1]
		require.Equal(t, at(9), merged.State.Since)
		require.Equal(t, at(5), merged.State.StartedAt, "the first recorded start")
		require.Equal(t, []int64{5, 9, 9},
			[]int64{merged.Steps[0].Position, merged.Steps[1].Position, merged.Steps[2].Position})
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterBoundsItsBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w := projection.NewWriter(l, l, time.Now)
		for i, n := range []int64{900, 900, 900, 5000, 1, 1} {
			w.Accept(queue, update(fmt.Sprintf("r%d", i), 3, steps(1, n)...), time.Now())
		}
		require.NoError(t, w.Start(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"r0@3/900 r1@3/900", "r2@3/900", "r3@3/2000", "r3@3/2000", "r3@3/1000", "r4@3/1 r5@3/1"},
			l.writtenRuns(),
			"whole runs where they fit")
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterSurvivesOutagesOfTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{away: unavailable("no route to the store")}
		w, log := begin(t, l)
		begun := time.Now()
		w.Accept(queue, update("a", 3, steps(1, 1)...), begun)
		time.AfterFunc(time.Minute-time.Second, func() { l.set(nil, nil) })
		<-time.After(30 * time.Second)
		w.Accept(queue, update("a", 5, steps(1, 1)...), time.Now())
		w.Accept(queue, update("b", 3), time.Now())
		require.Empty(t, l.writtenRuns())
		<-time.After(time.Minute)
		require.Equal(t, []string{"a@3/1", "a@5/1 b@3/0"}, l.writtenRuns(), "in order, and nothing is lost")
		var gaps []time.Duration
		for i := range l.tries[1:8] {
			gaps = append(gaps, l.tries[i+1].Sub(l.tries[i]))
		}
		require.Equal(t, []time.Duration{
			100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond,
			1600 * time.Millisecond,
			3200 * time.Millisecond, 5 * time.Second,
		}, gaps, "it asks less and less often, but often enough")
		require.NoError(t, w.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "Projection cannot write, will retry"),
			"said once, not with each try:\n%s", log)
		require.Contains(t, log.String(), "no route to the store")
		require.Equal(t, 1, strings.Count(log.String(), "Projection writes again"))
	})
}

func TestWriterDropsUpdatesBeyondItsBounds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{}), refuses: errors.New("away again")}
		w, log := begin(t, l)
		w.Accept(queue, update("first", 3, steps(1, 1)...), time.Now())
		synctest.Wait() // it is being written, and still part of the backlog
		const bound = 200_000 - 1
		w.Accept(queue, update("huge", 3, steps(1, bound)...), time.Now())
		w.Accept(queue, update("dropped", 3, steps(1, 1)...), time.Now())
		w.Accept(queue, update("light", 3), time.Now())
		close(l.hold)
		synctest.Wait()
		batches := l.writtenRuns()
		require.Len(t, batches, 2+(bound+1)/2000)
		require.Equal(t, []string{"first@3/1", "huge@3/2000", "light@3/0"},
			[]string{batches[0], batches[1], batches[len(batches)-1]})
		w.Accept(queue, update("later", 3, steps(1, 1)...), time.Now())
		w.Accept(queue, update("dropped", 5, steps(2, 2)...), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"later@3/1"}, l.writtenRuns()[len(batches):],
			"there is room again, but the row of a run that lost an update stays behind")
		l.mu.Lock()
		l.refuses = nil
		l.mu.Unlock()
		<-time.After(time.Minute)
		require.Equal(t, []run.RepairRequest{{
			RunID: "dropped", Reason: "updates of the row were dropped while the database was away or too slow, or refused them",
			Behind: true, Force: true, After: time.Second,
		}}, l.requests())
		w.Accept(queue, update("dropped", 7, steps(3, 3)...), time.Now())
		synctest.Wait()
		require.Equal(t, "dropped@7/1", l.writtenRuns()[len(batches)+1], "updates are accepted after the request")
		require.NoError(t, w.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "dropped updates"), log.String())
	})
}

// TestRejectedRunDelaysNoOthers has one run with an update that can never be written.
func TestRejectedRunDelaysNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{}), poison: "poison"}
		w, log := begin(t, l)
		w.Accept(queue, update("first", 3), time.Now())
		synctest.Wait()
		for _, id := range []string{"a", "poison", "b"} {
			w.Accept(queue, update(id, 3), time.Now())
		}
		close(l.hold)
		<-time.After(time.Minute)
		require.Equal(t, []string{"first@3/0", "a@3/0", "b@3/0"}, l.writtenRuns())
		requests := l.requests()
		require.Len(t, requests, 1)
		require.Equal(t, []any{"poison", true}, []any{requests[0].RunID, requests[0].Force},
			"its rows are made again from its history")
		require.False(t, w.Holds("poison"))
		require.Contains(t, log.String(), "a value out of range")
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestUpdateDroppedDuringARequest drops an update during a request for a repair, which may be executed before the
// update.
func TestUpdateDroppedDuringARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{})}
		w, _ := begin(t, l)
		l.asking = func() {
			if len(l.requests()) == 0 {
				w.Accept(queue, update("dropped", 5), time.Now())
			}
		}
		w.Accept(queue, update("first", 3, steps(1, 1)...), time.Now())
		synctest.Wait()
		w.Accept(queue, update("dropped", 3, steps(1, 200_000)...), time.Now())
		close(l.hold)
		<-time.After(time.Minute)
		require.Len(t, l.requests(), 2, "once more for the update that was dropped meanwhile")
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestWriterWritesWhileUpdatesAreDropped adds so many updates that some are dropped during each request for a repair.
func TestWriterWritesWhileUpdatesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{})}
		w, _ := begin(t, l)
		var written [][]string // before each request
		l.asking = func() {
			written = append(written, l.writtenRuns())
			if n := len(written); n < 4 {
				w.Accept(queue, update(fmt.Sprintf("taken-%d", n), 3, steps(1, 2000)...), time.Now())
				w.Accept(queue, update(fmt.Sprintf("dropped-%d", n), 3, steps(1, 200_000)...), time.Now())
			}
		}
		w.Accept(queue, update("first", 3, steps(1, 1)...), time.Now())
		synctest.Wait()
		w.Accept(queue, update("dropped", 3, steps(1, 200_000)...), time.Now())
		close(l.hold)
		synctest.Wait()
		require.Len(t, written, 4)
		for n := 1; n < 4; n++ {
			require.Contains(t, written[n], fmt.Sprintf("taken-%d@3/2000", n),
				"what was taken is written before the next request")
		}
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestUnsureRowIsCompared has a lost response of Temporal.
func TestUnsureRowIsCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w, log := begin(t, l)
		w.Unsure("a")
		w.Unsure("a")
		<-time.After(10 * time.Second)
		require.Equal(t, []run.RepairRequest{
			{RunID: "a", Reason: "the answer to the completion of a workflow task was lost", After: time.Second}}, l.requests())
		w.Accept(queue, update("a", 3), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"a@3/0"}, l.writtenRuns(), "no update is dropped")
		require.NoError(t, w.Stop(t.Context()))
		require.NotContains(t, log.String(), "dropped updates")
	})
}

// TestWriterHoldsWorkersBack has an available store that is slower than the workers.
func TestWriterHoldsWorkersBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{})}
		w, _ := begin(t, l)
		waits := func() time.Duration {
			begun := time.Now()
			w.Wait(t.Context(), queue, 2*time.Second)
			return time.Since(begun)
		}
		w.Accept(queue, update("a", 3, steps(1, 20_000)...), time.Now())
		require.Zero(t, waits())
		w.Accept(queue, update("b", 3, steps(1, 1)...), time.Now())
		require.Equal(t, 2*time.Second, waits(), "at most the given time")
		time.AfterFunc(time.Second, func() { close(l.hold) })
		require.Equal(t, time.Second, waits(), "until there is room")
		require.Zero(t, waits())
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestWriterSharesTheStore has one task queue with a backlog of many transactions, and another one with an occasional
// run.
func TestWriterSharesTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{}, 1)}
		w, _ := begin(t, l)
		for i := range 30 {
			w.Accept("flood", update(fmt.Sprintf("flood%d", i), 3, steps(1, 1000)...), time.Now())
		}
		synctest.Wait()
		w.Accept("other", update("other", 3), time.Now())
		synctest.Wait()

		begun := time.Now()
		w.Wait(t.Context(), "other", time.Second)
		w.Wait(t.Context(), "third", time.Second)
		require.Zero(t, time.Since(begun), "task queues that have not filled the backlog are not held back")
		w.Wait(t.Context(), "flood", time.Second)
		require.Equal(t, time.Second, time.Since(begun), "the queue that fills the backlog waits")

		l.hold <- struct{}{} // the transaction in progress ends
		synctest.Wait()
		l.hold <- struct{}{} // and the next one
		synctest.Wait()
		batches := strings.Fields(strings.Join(l.writtenRuns(), " "))
		require.Less(t, len(batches), 10, "of 30 earlier runs")
		require.Contains(t, batches, "other@3/0")
		close(l.hold)
		require.NoError(t, w.Stop(t.Context()))
		require.Len(t, strings.Fields(strings.Join(l.writtenRuns(), " ")), 31)
	})
}

// TestWriterHoldsNoWorkersBackWithoutAStore has a backlog that the store cannot accept.
func TestWriterHoldsNoWorkersBackWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l := &fakeStore{away: unavailable("away"), hold: hold}
		w, _ := begin(t, l)
		w.Accept(queue, update("a", 3, steps(1, 50_000)...), time.Now())
		synctest.Wait()
		time.AfterFunc(time.Second, func() { close(hold) })
		begun := time.Now()
		w.Wait(t.Context(), queue, time.Hour)
		require.Equal(t, time.Second, time.Since(begun), "it ends with the knowledge that the store is away")
		w.Wait(t.Context(), queue, time.Hour)
		require.Equal(t, time.Second, time.Since(begun))
		require.True(t, w.Holds("a"))
		require.False(t, w.Holds("b"))
		l.set(nil, nil)
		require.NoError(t, w.Stop(t.Context()))
		require.False(t, w.Holds("a"))
	})
}

func TestWriterAcceptsOneHugeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w, _ := begin(t, l)
		w.Accept(queue, update("huge", 3, steps(1, 200_001)...), time.Now())
		synctest.Wait()
		require.Len(t, l.writtenRuns(), 101)
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterStopWritesTheRest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{hold: make(chan struct{})}
		w, _ := begin(t, l)
		w.Accept(queue, update("a", 3), time.Now())
		synctest.Wait()
		w.Accept(queue, update("b", 3), time.Now())
		stopped := make(chan error, 1)
		go func() { stopped <- w.Stop(t.Context()) }()
		synctest.Wait()
		require.Empty(t, stopped)
		close(l.hold)
		require.NoError(t, <-stopped)
		require.Equal(t, []string{"a@3/0", "b@3/0"}, l.writtenRuns())
	})
}

func TestWriterStopsIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &fakeStore{}
		w, _ := begin(t, l)
		require.NoError(t, w.Stop(t.Context()))
		require.Empty(t, l.writtenRuns())
	})
}

func TestWriterStopsInTimeWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(l *fakeStore){
		"away": func(l *fakeStore) { l.set(unavailable("away"), nil) },
		"hung": func(l *fakeStore) { l.set(nil, make(chan struct{})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &fakeStore{}
				set(l)
				w, _ := begin(t, l)
				w.Accept(queue, update("a", 3), time.Now())
				synctest.Wait()
				w.Accept(queue, update("b", 3), time.Now())
				w.Accept(queue, update("c", 3), time.Now())
				ctx, cancel := context.WithTimeout(t.Context(), 7*time.Second)
				defer cancel()
				begun := time.Now()
				err := w.Stop(ctx)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, "3 runs", "all that was not written is counted")
				require.Equal(t, 7*time.Second, time.Since(begun))
				require.Empty(t, l.writtenRuns())
			})
		})
	}
}
