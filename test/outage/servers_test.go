package outage_test

import (
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/api/signalbox/v1/signalboxv1connect"
	"github.com/signalbox-dev/signalbox/test/database"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// lostServers returns the problems of servers that are lost, by their cause, with their states.
func lostServers(t *testing.T, s *platform.Server) (map[string]*signalboxv1.Problem, error) {
	t.Helper()
	client := signalboxv1connect.NewProblemServiceClient(http.DefaultClient, s.URL)
	res, err := client.ListProblems(t.Context(), connect.NewRequest(&signalboxv1.ListProblemsRequest{}))
	if err != nil {
		return nil, err
	}
	lost := map[string]*signalboxv1.Problem{}
	for _, p := range res.Msg.GetProblems() {
		if p.GetCode() == "SERVER_LOST" {
			lost[p.GetCause()] = p
		}
	}
	return lost, nil
}

// A server that is killed is a problem, of any role, until it is back; one that is stopped is none.
func TestKilledServerIsAProblem(t *testing.T) {
	t.Parallel()
	if !platform.HasPostgres() {
		t.Skipf("%s is not set", platform.PostgresVariable)
	}
	temporal := platform.StartTemporal(t)
	store := platform.Postgres(t)
	launch := func(port int, roles ...string) (platform.ServerOptions, *platform.Server) {
		o := options(t, temporal.Address, store, "--servers-lost-after=20s")
		o.Roles = roles
		if port > 0 {
			o.Port = port
		}
		return o, platform.StartServer(t, o)
	}
	_, watching := launch(0, platform.API, platform.Worker)
	killed, victim := launch(0, platform.API)
	_, worker := launch(0, platform.Worker)
	_, stopped := launch(0, platform.API)
	id, workerID := victim.ID(t), worker.ID(t)
	instance := func(s *platform.Server) string { return s.Address[strings.LastIndex(s.Address, ":"):] }

	stopped.Terminate()
	_, ended := stopped.WaitFor(soon)
	require.True(t, ended)
	victim.Kill()
	worker.Kill()
	platform.Eventually(t, soon, func() string {
		lost, err := lostServers(t, watching)
		if err != nil {
			return err.Error()
		}
		if len(lost) < 2 {
			return "servers are not lost yet"
		}
		for _, p := range lost {
			for _, text := range []string{"last seen at", "version"} {
				require.Contains(t, p.GetDetail(), text)
			}
			require.NotEmpty(t, p.GetAdvice())
			require.Equal(t, "docs/runbooks/ServerUnreachable.md", p.GetRunbook())
			require.False(t, strings.HasSuffix(p.GetCause(), instance(stopped)), "it was stopped: %s", p)
			require.True(t, strings.Contains(p.GetId(), id) && strings.Contains(p.GetDetail(), "roles api,") ||
				strings.Contains(p.GetId(), workerID) && strings.Contains(p.GetDetail(), "roles worker,"), "%s", p)
		}
		return ""
	})
	launch(killed.Port, platform.API)
	platform.Eventually(t, soon, func() string {
		lost, err := lostServers(t, watching)
		if err != nil {
			return err.Error()
		}
		for cause, p := range lost {
			if strings.HasSuffix(cause, instance(victim)) != (p.GetState() == "resolved") {
				return p.String()
			}
		}
		return ""
	})
}

// The metrics of what the database has keep their last values while it does not answer, with their age: no alert is
// resolved by that, and none is about a number that is 0 only because it is not known.
func TestMetricsOfTheDatabaseOutliveItsOutage(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	postgres := database.StartPostgres(t, t.Skip)
	x := platform.StartServer(t,
		options(t, temporal.Address, postgres.Store(), "--runs-queue-when-unavailable-enabled=true"))
	out := x.CLI(t, "webhook", "create", "hooked", "--project", platform.DefaultProject, "--url",
		"https://hooks.example.com/x", "--type", "com.example.*")
	require.Zero(t, out.Code, out)
	out = x.CLI(t, "quota", "set", "--project", platform.DefaultProject, "--concurrent-runs", "5")
	require.Zero(t, out.Code, out)
	values := func() map[string]string {
		code, body, err := x.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, code)
		found := map[string]string{}
		for line := range strings.Lines(body) {
			if series, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(series, "#") {
				found[series] = value
			}
		}
		return found
	}
	var before map[string]string
	platform.Eventually(t, soon, func() string {
		before = values()
		for _, reading := range strings.Fields("dispatchers inbox problems queue quotas unpublished_events webhooks") {
			if _, ok := before[`signalbox_reading_age_seconds{reading="`+reading+`"}`]; !ok {
				return reading + " was not read"
			}
		}
		if _, ok := before[`signalbox_webhooks_failing{project="default"}`]; !ok {
			return "the webhook is not known"
		}
		if _, ok := before[`dispatcher_stale{project="default"}`]; !ok {
			return "the dispatcher is not known"
		}
		return ""
	})
	postgres.Freeze()
	t.Cleanup(postgres.Thaw)
	during := map[string]string{}
	platform.Eventually(t, soon, func() string {
		during = values()
		if during[`signalbox_dependency_state{dependency="store",state="down"}`] != "1" {
			return "the server has not noticed"
		}
		return ""
	})
	during = values()
	var vanished []string
	for series := range before {
		if _, ok := during[series]; !ok && !ofTheElected(series) && series != clockSkew {
			vanished = append(vanished, series)
		}
	}
	require.Empty(t, vanished, "they vanish while the database does not answer")
	for _, series := range []string{
		`signalbox_webhooks_failing{project="default"}`, `signalbox_queue_mode_runs`, `signalbox_unpublished_events`} {
		require.Equal(t, before[series], during[series], series)
	}
}

// clockSkew is the difference of two clocks: it has no value while one of them does not answer.
const clockSkew = "signalbox_store_clock_skew_seconds"

// ofTheElected reports whether a series is exported only by the process that holds a lock of the database, which none
// does during an outage: another process may export it afterwards.
func ofTheElected(series string) bool {
	return strings.HasPrefix(series, "signalbox_runs_stuck{") || series == "signalbox_diagnosis_undecided_runs"
}
