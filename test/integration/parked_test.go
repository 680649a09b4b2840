package integration_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestParkedProject parks the only project of two servers, and wakes it by a start, by an event and by a schedule.
func TestParkedProject(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	options := platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.Postgres(t),
		Env: []string{"SIGNALBOX_WORKER_PARK_AFTER=2s"},
	}
	s := platform.StartServer(t, options)
	options.Roles = []string{platform.Worker}
	platform.StartServer(t, options)
	name := s.Publish(t, platform.Document("quiet", hello))
	listening := s.Publish(t, platform.Document("called", hello, "schedule: {on: {one: {with: {type: call}}}}\n"))

	parked := func() {
		t.Helper()
		platform.Eventually(t, soon, func() string {
			shown := s.CLI(t, "dispatcher", "show", "default").String()
			if !strings.Contains(shown, "its project is parked") {
				return shown
			}
			return ""
		})
		queues := s.CLI(t, "system", "queues").String()
		require.Contains(t, queues, "parked since")
		problems := s.CLI(t, "problem", "list").String()
		require.NotContains(t, problems, "DISPATCHER_")
		s.AwaitReady(t)
	}

	parked()
	began := time.Now()
	done := s.CLI(t, "run", "start", name, "--wait")
	require.Equal(t, platform.ExitOK, done.Code, done.String())
	t.Log("a run in a parked project took", time.Since(began))

	parked()
	sent := s.CLI(t, "event", "send", "--type", "call", "--source", "/test", "--id", "1")
	require.Equal(t, platform.ExitOK, sent.Code, sent.String())
	s.Await(t, runsBy(t, s, listening, 1)[0].GetId(), soon, "completed")

	parked()
	ticking := s.Publish(t, platform.Document("ticking", hello, "schedule: {every: {seconds: 10}}\n"))
	s.Await(t, runsBy(t, s, ticking, 1)[0].GetId(), soon, "completed")
}
