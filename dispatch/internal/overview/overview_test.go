package overview_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/dispatchtype"
	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervisor"
	"github.com/signalbox-dev/signalbox/dispatch/internal/wire"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders = inbox.Name{Project: "shop", TaskQueue: "orders"}
	bills  = inbox.Name{Project: "shop", TaskQueue: "bills"}
	timing = dispatchtype.Timing{}.WithDefaults()
	errOut = errors.New("it is away")
)

// fixture is all sources; errs has their errors.
type fixture struct {
	overview.Sources
	leases *lease.Memory
	rows   []inbox.Progress
	open   []supervisor.Listed
	states map[string]dispatchtype.State // by run ID
	errs   map[dispatchtype.Part]error
	lags   bool // Temporal's list lags behind
	// unlisted: the open workflow has another type, and is never in the list.
	unlisted bool
}

func run(t *testing.T, test func(t *testing.T, f *fixture)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{leases: lease.NewMemory(), states: map[string]dispatchtype.State{}, errs: map[dispatchtype.Part]error{}}
		f.Sources = overview.Sources{
			Leases: f.leases, Inbox: f, Temporal: f,
			Rules: plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention,
				LegacyIDs: []string{"router-{project}"}},
		}
		test(t, f)
	})
}

func (f *fixture) Progress(_ context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	if err := f.errs[dispatchtype.PartInbox]; err != nil {
		return nil, err
	}
	var out []inbox.Progress
	for _, p := range f.rows {
		if len(names) == 0 || p.Name == names[0] {
			out = append(out, p)
		}
	}
	return out, nil
}

func (f *fixture) List(context.Context) ([]supervisor.Listed, error) {
	if f.lags || f.unlisted {
		return nil, nil
	}
	return f.open, f.errs[dispatchtype.PartTemporal]
}

func (f *fixture) Describe(_ context.Context, id, _ string) (*supervisor.Listed, error) {
	for i := range f.open {
		if f.open[i].WorkflowID == id {
			return &f.open[i], f.errs[dispatchtype.PartTemporal]
		}
	}
	return nil, f.errs[dispatchtype.PartTemporal]
}

func (f *fixture) State(ctx context.Context, _, runID string) (dispatchtype.State, error) {
	state, ok := f.states[runID]
	if !ok {
		<-ctx.Done() // no worker answers
		return state, ctx.Err()
	}
	return state, f.errs[dispatchtype.PartState]
}

func (f *fixture) leasesAway(t *testing.T) {
	t.Helper()
	f.Leases = away{}
}

// away is a store that cannot be read.
type away struct{ lease.Store }

func (away) Get(context.Context, string) (lease.Entry, error) { return lease.Entry{}, errOut }

func (away) List(context.Context, string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, errOut) }
}

func (f *fixture) holds(t *testing.T, key, holder string, value any, terms lease.Lifetime) lease.Entry {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	e, _, err := f.leases.Acquire(t.Context(), key, holder, text, terms)
	require.NoError(t, err)
	return e
}

// keepsOrders renews the lease of the dispatcher of orders for a time.
func (f *fixture) keepsOrders(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		<-time.After(min(timing.Renew, time.Until(end)))
		e, err := f.leases.Get(t.Context(), wire.OwnerKey(orders))
		require.NoError(t, err)
		_, err = f.leases.Renew(t.Context(), e.Key, e.Token, nil, timing.Owner())
		require.NoError(t, err)
	}
}

// resignsOrders resigns the lease of orders.
func (f *fixture) resignsOrders(t *testing.T) {
	t.Helper()
	e, err := f.leases.Get(t.Context(), wire.OwnerKey(orders))
	require.NoError(t, err)
	require.NoError(t, f.leases.Resign(t.Context(), e.Key, e.Token))
}

// serves makes the one worker serve another project.
func (f *fixture) serves(t *testing.T, project string) {
	t.Helper()
	key := wire.WorkerKey("a")
	e, err := f.leases.Get(t.Context(), key)
	require.NoError(t, err)
	value, err := json.Marshal(dispatchtype.Heartbeat{ServerID: "a", Projects: []string{project}, Serves: 1})
	require.NoError(t, err)
	_, err = f.leases.Renew(t.Context(), key, e.Token, value, timing.Worker())
	require.NoError(t, err)
}

func (f *fixture) opens(id, runID string, name inbox.Name, epoch int64) {
	f.open = append(f.open, supervisor.Listed{
		Execution: wire.Execution{
			WorkflowID: id, RunID: runID, Type: wire.WorkflowType, TaskQueue: name.TaskQueue,
			Memo: &wire.Memo{Name: name, Owner: "a", Epoch: epoch, Interpreter: 1},
		},
		StartedAt: time.Now().Add(-time.Hour), HistoryLength: 17,
	})
}

// healthy sets up one dispatcher with a live owner.
func (f *fixture) healthy(t *testing.T) lease.Entry {
	t.Helper()
	f.opens("dispatcher-shop-orders", "r1", orders, 3)
	f.rows = append(f.rows, inbox.Progress{Name: orders, Owner: inbox.Owner{Epoch: 3, Holder: "a"}, Head: 9, Routed: 9})
	f.states["r1"] = dispatchtype.State{
		Name: orders, Owner: "a", Epoch: 3, Phase: dispatchtype.Routing,
		Workers: []dispatchtype.RegisteredWorker{{ServerID: "a"}, {ServerID: "gone"}}}
	f.holds(t, wire.WorkerKey("a"), "a",
		dispatchtype.Heartbeat{ServerID: "a", Build: "1.2.3", Projects: []string{"shop"}, Serves: 1}, timing.Worker())
	return f.holds(t, wire.OwnerKey(orders), "a", wire.Claim{ServerID: "a", Epoch: 3}, timing.Owner())
}

func TestGetReturnsAllSources(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		entry := f.healthy(t)
		f.opens("router-shop", "old", orders, 1)
		<-time.After(4 * time.Second)
		list, err := f.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		d := list[0]
		require.Equal(t, []any{orders, "dispatcher-shop-orders", dispatchtype.Routing, dispatchtype.ClassHealthy},
			[]any{d.Name, d.WorkflowID, d.Status, d.Class})
		require.Equal(t, []any{"r1", inbox.Owner{Epoch: 3, Holder: "a"}, 1, int64(17)},
			[]any{d.Execution.RunID, d.Execution.Owner, d.Execution.Interpreter, d.Execution.HistoryLength})
		require.Equal(t, []any{lease.Held, inbox.Owner{Epoch: 3, Holder: "a"}, 5 * time.Second},
			[]any{d.Lease.State, d.Lease.Owner, d.Lease.Remaining})
		require.NotEqual(t, entry.Token, d.Lease.Token, "a token is not shown in full")
		require.Contains(t, entry.Token, d.Lease.Token)
		require.Equal(t, int64(9), d.Progress.Head)
		require.Len(t, d.Others, 1)
		require.Equal(t, 1, d.Stale)
		require.Nil(t, d.State)
		require.Empty(t, d.Errors)

		got, err := f.Get(t.Context(), orders)
		require.NoError(t, err)
		require.Equal(t, dispatchtype.Routing, got.Status)
		require.Equal(t, d.Others, got.Others)
		require.Len(t, got.State.Workers, 2)
	})
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(t *testing.T, f *fixture)
		status  dispatchtype.Status
		class   dispatchtype.Class
		errors  int
	}{
		"parked": {func(_ *testing.T, f *fixture) {
			f.rows[0].Parked = true
		}, dispatchtype.Parked, dispatchtype.ClassHealthy, 0},
		"missing": {func(_ *testing.T, f *fixture) { f.open = nil }, dispatchtype.Missing, "", 0},
		"not listed yet": {func(_ *testing.T, f *fixture) {
			f.lags = true
		}, dispatchtype.Routing, dispatchtype.ClassHealthy, 0},
		"foreign": {func(_ *testing.T, f *fixture) { f.open[0].Memo.Name.Project = "else" }, dispatchtype.Foreign, "", 0},
		"stale": {func(t *testing.T, f *fixture) {
			f.rows[0].SinceProgress = time.Hour
			<-time.After(time.Minute)
			f.holds(t, wire.WorkerKey("b"), "b", dispatchtype.Heartbeat{ServerID: "b", Projects: []string{"else"}, Serves: 1},
				timing.Worker())
		}, dispatchtype.Stale, dispatchtype.ClassStale, 0},
		"stale without workers": {func(_ *testing.T, f *fixture) {
			f.rows[0].SinceProgress = time.Hour
			<-time.After(time.Minute)
		}, dispatchtype.NoWorkers, dispatchtype.ClassStale, 0},
		"no workers": {func(t *testing.T, f *fixture) {
			f.serves(t, "else")
		}, dispatchtype.NoWorkers, dispatchtype.ClassHealthy, 0},
		"more projects than a heartbeat names": {func(t *testing.T, f *fixture) {
			f.holds(t, wire.WorkerKey("b"), "b", dispatchtype.Heartbeat{ServerID: "b", Projects: []string{"else"}, Serves: 2},
				timing.Worker())
			f.serves(t, "else")
		}, dispatchtype.Routing, dispatchtype.ClassHealthy, 0},
		"foreign of another type": {func(_ *testing.T, f *fixture) {
			f.open[0].Type, f.open[0].Memo, f.unlisted = "theirs.type", nil, true
		}, dispatchtype.Foreign, "", 0},
		"foreign without an owner": {func(t *testing.T, f *fixture) {
			f.open[0].Type, f.open[0].Memo, f.unlisted = "theirs.type", nil, true
			f.resignsOrders(t)
		}, dispatchtype.Foreign, "", 0},
		"superseded": {func(t *testing.T, f *fixture) {
			f.rows[0].Owner.Epoch = 4 // the owner's epoch; its termination fails
			f.keepsOrders(t, 11*time.Second)
		}, dispatchtype.Stale, dispatchtype.ClassHealthy, 0},
		"superseded, between two attempts": {func(t *testing.T, f *fixture) {
			f.rows[0].Owner.Epoch = 4
			f.keepsOrders(t, 11*time.Second)
			f.resignsOrders(t)
		}, dispatchtype.Stale, dispatchtype.ClassUnknown, 0},
		"superseded, in the second attempt": {func(t *testing.T, f *fixture) {
			f.rows[0].Owner.Epoch = 5
			f.resignsOrders(t)
			f.holds(t, wire.OwnerKey(orders), "a", wire.Claim{ServerID: "a", Epoch: 5}, timing.Owner())
		}, dispatchtype.Stale, dispatchtype.ClassHealthy, 0},
		"superseded, of a release without owners": {func(t *testing.T, f *fixture) {
			f.open[0].Memo = nil
			f.rows[0].Due, f.rows[0].Pending, f.rows[0].Lag, f.rows[0].SinceProgress = true, 1, 11*time.Second, 11*time.Second
			f.resignsOrders(t)
			f.holds(t, wire.OwnerKey(orders), "a", wire.Claim{ServerID: "a", Epoch: 4}, timing.Owner())
		}, dispatchtype.Stale, dispatchtype.ClassHealthy, 0},
		"resigned": {func(t *testing.T, f *fixture) {
			f.resignsOrders(t)
		}, dispatchtype.Routing, dispatchtype.ClassUnknown, 0},
		"about to be adopted": {func(_ *testing.T, f *fixture) {
			f.rows[0].Owner.Epoch = 4
		}, dispatchtype.Routing, dispatchtype.ClassHealthy, 0},
		"unknown to the inbox": {func(_ *testing.T, f *fixture) {
			f.rows = nil
		}, dispatchtype.Unknown, dispatchtype.ClassHealthy, 0},
		"leases away": {func(t *testing.T, f *fixture) {
			f.leasesAway(t)
		}, dispatchtype.Routing, dispatchtype.ClassUnknown, 1},
		"inbox away": {func(_ *testing.T, f *fixture) {
			f.errs[dispatchtype.PartInbox] = errOut
		}, dispatchtype.Unknown, dispatchtype.ClassHealthy, 1},
		"inbox and worker away": {func(_ *testing.T, f *fixture) {
			f.errs[dispatchtype.PartInbox] = errOut
			<-time.After(time.Minute)
		}, dispatchtype.NoWorkers, dispatchtype.ClassUnknown, 1},
		"Temporal away": {func(_ *testing.T, f *fixture) {
			f.errs[dispatchtype.PartTemporal], f.open = errOut, nil
		}, dispatchtype.Unknown, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(t *testing.T, f *fixture) {
				f.healthy(t)
				c.arrange(t, f)
				list, err := f.Sources.List(t.Context())
				require.NoError(t, err)
				got, err := f.Get(t.Context(), orders)
				require.NoError(t, err)
				for _, d := range []dispatchtype.Dispatcher{list[0], got} {
					require.Equal(t, []any{c.status, c.class, c.errors}, []any{d.Status, d.Class, len(d.Errors)}, d.Reason)
				}
			})
		})
	}
}

// TestUnknownDispatchers are those of the dispatchers' type on a task queue of ours under an ID that is no
// dispatcher's, and only those.
func TestUnknownDispatchers(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.healthy(t)
		for _, id := range []string{"router-1", "elsewhere"} {
			planted := f.open[0]
			planted.WorkflowID, planted.RunID, planted.Memo = id, id, nil
			if id == "elsewhere" {
				planted.TaskQueue = "elsewhere"
			}
			f.open = append(f.open, planted)
		}
		list, err := f.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, dispatchtype.Routing, list[0].Status)
		require.Len(t, list[0].Unknown, 1)
		require.Equal(t, "router-1", list[0].Unknown[0].WorkflowID)
	})
}

// TestNamesWithoutSource are listed with the same status as from Get.
func TestNamesWithoutSource(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.healthy(t)
		never, idle := inbox.Name{Project: "shop", TaskQueue: "never"}, inbox.Name{Project: "idle", TaskQueue: "q"}
		var failure error
		f.Names = func(context.Context) (all, unserved []inbox.Name, err error) {
			if failure != nil {
				return nil, nil, failure
			}
			return []inbox.Name{orders, never, idle}, nil, nil
		}
		statuses := func() map[inbox.Name]dispatchtype.Status {
			list, err := f.Sources.List(t.Context())
			require.NoError(t, err)
			require.True(t, slices.IsSortedFunc(list, func(a, b dispatchtype.Dispatcher) int { return a.Name.Compare(b.Name) }))
			found := map[inbox.Name]dispatchtype.Status{}
			for _, d := range list {
				found[d.Name] = d.Status
			}
			require.Len(t, found, len(list))
			return found
		}
		require.Equal(t, map[inbox.Name]dispatchtype.Status{
			orders: dispatchtype.Routing, never: dispatchtype.Missing, idle: dispatchtype.NoWorkers}, statuses())
		for _, name := range []inbox.Name{never, idle} {
			d, err := f.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, statuses()[name], d.Status)
			require.Equal(t, &inbox.Progress{Name: name, SinceProgress: -1}, d.Progress, "a zero progress")
		}
		failure = errOut
		list, err := f.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []dispatchtype.PartError{{Part: dispatchtype.PartInbox, Err: errOut}}, list[0].Errors)
	})
}

// TestUnservedNames are parked, whether or not their dispatcher is open, and are not asked: no process could answer.
func TestUnservedNames(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.healthy(t)
		f.opens("dispatcher-idle-q", "mute", inbox.Name{Project: "idle", TaskQueue: "q"}, 1)
		ended := inbox.Name{Project: "ended", TaskQueue: "q"}
		unserved := []inbox.Name{{Project: "idle", TaskQueue: "q"}, ended}
		f.Names = func(context.Context) (all, none []inbox.Name, err error) {
			return append([]inbox.Name{orders}, unserved...), unserved, nil
		}
		list, err := f.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 3)
		for _, d := range list {
			require.Equal(t, d.Name != orders, d.Unserved)
			require.Empty(t, d.Errors)
			if d.Unserved {
				require.Equal(t, dispatchtype.Parked, d.Status)
				require.Contains(t, d.Reason, "its project is parked")
			}
		}
		began := time.Now()
		for _, name := range unserved {
			d, err := f.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, dispatchtype.Parked, d.Status)
			require.Empty(t, d.Errors)
		}
		require.Zero(t, time.Since(began))
	})
}

func TestNoSourceCanBeRead(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.leasesAway(t)
		f.errs[dispatchtype.PartInbox], f.errs[dispatchtype.PartTemporal] = errOut, errOut
		_, err := f.Sources.List(t.Context())
		require.ErrorContains(t, err, errOut.Error())
		_, err = f.Get(t.Context(), orders)
		require.ErrorContains(t, err, errOut.Error())
		_, _, err = f.Workers(t.Context())
		require.ErrorContains(t, err, errOut.Error())
	})
}

func TestUnansweringDispatcher(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.healthy(t)
		delete(f.states, "r1")
		began := time.Now()
		d, err := f.Get(t.Context(), orders)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, dispatchtype.PartState, d.Errors[0].Part)
		require.Equal(t, dispatchtype.Routing, d.Status)
		missing, err := f.Get(t.Context(), bills)
		require.NoError(t, err)
		require.Equal(t, dispatchtype.Missing, missing.Status)
	})
}

func TestWorkers(t *testing.T) {
	run(t, func(t *testing.T, f *fixture) {
		f.healthy(t)
		f.opens("dispatcher-shop-bills", "mute", bills, 1)
		stopped := f.holds(t, wire.WorkerKey("b"), "b", "no beat", timing.Worker())
		require.NoError(t, f.leases.Resign(t.Context(), stopped.Key, stopped.Token))
		<-time.After(25 * time.Second)
		f.holds(t, wire.WorkerKey("c"), "c", dispatchtype.Heartbeat{ServerID: "c"}, timing.Worker())
		<-time.After(5 * time.Second)
		workers, errs, err := f.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0].Err, "the registrations with 1 dispatchers could not be read")
		var got []any
		for _, worker := range workers {
			got = append(got, worker.ServerID, worker.Status, len(worker.Registrations))
		}
		require.Equal(t, []any{"a", dispatchtype.WorkerLate, 1, "b", dispatchtype.WorkerStopped, 0, "c",
			dispatchtype.WorkerAlive, 0, "gone", dispatchtype.WorkerSilent, 1}, got)
		require.Equal(t, []any{"1.2.3", 30 * time.Second, -10 * time.Second},
			[]any{workers[0].Heartbeat.Build, workers[0].Age, workers[0].StaleIn})
		require.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second},
			[]time.Duration{workers[2].Age, workers[2].StaleIn})
		<-time.After(30 * time.Second)
		workers, _, err = f.Workers(t.Context())
		require.NoError(t, err)
		require.Equal(t, []any{"a", dispatchtype.WorkerDead}, []any{workers[0].ServerID, workers[0].Status})
		f.leasesAway(t)
		workers, errs, err = f.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, workers, 2)
		require.Equal(t, []dispatchtype.WorkerStatus{dispatchtype.WorkerUnknown, dispatchtype.WorkerUnknown},
			[]dispatchtype.WorkerStatus{workers[0].Status, workers[1].Status})
		require.Equal(t, dispatchtype.PartLeases, errs[0].Part)

		f.states["mute"] = dispatchtype.State{Name: bills, Workers: []dispatchtype.RegisteredWorker{{ServerID: "a"}}}
		workers, _, err = f.Workers(t.Context())
		require.NoError(t, err)
		var names []inbox.Name
		for _, r := range workers[0].Registrations {
			names = append(names, r.Name)
		}
		require.Equal(t, []inbox.Name{bills, orders}, names)
	})
}
