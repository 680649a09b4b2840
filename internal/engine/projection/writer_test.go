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

	"github.com/signalbox-dev/signalbox/internal/engine/projection"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
)

// ledger is a store that can be away or slow, and the observer of what is written to it.
type ledger struct {
	mu      sync.Mutex
	away    error
	hold    chan struct{} // when set, a call waits for it
	tries   []time.Time
	batches [][]run.Update
	written []string
	poison  string // the run whose updates it refuses
	refuses error  // requests for repairs
	asked   []run.RepairRequest
	asking  func() // when set, called while a request is under way
}

// unavailable is the error of a store that is away.
func unavailable(why string) error {
	return fault.New(fault.Unavailable, fault.StoreUnavailable, "%s", why)
}

func (l *ledger) RequestRepairs(_ context.Context, list []run.RepairRequest) error {
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
func (l *ledger) requests() []run.RepairRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.asked)
}

func (l *ledger) ApplyUpdates(ctx context.Context, updates []run.Update) ([]run.Transition, error) {
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

func (l *ledger) Written(_ context.Context, runIDs []string, transitions []run.Transition, lag time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written = append(l.written, fmt.Sprintf("%s %s %s", strings.Join(runIDs, ","), transitions[0].RunID, lag))
}

func (l *ledger) be(away error, hold chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away, l.hold = away, hold
}

// told returns the batches as runs with their positions.
func (l *ledger) told() []string {
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

// begin starts a writer whose log goes to the returned buffer, which is to be read when the writer has stopped.
func begin(t *testing.T, l *ledger) (*projection.Writer, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	w := projection.NewWriter(l, l, time.Now)
	ctx, cancel := context.WithCancel(logger.WithContext(t.Context(), slog.New(slog.NewTextHandler(&log, nil))))
	require.NoError(t, w.Start(ctx))
	cancel() // whoever started it may be gone
	return w, &log
}

// queue is the task queue of tests in which all runs have the same one.
const queue = "q"

func TestWriterWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, _ := begin(t, l)
		w.Accept(queue, update("a", 3, steps(1, 2)...), time.Now().Add(-time.Second))
		synctest.Wait()
		require.Equal(t, []string{"a@3/2"}, l.told())
		require.Equal(t, []string{"a a 1s"}, l.written)
		w.Accept(queue, update("a", 5), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"a@3/2", "a@5/0"}, l.told())
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterGathersWhileItWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
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
		require.Equal(t, []string{"a@3/1", "b@3/0 a@9/3 c@3/0"}, l.told(), "in order of what has waited longest, each run once")
		require.Equal(t, []string{"a a 1s", "b,a,c b 0s"}, l.written)
		merged := l.batches[1][1]
		require.Equal(t, at(9), merged.State.Since)
		require.Equal(t, at(5), merged.State.StartedAt, "the start is the first that was told of")
		require.Equal(t, []int64{5, 9, 9}, []int64{merged.Steps[0].Position, merged.Steps[1].Position, merged.Steps[2].Position})
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterBoundsItsBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w := projection.NewWriter(l, l, time.Now)
		for i, n := range []int64{900, 900, 900, 5000, 1, 1} {
			w.Accept(queue, update(fmt.Sprintf("r%d", i), 3, steps(1, n)...), time.Now())
		}
		require.NoError(t, w.Start(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"r0@3/900 r1@3/900", "r2@3/900", "r3@3/2000", "r3@3/2000", "r3@3/1000", "r4@3/1 r5@3/1"}, l.told(),
			"whole runs where they fit")
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterOutlastsTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{away: unavailable("no route to the store")}
		w, log := begin(t, l)
		begun := time.Now()
		w.Accept(queue, update("a", 3, steps(1, 1)...), begun)
		time.AfterFunc(time.Minute-time.Second, func() { l.be(nil, nil) })
		<-time.After(30 * time.Second)
		w.Accept(queue, update("a", 5, steps(1, 1)...), time.Now())
		w.Accept(queue, update("b", 3), time.Now())
		require.Empty(t, l.told())
		<-time.After(time.Minute)
		require.Equal(t, []string{"a@3/1", "a@5/1 b@3/0"}, l.told(), "in order, and nothing is lost")
		var gaps []time.Duration
		for i := range l.tries[1:8] {
			gaps = append(gaps, l.tries[i+1].Sub(l.tries[i]))
		}
		require.Equal(t, []time.Duration{
			100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond,
			3200 * time.Millisecond, 5 * time.Second,
		}, gaps, "it asks less and less often, but often enough")
		require.NoError(t, w.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "Projection cannot write, will retry"), "said once, not with each try:\n%s", log)
		require.Contains(t, log.String(), "no route to the store")
		require.Equal(t, 1, strings.Count(log.String(), "Projection writes again"))
	})
}

func TestWriterDropsWhatNoMemoryHolds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{}), refuses: errors.New("away again")}
		w, log := begin(t, l)
		w.Accept(queue, update("first", 3, steps(1, 1)...), time.Now())
		synctest.Wait() // it is being written, and part of the backlog until it is
		const bound = 200_000 - 1
		w.Accept(queue, update("huge", 3, steps(1, bound)...), time.Now())
		w.Accept(queue, update("dropped", 3, steps(1, 1)...), time.Now())
		w.Accept(queue, update("light", 3), time.Now())
		close(l.hold)
		synctest.Wait()
		told := l.told()
		require.Len(t, told, 2+(bound+1)/2000)
		require.Equal(t, []string{"first@3/1", "huge@3/2000", "light@3/0"}, []string{told[0], told[1], told[len(told)-1]})
		w.Accept(queue, update("later", 3, steps(1, 1)...), time.Now())
		w.Accept(queue, update("dropped", 5, steps(2, 2)...), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"later@3/1"}, l.told()[len(told):], "there is room again, but the row of a run that lost an update stays behind")
		l.mu.Lock()
		l.refuses = nil
		l.mu.Unlock()
		<-time.After(time.Minute)
		require.Equal(t, []run.RepairRequest{{
			RunID: "dropped", Reason: "updates of the row were dropped while the database was away or too slow, or refused them", Behind: true, Force: true, After: time.Second,
		}}, l.requests())
		w.Accept(queue, update("dropped", 7, steps(3, 3)...), time.Now())
		synctest.Wait()
		require.Equal(t, "dropped@7/1", l.told()[len(told)+1], "the request makes up for what is missing")
		require.NoError(t, w.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "dropped updates"), log.String())
	})
}

// TestRunThatTheStoreRefusesHoldsUpNoOthers has one run whose update can never be written.
func TestRunThatTheStoreRefusesHoldsUpNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{}), poison: "poison"}
		w, log := begin(t, l)
		w.Accept(queue, update("first", 3), time.Now())
		synctest.Wait()
		for _, id := range []string{"a", "poison", "b"} {
			w.Accept(queue, update(id, 3), time.Now())
		}
		close(l.hold)
		<-time.After(time.Minute)
		require.Equal(t, []string{"first@3/0", "a@3/0", "b@3/0"}, l.told())
		requests := l.requests()
		require.Len(t, requests, 1)
		require.Equal(t, []any{"poison", true}, []any{requests[0].RunID, requests[0].Force}, "its rows are made again from its history")
		require.False(t, w.Holds("poison"))
		require.Contains(t, log.String(), "a value out of range")
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestUpdateDroppedDuringARequest has a request for a repair that may be carried out before the update was made.
func TestUpdateDroppedDuringARequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
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
		require.Len(t, l.requests(), 2, "once more for what was dropped meanwhile")
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestWriterWritesWhileUpdatesAreDropped has so much come in that some is dropped with each request for a repair.
func TestWriterWritesWhileUpdatesAreDropped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
		w, _ := begin(t, l)
		var written [][]string // before each request
		l.asking = func() {
			written = append(written, l.told())
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
			require.Contains(t, written[n], fmt.Sprintf("taken-%d@3/2000", n), "what was taken is written before the next request")
		}
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestUnsureRowIsCompared has an answer of Temporal that was lost.
func TestUnsureRowIsCompared(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, log := begin(t, l)
		w.Unsure("a")
		w.Unsure("a")
		<-time.After(10 * time.Second)
		require.Equal(t, []run.RepairRequest{{RunID: "a", Reason: "the answer to the completion of a workflow task was lost", After: time.Second}}, l.requests())
		w.Accept(queue, update("a", 3), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"a@3/0"}, l.told(), "nothing of it is dropped")
		require.NoError(t, w.Stop(t.Context()))
		require.NotContains(t, log.String(), "dropped updates")
	})
}

// TestWriterHoldsWorkersBack has a store that works, but not as fast as the workers.
func TestWriterHoldsWorkersBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
		w, _ := begin(t, l)
		waits := func() time.Duration {
			begun := time.Now()
			w.Wait(t.Context(), queue, 2*time.Second)
			return time.Since(begun)
		}
		w.Accept(queue, update("a", 3, steps(1, 20_000)...), time.Now())
		require.Zero(t, waits())
		w.Accept(queue, update("b", 3, steps(1, 1)...), time.Now())
		require.Equal(t, 2*time.Second, waits(), "no longer than it may")
		time.AfterFunc(time.Second, func() { close(l.hold) })
		require.Equal(t, time.Second, waits(), "until there is room")
		require.Zero(t, waits())
		require.NoError(t, w.Stop(t.Context()))
	})
}

// TestWriterSharesTheStoreOut has one task queue with a backlog of many transactions, and another one with a run now and then.
func TestWriterSharesTheStoreOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{}, 1)}
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
		require.Equal(t, time.Second, time.Since(begun), "the one that has is")

		l.hold <- struct{}{} // the transaction that is under way ends
		synctest.Wait()
		l.hold <- struct{}{} // and the next one
		synctest.Wait()
		told := strings.Fields(strings.Join(l.told(), " "))
		require.Less(t, len(told), 10, "of 30 runs that came before it")
		require.Contains(t, told, "other@3/0")
		close(l.hold)
		require.NoError(t, w.Stop(t.Context()))
		require.Len(t, strings.Fields(strings.Join(l.told(), " ")), 31)
	})
}

// TestWriterHoldsNobodyBackWithoutAStore has a backlog that the store cannot take.
func TestWriterHoldsNobodyBackWithoutAStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		l := &ledger{away: unavailable("away"), hold: hold}
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
		l.be(nil, nil)
		require.NoError(t, w.Stop(t.Context()))
		require.False(t, w.Holds("a"))
	})
}

func TestWriterTakesOneHugeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, _ := begin(t, l)
		w.Accept(queue, update("huge", 3, steps(1, 200_001)...), time.Now())
		synctest.Wait()
		require.Len(t, l.told(), 101)
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterStopWritesWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
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
		require.Equal(t, []string{"a@3/0", "b@3/0"}, l.told())
	})
}

func TestWriterStopsIdle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, _ := begin(t, l)
		require.NoError(t, w.Stop(t.Context()))
		require.Empty(t, l.told())
	})
}

func TestWriterStopsInTimeWithoutAStore(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(l *ledger){
		"away": func(l *ledger) { l.be(unavailable("away"), nil) },
		"hung": func(l *ledger) { l.be(nil, make(chan struct{})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
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
				require.Empty(t, l.told())
			})
		})
	}
}
