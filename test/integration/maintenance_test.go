package integration_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// listens waits for an event.
const listens = "  - l: {listen: {to: {one: {with: {type: go}}}}}\n"

func TestMaintenanceStartsNoRuns(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{Temporal: platform.StartTemporal(t).Address, Store: store}
		s := platform.StartServer(t, options)
		servers := []*platform.Server{s}
		if store.Driver == "postgres" {
			servers = append(servers, platform.StartServer(t, options))
		}
		other := servers[len(servers)-1]
		name := s.Publish(t, platform.Document("plain", hello))
		byEvent := s.Publish(t, platform.Document("by-event", hello, "schedule: {on: {one: {with: {type: maintained}}}}\n"))
		byTime := s.Publish(t, platform.Document("by-time", hello, "schedule: {every: {seconds: 1}}\n"))
		parent := s.Publish(t, platform.Document("parent", listens+subflowVersion(name, "latest", "x", "")))
		open := s.Start(t, parent, `{}`)
		s.Await(t, open.GetId(), soon, "waiting")
		source := s.Start(t, name, `{}`).GetId()
		s.Await(t, source, soon, "completed")

		requireOneLine(t, s.CLI(t, "system", "maintenance", "on"), platform.ExitFailed, "reason")
		on := s.CLI(t, "system", "maintenance", "on", "--reason", "upgrade of the database")
		require.Equal(t, platform.ExitOK, on.Code, on.String())
		require.Contains(t, on.Stdout, "on, no new runs start")

		// Every server refuses within seconds, and stays ready.
		platform.Eventually(t, soon, func() string {
			if r := other.CLI(t, "run", "start", name, "--dry-run"); r.Code != platform.ExitUnavailable {
				return r.String()
			}
			return ""
		})
		count := len(s.AllRuns(t, byTime, 100))
		for _, server := range servers {
			requireOneLine(t, server.CLI(t, "run", "start", name), platform.ExitUnavailable, "upgrade of the database")
			requireOneLine(t, server.CLI(t, "run", "replay", source, "--reason", "again"), platform.ExitUnavailable,
				"maintenance")
			code, body, err := server.Post(t.Context(), "/v1/projects/default/runs", `{"workflow": "`+name+`"}`)
			require.NoError(t, err)
			require.Equal(t, http.StatusServiceUnavailable, code, body)
			require.Contains(t, body, `"MAINTENANCE"`)
			_, metrics, err := server.Get(t.Context(), "/metrics")
			require.NoError(t, err)
			require.Contains(t, metrics, "\nsignalbox_maintenance 1\n")
			code, body, err = server.Get(t.Context(), "/readyz")
			require.NoError(t, err)
			require.Equal(t, http.StatusOK, code, body)
			require.Contains(t, server.CLI(t, "system", "status").Stdout, "on, no new runs start")
		}

		// Events and replays by a batch wait; open runs end, with the runs that they start.
		sent := s.CLI(t, "event", "send", "--type", "maintained", "--source", "/test", "--id", "1")
		require.Equal(t, platform.ExitOK, sent.Code, sent.String())
		batch := s.CLI(t, "batch", "start", "--action", "replay", "--workflow", name, "--reason", "again")
		require.Equal(t, platform.ExitOK, batch.Code, batch.String())
		require.Equal(t, platform.ExitOK, s.CLI(t, "event", "send", "--type", "go", "--source", "/test", "--id", "2").Code)
		s.Await(t, open.GetId(), soon, "completed")
		platform.Eventually(t, soon, func() string {
			if r := s.CLI(t, "event", "show", "1"); !strings.Contains(r.Stdout, "maintenance") {
				return r.String()
			}
			return ""
		})
		require.Empty(t, s.AllRuns(t, byEvent, 100))
		require.LessOrEqual(t, len(s.AllRuns(t, byTime, 100)), count+1, "one may have been on its way")

		off := other.CLI(t, "system", "maintenance", "off")
		require.Equal(t, platform.ExitOK, off.Code, off.String())
		runsBy(t, s, byEvent, 1)
		runsBy(t, s, byTime, count+2)
		platform.Eventually(t, soon, func() string {
			if r := s.CLI(t, "batch", "list"); !strings.Contains(r.Stdout, "completed") {
				return r.String()
			}
			return ""
		})
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "start", name, "--wait").Code)
		entries := s.CLI(t, "audit", "list", "--project", "-", "-o", "json", "--limit", "200")
		for _, action := range []string{"system.maintenance_on", "system.maintenance_off"} {
			require.Equal(t, 1, strings.Count(entries.Stdout, `"`+action+`"`), entries.String())
		}
	})
}
