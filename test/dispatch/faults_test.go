package dispatch_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// picture is what one server shows, by whatever means an operator can ask it.
type picture struct {
	// Status is of `system status`.
	Status struct {
		Roles      []string
		Connection struct{ State, Kind string }
		// Dependencies is what the server needs; Workers are the live ones, or WorkersError says why they are not known.
		Dependencies []struct{ Name, State string }
		Workers      []struct{ ServerID string }
		WorkersError string
	}
	// Listed and Shown are of `dispatcher list` and `dispatcher show`; Shown is nil where that was refused.
	Listed, Shown *shownDispatcher
	// Workers are the states of `worker list` by server ID.
	Workers map[string]string
	// Problems are the codes of `run list --problem any` by run; nil where that was refused.
	Problems map[string]string
	// Ready is the status of /readyz, and Needs its dependencies.
	Ready int
	Needs map[string]string
	// Metrics has the sums of series, without those that are absent.
	Metrics map[string]float64
	Log     string
}

type shownDispatcher struct {
	State string
	Lease struct {
		State string
		Owner struct{ ServerID string }
	}
	// Errors say what is not known.
	Errors []string
	// Progress is nil where it is not known.
	Progress *struct {
		Pending json.Number
		Lag     string
	}
}

// metrics are those of which several means of asking show the same.
var shownMetrics = []string{
	"temporal_connection_status", "dispatcher_active", "dispatcher_inbox_lag_seconds", "dispatcher_inbox_pending", "dispatcher_stale", "dispatcher_foreign",
	"signalbox_runs_stuck",
}

// looks asks a server everything.
func looks(t *testing.T, s *platform.Server) picture {
	t.Helper()
	var p picture
	ask := func(into any, args ...string) bool {
		r := s.CLI(t, append(args, "-o", "json")...)
		if r.Code != 0 {
			require.Equal(t, platform.ExitUnavailable, r.Code, r)
			return false
		}
		require.NoError(t, json.Unmarshal([]byte(r.Stdout), into), r)
		return true
	}
	require.True(t, ask(&p.Status, "system", "status"))
	var listed []*shownDispatcher
	if ask(&listed, "dispatcher", "list") && len(listed) > 0 {
		p.Listed = listed[0]
	}
	shown := new(shownDispatcher)
	if ask(shown, "dispatcher", "show", platform.DefaultProject) {
		p.Shown = shown
	}
	var workers []struct{ ServerID, State string }
	if ask(&workers, "worker", "list") {
		p.Workers = map[string]string{}
		for _, w := range workers {
			p.Workers[w.ServerID] = w.State
		}
	}
	var runs []struct {
		ID    string
		Stuck struct{ Code string }
	}
	if ask(&runs, "run", "list", "--problem", "any") {
		p.Problems = map[string]string{}
		for _, r := range runs {
			p.Problems[r.ID] = r.Stuck.Code
		}
	}
	var report struct {
		Dependencies []struct{ Name, State string }
	}
	code, body, err := s.Get(t.Context(), "/readyz")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal([]byte(body), &report))
	p.Ready, p.Needs = code, map[string]string{}
	for _, d := range report.Dependencies {
		p.Needs[d.Name] = d.State
	}
	p.Metrics = map[string]float64{}
	for _, name := range shownMetrics {
		sum, series, err := counter.Metric(t.Context(), s, name)
		require.NoError(t, err)
		if series > 0 {
			p.Metrics[name] = sum
		}
	}
	p.Log = s.Output()
	return p
}

// disagrees says in what the parts of a picture contradict each other; empty for nothing. It knows nothing of the fault.
func (p picture) disagrees() string {
	usable := p.Status.Connection.State == "connected" || p.Status.Connection.State == "degraded"
	for _, d := range p.Status.Dependencies {
		if p.Needs[d.Name] != d.State {
			return fmt.Sprintf("%s is %q in the status and %q in /readyz", d.Name, d.State, p.Needs[d.Name])
		}
	}
	switch {
	case len(p.Status.Dependencies) != len(p.Needs):
		return fmt.Sprintf("the status has %v, and /readyz %v", p.Status.Dependencies, p.Needs)
	case (p.Needs["temporal"] == "down") == usable:
		return fmt.Sprintf("Temporal is %q in /readyz and %q in the status", p.Needs["temporal"], p.Status.Connection.State)
	case (p.Metrics["temporal_connection_status"] == 0) == usable:
		return fmt.Sprintf("temporal_connection_status is %v, and the status says %q", p.Metrics["temporal_connection_status"], p.Status.Connection.State)
	case p.Listed == nil:
		return "no dispatcher is listed"
	case p.Shown != nil && p.Shown.State != p.Listed.State:
		return fmt.Sprintf("the dispatcher is %q in the list, and %q when it is shown", p.Listed.State, p.Shown.State)
	case p.Shown != nil && p.Shown.Lease.State != p.Listed.Lease.State:
		return fmt.Sprintf("its lease is %q in the list, and %q when it is shown", p.Listed.Lease.State, p.Shown.Lease.State)
	case slices.Contains(p.Status.Roles, platform.Worker) && (p.Listed.State == "foreign") != (p.Metrics["dispatcher_foreign"] > 0): // one process of several finds them
		return fmt.Sprintf("the dispatcher is %q, and dispatcher_foreign %v", p.Listed.State, p.Metrics["dispatcher_foreign"])
	case p.Needs["store"] == "up" && p.Listed.Progress == nil:
		return "the backlog is not known, though the store is up"
	case p.Needs["store"] == "up" && p.Problems == nil:
		return "the runs are not known, though the store is up"
	}
	if stuck, known := p.Metrics["signalbox_runs_stuck"]; known && p.Problems != nil && int(stuck) != len(p.Problems) { // one process counts them
		return fmt.Sprintf("signalbox_runs_stuck is %v, and the list has %v", p.Metrics["signalbox_runs_stuck"], p.Problems)
	}
	if _, known := p.Metrics["dispatcher_inbox_lag_seconds"]; known != (p.Listed.Progress != nil) {
		return fmt.Sprintf("dispatcher_inbox_lag_seconds is there: %v, and the list has the progress %v", known, p.Listed.Progress)
	}
	if _, known := p.Metrics["dispatcher_inbox_pending"]; known != (p.Listed.Progress != nil) {
		return fmt.Sprintf("dispatcher_inbox_pending is there: %v, and the list has the progress %v", known, p.Listed.Progress)
	}
	return ""
}

// lives counts the workers of a list that are in a state.
func (p picture) lives(state string) int {
	n := 0
	for _, s := range p.Workers {
		if s == state {
			n++
		}
	}
	return n
}

// says reports whether the list of what is not known has a line with these words.
func (p picture) says(words string) bool {
	return slices.ContainsFunc(p.Listed.Errors, func(line string) bool { return strings.Contains(line, words) })
}

// TestWhatIsShownAgrees breaks one part after another, and requires that everything that can be asked says the same of it, on each server that
// is there, soon.
func TestWhatIsShownAgrees(t *testing.T) {
	t.Parallel()
	type broken struct {
		*site

		temporal *platform.Temporal
		postgres *database.Postgres
		// run is one that is due to go on, and cannot while nothing executes it.
		run string
		// feed publishes all the time.
		feed *traffic
	}
	const stuckAfter = 5 * time.Second
	tests := map[string]struct {
		breaks func(*testing.T, *broken)
		// wrong says what a server does not show yet; empty for nothing.
		wrong func(*broken, picture) string
		// one has only the server of the API asked: each answer takes as long as the servers wait for the database.
		one bool
	}{
		"nothing": {func(*testing.T, *broken) {}, func(_ *broken, p picture) string {
			switch {
			case p.Status.Connection.State != "connected", p.Ready != http.StatusOK:
				return "it is not well"
			case p.Listed.State != "routing" && p.Listed.State != "parked":
				return "the dispatcher is " + p.Listed.State
			case len(p.Status.Workers) != 2, p.lives("alive") != 2, len(p.Listed.Errors) > 0:
				return "two workers are alive"
			}
			return ""
		}, false},
		"Temporal killed": {func(_ *testing.T, b *broken) { b.temporal.Kill() }, func(b *broken, p picture) string {
			switch {
			case p.Status.Connection.State != "down" || p.Status.Connection.Kind != "unreachable":
				return fmt.Sprint(p.Status.Connection)
			case p.Listed.State != "unknown", !p.says("Temporal does not answer"):
				return fmt.Sprintf("the dispatcher is %s, not known is %v", p.Listed.State, p.Listed.Errors)
			case p.Metrics["dispatcher_active"] != 0:
				return "it says that it routes"
			case p.Metrics["dispatcher_inbox_lag_seconds"] == 0, p.Metrics["dispatcher_inbox_pending"] == 0, p.Listed.Progress.Pending.String() == "0":
				return "there is no backlog"
			case len(p.Status.Workers) != 2, p.lives("alive") != 2:
				return "the workers are alive"
			case p.Problems[b.run] != "ENGINE_DISCONNECTED":
				return fmt.Sprintf("the problem of the run is %q", p.Problems[b.run])
			case !strings.Contains(p.Log, "Temporal connection unhealthy"):
				return "the log does not say so"
			}
			return ""
		}, false},
		"Temporal frozen": {func(t *testing.T, b *broken) {
			b.temporal.Freeze()
			t.Cleanup(b.temporal.Thaw)
		}, func(b *broken, p picture) string {
			switch {
			case p.Status.Connection.State != "down" || p.Status.Connection.Kind != "hung":
				return fmt.Sprint(p.Status.Connection)
			case p.Listed.State != "unknown", !p.says("Temporal does not answer"):
				return fmt.Sprintf("the dispatcher is %s, not known is %v", p.Listed.State, p.Listed.Errors)
			case p.Metrics["dispatcher_active"] != 0:
				return "it says that it routes"
			case p.Metrics["dispatcher_inbox_lag_seconds"] == 0, p.Metrics["dispatcher_inbox_pending"] == 0:
				return "there is no backlog"
			case p.lives("alive") != 2:
				return "the workers are alive"
			case p.Problems[b.run] != "ENGINE_DISCONNECTED":
				return fmt.Sprintf("the problem of the run is %q", p.Problems[b.run])
			}
			return ""
		}, false},
		"the owner frozen": {func(t *testing.T, b *broken) {
			owner := b.settle(t)
			owner.Freeze()
			t.Cleanup(owner.Thaw)
			b.leave(owner)
		}, func(b *broken, p picture) string {
			switch {
			case p.Listed.State != "routing" && p.Listed.State != "parked":
				return "the dispatcher is " + p.Listed.State
			case p.Listed.Lease.Owner.ServerID != b.workers[0].id:
				return fmt.Sprintf("its owner is %q", p.Listed.Lease.Owner.ServerID)
			case p.Workers[b.workers[0].id] != "alive", p.lives("alive") != 1:
				return fmt.Sprint(p.Workers)
			case len(p.Status.Workers) != 1:
				return fmt.Sprintf("the live workers are %v", p.Status.Workers)
			case len(p.Problems) > 0:
				return fmt.Sprintf("runs go on: %v", p.Problems)
			}
			return ""
		}, false},
		"its ID taken by another workflow": {func(t *testing.T, b *broken) {
			for len(b.workers) > 0 {
				b.stop(t, b.workers[0])
			}
			require.NoError(t, b.client.TerminateWorkflow(t.Context(), dispatcherID, "", "its ID is taken next"))
			b.leftover(t, dispatcherID, "elsewhere", map[string]any{
				"project": "default-signalbox", "task_queue": "default", "owner": "somebody", "epoch": 7, "interpreter": 1,
			})
			b.join(t, 1)
		}, func(_ *broken, p picture) string {
			switch {
			case p.Listed.State != "foreign":
				return "the dispatcher is " + p.Listed.State
			case p.Metrics["dispatcher_active"] != 0:
				return "it says that it owns the dispatcher"
			case p.Metrics["dispatcher_inbox_lag_seconds"] == 0, p.Metrics["dispatcher_inbox_pending"] == 0:
				return "there is no backlog"
			case p.Status.Connection.State != "connected", p.Ready != http.StatusOK:
				return "Temporal is connected"
			}
			return ""
		}, false},
		"Redis killed": {func(_ *testing.T, b *broken) { b.redis.Kill() }, func(_ *broken, p picture) string {
			switch {
			case p.Needs["leases"] != "down", p.Ready != http.StatusOK:
				return fmt.Sprint(p.Needs)
			case p.Listed.Lease.State != "", !p.says("Redis, which has the leases, does not answer"):
				return fmt.Sprintf("the lease is %q, not known is %v", p.Listed.Lease.State, p.Listed.Errors)
			case p.lives("unknown") != 2:
				return fmt.Sprint(p.Workers)
			case len(p.Problems) > 0:
				return fmt.Sprintf("runs go on without leases: %v", p.Problems)
			case p.Metrics["dispatcher_active"] != 0:
				return "it says that it owns the dispatcher"
			}
			return ""
		}, false},
		"all workers killed": {func(_ *testing.T, b *broken) {
			for _, w := range b.workers {
				w.Kill()
			}
			b.workers = nil
		}, func(b *broken, p picture) string {
			switch {
			case p.Listed.State != "no_workers":
				return "the dispatcher is " + p.Listed.State
			case len(p.Status.Workers) > 0 || p.Status.WorkersError != "":
				return "a worker lives"
			case p.lives("late")+p.lives("gone") != 2:
				return fmt.Sprint(p.Workers)
			case p.Problems[b.run] != "POLLER_STALE":
				return fmt.Sprintf("the problem of the run is %q", p.Problems[b.run])
			case p.Metrics["dispatcher_inbox_lag_seconds"] == 0, p.Metrics["dispatcher_inbox_pending"] == 0:
				return "there is no backlog"
			case p.Metrics["dispatcher_active"] != 0:
				return "the API says that it owns the dispatcher"
			}
			return ""
		}, false},
		"all workers stopped": {func(t *testing.T, b *broken) {
			for len(b.workers) > 0 {
				b.stop(t, b.workers[0])
			}
		}, func(b *broken, p picture) string {
			switch {
			case p.Listed.State != "no_workers":
				return "the dispatcher is " + p.Listed.State
			case len(p.Status.Workers) > 0 || p.Status.WorkersError != "":
				return "a worker lives"
			case p.lives("stopped") != 2:
				return fmt.Sprint(p.Workers)
			case p.Problems[b.run] != "POLLER_STALE" && p.Problems[b.run] != "NO_POLLER":
				return fmt.Sprintf("the problem of the run is %q", p.Problems[b.run])
			}
			return ""
		}, false},
		"the database frozen": {func(t *testing.T, b *broken) {
			b.feed.Stop(t)
			b.postgres.Freeze()
			t.Cleanup(b.postgres.Thaw)
		}, func(_ *broken, p picture) string {
			switch {
			case p.Needs["store"] != "down", p.Ready != http.StatusServiceUnavailable:
				return fmt.Sprint(p.Needs)
			case p.Status.WorkersError == "":
				return "the live workers are known"
			case p.Problems != nil, p.Shown != nil, p.Listed.Progress != nil:
				return "something is shown that cannot be read"
			case !p.says("the database does not answer"):
				return fmt.Sprint(p.Listed.Errors)
			case p.lives("alive") != 2:
				return "the workers are alive, says Redis"
			}
			return ""
		}, true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &broken{temporal: platform.StartTemporal(t), postgres: database.StartPostgres(t, t.Skip)}
			b.site = prepareAt(t, b.temporal.Address)
			b.options.Store = b.postgres.Store()
			b.options.Args = append(b.options.Args, "--runs-stuck-after", stuckAfter.String())
			b.client = platform.DialTemporal(t, b.temporal.Address)
			b.open(t)
			b.join(t, 2)
			b.settle(t)
			b.knows(t, soon)
			b.run = b.Start(t, b.Publish(t, platform.Document("waits", "  - wait:\n      wait: {seconds: 10}\n")), "").GetId()
			b.Await(t, b.run, patience, "waiting")
			b.feed = b.publishes(t)
			test.breaks(t, b)
			servers := []*platform.Server{b.Server}
			if !test.one {
				for _, w := range b.workers {
					servers = append(servers, w.Server)
				}
			}
			for _, s := range servers {
				platform.Eventually(t, patience, func() string {
					p := looks(t, s)
					if wrong := p.disagrees(); wrong != "" {
						return wrong
					}
					return test.wrong(b, p)
				})
			}
		})
	}
}
