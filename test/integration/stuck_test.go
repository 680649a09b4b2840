package integration_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/picture"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	// stuckAfter is the time without progress after which these tests' runs are stuck.
	stuckAfter = "SIGNALBOX_RUNS_STUCK_AFTER=2s"
	noPoller   = "NO_POLLER"
)

// stuckWithin is the limit until a stuck run is reported.
var stuckWithin = promise.Limit(15 * time.Second)

// awaitStuck waits until a run has a diagnosis with this code.
func awaitStuck(t *testing.T, s *platform.Server, id, code string, limit time.Duration) *signalboxv1.Stuck {
	t.Helper()
	var last *signalboxv1.Stuck
	platform.Eventually(t, limit, func() string {
		if last = s.Run(t, id).GetStuck(); last.GetCode() == code {
			return ""
		}
		return "the diagnosis is " + last.String()
	})
	return last
}

// verdictEvents returns the types of the events about a run's diagnoses, oldest first.
func verdictEvents(t *testing.T, s *platform.Server, id string) (types []string) {
	t.Helper()
	res, err := s.Events.ListEvents(t.Context(), connect.NewRequest(&signalboxv1.ListEventsRequest{
		Project: platform.DefaultProject, Source: "/projects/default/runs", PageSize: 100,
	}))
	require.NoError(t, err)
	for _, e := range res.Msg.GetEvents() {
		if e.GetSubject() == id {
			types = append([]string{e.GetType()}, types...)
		}
	}
	return types
}

func TestRunWithoutWorkerIsStuckUntilWorkerStarts(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	store, temporal := platform.Postgres(t), platform.StartTemporal(t)
	options := platform.ServerOptions{
		Temporal: temporal.Address, Store: store, Roles: []string{platform.API}, Env: []string{stuckAfter}}
	s := platform.StartServer(t, options)
	awaitConnected(t, s)
	name := s.Publish(t, platform.Document("alone", hello))
	r := s.Start(t, name, "")
	require.Nil(t, r.GetStuck())
	watching, stop := context.WithCancel(t.Context())
	defer stop()
	watch, err := s.Runs.WatchRun(watching,
		connect.NewRequest(&signalboxv1.WatchRunRequest{Project: platform.DefaultProject, Id: r.GetId()}))
	require.NoError(t, err)

	v := awaitStuck(t, s, r.GetId(), noPoller, stuckWithin)
	require.Contains(t, v.GetDetail(), "no worker polls task queue signalbox-default")
	require.Contains(t, v.GetAdvice(), "signalbox worker list")
	require.Equal(t, s.Run(t, r.GetId()).GetStatusTime().AsTime(), v.GetSince().AsTime())
	for watch.Receive() && watch.Msg().GetRun().GetStuck() == nil {
		continue
	}
	require.NoError(t, watch.Err(), "watches receive it, too")
	require.Equal(t, noPoller, watch.Msg().GetRun().GetStuck().GetCode())
	counts, err := s.Runs.CountRuns(t.Context(),
		connect.NewRequest(&signalboxv1.CountRunsRequest{
			Project: platform.DefaultProject, Filter: &signalboxv1.RunFilter{Workflow: name}}))
	require.NoError(t, err)
	require.Equal(t, map[string]int64{"queued": 1}, counts.Msg.GetStatuses())
	require.Equal(t, map[string]int64{noPoller: 1}, counts.Msg.GetStuck())
	list := s.CLI(t, "run", "list", "--stuck", "no_poller")
	require.Contains(t, list.Stdout, noPoller)
	require.Contains(t, list.Stdout, r.GetId())
	require.Contains(t, s.CLI(t, "run", "list", "--stuck", "backlog").Stderr, "no runs match")
	require.Contains(t, s.CLI(t, "run", "show", r.GetId()).Stdout, v.GetAdvice())
	picture.Await(t, soon, s, platform.DefaultProject, func(p picture.Picture) string {
		if stuck := p.Value("signalbox_runs_stuck", `code="NO_POLLER"`); p.Stuck[r.GetId()] != noPoller || stuck != 1 ||
			p.WorkersIn("alive") != 0 {
			return fmt.Sprintf("the list has %v, signalbox_runs_stuck %v, and the workers are %v", p.Stuck, stuck, p.Workers)
		}
		return ""
	})

	// A worker that works in another namespace is named in the detail, and does not help.
	temporal.CreateNamespace(t, "other")
	astray := options
	astray.Roles, astray.Env = []string{platform.Worker}, []string{stuckAfter, "SIGNALBOX_TEMPORAL_NAMESPACE=other"}
	lost := platform.LaunchServer(t, astray)
	platform.Eventually(t, stuckWithin, func() string {
		detail := s.Run(t, r.GetId()).GetStuck().GetDetail()
		if !strings.Contains(detail, `namespace "other"`) {
			return "the detail is " + detail
		}
		return ""
	})
	lost.Terminate()

	options.Roles = []string{platform.Worker}
	w := platform.StartServer(t, options)
	came := time.Now()
	s.Await(t, r.GetId(), promise.Limit(5*time.Second), "completed")
	require.Nil(t, s.Run(t, r.GetId()).GetStuck())
	gone := time.Since(came)
	promise.Within(t, "until the verdict is gone", gone, 5*time.Second)
	promise.Record(t, promise.Figure{Promise: "E7", What: "a worker is there: until the run has ended and its verdict " +
		"is gone", Aim: "5 s", Trials: 1, Figure: promise.Round(gone).String()})
	platform.Eventually(t, stuckWithin, func() string {
		if types := verdictEvents(t, s, r.GetId()); len(types) == 2 && types[0] == "io.signalbox.run.stuck" &&
			types[1] == "io.signalbox.run.unstuck" {
			return ""
		} else if len(types) > 2 {
			t.Fatalf("reported more than once: %v", types)
		}
		return "not reported yet"
	})
	if promise.Full() {
		deadWorker(t, s, w, name)
	}
}

// deadWorker kills the only worker. Temporal lists its polls for minutes.
func deadWorker(t *testing.T, s, w *platform.Server, workflow string) {
	t.Helper()
	w.Kill()
	killed := time.Now()
	r := s.Start(t, workflow, "")
	v := awaitStuck(t, s, r.GetId(), "POLLER_STALE", 90*time.Second)
	promise.Record(t, promise.Figure{Promise: "E7", What: "the only worker killed: until its polls, which Temporal " +
		"still lists, count no more", Aim: "90 s", Trials: 1, Figure: promise.Round(time.Since(killed)).String()})
	require.Contains(t, v.GetDetail(), "no worker polls task queue signalbox-default any more")
}

// The test waits in real time.
func TestRunIsStuckAfterOneMinute(t *testing.T) {
	t.Parallel()
	if !promise.Full() {
		t.Skip("takes more than a minute; unit tests of the diagnosis cover the exact time")
	}
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Roles: []string{platform.API},
	})
	awaitConnected(t, s)
	r := s.Start(t, s.Publish(t, platform.Document("minute", hello)), "")
	since := r.GetCreateTime().AsTime()
	platform.Throughout(t, 59*time.Second-time.Since(since), func() string {
		return s.Run(t, r.GetId()).GetStuck().GetCode()
	})
	awaitStuck(t, s, r.GetId(), noPoller, 10*time.Second)
	after := time.Since(since)
	require.GreaterOrEqual(t, after, 60*time.Second)
	promise.Within(t, "until the verdict is there", after, 61*time.Second)
	promise.Record(t, promise.Figure{Promise: "E7", What: "a run that no worker takes: no verdict at 59 s; until " +
		"NO_POLLER is shown", Aim: "61 s", Trials: 1, Figure: promise.Round(after).String()})
}

func TestWaitingRunIsNotStuck(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t), Env: []string{stuckAfter},
	})
	long := s.Start(t, s.Publish(t, platform.Document("long", waits(600))), "").GetId()
	listens := s.Start(t, s.Publish(t, platform.Document("listens", "  - hear:\n      listen:\n        to:\n          "+
		"one:\n            with: {type: never}\n")), "").GetId()
	s.Await(t, long, soon, "waiting")
	s.Await(t, listens, soon, "waiting")
	platform.Throughout(t, 7*time.Second, func() string {
		return s.Run(t, long).GetStuck().GetCode() + s.Run(t, listens).GetStuck().GetCode()
	})
	platform.Eventually(t, soon, func() string {
		_, metrics, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		if !strings.Contains(metrics, `signalbox_runs_stuck{code="UNKNOWN"} 0`) {
			return "it has run no diagnosis"
		}
		return ""
	})
}

func TestRunsThatWorkersDoNotComplete(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: temporal.Address, Store: platform.SQLite(t), Roles: []string{platform.API}, Env: []string{stuckAfter},
	})
	awaitConnected(t, s)
	name := s.Publish(t, platform.Document("hello", hello))
	c := platform.DialTemporal(t, temporal.Address)

	// A client polls, takes one task, and does not complete it: the others wait.
	taken := s.Start(t, name, "").GetId()
	require.Equal(t, taken, poll(t, c))
	waits := s.Start(t, name, "").GetId()
	v := awaitStuck(t, s, waits, "BACKLOG", stuckWithin)
	require.Contains(t, v.GetDetail(), "signalbox-default")

	// A foreign worker has not registered the workflow type.
	foreign := worker.New(c, "signalbox-default", worker.Options{Identity: "stranger"})
	foreign.RegisterWorkflowWithOptions(func(workflow.Context) error {
		return nil
	}, workflow.RegisterOptions{Name: "somebody.else"})
	require.NoError(t, foreign.Start())
	defer foreign.Stop()
	v = awaitStuck(t, s, waits, "TASK_FAILING", stuckWithin)
	require.Contains(t, v.GetDetail(), "signalbox.run")
	require.Contains(t, v.GetAdvice(), "signalbox-default")

	_, err := c.WorkflowService().DeleteWorkflowExecution(t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: waits},
	})
	require.NoError(t, err)
	awaitStuck(t, s, waits, "EXECUTION_MISSING", 2*stuckWithin)
}

// poll takes one workflow task without completing it; it returns the run.
func poll(t *testing.T, c client.Client) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	task, err := c.WorkflowService().PollWorkflowTaskQueue(ctx, &workflowservice.PollWorkflowTaskQueueRequest{
		Namespace: "default", TaskQueue: &taskqueuepb.TaskQueue{Name: "signalbox-default"}, Identity: "idler",
	})
	require.NoError(t, err)
	return task.GetWorkflowExecution().GetWorkflowId()
}

// awaitConnected waits until a server without workers can start runs: it is ready before it has connected to Temporal.
func awaitConnected(t *testing.T, s *platform.Server) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		status, err := s.System.GetStatus(t.Context(), connect.NewRequest(&signalboxv1.GetStatusRequest{}))
		if err != nil {
			return err.Error()
		}
		if state := status.Msg.GetConnection().GetState(); state != "connected" {
			return "the connection is " + state
		}
		return ""
	})
}
