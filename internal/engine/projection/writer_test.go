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

func TestWriterWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, _ := begin(t, l)
		w.Accept(update("a", 3, steps(1, 2)...), time.Now().Add(-time.Second))
		synctest.Wait()
		require.Equal(t, []string{"a@3/2"}, l.told())
		require.Equal(t, []string{"a a 1s"}, l.written)
		w.Accept(update("a", 5), time.Now())
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
		w.Accept(update("a", 3, steps(1, 1)...), time.Now())
		synctest.Wait()
		time.AfterFunc(time.Second, func() {
			w.Accept(update("b", 3), time.Now())
			w.Accept(update("a", 5, steps(1, 2)...), time.Now())
			w.Accept(update("c", 3), time.Now())
			w.Accept(update("a", 9, steps(2, 3)...), time.Now())
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
			w.Accept(update(fmt.Sprintf("r%d", i), 3, steps(1, n)...), time.Now())
		}
		require.NoError(t, w.Start(t.Context()))
		synctest.Wait()
		require.Equal(t, []string{"r0@3/900 r1@3/900", "r2@3/900", "r3@3/5000", "r4@3/1 r5@3/1"}, l.told(),
			"whole runs, and a run that is larger than a batch by itself")
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterOutlastsTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{away: errors.New("no route to the store")}
		w, log := begin(t, l)
		begun := time.Now()
		w.Accept(update("a", 3, steps(1, 1)...), begun)
		time.AfterFunc(time.Minute-time.Second, func() { l.be(nil, nil) })
		<-time.After(30 * time.Second)
		w.Accept(update("a", 5, steps(1, 1)...), time.Now())
		w.Accept(update("b", 3), time.Now())
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
		l := &ledger{hold: make(chan struct{})}
		w, log := begin(t, l)
		w.Accept(update("first", 3, steps(1, 1)...), time.Now())
		synctest.Wait() // it is being written and no part of the backlog
		const bound = 200_000
		w.Accept(update("huge", 3, steps(1, bound)...), time.Now())
		w.Accept(update("dropped", 3, steps(1, 1)...), time.Now())
		w.Accept(update("light", 3), time.Now())
		close(l.hold)
		synctest.Wait()
		require.Equal(t, []string{"first@3/1", fmt.Sprintf("huge@3/%d", bound), "light@3/0"}, l.told())
		w.Accept(update("later", 3, steps(1, 1)...), time.Now())
		synctest.Wait()
		require.Equal(t, "later@3/1", l.told()[3], "there is room again")
		require.NoError(t, w.Stop(t.Context()))
		require.Equal(t, 1, strings.Count(log.String(), "dropped updates"), log.String())
	})
}

func TestWriterTakesOneHugeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{}
		w, _ := begin(t, l)
		w.Accept(update("huge", 3, steps(1, 200_001)...), time.Now())
		synctest.Wait()
		require.Equal(t, []string{"huge@3/200001"}, l.told())
		require.NoError(t, w.Stop(t.Context()))
	})
}

func TestWriterStopWritesWhatIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &ledger{hold: make(chan struct{})}
		w, _ := begin(t, l)
		w.Accept(update("a", 3), time.Now())
		synctest.Wait()
		w.Accept(update("b", 3), time.Now())
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
		"away": func(l *ledger) { l.be(errors.New("away"), nil) },
		"hung": func(l *ledger) { l.be(nil, make(chan struct{})) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{}
				set(l)
				w, _ := begin(t, l)
				w.Accept(update("a", 3), time.Now())
				synctest.Wait()
				w.Accept(update("b", 3), time.Now())
				w.Accept(update("c", 3), time.Now())
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
