package integration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// The test starts runs in a project that the only worker does not serve, until another worker does.
func TestRunIsRefusedWithoutWorkerForItsProject(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	store, temporal := platform.Postgres(t), platform.StartTemporal(t)
	s := platform.StartServer(t,
		platform.ServerOptions{Temporal: temporal.Address, Store: store, Env: []string{"SIGNALBOX_PROJECTS=default"}})
	document := file(t, "side.yaml", platform.Document("side", hello))
	for _, args := range [][]string{
		{"project", "create", "side"}, {"workflow", "publish", document, "--project", "side"}} {
		done := s.CLI(t, args...)
		require.Zero(t, done.Code, done.String())
	}
	requireOneLine(t, s.CLI(t, "run", "start", "side", "--project", "side"), platform.ExitUnavailable,
		"NO_WORKER_FOR_PROJECT", `"side"`, "serves default")
	require.NotContains(t, s.CLI(t, "run", "list", "--project", "side").Stdout, "side", "a refused start left a row")

	q := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Roles: []string{platform.API},
		Env: []string{"SIGNALBOX_RUNS_QUEUE_WHEN_UNAVAILABLE_ENABLED=true"},
	})
	queued := q.CLI(t, "run", "start", "side", "--project", "side", "-o", "json")
	require.Zero(t, queued.Code, queued.String())
	require.Contains(t, queued.Stdout, "engine")

	platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Roles: []string{platform.Worker}, Env: []string{"SIGNALBOX_PROJECTS=side"},
	})
	started := ""
	platform.Eventually(t, soon, func() string {
		r := s.CLI(t, "run", "start", "side", "--project", "side")
		started = r.String()
		if r.Code == 0 {
			return ""
		}
		return "still refused: " + started
	})
	platform.Eventually(t, soon, func() string {
		list := s.CLI(t, "run", "list", "--project", "side").Stdout
		if strings.Count(list, "completed") == 2 {
			return ""
		}
		return list
	})
}
