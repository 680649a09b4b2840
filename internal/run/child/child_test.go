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

	"github.com/signalbox-dev/signalbox/internal/auth"
	"github.com/signalbox-dev/signalbox/internal/fault"
	"github.com/signalbox-dev/signalbox/internal/run"
	"github.com/signalbox-dev/signalbox/internal/run/child"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the platform around children.
type world struct {
	mu       sync.Mutex
	rows     map[string]run.Run
	awaited  map[string]string // run → parent
	started  []run.StartRequest
	starters []string
	canceled []string
	told     []string
	// fails is what the next telling, or cancellation, of a run answers.
	fails  map[string][]error
	locked bool // somebody else holds the lock
	looks  int
}

func newWorld(rows ...run.Run) *world {
	w := &world{rows: map[string]run.Run{}, awaited: map[string]string{}, fails: map[string][]error{}}
	for _, r := range rows {
		r.Project = "p"
		w.rows[r.ID] = r
		if r.Parent.Awaited {
			w.awaited[r.ID] = r.Parent.RunID
		}
	}
	return w
}

func (w *world) Start(ctx context.Context, req run.StartRequest) (run.Run, bool, error) {
	actor, _ := auth.ActorFrom(ctx)
	w.started, w.starters = append(w.started, req), append(w.starters, actor.Name)
	return run.Run{ID: "new"}, true, nil
}

func (w *world) answer(id string) error {
	if answers := w.fails[id]; len(answers) > 0 {
		w.fails[id] = answers[1:]
		return answers[0]
	}
	return nil
}

func (w *world) Cancel(_ context.Context, _, id, _ string) (run.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.canceled = append(w.canceled, id)
	if err := w.answer(id); err != nil {
		return run.Run{}, err
	}
	r := w.rows[id]
	r.CancelRequested = true
	w.rows[id] = r
	return r, nil
}

func (w *world) GetRun(_ context.Context, _, id string) (run.Run, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.rows[id]
	if !ok {
		return r, fault.New(fault.NotFound, fault.RunNotFound, "no run %s", id)
	}
	return r, nil
}

func (w *world) Due(_ context.Context, after string, limit int) ([]child.Link, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	var out []child.Link
	for id, parent := range w.awaited {
		r, p := w.rows[id], w.rows[parent]
		l := child.Link{
			RunID: id, Project: "p", Parent: parent, Ended: r.Status.Terminal(), ParentEnded: p.Status.Terminal() || p.ID == "",
			CancelRequested: r.CancelRequested,
		}
		if id > after && (l.Ended || l.ParentEnded && !l.CancelRequested) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b child.Link) int { return len(a.RunID) - len(b.RunID) })
	return out[:min(len(out), limit)], nil
}

func (w *world) DueFor(ctx context.Context, ids []string) ([]child.Link, error) {
	all, err := w.Due(ctx, "", 1000)
	return slices.DeleteFunc(all, func(l child.Link) bool {
		return !slices.Contains(ids, l.RunID) && !slices.Contains(ids, l.Parent)
	}), err
}

func (w *world) Key(_ context.Context, id string) (string, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, awaited := w.awaited[id]
	return "key of " + id, awaited, nil
}

func (w *world) Told(_ context.Context, id string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.awaited, id)
	return nil
}

func (w *world) TellParent(_ context.Context, r run.Run) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, r.ID+" "+r.Parent.RunID+" "+r.Parent.Key)
	return w.answer(r.ID)
}

func (w *world) TellUnreadable(_ context.Context, r run.Run, why error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told = append(w.told, r.ID+" "+r.Parent.RunID+" "+r.Parent.Key+": "+why.Error())
	return nil
}

func (w *world) alone(ctx context.Context, _ string, work func(context.Context) error) (bool, error) {
	w.mu.Lock()
	locked := w.locked
	w.mu.Unlock()
	if locked {
		return false, nil
	}
	return true, work(ctx)
}

func (w *world) end(id string, status run.Status) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.rows[id]
	r.ID, r.Status = id, status
	w.rows[id] = r
}

// seen is what has come about.
type seen struct {
	told, canceled []string
	awaited        map[string]string
	looks          int
}

func (w *world) seen() seen {
	w.mu.Lock()
	defer w.mu.Unlock()
	return seen{slices.Clone(w.told), slices.Clone(w.canceled), maps.Clone(w.awaited), w.looks}
}

// watch watches the world until the test ends.
func (w *world) watch(t *testing.T) *child.Watch {
	t.Helper()
	watch := child.NewWatch(w, w, w, w, w.alone)
	require.NoError(t, watch.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, watch.Stop(context.WithoutCancel(t.Context()))) })
	return watch
}

func awaits(id, parent string) run.Run {
	return run.Run{ID: id, Status: run.Running, Parent: run.Parent{RunID: parent, Awaited: true}}
}

// pass lets time pass, and what follows of it happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func TestStart(t *testing.T) {
	t.Parallel()
	w := newWorld(run.Run{ID: "top"}, run.Run{ID: "deep", Parent: run.Parent{Depth: 2}}, run.Run{ID: "deepest", Parent: run.Parent{Depth: 3}})
	s := child.New(w, w, child.Options{MaxDepth: 3})
	req := child.Request{Project: "p", Parent: "deep", Path: "/do/0/x", Key: "k", Workflow: "a/b", Version: "1.0.0", Input: []byte(`1`), Awaited: true}
	r, err := s.Start(t.Context(), req)
	require.NoError(t, err)
	require.Equal(t, "new", r.ID)
	require.Equal(t, []run.StartRequest{{
		Project: "p", Workflow: "a/b", Version: "1.0.0", Input: []byte(`1`), RequestID: "child:k", Trigger: run.TriggerParent,
		InputHidden: true,
		Parent:      run.Parent{RunID: "deep", Path: "/do/0/x", Depth: 3, Key: "k", Awaited: true},
	}}, w.started)
	require.Equal(t, []string{"run deep"}, w.starters)

	req.Parent = "deepest"
	_, err = s.Start(t.Context(), req)
	require.ErrorIs(t, err, child.ErrTooDeep)
	require.ErrorContains(t, err, "runs.max_depth is 3")
	req.Parent = "none"
	_, err = s.Start(t.Context(), req)
	require.True(t, fault.Is(err, fault.RunNotFound))
	require.Len(t, w.started, 1)
}

func TestCancelOfWhatHasEndedIsDone(t *testing.T) {
	t.Parallel()
	w := newWorld(awaits("a", "p"))
	s := child.New(w, w, child.Options{MaxDepth: 3})
	for _, reason := range []string{fault.RunEnded, fault.RunCanceling, fault.RunNotFound} {
		w.fails["a"] = []error{fault.New(fault.Refused, reason, "no")}
		require.NoError(t, s.Cancel(t.Context(), "p", "a", "why"))
	}
	w.fails["a"] = []error{errors.New("away")}
	require.Error(t, s.Cancel(t.Context(), "p", "a", "why"))
}

func TestEndIsToldAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Waiting}, awaits("a", "parent"), awaits("b", "parent"))
		watch := w.watch(t)
		w.end("a", run.Completed)
		watch.Ended("a", "unknown")
		synctest.Wait()
		require.Equal(t, []string{"a parent key of a"}, w.seen().told)
		require.Equal(t, map[string]string{"b": "parent"}, w.seen().awaited)
		pass(time.Minute)
		require.Len(t, w.seen().told, 1)
		require.Empty(t, w.seen().canceled)
	})
}

func TestEndThatNobodyHeardOfIsFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Waiting}, awaits("a", "parent"), awaits("closed", "parent"))
		w.fails["a"] = []error{errors.New("temporal is away"), errors.New("temporal is away")}
		w.fails["closed"] = []error{run.ErrClosed}
		for id := range w.awaited {
			w.end(id, run.Failed)
		}
		w.locked = true
		w.watch(t)
		pass(10*time.Second + time.Second/2) // between two looks
		require.Empty(t, w.seen().told, "another process is at it")
		w.mu.Lock()
		w.locked = false
		w.mu.Unlock()
		pass(20 * time.Second)
		require.Len(t, w.seen().told, 4, "until it is taken")
		require.Empty(t, w.seen().awaited)
		before := w.seen().looks
		pass(9 * time.Second)
		require.Equal(t, 3, w.seen().looks-before, "one small look is all that it costs")
	})
}

func TestParentThatTemporalDoesNotKnowIsToldLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Waiting}, awaits("found", "parent"), awaits("lost", "gone"))
		w.end("gone", run.Waiting)
		w.end("found", run.Completed)
		w.end("lost", run.Completed)
		w.fails["found"] = []error{run.ErrNotKnown, run.ErrNotKnown}
		w.fails["lost"] = slices.Repeat([]error{run.ErrNotKnown}, 1000)
		watch := w.watch(t)
		watch.Ended("found")
		synctest.Wait()
		require.Equal(t, []string{"found parent key of found"}, w.seen().told)
		require.Contains(t, w.seen().awaited, "found", "its parent's row is open")
		pass(time.Minute)
		require.NotContains(t, w.seen().awaited, "found", "it was taken in the end")
		before := len(w.seen().told)
		pass(time.Hour)
		require.Contains(t, w.seen().awaited, "lost")
		require.Less(t, len(w.seen().told)-before, 20, "less and less often")

		w.end("gone", run.Failed)
		watch.Ended("gone")
		synctest.Wait()
		require.Empty(t, w.seen().awaited, "there is nobody to tell")
	})
}

func TestEndThatCannotBeReadIsToldAsThatInTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Waiting}, awaits("read", "parent"), awaits("never", "parent"))
		w.end("read", run.Failed)
		w.end("never", run.Failed)
		unreadable := fmt.Errorf("%w: no key", child.ErrUnreadable)
		w.fails["read"] = slices.Repeat([]error{unreadable}, 5)
		w.fails["never"] = slices.Repeat([]error{unreadable}, 1000)
		watch := w.watch(t)
		watch.Ended("read", "never")
		pass(10 * time.Minute)
		require.NotContains(t, w.seen().awaited, "read", "a key was put back")
		pass(45 * time.Minute)
		require.Contains(t, w.seen().awaited, "never")
		pass(15 * time.Minute)
		told := w.seen().told
		require.Empty(t, w.seen().awaited)
		require.Equal(t, "never parent key of never: its end cannot be read: no key", told[len(told)-1])
		require.Less(t, len(told), 40, "less and less often")
	})
}

func TestRunsWhoseParentHasEndedAreCanceledOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.TimedOut}, awaits("a", "parent"), awaits("orphan", "gone"),
			run.Run{ID: "left", Status: run.Running, Parent: run.Parent{RunID: "parent"}})
		w.fails["a"] = []error{fault.New(fault.Refused, fault.RunStarting, "being handed over")}
		watch := w.watch(t)
		watch.Ended("parent")
		pass(30 * time.Second)
		require.ElementsMatch(t, []string{"a", "a", "orphan"}, w.seen().canceled)
		w.end("a", run.Canceled)
		w.end("orphan", run.Canceled)
		pass(10 * time.Second)
		require.Empty(t, w.seen().awaited)
		require.Empty(t, w.seen().told, "there is nobody to tell")
	})
}

func TestOrphanInAnotherTemporalIsAskedForLessAndLessOften(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Terminated}, awaits("a", "parent"))
		w.fails["a"] = slices.Repeat([]error{fault.New(fault.Refused, fault.RunElsewhere, "it may go on there")}, 1000)
		w.watch(t)
		pass(time.Hour)
		require.Greater(t, len(w.seen().canceled), 10)
		require.Less(t, len(w.seen().canceled), 25)
		w.mu.Lock()
		clear(w.fails)
		w.mu.Unlock()
		pass(6 * time.Minute)
		require.True(t, w.rows["a"].CancelRequested, "it is canceled when it can be")
	})
}

func TestManyEndsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(run.Run{ID: "parent", Status: run.Waiting})
		watch := w.watch(t)
		for range 20_000 {
			watch.Ended("none") // bounded, whatever comes
		}
		pass(10 * time.Second)
		require.Empty(t, w.seen().told)
	})
}
