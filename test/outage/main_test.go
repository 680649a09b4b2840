// Package outage_test tests the whole platform while Temporal or the database is down: accepted work is neither
// lost nor doubled, refused work leaves nothing, and every surface reports the real state at once.
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
	"github.com/signalbox-dev/signalbox/test/promise"
)

func TestMain(m *testing.M) {
	os.Exit(platform.MainParallel(m, 3, func(*platform.Suite) {}))
}

const (
	soon = platform.Patience

	hello = "  - greet:\n      set:\n        message: hello\n"
)

// eachStore runs a test with a fresh database of each kind.
func eachStore(t *testing.T, test func(*testing.T, platform.Store)) {
	t.Helper()
	t.Parallel()
	for _, database := range promise.Databases(t.Name()) {
		t.Run(database, func(t *testing.T) {
			t.Parallel()
			if database == "sqlite" {
				test(t, platform.SQLite(t))
				return
			}
			if !platform.HasPostgres() {
				t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
			}
			test(t, platform.Postgres(t))
		})
	}
}

// environment is a platform with its own Temporal and server, which a test may break.
type environment struct {
	*platform.Server

	temporal *platform.Temporal
	options  platform.ServerOptions
	workflow string
}

// build starts a Temporal and a server, and publishes a workflow of one step.
func build(t *testing.T, store platform.Store, args ...string) *environment {
	t.Helper()
	temporal := platform.StartTemporal(t)
	x := &environment{temporal: temporal, options: options(t, temporal.Address, store, args...)}
	x.Server = platform.StartServer(t, x.options)
	x.workflow = x.Publish(t, platform.Document("outage", hello))
	return x
}

func options(t *testing.T, temporal string, store platform.Store, args ...string) platform.ServerOptions {
	t.Helper()
	return platform.ServerOptions{Temporal: temporal, Store: store, Port: platform.FreePort(t), Args: args}
}

// connection is the part of the system's status about the connection to Temporal.
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

// status reads the system's status over plain HTTP.
func (x *environment) status(t *testing.T) (connection, error) {
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

// waitForState waits until the connection's status has a state and a kind, and returns how long that took.
func (x *environment) waitForState(t *testing.T, limit time.Duration, state, kind string) time.Duration {
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

// waitForReady waits until both roles are ready and returns how long that took.
func (x *environment) waitForReady(t *testing.T) time.Duration {
	t.Helper()
	began := time.Now()
	x.AwaitReady(t)
	return time.Since(began)
}

// completeRun starts a run, as soon as that is possible, and waits until it is completed.
func (x *environment) completeRun(t *testing.T) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		r, err := x.TryStart(t.Context(), x.workflow, "")
		if err != nil {
			return err.Error()
		}
		x.Await(t, r.GetId(), soon, "completed")
		return ""
	})
}

// verify requires that rows, requests and executions agree, and that only the loads have started runs.
func (x *environment) verify(t *testing.T, loads ...*load.Load) {
	t.Helper()
	load.Judge(t, load.Evidence{
		Loads: loads, Server: x.Server, Temporal: platform.DialTemporal(t, x.temporal.Address), Limit: soon})
}

// resources are the counts of a server's resources.
type resources struct {
	goroutines  float64
	connections int
	workers     float64
}

func (x *environment) resources(t *testing.T) (resources, error) {
	t.Helper()
	var h resources
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

// requireNoLeak waits until a server holds no more than before; requests in progress account for a few goroutines.
func (x *environment) requireNoLeak(t *testing.T, before resources) {
	t.Helper()
	const slack = 15
	platform.Eventually(t, soon, func() string {
		now, err := x.resources(t)
		if err != nil {
			return err.Error()
		}
		if now.goroutines > before.goroutines+slack || now.connections > before.connections || now.workers != before.workers {
			return fmt.Sprintf("holds %+v, and before %+v", now, before)
		}
		return ""
	})
}

// waitForIdle waits until the server's resources have been stable for a while, and returns them.
func (x *environment) waitForIdle(t *testing.T) resources {
	t.Helper()
	var least resources
	since := time.Now()
	platform.Eventually(t, soon, func() string {
		now, err := x.resources(t)
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

// waitFor waits for the duration of an outage.
func waitFor(t *testing.T, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

// count returns the number of rows of a workflow.
func (x *environment) count(t *testing.T, workflow string) int {
	return len(x.AllRuns(t, workflow, 500))
}

// requireReason requires that a response contains a reason.
func requireReason(t *testing.T, body, reason string) {
	t.Helper()
	require.Contains(t, body, `"`+reason+`"`)
}
