// Package outage_test holds the whole platform to its promises while Temporal or the database is away: nothing that was
// accepted is lost or doubled, nothing that was refused is left behind, and everybody is told the truth at once.
package outage_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/load"
	"github.com/signalbox-dev/signalbox/test/platform"
)

func TestMain(m *testing.M) {
	if err := platform.Crowd(8); err != nil {
		panic(err)
	}
	os.Exit(platform.Main(m, func(*platform.Suite) {}))
}

const (
	soon     = time.Minute
	patience = 2 * time.Minute // until everything has healed that was broken

	hello = "  - greet:\n      set:\n        message: hello\n"
)

// eachStore runs a test with a fresh database of each kind.
func eachStore(t *testing.T, test func(*testing.T, platform.Store)) {
	t.Helper()
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, platform.SQLite(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		if !platform.HasPostgres() {
			t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
		}
		test(t, platform.Postgres(t))
	})
}

// site is a platform whose parts a test may break: its own Temporal, its own server.
type site struct {
	*platform.Server

	temporal *platform.Temporal
	options  platform.ServerOptions
	workflow string
}

// build starts a Temporal and a server, and publishes a workflow of one step.
func build(t *testing.T, store platform.Store, args ...string) *site {
	t.Helper()
	temporal := platform.StartTemporal(t)
	x := &site{temporal: temporal, options: options(t, temporal.Address, store, args...)}
	x.Server = platform.StartServer(t, x.options)
	x.workflow = x.Publish(t, platform.Document("outage", hello))
	return x
}

func options(t *testing.T, temporal string, store platform.Store, args ...string) platform.ServerOptions {
	t.Helper()
	return platform.ServerOptions{Temporal: temporal, Store: store, Port: platform.FreePort(t), Args: args}
}

// connection is what the system's status says of the connection to Temporal.
type connection struct {
	State      string `json:"state"`
	Kind       string `json:"kind"`
	Address    string `json:"address"`
	Generation int64  `json:"generation"`
	LastError  string `json:"lastError"`
	Breaker    struct {
		State    string `json:"state"`
		Failures int64  `json:"failures"`
	} `json:"breaker"`
	Statistics struct {
		Connections int64 `json:"connections"`
		Outages     int64 `json:"outages"`
	} `json:"statistics"`
	WorkerSets []struct {
		Name    string `json:"name"`
		Running bool   `json:"running"`
		Polling bool   `json:"polling"`
	} `json:"workerSets"`
}

// status reads the system's status, as a script with curl would.
func (x *site) status(t *testing.T) (connection, error) {
	t.Helper()
	code, body, err := x.Get(t.Context(), "/v1/system/status")
	if err != nil {
		return connection{}, err
	}
	if code != http.StatusOK {
		return connection{}, fmt.Errorf("the status answers %d: %s", code, body)
	}
	var out struct {
		Connection connection `json:"connection"`
	}
	return out.Connection, json.Unmarshal([]byte(body), &out)
}

// turns waits until the platform says that its connection has a state, and a kind.
func (x *site) turns(t *testing.T, limit time.Duration, state, kind string) time.Duration {
	t.Helper()
	began := time.Now()
	platform.Eventually(t, limit, func() string {
		now, err := x.status(t)
		switch {
		case err != nil:
			return err.Error()
		case now.State != state || now.Kind != kind:
			return fmt.Sprintf("the connection is %s %s (%s), not %s %s", now.State, now.Kind, now.LastError, state, kind)
		}
		return ""
	})
	return time.Since(began)
}

// works waits until both roles are ready and returns how long that took.
func (x *site) works(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	x.AwaitReady(t)
	return time.Since(began)
}

// runs starts a run, as soon as that is possible, and waits until it is completed.
func (x *site) runs(t *testing.T) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		r, err := x.TryStart(t.Context(), x.workflow, "")
		if err != nil {
			return err.Error()
		}
		x.Await(t, r.GetId(), patience, "completed")
		return ""
	})
}

// judge requires that rows, requests and executions agree, and that nobody but the loads has started runs.
func (x *site) judge(t *testing.T, loads ...*load.Load) {
	t.Helper()
	load.Judge(t, load.Evidence{Loads: loads, Server: x.Server, Temporal: platform.DialTemporal(t, x.temporal.Address), Limit: patience})
}

// holdings are what a server holds at rest.
type holdings struct {
	goroutines  float64
	connections int
	workers     float64
}

func (x *site) holds(t *testing.T) (holdings, error) {
	t.Helper()
	var h holdings
	var err error
	if h.goroutines, _, err = counter.Metric(t.Context(), x.Server, counter.Goroutines); err != nil {
		return h, err
	}
	var series int
	if h.workers, series, err = counter.Metric(t.Context(), x.Server, "temporal_workers_running"); err != nil {
		return h, err
	}
	if series != 1 {
		return h, fmt.Errorf("temporal_workers_running has %d series", series)
	}
	h.connections, err = counter.Connections(x.PID(), x.temporal.Port)
	return h, err
}

// leaks waits until a server holds no more than before; requests under way are some goroutines.
func (x *site) leaks(t *testing.T, before holdings) {
	t.Helper()
	const slack = 15
	platform.Eventually(t, patience, func() string {
		now, err := x.holds(t)
		if err != nil {
			return err.Error()
		}
		if now.goroutines > before.goroutines+slack || now.connections > before.connections || now.workers != before.workers {
			return fmt.Sprintf("holds %+v, and before %+v", now, before)
		}
		return ""
	})
}

// rest waits until the server holds the same for a while, and returns that.
func (x *site) rest(t *testing.T) holdings {
	t.Helper()
	var least holdings
	since := time.Now()
	platform.Eventually(t, patience, func() string {
		now, err := x.holds(t)
		if err != nil {
			return err.Error()
		}
		if least.goroutines == 0 || now.goroutines < least.goroutines {
			least, since = now, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return "the number of goroutines still falls"
		}
		return ""
	})
	require.Positive(t, least.connections)
	require.Positive(t, least.workers)
	return least
}

// after waits, as an outage lasts.
func after(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// count is how many rows a workflow has.
func (x *site) count(t *testing.T, workflow string) int { return len(x.AllRuns(t, workflow, 500)) }

// requireReason requires that a server's answer names a reason.
func requireReason(t *testing.T, body, reason string) {
	t.Helper()
	require.Contains(t, body, `"`+reason+`"`)
}
