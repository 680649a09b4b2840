package operations_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	connected    = `\): connected for`
	disconnected = `\): down for`
)

// connectionIncidents are those of the connections to Temporal.
func connectionIncidents() map[string]incident {
	return map[string]incident{
		"Temporal killed": {
			short:   true,
			parts:   parts{temporal: true},
			breaks:  func(_ *testing.T, w *watched) { w.temporal.Kill() },
			repairs: func(t *testing.T, w *watched) { w.temporal = w.temporal.Restart(t) },
			alerts: []expected{
				{name: "TemporalDisconnected", severity: "page", sees: []string{disconnected, "unreachable"},
					verifies: []string{connected}},
			},
			silent: []string{"DispatcherMissing"},
		},
		"Temporal frozen": {
			parts: parts{temporal: true},
			breaks: func(t *testing.T, w *watched) {
				w.startRuns(t, 5*time.Second)
				w.faulted = time.Now()
				w.temporal.Freeze()
				t.Cleanup(w.temporal.Thaw)
			},
			repairs: func(_ *testing.T, w *watched) { w.temporal.Thaw() },
			alerts: []expected{
				{name: "TemporalDisconnected", severity: "page", sees: []string{disconnected, "hung"},
					verifies: []string{connected}},
			},
			silent: []string{"DispatcherMissing"},
		},
		"Temporal away in queue mode": {
			parts: parts{temporal: true,
				args: []string{"--runs-queue-when-unavailable-enabled=true", "--runs-queue-when-unavailable-max-runs=10"}},
			breaks: func(t *testing.T, w *watched) {
				name := w.Publish(t, platform.Document("queued", "  - note:\n      set: {seen: true}\n"))
				w.faulted = time.Now()
				w.temporal.Kill()
				for queued := 0; queued < 9; {
					run, err := w.TryStart(t.Context(), name, "")
					if err == nil && run.GetQueuedReason() == "engine" {
						queued++
					}
				}
			},
			repairs: func(t *testing.T, w *watched) { w.temporal = w.temporal.Restart(t) },
			alerts: []expected{
				{name: "QueueModeFilling", severity: "page", sees: []string{"9 of 10|9/10", "queued"},
					verifies: []string{connected}},
				{name: "TemporalDisconnected", severity: "page", sees: []string{disconnected}, verifies: []string{connected}},
			},
		},
		"a server with credentials that Temporal refuses": {
			parts: parts{frontend: true, prepare: func(t *testing.T, w *watched) { w.certify(t, 30*24*time.Hour) }},
			breaks: func(t *testing.T, w *watched) {
				w.stop(t, 1)
				w.names["SERVER:8080"] = w.workers[1].Address
				w.faulted = time.Now()
				w.restartUntrusted(t, 1)
			},
			repairs: func(t *testing.T, w *watched) { w.issue(t, w.untrusted, 30*24*time.Hour) },
			alerts: []expected{
				{name: "TemporalDisconnected", severity: "ticket", sees: []string{disconnected, "tls_error"},
					verifies: []string{connected}},
				{name: "BreakerOpen", severity: "ticket", sees: []string{"breaker +open"},
					verifies: []string{connected, "breaker +closed"}},
			},
		},
		"the connection to Temporal lost four times": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				require.NoError(t, w.frontend.Flap(t.Context(), spell(40*time.Second), spell(18*time.Second), 4))
			},
			alerts: []expected{
				{name: "TemporalFlapping", severity: "ticket", sees: []string{connected}, verifies: []string{connected}},
				{name: "LostTimeBudgetBurn", severity: "page", sees: []string{connected}, verifies: []string{connected}},
			},
		},
		"Temporal over its rate limits": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.startRuns(t, 2*time.Second)
				w.faulted = time.Now()
				w.frontend.Fail("", serviceerror.NewResourceExhausted(enums.RESOURCE_EXHAUSTED_CAUSE_RPS_LIMIT,
					"namespace rate limit exceeded"))
				for _, check := range []string{"DescribeNamespace", "GetSystemInfo", "/grpc.health.v1.Health/Check"} {
					w.frontend.Fail(check, nil)
				}
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Clear() },
			alerts: []expected{{
				name: "TemporalLimited", severity: "page", sees: []string{"degraded", "namespace rate limit exceeded"},
				verifies: []string{connected},
			}},
			silent: []string{"NoPollers"},
			also:   []string{"ProblemsUnacknowledged"},
		},
		"Temporal slow": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.startRuns(t, time.Second)
				w.faulted = time.Now()
				w.frontend.Slow(1200 * time.Millisecond)
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Slow(0) },
			alerts: []expected{{
				name: "StartLatencyBudgetBurn", severity: "page", sees: []string{`\): (connected|degraded)`},
				verifies: []string{`[0-9a-f]{8}-`},
			}},
		},
		"a server at another Temporal": {
			breaks: func(t *testing.T, w *watched) {
				other := platform.StartTemporal(t)
				other.CreateNamespace(t, w.namespace)
				w.stop(t, 1)
				w.names["SERVER:8080"] = w.workers[1].Address
				w.faulted = time.Now()
				w.restart(t, 1, "--temporal-address", other.Address)
			},
			repairs: func(t *testing.T, w *watched) {
				w.stop(t, 1)
				w.restart(t, 1)
			},
			alerts: []expected{{
				name: "ServersOnDifferentTemporals", severity: "page",
				sees: []string{"another Temporal|different Temporals|placement"}, verifies: []string{connected},
			}},
		},
	}
}

// spell returns a duration that is divided as those of the rules are.
func spell(d time.Duration) time.Duration {
	if promise.Full() {
		return d
	}
	return d / quicker
}
