package livelist_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/audit"
	"github.com/signalbox-dev/signalbox/internal/project"
	"github.com/signalbox-dev/signalbox/internal/pubsub"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/livelist"
	"github.com/signalbox-dev/signalbox/internal/store"
	"github.com/signalbox-dev/signalbox/internal/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const here = project.Default

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// counting counts the reads of lists.
type counting struct {
	*storetest.Plain

	lists, versions, counts atomic.Int64
}

func (c *counting) ListRuns(ctx context.Context, f run.Filter) ([]run.Run, error) {
	c.lists.Add(1)
	return c.Plain.ListRuns(ctx, f)
}

func (c *counting) RowVersions(ctx context.Context, f run.Filter) ([]run.RowVersion, error) {
	c.versions.Add(1)
	return c.Plain.RowVersions(ctx, f)
}

func (c *counting) CountRuns(ctx context.Context, f run.Filter) (run.Counts, error) {
	c.counts.Add(1)
	return c.Plain.CountRuns(ctx, f)
}

// fixture is a store with the lists of one process.
type fixture struct {
	store   *counting
	changes *pubsub.Notifier
	lists   *livelist.Lists
	made    atomic.Int64
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	s, err := storetest.Open(t.Context(), t,
		store.Options{Driver: store.SQLite, DSN: storetest.SQLite(t), AutoMigrate: true, CallTimeout: time.Minute})
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	ctx := context.WithoutCancel(t.Context())
	t.Cleanup(func() { require.NoError(t, s.Stop(ctx)) })
	f := &fixture{store: &counting{Plain: s}, changes: pubsub.NewNotifier()}
	f.lists = livelist.New(f.store, f.changes)
	return f
}

// insert adds a queued run and returns its ID; each is newer than the one before.
func (f *fixture) insert(t testing.TB, workflow string) string {
	t.Helper()
	n := f.made.Add(1)
	created := began.Add(time.Duration(n) * time.Second)
	r := run.Run{
		ID: fmt.Sprintf("r%06d", n), Project: here, Workflow: workflow, Version: "1.0.0", Status: run.Queued,
		QueuedReason: run.QueuedWorker,
		CreatedAt:    created, StatusAt: created, Trigger: run.TriggerAPI,
	}
	r.RequestID = r.ID
	_, _, err := f.store.InsertRun(t.Context(), r,
		audit.Entry{Time: created, Action: audit.RunStart, Project: here, Subject: r.ID})
	require.NoError(t, err)
	return r.ID
}

// apply writes a status as another process would: without a notification.
func (f *fixture) apply(t testing.TB, id string, position int64, status run.Status) {
	t.Helper()
	state := &run.State{Status: status, Since: began, StartedAt: began, StepsTotal: position}
	if status.Terminal() {
		state.EndedAt = began
	}
	_, err := f.store.ApplyUpdates(t.Context(),
		[]run.Update{{RunID: id, ExecutionID: "e", Position: position, State: state}})
	require.NoError(t, err)
}

// write is apply with a notification.
func (f *fixture) write(t testing.TB, id string, position int64, status run.Status) {
	t.Helper()
	f.apply(t, id, position, status)
	f.changes.Notify(id)
}

func (f *fixture) watch(t testing.TB, q livelist.Query) *livelist.Watcher {
	t.Helper()
	q.Filter.Project = here
	if q.Filter.Limit == 0 {
		q.Filter.Limit = 50
	}
	w, err := f.lists.Watch(q)
	require.NoError(t, err)
	t.Cleanup(w.Close)
	return w
}

// next returns the next change.
func next(t testing.TB, w *livelist.Watcher) livelist.Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		require.NoError(t, w.Wait(ctx))
		c, changed, err := w.Take(ctx)
		require.NoError(t, err)
		if changed {
			return c
		}
	}
}

// text returns a change as "reset: id status, -id status (does not match), …".
func text(c livelist.Change) string {
	s := ""
	if c.Reset {
		s = "reset:"
	}
	for _, r := range c.Rows {
		if r.Matches {
			s += " " + r.Run.ID + " " + string(r.Run.Status)
		} else {
			s += " -" + r.Run.ID + " " + string(r.Run.Status)
		}
	}
	for _, id := range c.Removed {
		s += " removed " + id
	}
	return s
}

func TestListBeginsWithTheFirstPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 3 {
		f.insert(t, "shop/order")
	}
	f.insert(t, "shop/other")
	c := next(t, f.watch(t, livelist.Query{Filter: run.Filter{Workflow: "shop/order", Limit: 2}}))
	require.Equal(t, "reset: r000003 queued r000002 queued", text(c))
	require.Equal(t, "r000002", c.Next.ID, "the list continues after the page")
	require.Nil(t, c.Counts)
	c = next(t, f.watch(t, livelist.Query{Filter: run.Filter{Workflow: "shop/order", Limit: 3}, Counts: true}))
	require.Nil(t, c.Next)
	require.Equal(t, map[string]int64{"queued": 3}, c.Counts.Statuses)
	require.Equal(t, "reset:", text(next(t, f.watch(t, livelist.Query{Filter: run.Filter{Workflow: "shop/none"}}))))
}

// TestListReportsChanges covers the changes of this process, which are notified, and those of others, which are not.
func TestListReportsChanges(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(*fixture, testing.TB, string, int64, run.Status){
		"here": (*fixture).write, "elsewhere": (*fixture).apply} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			first := f.insert(t, "shop/order")
			w := f.watch(t, livelist.Query{Filter: run.Filter{Statuses: []run.Status{run.Queued, run.Running}}, Counts: true})
			require.Equal(t, "reset: r000001 queued", text(next(t, w)))
			write(f, t, first, 2, run.Running)
			require.Equal(t, " r000001 running", text(rows(t, w)))
			f.changes.Notify(f.insert(t, "shop/order"))
			require.Equal(t, " r000002 queued", text(rows(t, w)), "a new run")
			write(f, t, first, 3, run.Completed)
			left, completed := "", int64(0)
			for left == "" || completed == 0 {
				c := next(t, w)
				left += text(c)
				if c.Counts != nil {
					completed = c.Counts.Statuses["completed"]
				}
			}
			require.Equal(t, " -r000001 completed", left, "it does not match any more")
			require.Equal(t, int64(1), completed)
		})
	}
}

// TestListReportsRunsThatLeaveLaterPages checks it for filters under which a run can cease to match.
func TestListReportsRunsThatLeaveLaterPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first := f.insert(t, "shop/order")
	f.insert(t, "shop/order")
	open := f.watch(t, livelist.Query{Filter: run.Filter{Statuses: []run.Status{run.Queued}, Limit: 1}})
	other := f.watch(t, livelist.Query{
		Filter: run.Filter{Statuses: []run.Status{run.Queued}, Workflow: "shop/other", Limit: 1}})
	ended := f.watch(t, livelist.Query{Filter: run.Filter{Statuses: []run.Status{run.Failed}, Limit: 1}})
	for _, w := range []*livelist.Watcher{open, other, ended} {
		next(t, w)
	}
	f.write(t, first, 2, run.Running)
	require.Equal(t, " -r000001 running", text(rows(t, open)))
	for _, w := range []*livelist.Watcher{other, ended} {
		c, changed, err := w.Take(t.Context())
		require.NoError(t, err)
		require.False(t, changed, text(c))
	}
}

// rows returns the next change that has rows.
func rows(t testing.TB, w *livelist.Watcher) livelist.Change {
	t.Helper()
	for {
		if c := next(t, w); len(c.Rows)+len(c.Removed) > 0 {
			return c
		}
	}
}

func TestListReportsRemovedAndReplayedRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.insert(t, "shop/order")
	f.write(t, id, 2, run.Failed)
	w := f.watch(t, livelist.Query{Filter: run.Filter{NotReplayed: true}})
	require.Equal(t, "reset: r000001 failed", text(next(t, w)))
	r := run.Run{ID: "s1", RequestID: "s1", Project: here, Workflow: "shop/order", Version: "1", Status: run.Queued,
		QueuedReason: run.QueuedStarting, CreatedAt: began, Trigger: run.TriggerReplay, ReplayOf: id}
	_, _, err := f.store.InsertRun(t.Context(), r,
		audit.Entry{Time: began, Action: audit.RunReplay, Project: here, Subject: "s1"})
	require.NoError(t, err)
	f.changes.Notify("s1")
	seen := ""
	for len(seen) < len(" s1 queued -r000001 failed") {
		seen += text(rows(t, w))
	}
	require.Contains(t, seen, " -r000001 failed", "its row has not changed")
	removed, err := f.store.RemoveUnstarted(t.Context(), "s1",
		audit.Entry{Time: began, Action: audit.RunStart, Project: here, Subject: "s1"})
	require.NoError(t, err)
	require.True(t, removed)
	require.Contains(t, text(rows(t, w)), "removed s1")
}

func TestResumedWatchReceivesWhatChanged(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	first, second := f.insert(t, "shop/order"), f.insert(t, "shop/order")
	q := livelist.Query{}
	w := f.watch(t, q)
	c := next(t, w)
	w.Close()
	f.write(t, first, 2, run.Running)
	q.Cursor = c.Cursor
	resumed := f.watch(t, q)
	require.Equal(t, " r000001 running", text(next(t, resumed)))
	w = f.watch(t, q)
	require.Equal(t, " r000001 running", text(next(t, w)), "a cursor may be used again")
	for _, cursor := range []string{"", "x", "x.1", c.Cursor + "0x", "." + c.Cursor} {
		q.Cursor = cursor
		require.Equal(t, "reset: "+second+" queued "+first+" running", text(next(t, f.watch(t, q))), cursor)
	}
}

// TestSlowWatcherReceivesTheLatestState changes more runs, and more often, than a list keeps.
func TestSlowWatcherReceivesTheLatestState(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 20 {
		f.insert(t, "shop/order")
	}
	slow, fast := f.watch(t, livelist.Query{}), f.watch(t, livelist.Query{})
	require.Len(t, next(t, slow).Rows, 20)
	next(t, fast)
	for position := range int64(5) {
		f.write(t, "r000001", position+2, run.Running)
		require.Equal(t, " r000001 running", text(rows(t, fast)))
	}
	c := next(t, slow)
	require.Equal(t, " r000001 running", text(c), "once")
	require.Equal(t, int64(6), c.Rows[0].Run.StepsTotal, "in the latest state")
	for range 700 {
		f.changes.Notify(f.insert(t, "shop/order"))
	}
	for received := 0; received < 700; {
		c := rows(t, fast)
		require.LessOrEqual(t, len(c.Rows), livelist.MaxRows)
		if received += len(c.Rows); c.Reset {
			break // it was too slow as well
		}
	}
	c = rows(t, slow)
	require.True(t, c.Reset, "the list has dropped changes")
	require.Len(t, c.Rows, 50)
	require.Equal(t, "r000720", c.Rows[0].Run.ID)
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 100 {
		f.watch(t, livelist.Query{Filter: run.Filter{Workflow: fmt.Sprintf("w/%d", i)}})
	}
	f.watch(t, livelist.Query{Filter: run.Filter{Workflow: "w/1"}})
	_, err := f.lists.Watch(livelist.Query{Filter: run.Filter{Project: here, Workflow: "w/more", Limit: 50}})
	require.True(t, apperror.Is(err, apperror.TooManyWatches), err)
	w, err := f.lists.Watch(livelist.Query{Filter: run.Filter{Project: "other", Limit: 50}})
	t.Cleanup(w.Close)
	require.NoError(t, err, "another project has its own bound")
}

func TestListsOfOneOwnerAreBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 40 {
		f.watch(t, livelist.Query{Owner: "viewer", Filter: run.Filter{Workflow: fmt.Sprintf("w/%d", i)}})
	}
	f.watch(t, livelist.Query{Owner: "viewer", Filter: run.Filter{Workflow: "w/1"}})
	_, err := f.lists.Watch(livelist.Query{
		Owner: "viewer", Filter: run.Filter{Project: here, Workflow: "w/more", Limit: 50}})
	require.True(t, apperror.Is(err, apperror.TooManyWatches), err)
	require.ErrorContains(t, err, "by one token")
	shared := f.watch(t, livelist.Query{Owner: "admin", Filter: run.Filter{Workflow: "w/more"}})
	f.watch(t, livelist.Query{Owner: "viewer", Filter: run.Filter{Workflow: "w/more"}})
	shared.Close()
	_, err = f.lists.Watch(livelist.Query{
		Owner: "viewer", Filter: run.Filter{Project: here, Workflow: "w/other", Limit: 50}})
	require.True(t, apperror.Is(err, apperror.TooManyWatches), err)
}

// TestWatchersShareReads compares the reads of one watcher and of 50 watchers, of two lists, for the same changes.
func TestWatchersShareReads(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	ids := make([]string, 20)
	for i := range ids {
		ids[i] = f.insert(t, "shop/order")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	var changes atomic.Int64
	for i := range 50 {
		w := f.watch(t, livelist.Query{Filter: run.Filter{Limit: 50 + i%2}, Counts: true})
		group.Go(func() {
			for w.Wait(ctx) == nil {
				if _, changed, err := w.Take(ctx); changed && err == nil {
					changes.Add(1)
				}
			}
		})
	}
	require.Eventually(t, func() bool { return changes.Load() >= 50 }, time.Minute, time.Millisecond)
	from := time.Now()
	lists, versions, counts := f.store.lists.Load(), f.store.versions.Load(), f.store.counts.Load()
	for round := range int64(8) {
		before := changes.Load()
		for _, id := range ids {
			f.write(t, id, round+2, run.Running)
		}
		require.Eventually(t, func() bool { return changes.Load() >= before+50 }, time.Minute, time.Millisecond)
	}
	seconds := time.Since(from).Seconds() + 1
	cancel()
	group.Wait()
	require.LessOrEqual(t, float64(f.store.lists.Load()-lists), 4*seconds+2*seconds,
		"changed rows are read once for all lists")
	require.LessOrEqual(t, float64(f.store.versions.Load()-versions), 4*seconds)
	require.LessOrEqual(t, float64(f.store.counts.Load()-counts), 2*seconds)
}

// TestManyUpdatesTakeBoundedMemory writes 10,000 updates while a watcher receives them and another one does not.
func TestManyUpdatesTakeBoundedMemory(t *testing.T) {
	f := newFixture(t)
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = f.insert(t, "shop/order")
	}
	w, idle := f.watch(t, livelist.Query{}), f.watch(t, livelist.Query{Filter: run.Filter{Limit: 51}})
	next(t, w)
	next(t, idle)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var group sync.WaitGroup
	var times []time.Time
	var received, last int64
	group.Go(func() {
		for w.Wait(ctx) == nil {
			c, changed, err := w.Take(ctx)
			if err != nil || !changed {
				continue
			}
			times = append(times, time.Now())
			received += int64(len(c.Rows))
			for _, r := range c.Rows {
				last = max(last, r.Run.StepsTotal)
			}
			if last == 21 && f.caughtUp(c) {
				return
			}
		}
	})
	before := heap()
	for round := range int64(20) {
		var updates []run.Update
		for _, id := range ids {
			updates = append(updates,
				run.Update{RunID: id, ExecutionID: "e", Position: round + 2,
					State: &run.State{Status: run.Running, Since: began, StartedAt: began, StepsTotal: round + 2}})
		}
		_, err := f.store.ApplyUpdates(t.Context(), updates)
		require.NoError(t, err)
		for _, id := range ids {
			f.changes.Notify(id)
		}
	}
	after := heap()
	group.Wait()
	t.Logf("%d updates, %d changes with %d rows, heap %d kB before and %d kB after", 20*len(ids), len(times), received,
		before>>10, after>>10)
	require.Less(t, after-before, int64(16<<20))
	require.Equal(t, int64(21), next(t, idle).Rows[0].Run.StepsTotal)
	require.Equal(t, int64(21), last, "the latest state arrives")
	require.LessOrEqual(t, received, int64(20*len(ids)))
}

func (f *fixture) caughtUp(c livelist.Change) bool { return len(c.Rows) < livelist.MaxRows }

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkHundredWatchers reports the processor time of 100 watchers while 50 runs change per second.
func BenchmarkHundredWatchers(b *testing.B) {
	f := newFixture(b)
	ids := make([]string, 500)
	for i := range ids {
		ids[i] = f.insert(b, "shop/order")
	}
	for _, filters := range []int{1, 50} {
		b.Run(fmt.Sprintf("filters=%d", filters), func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			var group sync.WaitGroup
			for i := range 100 {
				w := f.watch(b, livelist.Query{Filter: run.Filter{Limit: 50 + i%filters}, Counts: true})
				group.Go(func() {
					for w.Wait(ctx) == nil {
						_, _, _ = w.Take(ctx)
					}
				})
			}
			ticker := time.NewTicker(time.Second / 50)
			defer ticker.Stop()
			used, from, n := processorTime(b), time.Now(), 0
			for b.Loop() {
				<-ticker.C
				f.changes.Notify(ids[n%len(ids)])
				n++
			}
			took := time.Since(from)
			b.ReportMetric(100*(processorTime(b)-used).Seconds()/took.Seconds(), "%cpu")
			cancel()
			group.Wait()
		})
	}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
