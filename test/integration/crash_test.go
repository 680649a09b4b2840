package integration_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// requireOnce requires that every entry into a task was recorded once, in order and without a gap.
func requireOnce(t *testing.T, steps []*signalboxv1.Step) {
	t.Helper()
	var paths []string
	for i, step := range steps {
		require.EqualValues(t, i+1, step.GetNumber())
		paths = append(paths, step.GetPath())
	}
	slices.Sort(paths)
	require.Equal(t, slices.Compact(slices.Clone(paths)), paths, "a step was recorded twice")
}

func TestRunContinuesAfterServerKill(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		o := origin.New(t)
		o.Answer("POST /first", 200, `{"n":1}`)
		gate := o.Hold("POST /second", 200, `{"n":2}`)
		o.Answer("POST /third", 200, `{"n":3}`)
		loop := "  - each:\n      for: {each: i, in: \"${ [range(30)] }\"}\n      do:\n        - mark: {set: {i: \"${ $i " +
			"}\"}}\n"
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		name := s.Publish(t, platform.Document("killed",
			postStep("first", o.URL+"/first")+loop+postStep("second", o.URL+"/second")+postStep("third", o.URL+"/third")))
		id := s.Start(t, name, "").GetId()
		<-gate.Arrived
		s.Kill()

		gate.Open()
		s = platform.StartServer(t, options)
		// The call that was lost with its worker is detected by its missing heartbeat.
		run := s.Await(t, id, soon, "completed")
		require.JSONEq(t, `{"n":3}`, run.GetOutput().GetJson())

		steps := s.Steps(t, id)
		requireOnce(t, steps)
		require.Len(t, steps, 1+1+30+1+1)
		for _, step := range steps {
			require.Equal(t, "completed", step.GetStatus(), step.GetPath())
		}
		require.EqualValues(t, len(steps), run.GetStepsTotal())
		require.EqualValues(t, len(steps), run.GetStepsDone())
		require.Len(t, o.Calls("POST /first"), 1, "a completed call is not repeated")
		require.Len(t, o.Calls("POST /third"), 1)
		second := o.Calls("POST /second")
		require.Len(t, second, 2, "the lost call is repeated")
		require.NotEmpty(t, second[0].IdempotencyKey)
		require.Equal(t, second[0].IdempotencyKey, second[1].IdempotencyKey)
	})
}

func TestWaitingRunsContinueAfterServerKill(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		name := s.Publish(t, platform.Document("waiting", hello+waits(3)+"  - last: {set: {done: true}}\n"))
		var started []string
		for range 10 {
			started = append(started, s.Start(t, name, "").GetId())
		}
		s.Await(t, started[9], soon, "waiting")
		s.Kill()
		s = platform.StartServer(t, options)
		for _, id := range started {
			run := s.Await(t, id, soon, "completed")
			require.JSONEq(t, `{"done":true}`, run.GetOutput().GetJson())
			steps := s.Steps(t, id)
			requireOnce(t, steps)
			require.Equal(t, []string{"greet:completed", "pause:completed", "last:completed"}, platform.Statuses(steps))
		}
	})
}

// A graceful stop hands over tasks in progress and loses nothing.
func TestServerRestartedGracefullyUnderLoad(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		name := s.Publish(t, platform.Document("restarted", waits(1)+"  - last: {set: {done: true}}\n"))
		var started []string
		for range 30 {
			started = append(started, s.Start(t, name, "").GetId())
		}
		s.Terminate()
		code, ended := s.WaitFor(soon)
		require.True(t, ended, "the server did not stop")
		require.Equal(t, platform.ExitOK, code, s.Output())
		s = platform.StartServer(t, options)
		for _, id := range started {
			s.Await(t, id, soon, "completed")
			requireOnce(t, s.Steps(t, id))
		}
	})
}

func TestWatchResumesAfterRestart(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	s := platform.StartServer(t, options)
	o := origin.New(t)
	gate := o.Hold("POST /slow", 200, `{"ok":true}`)
	name := s.Publish(t, platform.Document("resumed", hello+postStep("slow", o.URL+"/slow")))
	id := s.Start(t, name, "").GetId()
	<-gate.Arrived

	watch := platform.StartProcess(t, "watch", platform.Binary(t), s.ClientEnv(),
		[]string{"run", "watch", id, "-o", "json"})
	wait := platform.StartProcess(t, "start --wait", platform.Binary(t), s.ClientEnv(),
		[]string{"run", "start", name, "--request-id", "waits-over-a-restart", "--wait", "-o", "json"})
	<-gate.Arrived // the second run's call: both watches are open now, or soon
	platform.Eventually(t, soon, func() string {
		if watch.Output() == "" {
			return "watch has shown nothing yet"
		}
		return ""
	})
	s.Kill()
	s = platform.StartServer(t, options)
	gate.Open()
	for _, p := range []*platform.Process{watch, wait} {
		code, ended := p.WaitFor(soon)
		require.True(t, ended, "%s is still waiting:\n%s", p.Name, p.Output())
		require.Equal(t, platform.ExitOK, code, p.Output())
		require.Contains(t, p.Stdout.String(), "completed")
	}
	require.Len(t, s.AllRuns(t, name, 50), 2)
}

func TestWatchSendsChangesOnly(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		id := s.Start(t, s.Publish(t, platform.Document("sequence", hello+hello2)), "").GetId()
		last := s.Await(t, id, soon, "completed")
		messages := func(after int64) int {
			ctx, cancel := context.WithTimeout(t.Context(), soon)
			defer cancel()
			stream, err := s.Runs.WatchRun(ctx, connect.NewRequest(&signalboxv1.WatchRunRequest{
				Project: platform.DefaultProject, Id: id, AfterSequence: after,
			}))
			require.NoError(t, err)
			steps := 0
			for stream.Receive() {
				steps += len(stream.Msg().GetSteps())
			}
			require.NoError(t, stream.Err())
			require.NoError(t, stream.Close())
			return steps
		}
		require.Equal(t, 2, messages(0))
		require.Zero(t, messages(last.GetSequence()))
	})
}

func TestStartsAreRefusedWithoutTemporal(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store})
		name := s.Publish(t, platform.Document("away", hello))
		s.Await(t, s.Start(t, name, "").GetId(), soon, "completed")

		temporal.Kill()
		platform.Eventually(t, soon, func() string {
			if _, body, err := s.Get(t.Context(), "/readyz"); err != nil || !strings.Contains(body, "degraded") {
				return "the server has not detected the outage: " + body
			}
			return ""
		})
		_, err := s.TryStart(t.Context(), name, "")
		reason, code := platform.Reason(err)
		require.Equal(t, "ENGINE_UNAVAILABLE", reason, "%v", err)
		require.Equal(t, connect.CodeUnavailable, code)
		refused := s.CLI(t, "run", "start", name)
		requireOneLine(t, refused, platform.ExitUnavailable, "temporal cannot be used", "ENGINE_UNAVAILABLE")
		require.NotContains(t, refused.Stderr, temporal.Address, "callers do not see addresses")
		require.Len(t, s.AllRuns(t, name, 50), 1, "a refused start leaves no row")
		status, body, err := s.Get(t.Context(), "/livez")
		require.NoError(t, err)
		require.Equal(t, 200, status, body)
		status, body, err = s.Get(t.Context(), "/readyz")
		require.NoError(t, err)
		require.Equal(t, 200, status, body)

		temporal.Restart(t)
		platform.Eventually(t, 2*soon, func() string {
			run, err := s.TryStart(t.Context(), name, "")
			if err != nil {
				return err.Error()
			}
			s.Await(t, run.GetId(), soon, "completed")
			return ""
		})
	})
}

// A server starts before Temporal does: reads work, starts are refused, and it recovers by itself.
func TestServerStartsBeforeTemporal(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	temporal.Terminate()
	_, ended := temporal.WaitFor(soon)
	require.True(t, ended)
	s := platform.LaunchServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)})
	s.AwaitAPI(t)
	name := s.Publish(t, platform.Document("early", hello))
	requireOneLine(t, s.CLI(t, "run", "start", name), platform.ExitUnavailable, "temporal cannot be used")
	temporal.Restart(t)
	platform.Eventually(t, 2*soon, func() string {
		run, err := s.TryStart(t.Context(), name, "")
		if err != nil {
			return err.Error()
		}
		s.Await(t, run.GetId(), soon, "completed")
		return ""
	})
}

const hello2 = "  - again:\n      set: {message: bye}\n"
