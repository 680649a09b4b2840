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

// overview is what the system's status says of mismatches and comparisons.
func (x *site) overview(t *testing.T) (mismatch string, compared bool) {
	t.Helper()
	code, body, err := x.Get(t.Context(), "/v1/system/status")
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code, body)
	var out struct {
		TemporalMismatch string `json:"temporalMismatch"`
		Reconciler       struct {
			LastTime string `json:"lastTime"`
		} `json:"reconciler"`
	}
	require.NoError(t, json.Unmarshal([]byte(body), &out))
	return out.TemporalMismatch, out.Reconciler.LastTime != ""
}

// differs waits until the server reports that it and another one use different Temporals, by every surface, and logs it once.
func (x *site) differs(t *testing.T, other string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if mismatch, _ := x.overview(t); !strings.Contains(mismatch, other) {
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
		if _, body, _ := x.Get(t.Context(), "/readyz"); !strings.Contains(body, `"placement"`) || !strings.Contains(body, other) {
			return body
		}
		return ""
	})
	require.Contains(t, x.CLI(t, "system", "status").Stdout, other)
}

// refuses requires that a start is refused, which names the other Temporal, and leaves no row.
func (x *site) refuses(t *testing.T, other string) {
	t.Helper()
	rows := x.count(t, x.workflow)
	code, _, body := x.post(t, "/v1/projects/default/runs", `{"workflow":"`+x.workflow+`"}`)
	require.Equal(t, http.StatusBadRequest, code, body)
	requireReason(t, body, "CONTRACT_MISMATCH")
	require.Contains(t, body, other)
	require.Equal(t, rows, x.count(t, x.workflow))
}

// TestServersAtTwoTemporals has two servers with one database and a Temporal each. The one that is not where the runs are starts none.
func TestServersAtTwoTemporals(t *testing.T) {
	t.Parallel()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set; `make test` starts a Postgres", platform.PostgresVariable)
	}
	store := platform.Postgres(t)
	right := build(t, store)
	right.runs(t)
	platform.Eventually(t, soon, func() string {
		if _, compared := right.overview(t); !compared {
			return "the runs were not compared yet"
		}
		return ""
	})

	temporal := platform.StartTemporal(t)
	server := func(address string, roles ...string) *site {
		o := options(t, address, store)
		o.Roles = roles
		return &site{Server: platform.StartServer(t, o), temporal: temporal, options: o, workflow: right.workflow}
	}
	began := time.Now()
	wrong := server(temporal.Address)
	wrong.refuses(t, right.temporal.Address)
	wrong.differs(t, right.temporal.Address)
	promise.Record(t, promise.Figure{Promise: "P-C3", What: "server started at another Temporal than that of the runs: from its start to its ERROR line and status",
		Aim: "seconds", Trials: 1, Figure: promise.Times{time.Since(began)}.String()})
	right.differs(t, temporal.Address)
	right.runs(t)

	// An API alone, without any worker, knows where the runs are by the database.
	for _, x := range []*site{wrong, right} {
		x.Terminate()
		_, ended := x.WaitFor(soon)
		require.True(t, ended)
	}
	alone := server(temporal.Address, platform.API)
	alone.refuses(t, right.temporal.Address)
	alone.differs(t, right.temporal.Address)
	same := server(right.temporal.Address, platform.API)
	r, err := same.TryStart(t.Context(), same.workflow, "")
	require.NoError(t, err)
	require.Equal(t, "queued", r.GetStatus())
	require.NotContains(t, same.Output(), differentTemporals)
}
