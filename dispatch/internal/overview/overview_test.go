package overview_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/signalbox-dev/signalbox/dispatch/inbox"
	"github.com/signalbox-dev/signalbox/dispatch/internal/contract"
	"github.com/signalbox-dev/signalbox/dispatch/internal/overview"
	"github.com/signalbox-dev/signalbox/dispatch/internal/plan"
	"github.com/signalbox-dev/signalbox/dispatch/internal/supervise"
	"github.com/signalbox-dev/signalbox/dispatch/internal/terms"
	"github.com/signalbox-dev/signalbox/lease"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	orders = inbox.Name{Project: "shop", TaskQueue: "orders"}
	bills  = inbox.Name{Project: "shop", TaskQueue: "bills"}
	timing = terms.Timing{}.WithDefaults()
	errOut = errors.New("it is away")
)

// world is all three sides. err is what one of them answers instead.
type world struct {
	overview.Sources
	leases *lease.Memory
	rows   []inbox.Progress
	open   []supervise.Listed
	states map[string]contract.State // by run ID
	errs   map[overview.Part]error
	lags   bool // Temporal's list does not show yet what is open
	// unlisted: what is open is of another type, and never in the list.
	unlisted bool
}

func inWorld(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &world{leases: lease.NewMemory(), states: map[string]contract.State{}, errs: map[overview.Part]error{}}
		w.Sources = overview.Sources{
			Leases: w.leases, Inbox: w, Temporal: w,
			Rules: plan.Rules{StaleAfter: timing.StaleAfter, Retention: timing.Retention, LegacyIDs: []string{"router-{project}"}},
		}
		test(t, w)
	})
}

func (w *world) Progress(_ context.Context, names ...inbox.Name) ([]inbox.Progress, error) {
	if err := w.errs[overview.PartInbox]; err != nil {
		return nil, err
	}
	var out []inbox.Progress
	for _, p := range w.rows {
		if len(names) == 0 || p.Name == names[0] {
			out = append(out, p)
		}
	}
	return out, nil
}

func (w *world) List(context.Context) ([]supervise.Listed, error) {
	if w.lags || w.unlisted {
		return nil, nil
	}
	return w.open, w.errs[overview.PartTemporal]
}

func (w *world) Describe(_ context.Context, id, _ string) (*supervise.Listed, error) {
	for i := range w.open {
		if w.open[i].WorkflowID == id {
			return &w.open[i], w.errs[overview.PartTemporal]
		}
	}
	return nil, w.errs[overview.PartTemporal]
}

func (w *world) State(ctx context.Context, _, runID string) (contract.State, error) {
	state, ok := w.states[runID]
	if !ok {
		<-ctx.Done() // nobody is there to answer
		return state, ctx.Err()
	}
	return state, w.errs[overview.PartState]
}

func (w *world) leasesAway(t *testing.T) {
	t.Helper()
	w.Leases = away{}
}

// away is a store that cannot be asked.
type away struct{ lease.Store }

func (away) Get(context.Context, string) (lease.Entry, error) { return lease.Entry{}, errOut }

func (away) List(context.Context, string) iter.Seq2[lease.Entry, error] {
	return func(yield func(lease.Entry, error) bool) { yield(lease.Entry{}, errOut) }
}

func (w *world) holds(t *testing.T, key, holder string, value any, terms lease.Terms) lease.Entry {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	e, _, err := w.leases.Acquire(t.Context(), key, holder, text, terms)
	require.NoError(t, err)
	return e
}

// serves has the one worker serve another project.
func (w *world) serves(t *testing.T, project string) {
	t.Helper()
	key := contract.WorkerKey("a")
	e, err := w.leases.Get(t.Context(), key)
	require.NoError(t, err)
	value, err := json.Marshal(contract.Beat{ServerID: "a", Projects: []string{project}, Serves: 1})
	require.NoError(t, err)
	_, err = w.leases.Renew(t.Context(), key, e.Token, value, timing.Worker())
	require.NoError(t, err)
}

func (w *world) opens(id, runID string, name inbox.Name, epoch int64) {
	w.open = append(w.open, supervise.Listed{
		Execution: contract.Execution{
			WorkflowID: id, RunID: runID, Type: contract.WorkflowType, TaskQueue: name.TaskQueue,
			Memo: &contract.Memo{Name: name, Owner: "a", Epoch: epoch, Interpreter: 1},
		},
		StartedAt: time.Now().Add(-time.Hour), HistoryLength: 17,
	})
}

// healthy is a world with one dispatcher, whose owner is alive.
func (w *world) healthy(t *testing.T) lease.Entry {
	t.Helper()
	w.opens("dispatcher-shop-orders", "r1", orders, 3)
	w.rows = append(w.rows, inbox.Progress{Name: orders, Owner: inbox.Owner{Epoch: 3, Holder: "a"}, Head: 9, Routed: 9})
	w.states["r1"] = contract.State{Name: orders, Owner: "a", Epoch: 3, Phase: contract.Routing, Workers: []contract.Worker{{ServerID: "a"}, {ServerID: "gone"}}}
	w.holds(t, contract.WorkerKey("a"), "a", contract.Beat{ServerID: "a", Build: "1.2.3", Projects: []string{"shop"}, Serves: 1}, timing.Worker())
	return w.holds(t, contract.OwnerKey(orders), "a", contract.Claim{ServerID: "a", Epoch: 3}, timing.Owner())
}

func TestAllSidesOfADispatcher(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		entry := w.healthy(t)
		w.opens("router-shop", "old", orders, 1)
		<-time.After(4 * time.Second)
		list, err := w.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		d := list[0]
		require.Equal(t, []any{orders, "dispatcher-shop-orders", overview.Routing, plan.Healthy}, []any{d.Name, d.WorkflowID, d.Status, d.Class})
		require.Equal(t, []any{"r1", inbox.Owner{Epoch: 3, Holder: "a"}, 1, int64(17)}, []any{d.Execution.RunID, d.Execution.Owner, d.Execution.Interpreter, d.Execution.HistoryLength})
		require.Equal(t, []any{lease.Held, inbox.Owner{Epoch: 3, Holder: "a"}, 11 * time.Second}, []any{d.Lease.State, d.Lease.Owner, d.Lease.Remaining})
		require.NotEqual(t, entry.Token, d.Lease.Token, "a token is not shown in full")
		require.Contains(t, entry.Token, d.Lease.Token)
		require.Equal(t, int64(9), d.Progress.Head)
		require.Len(t, d.Others, 1)
		require.Nil(t, d.State)
		require.Empty(t, d.Errors)

		got, err := w.Get(t.Context(), orders)
		require.NoError(t, err)
		require.Equal(t, overview.Routing, got.Status)
		require.Len(t, got.State.Workers, 2)
	})
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		arrange func(t *testing.T, w *world)
		status  overview.Status
		class   plan.Class
		errors  int
	}{
		"parked":         {func(_ *testing.T, w *world) { w.rows[0].Parked = true }, overview.Parked, plan.Healthy, 0},
		"missing":        {func(_ *testing.T, w *world) { w.open = nil }, overview.Missing, "", 0},
		"not listed yet": {func(_ *testing.T, w *world) { w.lags = true }, overview.Routing, plan.Healthy, 0},
		"foreign":        {func(_ *testing.T, w *world) { w.open[0].Memo.Name.Project = "else" }, overview.Foreign, "", 0},
		"stale": {func(t *testing.T, w *world) {
			w.rows[0].SinceProgress = time.Hour
			<-time.After(time.Minute)
			w.holds(t, contract.WorkerKey("b"), "b", contract.Beat{ServerID: "b", Projects: []string{"else"}, Serves: 1}, timing.Worker())
		}, overview.Stale, plan.Stale, 0},
		"stale without workers": {func(_ *testing.T, w *world) {
			w.rows[0].SinceProgress = time.Hour
			<-time.After(time.Minute)
		}, overview.NoWorkers, plan.Stale, 0},
		"no workers": {func(t *testing.T, w *world) {
			w.serves(t, "else")
		}, overview.NoWorkers, plan.Healthy, 0},
		"more projects than a heartbeat names": {func(t *testing.T, w *world) {
			w.holds(t, contract.WorkerKey("b"), "b", contract.Beat{ServerID: "b", Projects: []string{"else"}, Serves: 2}, timing.Worker())
			w.serves(t, "else")
		}, overview.Routing, plan.Healthy, 0},
		"foreign of another type": {func(_ *testing.T, w *world) {
			w.open[0].Type, w.open[0].Memo, w.unlisted = "theirs.type", nil, true
		}, overview.Foreign, "", 0},
		"foreign while nobody owns it": {func(t *testing.T, w *world) {
			w.open[0].Type, w.open[0].Memo, w.unlisted = "theirs.type", nil, true
			e, err := w.leases.Get(t.Context(), contract.OwnerKey(orders))
			require.NoError(t, err)
			require.NoError(t, w.leases.Resign(t.Context(), e.Key, e.Token))
		}, overview.Foreign, "", 0},
		"superseded": {func(_ *testing.T, w *world) {
			w.rows[0].Owner.Epoch = 4 // which the owner was given, and the termination is refused
			<-time.After(11 * time.Second)
		}, overview.Stale, plan.Healthy, 0},
		"about to be adopted":   {func(_ *testing.T, w *world) { w.rows[0].Owner.Epoch = 4 }, overview.Routing, plan.Healthy, 0},
		"unknown to the inbox":  {func(_ *testing.T, w *world) { w.rows = nil }, overview.Unknown, plan.Healthy, 0},
		"leases away":           {func(t *testing.T, w *world) { w.leasesAway(t) }, overview.Routing, plan.Unknown, 1},
		"inbox away":            {func(_ *testing.T, w *world) { w.errs[overview.PartInbox] = errOut }, overview.Unknown, plan.Healthy, 1},
		"inbox and worker away": {func(_ *testing.T, w *world) { w.errs[overview.PartInbox] = errOut; <-time.After(time.Minute) }, overview.NoWorkers, plan.Unknown, 1},
		"Temporal away":         {func(_ *testing.T, w *world) { w.errs[overview.PartTemporal], w.open = errOut, nil }, overview.Unknown, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.healthy(t)
				c.arrange(t, w)
				list, err := w.Sources.List(t.Context())
				require.NoError(t, err)
				got, err := w.Get(t.Context(), orders)
				require.NoError(t, err)
				for _, d := range []overview.Dispatcher{list[0], got} {
					require.Equal(t, []any{c.status, c.class, c.errors}, []any{d.Status, d.Class, len(d.Errors)}, d.Why)
				}
			})
		})
	}
}

// TestNamesThatNoSideKnows are listed with the status that they have when they are asked for one by one.
func TestNamesThatNoSideKnows(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.healthy(t)
		never, idle := inbox.Name{Project: "shop", TaskQueue: "never"}, inbox.Name{Project: "idle", TaskQueue: "q"}
		var failure error
		w.Names = func(context.Context) ([]inbox.Name, error) {
			if failure != nil {
				return nil, failure
			}
			return []inbox.Name{orders, never, idle}, nil
		}
		statuses := func() map[inbox.Name]overview.Status {
			list, err := w.Sources.List(t.Context())
			require.NoError(t, err)
			found := map[inbox.Name]overview.Status{}
			for _, d := range list {
				found[d.Name] = d.Status
			}
			require.Len(t, found, len(list))
			return found
		}
		require.Equal(t, map[inbox.Name]overview.Status{orders: overview.Routing, never: overview.Missing, idle: overview.NoWorkers}, statuses())
		for _, name := range []inbox.Name{never, idle} {
			d, err := w.Get(t.Context(), name)
			require.NoError(t, err)
			require.Equal(t, statuses()[name], d.Status)
		}
		failure = errOut
		list, err := w.Sources.List(t.Context())
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Equal(t, []overview.Error{{Part: overview.PartInbox, Err: errOut}}, list[0].Errors)
	})
}

func TestNoSideCanBeAsked(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.leasesAway(t)
		w.errs[overview.PartInbox], w.errs[overview.PartTemporal] = errOut, errOut
		_, err := w.Sources.List(t.Context())
		require.ErrorContains(t, err, errOut.Error())
		_, err = w.Get(t.Context(), orders)
		require.ErrorContains(t, err, errOut.Error())
		_, _, err = w.Workers(t.Context())
		require.ErrorContains(t, err, errOut.Error())
	})
}

func TestADispatcherThatDoesNotAnswer(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.healthy(t)
		delete(w.states, "r1")
		began := time.Now()
		d, err := w.Get(t.Context(), orders)
		require.NoError(t, err)
		require.Equal(t, 2*time.Second, time.Since(began))
		require.Equal(t, overview.PartState, d.Errors[0].Part)
		require.Equal(t, overview.Routing, d.Status)
		missing, err := w.Get(t.Context(), bills)
		require.NoError(t, err)
		require.Equal(t, overview.Missing, missing.Status)
	})
}

func TestWorkers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.healthy(t)
		w.opens("dispatcher-shop-bills", "mute", bills, 1)
		stopped := w.holds(t, contract.WorkerKey("b"), "b", "no beat", timing.Worker())
		require.NoError(t, w.leases.Resign(t.Context(), stopped.Key, stopped.Token))
		<-time.After(25 * time.Second)
		w.holds(t, contract.WorkerKey("c"), "c", contract.Beat{ServerID: "c"}, timing.Worker())
		<-time.After(5 * time.Second)
		workers, errs, err := w.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, errs, 1)
		require.ErrorContains(t, errs[0].Err, "the registrations with 1 dispatchers are not known")
		var got []any
		for _, worker := range workers {
			got = append(got, worker.ServerID, worker.Status, len(worker.Registrations))
		}
		require.Equal(t, []any{"a", overview.Late, 1, "b", overview.Stopped, 0, "c", overview.Alive, 0, "gone", overview.Silent, 1}, got)
		require.Equal(t, []any{"1.2.3", 30 * time.Second, -10 * time.Second}, []any{workers[0].Beat.Build, workers[0].Age, workers[0].StaleIn})
		require.Equal(t, []time.Duration{5 * time.Second, 15 * time.Second}, []time.Duration{workers[2].Age, workers[2].StaleIn})
		w.leasesAway(t)
		workers, errs, err = w.Workers(t.Context())
		require.NoError(t, err)
		require.Len(t, workers, 2)
		require.Equal(t, []overview.WorkerStatus{overview.UnknownWorker, overview.UnknownWorker}, []overview.WorkerStatus{workers[0].Status, workers[1].Status})
		require.Equal(t, overview.PartLeases, errs[0].Part)
	})
}
