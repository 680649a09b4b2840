package integration_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/test/picture"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// awaitCause waits until a run has a diagnosis with this code and cause.
func awaitCause(t *testing.T, s *platform.Server, id, code, cause string, limit time.Duration) {
	t.Helper()
	platform.Eventually(t, limit, func() string {
		if v := s.Run(t, id).GetStuck(); v.GetCode() != code || v.GetCause() != cause {
			return "the diagnosis is " + v.String()
		}
		return ""
	})
}

// A worker of another program panics at a run: the run is not the cause.
func TestForeignWorkerIsReported(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Roles: []string{platform.API},
		Env: []string{stuckAfter, "SIGNALBOX_RUNS_POISON_AFTER=2s"},
	})
	awaitConnected(t, s)
	foreign := worker.New(platform.DialTemporal(t, temporal.Address), "signalbox-default",
		worker.Options{Identity: "stranger"})
	foreign.RegisterWorkflowWithOptions(func(workflow.Context) error {
		panic("out of cheese")
	}, workflow.RegisterOptions{Name: contract.RunWorkflow})
	require.NoError(t, foreign.Start())
	defer foreign.Stop()
	id := s.Start(t, s.Publish(t, platform.Document("hello", hello)), "").GetId()
	awaitCause(t, s, id, "TASK_FAILING", "FOREIGN_WORKER", stuckWithin)
	require.Contains(t, s.CLI(t, "run", "show", id).Stdout, "TASK_FAILING (FOREIGN_WORKER)")
	require.Contains(t, s.Run(t, id).GetStuck().GetAdvice(), "another program")
}

// A worker's task does not yield. The worker polls under the ID of a server that is registered as a worker,
// as a server with a deadlock in its code.
func TestDeadlockedRunIsTerminated(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	store := platform.SQLite(t)
	// The run is started before any worker is alive: the workers that are do not serve its project.
	early := platform.StartServer(t,
		platform.ServerOptions{Temporal: temporal.Address, Store: store, Roles: []string{platform.API}})
	awaitConnected(t, early)
	id := early.Start(t, early.Publish(t, platform.Document("hello", hello)), "").GetId()
	early.Terminate()
	_, ended := early.WaitFor(soon)
	require.True(t, ended)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: store,
		Env: []string{stuckAfter, "SIGNALBOX_RUNS_POISON_AFTER=8s", "SIGNALBOX_PROJECTS=side"},
	})
	awaitConnected(t, s)
	release := make(chan struct{})
	hangs := worker.New(platform.DialTemporal(t, temporal.Address), "signalbox-default", worker.Options{Identity: s.ID(t)})
	hangs.RegisterWorkflowWithOptions(func(workflow.Context) error {
		<-release
		return nil
	}, workflow.RegisterOptions{Name: contract.RunWorkflow})
	require.NoError(t, hangs.Start())
	t.Cleanup(func() {
		close(release)
		hangs.Stop()
	})
	// Before, it is TASK_FAILING; on a busy machine, for less than the time between two reads.
	awaitCause(t, s, id, "POISON", "DEADLOCK", 2*stuckWithin)
	require.Contains(t, s.CLI(t, "run", "list", "--stuck", "poison", "-o", "wide").Stdout, "DEADLOCK")
	require.Equal(t, "queued", s.Run(t, id).GetStatus(), "by default it is only reported")
	picture.Await(t, soon, s, platform.DefaultProject, func(p picture.Picture) string {
		if poisoned := p.Value("signalbox_runs_stuck", `code="POISON"`); p.Stuck[id] != "POISON" || poisoned != 1 {
			return fmt.Sprintf("the list has %v, and signalbox_runs_stuck %v", p.Stuck, poisoned)
		}
		return ""
	})

	require.Contains(t, s.CLI(t, "project", "set", "default", "--end-poison").Stdout, "true")
	over := s.Await(t, id, 2*stuckWithin, "terminated")
	require.Contains(t, over.GetError().GetDetail(), "DEADLOCK")
	require.Contains(t, over.GetError().GetTitle(), "signalbox")
	require.Regexp(t, `signalbox +run.terminate +`+id+` +poison`,
		s.CLI(t, "audit", "list", "--subject", id, "--action", "run.terminate").Stdout)
	s.Terminate()
	_, ended = s.WaitFor(soon)
	require.True(t, ended)
	s = platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: store})
	replayed, err := s.Control(t.Context(), "replay", id, "the workflow is correct now")
	require.NoError(t, err)
	require.NotEqual(t, id, replayed.GetId())
}
