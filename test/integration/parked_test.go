package integration_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// noted is a task that does not read its input.
const noted = "  - note:\n      set:\n        noted: true\n"

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
	listening := s.Publish(t, platform.Document("called", noted, "schedule: {on: {one: {with: {type: call}}}}\n"))

	parked := func() {
		t.Helper()
		platform.Eventually(t, soon, func() string {
			if queues := s.CLI(t, "system", "queues").String(); !strings.Contains(queues, "parked since") {
				return queues
			}
			return ""
		})
		require.Regexp(t, `state +parked`, s.CLI(t, "dispatcher", "show", "default").String())
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
	ticking := s.Publish(t, platform.Document("ticking", noted, "schedule: {every: {seconds: 10}}\n"))
	s.Await(t, runsBy(t, s, ticking, 1)[0].GetId(), soon, "completed")
}

// TestParkedProjectIsWokenByAnotherServer starts runs at a server without workers, once the other one has ceased to poll
// for the project: it learns of them from the database alone.
func TestParkedProjectIsWokenByAnotherServer(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	options := platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.Postgres(t), Roles: []string{platform.API},
		Env: []string{"SIGNALBOX_WORKER_PARK_AFTER=1s"},
	}
	s := platform.StartServer(t, options)
	options.Roles = []string{platform.Worker}
	w := platform.StartServer(t, options)
	name := s.Publish(t, platform.Document("quiet", hello))
	polled := regexp.MustCompile(`signalbox_queue_pollers\{[^}]*project="default"`)
	for range 3 {
		platform.Eventually(t, soon, func() string {
			_, metrics, err := w.Get(t.Context(), "/metrics")
			if err != nil {
				return err.Error()
			}
			return polled.FindString(metrics)
		})
		w.AwaitReady(t)
		began := time.Now()
		r := s.Start(t, name, "")
		s.Await(t, r.GetId(), soon, "completed")
		t.Log("the first step began after", s.Steps(t, r.GetId())[0].GetStartTime().AsTime().Sub(began))
	}
}

// TestServersThatDisagreeOnParking configures one server to park the project after a second, and another one to park
// none. Runs and events that come at the moment of a parking are processed nevertheless.
func TestServersThatDisagreeOnParking(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	options := platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.Postgres(t),
		Env: []string{"SIGNALBOX_WORKER_PARK_AFTER=1s"},
	}
	s := platform.StartServer(t, options)
	options.Env = []string{"SIGNALBOX_WORKER_PARK_AFTER=0s"}
	other := platform.StartServer(t, options)
	name := s.Publish(t, platform.Document("quiet", hello))
	listening := s.Publish(t, platform.Document("called", noted, "schedule: {on: {one: {with: {type: call}}}}\n"))
	const rounds = 6
	for i := range rounds {
		platform.Eventually(t, soon, func() string {
			if shown := s.CLI(t, "system", "queues").String(); !strings.Contains(shown, "parked since") {
				return shown
			}
			return ""
		})
		at := []*platform.Server{s, other}[i%2]
		began := time.Now()
		sent := at.CLI(t, "event", "send", "--type", "call", "--source", "/test", "--id", fmt.Sprint(i))
		require.Equal(t, platform.ExitOK, sent.Code, sent.String())
		at.Await(t, at.Start(t, name, "").GetId(), soon, "completed")
		s.Await(t, runsBy(t, s, listening, i+1)[0].GetId(), soon, "completed")
		t.Log("round", i, "took", time.Since(began))
	}
	require.Len(t, s.AllRuns(t, listening, 100), rounds)
}
