package reconciler_test

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

func right() run.Place { return run.Place{Address: "host:7233", Namespace: "ns", NamespaceID: "n1"} }

func wrong() run.Place { return run.Place{Address: "other:7233", Namespace: "ns", NamespaceID: "m1"} }

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

// lines returns what was logged since it was last asked.
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

// logged has the errors of the bench logged.
func (b *bench) logged() *errorLog {
	l := &errorLog{}
	b.ctx = logger.WithContext(b.ctx, slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelError})))
	return l
}

// at points the process at a Temporal that knows nothing, or back at the one it was, after a restart.
func (b *bench) at(p run.Place, known ...string) {
	b.engine.set(func() {
		b.engine.place, b.engine.listed, b.engine.known = p, nil, map[string]run.Execution{}
		for _, id := range known {
			x := b.execution(id)
			b.engine.listed, b.engine.known[id] = append(b.engine.listed, x), x
		}
	})
	b.another()
}

func (b *bench) home(t *testing.T) run.Home {
	t.Helper()
	h, err := b.store.RunsHome(b.ctx)
	require.NoError(t, err)
	return h
}

func TestRunsInAnotherTemporalAreLeftAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		said := b.logged()
		b.waiting(t, "r1", "r2")
		require.Empty(t, b.pass(t, false))
		begun := b.home(t)
		require.Equal(t, right(), begun.Place)

		b.at(wrong())
		b.begin(t, "starting")
		<-time.After(time.Minute)
		b.engine.called()
		for i := range 4 {
			report, err := b.Reconcile(b.ctx, i == 0)
			require.NoError(t, err)
			require.Empty(t, report.Corrections)
			require.Equal(t, 3, report.Withheld)
			for _, part := range []string{"host:7233", "n1", "other:7233", "m1", "Point temporal.address", "terminate the runs"} {
				require.Contains(t, report.WithheldBecause, part)
			}
		}
		require.NotContains(t, b.engine.called(), "start starting")
		_, _, err := b.Last()
		require.ErrorContains(t, err, "3 open runs were left alone: they are not known to Temporal at other:7233")
		require.Len(t, said.lines(), 1)
		require.Equal(t, begun, b.home(t))
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
		require.Equal(t, run.QueuedStarting, b.row(t, "starting").QueuedReason)

		// What is there is treated as ever.
		ended := b.execution("r2")
		ended.Open, ended.ClosedAt = false, time.Now().Add(-time.Minute)
		b.engine.set(func() {
			b.engine.known["r2"], b.engine.rebuilt["r2"] = ended, b.update("r2", 30, run.Completed)
			b.engine.known["starting"] = b.execution("starting")
		})
		require.Equal(t, []string{"finished r2 true", "handed_over starting true"}, b.pass(t, false))
		require.Len(t, b.engine.called(), 5)

		// Back again, nothing was lost.
		b.at(right(), "r1", "starting")
		require.Empty(t, b.pass(t, false))
		_, _, err = b.Last()
		require.NoError(t, err)
		require.Empty(t, said.lines())
		b.unlist("r1", nil)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))
	})
}

func TestMoveThatIsMeant(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.pass(t, false)
		b.at(wrong())
		b.pass(t, false)
		_, err := b.store.FinishMissing(b.ctx, "r1", run.Terminated, nil, time.Now(), audit.NewEntry(b.ctx, time.Now(), audit.RunTerminate, here, "r1", ""))
		require.NoError(t, err)
		b.pass(t, false)
		require.Equal(t, right(), b.home(t).Place, "r2 is still there")

		// One that is being handed over has a moment to arrive here.
		_, err = b.store.FinishMissing(b.ctx, "r2", run.Terminated, nil, time.Now(), audit.NewEntry(b.ctx, time.Now(), audit.RunTerminate, here, "r2", ""))
		require.NoError(t, err)
		b.begin(t, "new")
		time.AfterFunc(time.Second, func() {
			b.engine.set(func() { b.engine.known["new"] = b.execution("new") })
		})
		require.Empty(t, b.pass(t, true))
		require.Equal(t, right(), b.home(t).Place)
		require.Empty(t, b.pass(t, false))
		require.Equal(t, wrong(), b.home(t).Place)
		require.WithinRange(t, b.home(t).Since, time.Now().Add(-time.Second), time.Now())

		// From then on it is the place.
		b.unlist("new", nil)
		<-time.After(startTimeout)
		require.Equal(t, []string{"handed_over new true"}, b.pass(t, false))
	})
}

func TestAddressIsWrittenInAnotherWay(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1", "r2")
		b.pass(t, false)
		before := b.home(t)
		p := right()
		p.Address = "host.local:7233"
		b.at(p, "r1")
		b.pass(t, true)
		require.Equal(t, before, b.home(t))
		require.Equal(t, []string{"execution_missing r2 true"}, b.pass(t, false), "it is the same place")
		require.Equal(t, run.Home{Place: p, Since: before.Since}, b.home(t))
	})
}

func TestTemporalThatLostItsDataWhileNobodyLooked(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.pass(t, false)
		p := right()
		p.NamespaceID = "n2"
		b.at(p)
		require.Empty(t, b.pass(t, false), "it has just changed")
		require.Equal(t, right(), b.home(t).Place)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))
		require.Equal(t, p, b.home(t).Place)
	})
}

// TestWorkersElsewhere has processes at both places at the same time.
func TestWorkersElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		said := b.logged()
		b.waiting(t, "r1")
		b.pass(t, false)
		beat := func(id string, p run.Place) {
			require.NoError(t, b.store.BeatWorker(b.ctx, worker.Worker{ServerID: id, StartedAt: time.Now(), Fingerprint: worker.Fingerprint{
				Address: p.Address, Namespace: p.Namespace, NamespaceID: p.NamespaceID,
			}}, time.Hour))
		}
		beat("astray", wrong())
		b.begin(t, "starting")
		b.unlist("r1", nil)
		<-time.After(startTimeout)
		beat("astray", wrong())
		for range 2 {
			report, err := b.Reconcile(b.ctx, false)
			require.NoError(t, err)
			require.Equal(t, 1, report.Withheld)
			require.Contains(t, report.WithheldBecause, "live workers are connected to Temporal at other:7233")
		}
		require.Len(t, said.lines(), 1)
		require.Equal(t, run.QueuedWorker, b.row(t, "starting").QueuedReason, "it is asked for here")
		require.NoError(t, b.store.LeaveWorker(b.ctx, "astray"))
		x := b.execution("starting")
		b.unlist("starting", &x)
		require.Equal(t, []string{"execution_missing r1 true"}, b.pass(t, false))

		// A place is not left while somebody works there.
		b.at(wrong(), "starting")
		for range 2 {
			beat("home", right())
			b.pass(t, false)
			require.Equal(t, right(), b.home(t).Place)
		}
		require.NoError(t, b.store.LeaveWorker(b.ctx, "home"))
		b.pass(t, false)
		require.Equal(t, wrong(), b.home(t).Place)
	})
}

// TestProcessElsewhereLetsGo has one that is pointed at the wrong place be the first to act.
func TestProcessElsewhereLetsGo(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.waiting(t, "r1")
		b.pass(t, false)
		healthy, astray := *b, *b
		astray.engine = &temporal{place: wrong(), known: map[string]run.Execution{}}
		astray.another()
		healthy.another()
		require.NoError(t, astray.Start(b.ctx))
		synctest.Wait()
		_, at, err := astray.Last()
		require.False(t, at.IsZero())
		require.ErrorContains(t, err, "1 open run was left alone")
		<-time.After(29 * time.Second)
		_, again, _ := astray.Last()
		require.Equal(t, at, again, "it leaves others the time")
		require.NoError(t, healthy.Start(b.ctx))
		synctest.Wait()
		_, first, err := healthy.Last()
		require.NoError(t, err)
		require.False(t, first.IsZero(), "at once")
		<-time.After(5 * time.Minute)
		synctest.Wait()
		_, again, _ = astray.Last()
		require.Equal(t, at, again, "it does not get its turn again")
		require.NoError(t, healthy.Stop(b.ctx))
		<-time.After(31 * time.Second)
		synctest.Wait()
		_, again, _ = astray.Last()
		require.True(t, again.After(at))
		require.NoError(t, astray.Stop(b.ctx))
		require.Equal(t, run.Waiting, b.row(t, "r1").Status)
	})
}

// TestHomeMovesBetweenTwoPasses has another process record another place, and a run whose start has no known outcome.
func TestHomeMovesBetweenTwoPasses(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		require.NoError(t, b.Start(b.ctx))
		<-time.After(time.Second)
		synctest.Wait()
		moved, err := b.store.MoveHome(b.ctx, right(), run.Home{Place: wrong(), Since: time.Now()})
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

// TestRunThatIsHandedOverElsewhere has a run be started in the other Temporal while it is looked for here.
func TestRunThatIsHandedOverElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		b.pass(t, false)
		b.at(wrong())
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
		require.Equal(t, right(), b.home(t).Place)
	})
}

// TestManyRunsElsewhere has more than one pass asks about, and one among them that is here.
func TestManyRunsElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bench) {
		var names []string
		for i := range 2500 {
			names = append(names, fmt.Sprintf("r%04d", i))
		}
		b.waiting(t, names...)
		b.pass(t, true)
		require.Equal(t, run.Home{}, b.home(t))
		_, err := b.store.MoveHome(b.ctx, run.Place{}, run.Home{Place: right(), Since: time.Now()})
		require.NoError(t, err)
		b.at(wrong())
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
