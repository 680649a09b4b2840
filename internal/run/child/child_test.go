package child_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/internal/apperror"
	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
	"github.com/signalbox-dev/signalbox/internal/run/start"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// platform is a fake of the components that the package uses.
type platform struct {
	mu       sync.Mutex
	rows     map[string]run.Run
	awaited  map[string]string // run → parent
	started  []start.Request
	starters []string
	canceled []string
	notified []string
	// fails are the errors of the next notifications, or cancellations, of a run.
	fails  map[string][]error
	locked bool // another process holds the lock
	scans  int
}

func newPlatform(rows ...run.Run) *platform {
	w := &platform{rows: map[string]run.Run{}, awaited: map[string]string{}, fails: map[string][]error{}}
	for _, r := range rows {
		r.Project = "p"
		w.rows[r.ID] = r
		if r.Parent.Awaited {
			w.awaited[r.ID] = r.Parent.RunID
		}
	}
	return w
}

func (w *platform) Start(ctx context.Context, req start.Request) (run.Run, bool, error) {
	actor, _ := auth.ActorFrom(ctx)
	if err := w.nextError(req.Parent.Key); err != nil {
		return run.Run{}, false, err
	}
	w.started, w.starters = append(w.started, req), append(w.starters, actor.Name)
	return run.Run{ID: "new"}, true, nil
}

func (w *platform) nextError(id string) error {
	if answers := w.fails[id]; len(answers) > 0 {
		w.fails[id] = answers[1:]
		return answers[0]
	}
	return nil
}

func (w *platform) Cancel(_ context.Context, _, id, _ string) (run.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.canceled = append(w.canceled, id)
	if err := w.nextError(id); err != nil {
		return run.Run{}, err
	}
	r := w.rows[id]
	r.CancelRequested = true
	w.rows[id] = r
	return r, nil
}

func (w *platform) GetRun(_ context.Context, _, id string) (run.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.rows[id]
	if !ok {
		return r, apperror.New(apperror.NotFound, apperror.RunNotFound, "no run %s", id)
	}
	return r, nil
}

func (w *platform) Due(_ context.Context, after string, limit int) ([]child.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.scans++
	var out []child.Link
	for id, parent := range w.awaited {
		r, p := w.rows[id], w.rows[parent]
		l := child.Link{
			RunID: id, Project: "p", Parent: parent, Ended: r.Status.Terminal(), ParentEnded: p.Status.Terminal() || p.ID == "",
			CancelRequested: r.CancelRequested, ParentCanceled: p.CancelRequested,
		}
		if id > after && (l.Ended || (l.ParentEnded || l.ParentCanceled) && !l.CancelRequested) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b child.Link) int { return len(a.RunID) - len(b.RunID) })
	return out[:min(len(out), limit)], nil
}

func (w *platform) DueFor(ctx context.Context, ids []string) ([]child.Link, error) {
	all, err := w.Due(ctx, "", 1000)
	return slices.DeleteFunc(all, func(l child.Link) bool {
		return !slices.Contains(ids, l.RunID) && !slices.Contains(ids, l.Parent)
	}), err
}

func (w *platform) Key(_ context.Context, id string) (string, bool, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	parent, awaited := w.awaited[id]
	canceled := false
	for above, ok := parent, awaited; ok; above, ok = w.awaited[above] {
		canceled = canceled || w.rows[above].CancelRequested
	}
	return "key of " + id, canceled, awaited, nil
}

func (w *platform) MarkNotified(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.awaited, id)
	return nil
}

func (w *platform) NotifyParent(_ context.Context, r run.Run, canceled bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	line := r.ID + " " + r.Parent.RunID + " " + r.Parent.Key
	if canceled {
		line += ": canceled with its parent"
	}
	w.notified = append(w.notified, line)
	return w.nextError(r.ID)
}

func (w *platform) NotifyUnreadable(_ context.Context, r run.Run, why error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notified = append(w.notified, r.ID+" "+r.Parent.RunID+" "+r.Parent.Key+": "+why.Error())
	return nil
}

func (w *platform) exclusive(ctx context.Context, _ string, work func(context.Context) error) (bool, error) {
	w.mu.Lock()
	locked := w.locked
	w.mu.Unlock()
	if locked {
		return false, nil
	}
	return true, work(ctx)
}

func (w *platform) end(id string, status run.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rows[id]
	r.ID, r.Status = id, status
	w.rows[id] = r
}

// seen is a snapshot of the calls so far.
type seen struct {
	notified, canceled []string
	awaited            map[string]string
	scans              int
}

func (w *platform) seen() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return seen{slices.Clone(w.notified), slices.Clone(w.canceled), maps.Clone(w.awaited), w.scans}
}

// startWatcher runs a watcher until the test ends.
func (w *platform) startWatcher(t *testing.T) *child.Watcher {
	t.Helper()
	watcher := child.NewWatcher(w, w, w, w, w.exclusive)
	require.NoError(t, watcher.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, watcher.Stop(context.WithoutCancel(t.Context()))) })
	return watcher
}

func awaits(id, parent string) run.Run {
	return run.Run{ID: id, Status: run.Running, Parent: run.Parent{RunID: parent, Awaited: true}}
}

// advance advances the clock by d and waits until all goroutines are blocked.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestStart(t *testing.T) {
	t.Parallel()
	w := newPlatform(run.Run{ID: "top"}, run.Run{ID: "deep", Parent: run.Parent{Depth: 2}},
		run.Run{ID: "deepest", Parent: run.Parent{Depth: 3}})
	s := child.New(w, w, child.Options{MaxDepth: 3})
	req := child.Request{Project: "p", Parent: "deep", Path: "/do/0/x", Key: "k", Workflow: "a/b", Version: "1.0.0",
		Input: []byte(`1`), Awaited: true}
	r, err := s.Start(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "new", r.ID)
	require.Equal(t, []start.Request{{
		Project: "p", Workflow: "a/b", Version: "1.0.0", Input: []byte(`1`), RequestID: "child:k", Trigger: run.TriggerParent,
		InputHidden: true,
		Lineage:     run.Lineage{Generation: 1, Workflows: []string{""}},
		Parent:      run.Parent{RunID: "deep", Path: "/do/0/x", Depth: 3, Key: "k", Awaited: true},
	}}, w.started)
	require.Equal(t, []string{"run deep"}, w.starters)

	req.Parent = "deepest"
	_, err = s.Start(t.Context(), req)
	require.ErrorIs(t, err, child.ErrTooDeep)
	require.ErrorContains(t, err, "runs.max_depth is 3")
	req.Parent = "none"
	_, err = s.Start(t.Context(), req)
	require.True(t, apperror.Is(err, apperror.RunNotFound))
	require.Len(t, w.started, 1)
}

func TestRefusedStartCancelsTheParent(t *testing.T) {
	t.Parallel()
	w := newPlatform(run.Run{ID: "parent", Status: run.Running})
	s := child.New(w, w, child.Options{MaxDepth: 3})
	away := errors.New("temporal is unavailable")
	w.fails["k"] = slices.Repeat([]error{run.ErrAncestorCanceled}, 3)
	w.fails["parent"] = []error{away, nil, apperror.New(apperror.Refused, apperror.RunEnded, "ended")}
	for _, want := range []error{away, run.ErrAncestorCanceled, run.ErrAncestorCanceled} {
		_, err := s.Start(t.Context(), child.Request{Project: "p", Parent: "parent", Key: "k"})
		require.ErrorIs(t, err, want)
	}
	require.Equal(t, []string{"parent", "parent", "parent"}, w.canceled)
	require.Empty(t, w.started)
}

func TestCancelOfEndedRunSucceeds(t *testing.T) {
	t.Parallel()
	w := newPlatform(awaits("a", "p"))
	s := child.New(w, w, child.Options{MaxDepth: 3})
	for _, reason := range []string{apperror.RunEnded, apperror.RunCanceling, apperror.RunNotFound} {
		w.fails["a"] = []error{apperror.New(apperror.Refused, reason, "no")}
		require.NoError(t, s.Cancel(t.Context(), "p", "a", "why"))
	}
	w.fails["a"] = []error{errors.New("unavailable")}
	require.Error(t, s.Cancel(t.Context(), "p", "a", "why"))
}

func TestParentIsNotifiedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Waiting}, awaits("a", "parent"), awaits("b", "parent"))
		watcher := w.startWatcher(t)
		w.end("a", run.Completed)
		watcher.Ended("a", "unknown")
		synctest.Wait()
		require.Equal(t, []string{"a parent key of a"}, w.seen().notified)
		require.Equal(t, map[string]string{"b": "parent"}, w.seen().awaited)
		advance(time.Minute)
		require.Len(t, w.seen().notified, 1)
		require.Empty(t, w.seen().canceled)
	})
}

func TestScanFindsMissedEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Waiting}, awaits("a", "parent"), awaits("closed", "parent"))
		w.fails["a"] = []error{errors.New("temporal is unavailable"), errors.New("temporal is unavailable")}
		w.fails["closed"] = []error{run.ErrClosed}
		for id := range w.awaited {
			w.end(id, run.Failed)
		}
		w.locked = true
		w.startWatcher(t)
		advance(10*time.Second + time.Second/2) // between two scans
		require.Empty(t, w.seen().notified, "another process holds the lock")
		w.mu.Lock()
		w.locked = false
		w.mu.Unlock()
		advance(20 * time.Second)
		require.Len(t, w.seen().notified, 4, "retried until accepted")
		require.Empty(t, w.seen().awaited)
		before := w.seen().scans
		advance(9 * time.Second)
		require.Equal(t, 3, w.seen().scans-before, "a scan without links is one query")
	})
}

func TestUnknownParentIsNotifiedLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Waiting}, awaits("found", "parent"), awaits("lost", "gone"))
		w.end("gone", run.Waiting)
		w.end("found", run.Completed)
		w.end("lost", run.Completed)
		w.fails["found"] = []error{run.ErrNotKnown, run.ErrNotKnown}
		w.fails["lost"] = slices.Repeat([]error{run.ErrNotKnown}, 1000)
		watcher := w.startWatcher(t)
		watcher.Ended("found")
		synctest.Wait()
		require.Equal(t, []string{"found parent key of found"}, w.seen().notified)
		require.Contains(t, w.seen().awaited, "found", "its parent's row is open")
		advance(time.Minute)
		require.NotContains(t, w.seen().awaited, "found", "it was accepted in the end")
		before := len(w.seen().notified)
		advance(time.Hour)
		require.Contains(t, w.seen().awaited, "lost")
		require.Less(t, len(w.seen().notified)-before, 20, "with increasing delays")

		w.end("gone", run.Failed)
		watcher.Ended("gone")
		synctest.Wait()
		require.Empty(t, w.seen().awaited, "the parent has ended")
	})
}

func TestUnreadableEndIsReportedAfterRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Waiting}, awaits("read", "parent"), awaits("never", "parent"))
		w.end("read", run.Failed)
		w.end("never", run.Failed)
		unreadable := fmt.Errorf("%w: no key", child.ErrUnreadable)
		w.fails["read"] = slices.Repeat([]error{unreadable}, 5)
		w.fails["never"] = slices.Repeat([]error{unreadable}, 1000)
		watcher := w.startWatcher(t)
		watcher.Ended("read", "never")
		advance(10 * time.Minute)
		require.NotContains(t, w.seen().awaited, "read", "a key was restored")
		advance(45 * time.Minute)
		require.Contains(t, w.seen().awaited, "never")
		advance(15 * time.Minute)
		notified := w.seen().notified
		require.Empty(t, w.seen().awaited)
		require.Equal(t, "never parent key of never: its end cannot be read: no key", notified[len(notified)-1])
		require.Less(t, len(notified), 40, "with increasing delays")
	})
}

func TestChildrenOfEndedParentAreCanceledOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.TimedOut}, awaits("a", "parent"), awaits("orphan", "gone"),
			run.Run{ID: "left", Status: run.Running, Parent: run.Parent{RunID: "parent"}})
		w.fails["a"] = []error{apperror.New(apperror.Refused, apperror.RunStarting, "being handed over")}
		watcher := w.startWatcher(t)
		watcher.Ended("parent")
		advance(30 * time.Second)
		require.ElementsMatch(t, []string{"a", "a", "orphan"}, w.seen().canceled)
		w.end("a", run.Canceled)
		w.end("orphan", run.Canceled)
		advance(10 * time.Second)
		require.Empty(t, w.seen().awaited)
		require.Empty(t, w.seen().notified, "the parent has ended")
	})
}

func TestCanceledTreeIsCanceledFromTheTop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "root", Status: run.Running, CancelRequested: true}, awaits("1", "root"),
			awaits("2", "1"), awaits("3", "2"),
			run.Run{ID: "free", Status: run.Running, Parent: run.Parent{RunID: "root"}}, awaits("of free", "free"))
		w.fails["2"] = []error{errors.New("temporal is unavailable"),
			apperror.New(apperror.Refused, apperror.RunEnded, "its row is behind")}
		w.startWatcher(t)
		advance(4 * time.Second)
		require.Equal(t, []string{"1", "2"}, w.seen().canceled, "a run that is canceled makes its children due at once")
		advance(10 * time.Second)
		require.Equal(t, []string{"1", "2", "2", "2", "3"}, w.seen().canceled,
			"no runs but those that are awaited, each until it has the request")
		require.Empty(t, w.seen().notified)
	})
}

func TestParentOfCanceledChildIsCanceledBeforeItIsNotified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "root", Status: run.Running, CancelRequested: true}, awaits("parent", "root"),
			awaits("a", "parent"), awaits("b", "parent"))
		w.fails["parent"] = []error{errors.New("temporal is unavailable")}
		w.end("a", run.Canceled)
		w.end("b", run.Failed)
		w.startWatcher(t).Ended("a")
		synctest.Wait()
		require.Empty(t, w.seen().notified, "it would handle an error")
		advance(10 * time.Second)
		require.True(t, w.rows["parent"].CancelRequested)
		require.ElementsMatch(t, []string{"a parent key of a: canceled with its parent", "b parent key of b"},
			w.seen().notified)
	})
}

func TestCancellationInAnotherTemporalBacksOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Terminated}, awaits("a", "parent"))
		w.fails["a"] = slices.Repeat([]error{apperror.New(apperror.Refused, apperror.RunElsewhere, "it may continue there")},
			1000)
		w.startWatcher(t)
		advance(time.Hour)
		require.Greater(t, len(w.seen().canceled), 10)
		require.Less(t, len(w.seen().canceled), 25)
		w.mu.Lock()
		clear(w.fails)
		w.mu.Unlock()
		advance(6 * time.Minute)
		require.True(t, w.rows["a"].CancelRequested, "it is canceled once Temporal accepts it")
	})
}

func TestManyEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newPlatform(run.Run{ID: "parent", Status: run.Waiting})
		watcher := w.startWatcher(t)
		for range 20_000 {
			watcher.Ended("none") // the queue is bounded
		}
		advance(10 * time.Second)
		require.Empty(t, w.seen().notified)
	})
}
