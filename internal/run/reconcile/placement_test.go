package reconcile_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/logger"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/worker"
)

func right() run.ClusterID {
	return run.ClusterID{Address: "host:7233", Namespace: "ns", NamespaceID: "n1"}
}

func wrong() run.ClusterID {
	return run.ClusterID{Address: "other:7233", Namespace: "ns", NamespaceID: "m1"}
}

// errorLog counts the lines of a log.
type errorLog struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (l *errorLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(line)
}

// lines returns the lines since the previous call.
func (l *errorLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(l.out.String()), "\n")
	l.out.Reset()
	if lines[0] == "" {
		return nil
	}
	return lines
}

// captureErrors captures the error log of the bench.
func (b *bench) captureErrors() *errorLog {
	l := &errorLog{}
	b.ctx = logger.WithContext(b.ctx, slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelError})))
	return l
}

// connectTo restarts the process with another Temporal, which has the given runs alone.
func (b *bench) connectTo(p run.ClusterID, known ...string) {
	b.engine.set(func() {
		b.engine.cluster, b.engine.listed, b.engine.known = p, nil, map[string]run.Execution{}
		for _, id := range known {
			x := b.execution(id)
			b.engine.listed, b.engine.known[id] = append(b.engine.listed, x), x
		}
	})
	b.restart()
}

func (b *bench) recorded(t *testing.T) run.RunsCluster {
	t.Helper()
	h, err := b.store.RunsCluster(b.ctx)
	require.NoError(t, err)
	return h
}

func TestRunsInAnotherTemporalAreNotChanged(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		errors := b.captureErrors()
		b.waiting(t, "r1", "r2")
		require.Empty(t, b.pass(t, false))
		begun := b.recorded(t)
		require.Equal(t, right(), begun.ClusterID)

		b.connectTo(wrong())
		b.begin(t, "starting")
		<-time.After(time.Minute)
		b.engine.called()
		for i := range 4 {
			report, err := b.Reconcile(b.ctx, i == 0)
			require.NoError(t, err)
			require.Empty(t, report.Corrections)
			require.Equal(t, 3, report.Withheld)
			for _, part := range []string{
				"host:7233", "n1", "other:7233", "m1", "Point temporal.address", "terminate the runs"} {
				require.Contains(t, report.WithheldBecause, part)
			}
		}
		require.NotContains(t, b.engine.called(), "start starting")
		_, _, err := b.Last()
		require.ErrorContains(t, err, "3 open runs were left alone: they are not known to Temporal at other:7233")
		require.Len(t, errors.lines(), 1)
		require.Equal(t, begun, b.recorded(t))
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
		require.Equal(t, run.QueuedStarting, b.row(t, "starting").QueuedReason)

		// Runs that this Temporal has are corrected as usual.
		ended := b.execution("r2")
		ended.Open, ended.ClosedAt = false, time.Now().Add(-time.Minute)
		b.engine.set(func() {
			b.engine.known["r2"], b.engine.rebuilt["r2"] = ended, b.update("r2", 30, run.Completed)
			b.engine.known["starting"] = b.execution("starting")
		})
		require.Equal(t, []string{"finished r2 true", "handed_over starting true"}, b.pass(t, false))
		require.Len(t, b.engine.called(), 5)

		// After the return no run is lost.
		b.connectTo(right(), "r1", "starting")
		require.Empty(t, b.pass(t, false))
		_, _, err = b.Last()
		require.NoError(t, err)
		require.Empty(t, errors.lines())
		b.unlist("r1", nil)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))
	})
}

func TestIntendedMoveIsRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.pass(t, false)
		b.connectTo(wrong())
		b.pass(t, false)
		_, err := b.store.FinishMissing(b.ctx, "r1", run.Terminated, nil, time.Now(),
			audit.NewEntry(b.ctx, time.Now(), audit.RunTerminate, here, "r1", ""))
		require.NoError(t, err)
		b.pass(t, false)
		require.Equal(t, right(), b.recorded(t).ClusterID, "r2 is still open there")

		// A run that is being started is compared twice.
		_, err = b.store.FinishMissing(b.ctx, "r2", run.Terminated, nil, time.Now(),
			audit.NewEntry(b.ctx, time.Now(), audit.RunTerminate, here, "r2", ""))
		require.NoError(t, err)
		b.begin(t, "new")
		time.AfterFunc(time.Second, func() {
			b.engine.set(func() { b.engine.known["new"] = b.execution("new") })
		})
		require.Empty(t, b.pass(t, true))
		require.Equal(t, right(), b.recorded(t).ClusterID)
		require.Empty(t, b.pass(t, false))
		require.Equal(t, wrong(), b.recorded(t).ClusterID)
		require.WithinRange(t, b.recorded(t).Since, time.Now().Add(-time.Second), time.Now())

		// From then on this Temporal holds the runs.
		b.unlist("new", nil)
		<-time.After(startTimeout)
		require.Equal(t, []string{"handed_over new true"}, b.pass(t, false))
	})
}

func TestAnotherAddressOfTheSameTemporal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.pass(t, false)
		before := b.recorded(t)
		p := right()
		p.Address = "host.local:7233"
		b.connectTo(p, "r1")
		b.pass(t, true)
		require.Equal(t, before, b.recorded(t))
		require.Equal(t, []string{"execution_missing r2 true"}, b.pass(t, false), "it is the same Temporal")
		require.Equal(t, run.RunsCluster{ClusterID: p, Since: before.Since}, b.recorded(t))
	})
}

func TestTemporalLostItsDataBetweenPasses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.pass(t, false)
		p := right()
		p.NamespaceID = "n2"
		b.connectTo(p)
		require.Empty(t, b.pass(t, false), "it has just changed")
		require.Equal(t, right(), b.recorded(t).ClusterID)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))
		require.Equal(t, p, b.recorded(t).ClusterID)
	})
}

// TestWorkersElsewhere has workers on two Temporals at the same time.
func TestWorkersElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		errors := b.captureErrors()
		b.waiting(t, "r1")
		b.pass(t, false)
		heartbeat := func(id string, p run.ClusterID) {
			require.NoError(t, b.store.BeatWorker(b.ctx,
				worker.Worker{ServerID: id, StartedAt: time.Now(), Fingerprint: worker.Fingerprint{
					Address: p.Address, Namespace: p.Namespace, NamespaceID: p.NamespaceID,
				}}, time.Hour))
		}
		heartbeat("misconnected", wrong())
		b.begin(t, "starting")
		b.unlist("r1", nil)
		<-time.After(startTimeout)
		heartbeat("misconnected", wrong())
		for range 2 {
			report, err := b.Reconcile(b.ctx, false)
			require.NoError(t, err)
			require.Equal(t, 1, report.Withheld)
			require.Contains(t, report.WithheldBecause, "live workers are connected to Temporal at other:7233")
		}
		require.Len(t, errors.lines(), 1)
		require.Equal(t, run.QueuedWorker, b.row(t, "starting").QueuedReason, "the start succeeds here")
		require.NoError(t, b.store.LeaveWorker(b.ctx, "misconnected"))
		x := b.execution("starting")
		b.unlist("starting", &x)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))

		// A move is not recorded while a live worker is connected to the previous Temporal.
		b.connectTo(wrong(), "starting")
		for range 2 {
			heartbeat("home", right())
			b.pass(t, false)
			require.Equal(t, right(), b.recorded(t).ClusterID)
		}
		require.NoError(t, b.store.LeaveWorker(b.ctx, "home"))
		b.pass(t, false)
		require.Equal(t, wrong(), b.recorded(t).ClusterID)
	})
}

// TestMisconnectedProcessGivesUpItsElection elects a process first that is connected to the wrong Temporal.
func TestMisconnectedProcessGivesUpItsElection(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.pass(t, false)
		healthy, misconnected := *b, *b
		misconnected.engine = &fakeEngine{cluster: wrong(), known: map[string]run.Execution{}}
		misconnected.restart()
		healthy.restart()
		require.NoError(t, misconnected.Start(b.ctx))
		synctest.Wait()
		_, at, err := misconnected.Last()
		require.False(t, at.IsZero())
		require.ErrorContains(t, err, "1 open run was left alone")
		<-time.After(29 * time.Second)
		_, again, _ := misconnected.Last()
		require.Equal(t, at, again, "it waits so that others can take over")
		require.NoError(t, healthy.Start(b.ctx))
		synctest.Wait()
		_, first, err := healthy.Last()
		require.NoError(t, err)
		require.False(t, first.IsZero(), "at once")
		<-time.After(5 * time.Minute)
		synctest.Wait()
		_, again, _ = misconnected.Last()
		require.Equal(t, at, again, "it is not elected again")
		require.NoError(t, healthy.Stop(b.ctx))
		<-time.After(31 * time.Second)
		synctest.Wait()
		_, again, _ = misconnected.Last()
		require.True(t, again.After(at))
		require.NoError(t, misconnected.Stop(b.ctx))
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
	})
}

// TestAnotherProcessRecordsAMove records another Temporal between two passes, with a run without a known start outcome.
func TestAnotherProcessRecordsAMove(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		require.NoError(t, b.Start(b.ctx))
		<-time.After(time.Second)
		synctest.Wait()
		moved, err := b.store.MoveRunsCluster(b.ctx, right(), run.RunsCluster{ClusterID: wrong(), Since: time.Now()})
		require.NoError(t, err)
		require.True(t, moved)
		b.begin(t, "starting")
		<-time.After(startTimeout + time.Minute)
		require.NoError(t, b.Stop(b.ctx))
		require.NotContains(t, b.engine.called(), "start starting")
		_, _, err = b.Last()
		require.ErrorContains(t, err, "1 open run was left alone")
	})
}

// TestRunThatIsHandedOverElsewhere starts a run in the other Temporal while it is compared here.
func TestRunThatIsHandedOverElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pass(t, false)
		b.connectTo(wrong())
		b.begin(t, "r1")
		time.AfterFunc(time.Second, func() {
			if err := b.store.MarkHandedOver(b.ctx, "r1", "x-r1", time.Now()); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			report, err := b.Reconcile(b.ctx, false)
			require.NoError(t, err)
			require.Equal(t, 1, report.Withheld)
		}
		require.Equal(t, right(), b.recorded(t).ClusterID)
	})
}

// TestManyRunsElsewhere has more runs than one pass compares, one of which is here.
func TestManyRunsElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var names []string
		for i := range 2500 {
			names = append(names, fmt.Sprintf("r%04d", i))
		}
		b.waiting(t, names...)
		b.pass(t, true)
		require.Equal(t, run.RunsCluster{}, b.recorded(t))
		_, err := b.store.MoveRunsCluster(b.ctx, run.ClusterID{}, run.RunsCluster{ClusterID: right(), Since: time.Now()})
		require.NoError(t, err)
		b.connectTo(wrong())
		b.engine.called()
		ended := b.execution("r2400")
		ended.Open, ended.ClosedAt = false, time.Now().Add(-time.Minute)
		b.engine.set(func() {
			b.engine.known["r2400"], b.engine.rebuilt["r2400"] = ended, b.update("r2400", 30, run.Completed)
		})
		begun := time.Now()
		report, err := b.Reconcile(b.ctx, false)
		require.NoError(t, err)
		require.Equal(t, []int{2000, 2500}, []int{report.Checked, report.Withheld})
		require.Less(t, time.Since(begun), 10*time.Second)
		require.Len(t, b.engine.called(), 2000)
		require.Equal(t, []string{"finished r2400 true"}, b.pass(t, false))
	})
}

// TestAdoptedTemporal adopts another Temporal while runs are open, and returns to the first.
func TestAdoptedTemporal(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		errors := b.captureErrors()
		b.waiting(t, "r1", "r2")
		b.pass(t, false)
		b.connectTo(wrong())
		b.begin(t, "starting")
		left, adopted, err := b.store.AdoptCluster(b.ctx, right(), run.RunsCluster{ClusterID: wrong(), Since: time.Now()},
			audit.NewEntry(b.ctx, time.Now(), audit.SystemAdoptTemporal, "", "other:7233 ns", ""))
		require.NoError(t, err)
		require.True(t, adopted)
		require.Equal(t, map[string]int64{here: 3}, left)
		<-time.After(startTimeout + time.Minute)
		b.engine.called()
		for range 4 {
			require.Empty(t, b.pass(t, false))
			_, _, err := b.Last()
			require.NoError(t, err, "it was decided")
		}
		require.NoError(t, b.Start(b.ctx))
		<-time.After(time.Minute)
		require.NoError(t, b.Stop(b.ctx))
		require.NotContains(t, b.engine.called(), "start starting", "it may have been started there")
		require.Empty(t, errors.lines())
		require.Equal(t, wrong(), b.recorded(t).ClusterID)
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
		require.Equal(t, run.QueuedStarting, b.row(t, "starting").QueuedReason)

		// New runs of the adopted one are compared as usual.
		b.waiting(t, "new")
		b.unlist("new", nil)
		<-time.After(time.Minute)
		require.Equal(t, []string{"execution_missing new true"}, b.pass(t, false))

		// After the return the others continue, and are compared again.
		b.connectTo(right(), "r1", "starting")
		require.Equal(t, []string{"handed_over starting true"}, b.pass(t, false))
		require.Equal(t, []string{"execution_missing r2 true"}, b.pass(t, false))
		require.Equal(t, right(), b.recorded(t).ClusterID)
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
		marked, err := b.store.LeftRuns(b.ctx)
		require.NoError(t, err)
		require.Empty(t, marked)
	})
}
