package app

import (
	"context"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/internal/config"
	"github.com/signalbox-dev/signalbox/internal/keyring"
)

// The API listens before anything works on its own, ownership of dispatchers is acquired last and released first, and
// only workers execute and correct runs.
func TestPartsStartInOrder(t *testing.T) {
	t.Parallel()
	foundation := []string{"telemetry", "memory monitor", "processor monitor", "store", "payloads", "sealing keys",
		"maintenance mode", "row writer", "connection", "outages", "HTTP calls", "run service", "child watcher", "leases", "events",
		"inbox"}
	services := []string{
		"tokens", "API server", "server heartbeat", "placement monitor", "queue", "admission", "quotas", "batch runner",
		"batch observer", "secrets of webhooks", "webhooks", "connection events", "failure events", "retention", "schedules",
		"diagnosis", "task failures", "problems", "migration",
	}
	execution := []string{"parking", "workers", "heartbeat", "repairer", "reconciler", "dispatchers"}
	for roles, want := range map[string][][]string{
		"api":               {foundation, services},
		"api,worker":        {foundation, services, execution},
		"api,worker,runner": {foundation, {"programs"}, services, execution, {"runners"}},
	} {
		a := wired(t, "SIGNALBOX_ROLES", roles)
		require.Equal(t, slices.Concat(want...), stepNames(a), roles)
	}
	runner := wired(t, "SIGNALBOX_ROLES", "runner", "SIGNALBOX_PROJECTS", "shop", "SIGNALBOX_STORE_DSN",
		"/nowhere/signalbox.db")
	require.Equal(t, []string{"telemetry", "memory monitor", "processor monitor", "programs", "API server", "connection",
		"runners"}, stepNames(runner), "a process with the role of runners alone opens no database")
	a := wired(t, "SIGNALBOX_ROLES", "api", "SIGNALBOX_TELEMETRY_PROFILE_LISTEN", "127.0.0.1:0")
	require.Equal(t, slices.Concat(foundation[:3], []string{"profiles"}, foundation[3:], services), stepNames(a))
}

// wired returns a process that is not started, with variables given as name and value.
func wired(t *testing.T, variables ...string) *App {
	t.Helper()
	env := config.Environment{"SIGNALBOX_STORE_DSN": filepath.Join(t.TempDir(), "signalbox.db")}
	for i := 0; i < len(variables); i += 2 {
		env[variables[i]] = variables[i+1]
	}
	cfg, err := config.Load(config.Options{Env: env})
	require.NoError(t, err)
	a, err := New(t.Context(),
		Options{Config: cfg, Version: "test", Log: slog.New(slog.DiscardHandler), Keys: keyring.Random("test")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Stop(context.WithoutCancel(t.Context()))) })
	return a
}

func stepNames(a *App) []string {
	var all []string
	for _, s := range a.steps {
		all = append(all, s.name)
	}
	return all
}
