package outage_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/counter"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const differentTemporals = "Processes on this database use different Temporals"

// mismatch returns the mismatch that the system's status reports, and whether the reconciler compares.
func (x *environment) mismatch(t *testing.T) (mismatch string, compared bool) {
	t.Helper()
	code, body, err := x.Get(t.Context(), "/v1/system/status")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, body)
	var out struct {
		Dependencies []struct {
			Name  string `json:"name"`
			Error string `json:"error"`
		} `json:"dependencies"`
		Reconciler struct {
			LastTime string `json:"lastTime"`
		} `json:"reconciler"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &out))
	for _, d := range out.Dependencies {
		if d.Name == "placement" {
			mismatch = d.Error
		}
	}
	return mismatch, out.Reconciler.LastTime != ""
}

// waitForMismatch waits until every surface of the server reports that it and another one use different Temporals, and
// one log line does.
func (x *environment) waitForMismatch(t *testing.T, other string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if mismatch, _ := x.mismatch(t); !strings.Contains(mismatch, other) {
			return "the status does not name " + other + ": " + mismatch
		}
		return ""
	})
	require.Equal(t, 1, strings.Count(x.Output(), differentTemporals), x.Output())
	value, series, err := counter.Metric(t.Context(), x.Server, "signalbox_temporal_mismatch")
	require.NoError(t, err)
	require.Equal(t, 1, series)
	require.InDelta(t, 1, value, 0)
	platform.Eventually(t, soon, func() string {
		if _, body, _ := x.Get(t.Context(), "/readyz"); !strings.Contains(body, `"placement"`) ||
			!strings.Contains(body, other) {
			return body
		}
		return ""
	})
	require.Contains(t, x.CLI(t, "system", "status").Stdout, other)
}

// requireStartRefused requires that a start is refused with an error that names the other Temporal, and leaves no row.
func (x *environment) requireStartRefused(t *testing.T, other string) {
	t.Helper()
	rows := x.count(t, x.workflow)
	code, _, body := x.post(t, "/v1/projects/default/runs", `{"workflow":"`+x.workflow+`"}`)
	require.Equal(t, http.StatusBadRequest, code, body)
	requireReason(t, body, "CONTRACT_MISMATCH")
	require.Contains(t, body, other)
	require.Equal(t, rows, x.count(t, x.workflow))
}

// Two servers with one database use a Temporal each. The server whose Temporal does not have the runs starts none.
func TestServersWithDifferentTemporals(t *testing.T) {
	t.Parallel()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	store := platform.Postgres(t)
	right := build(t, store)
	right.completeRun(t)
	platform.Eventually(t, soon, func() string {
		if _, compared := right.mismatch(t); !compared {
			return "the runs were not compared yet"
		}
		return ""
	})

	temporal := platform.StartTemporal(t)
	server := func(address string, roles ...string) *environment {
		o := options(t, address, store)
		o.Roles = roles
		x := &environment{Server: platform.StartServer(t, o), temporal: temporal, options: o, workflow: right.workflow}
		x.waitForState(t, soon, "connected", "") // a server is ready for requests before it is connected
		return x
	}
	began := time.Now()
	wrong := server(temporal.Address)
	wrong.requireStartRefused(t, right.temporal.Address)
	wrong.waitForMismatch(t, right.temporal.Address)
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "server started at another Temporal than that of the runs: " +
		"from its start to its ERROR line and status",
		Aim: "seconds", Trials: 1, Figure: promise.Times{time.Since(began)}.String()})
	right.waitForMismatch(t, temporal.Address)
	right.completeRun(t)

	// An API server without any worker reads from the database which Temporal has the runs.
	for _, x := range []*environment{wrong, right} {
		x.Terminate()
		_, ended := x.WaitFor(soon)
		require.True(t, ended)
	}
	alone := server(temporal.Address, platform.API)
	alone.requireStartRefused(t, right.temporal.Address)
	alone.waitForMismatch(t, right.temporal.Address)
	same := server(right.temporal.Address, platform.API)
	r, err := same.TryStart(t.Context(), same.workflow, "")
	require.NoError(t, err)
	require.Equal(t, "queued", r.GetStatus())
	require.NotContains(t, same.Output(), differentTemporals)
}
