package integration_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/workflowservice/v1"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

const (
	listensForever = "  - hear:\n      listen: {to: {one: {with: {type: never.comes}}}}\n"
	begins         = "timeout:\n  after:\n    milliseconds: 300\n"
)

// retries returns a task that calls a failing service, and waits ten minutes before it retries.
func retries(url string) string {
	return "  - attempt:\n      try:\n        - get: {call: http, with: {method: get, endpoint: " + url + "}}\n" +
		"      catch:\n        retry: {delay: {minutes: 10}, limit: {attempt: {count: 5}}}\n"
}

// runsInState returns functions that start a run and bring it into a state of the table of controls.
func runsInState(s *platform.Server, o *origin.Origin) map[string]func(t *testing.T) string {
	ran := func(status, kind, tasks string, head ...string) func(t *testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			id := s.Start(t, s.Publish(t, platform.Document("controlled", tasks, head...)), `{"sku":"A-1"}`).GetId()
			platform.Eventually(t, soon, func() string {
				if r := s.Run(t, id); r.GetStatus() != status || r.GetWaitingKind() != kind {
					return "run " + id + " is " + r.GetStatus() + " " + r.GetWaitingKind() + ", not " + status + " " + kind
				}
				return ""
			})
			return id
		}
	}
	then := func(control, status, kind string) func(t *testing.T) string {
		return func(t *testing.T) string {
			t.Helper()
			id := ran("waiting", "timer", waits(600))(t)
			_, err := s.Control(t.Context(), control, id, "to begin with")
			require.NoError(t, err)
			require.Equal(t, kind, s.Await(t, id, soon, status).GetWaitingKind())
			return id
		}
	}
	return map[string]func(t *testing.T) string{
		"running":         ran("running", "", getStep("slow", o.URL+"/slow")),
		"waiting: event":  ran("waiting", "event", listensForever),
		"waiting: timer":  ran("waiting", "timer", waits(600)),
		"waiting: retry":  ran("waiting", "retry", retries(o.URL+"/bad")),
		"waiting: paused": then("pause", "waiting", "paused"),
		"completed":       ran("completed", "", hello),
		"failed":          ran("failed", "", fails),
		"canceled":        then("cancel", "canceled", ""),
		"terminated":      then("terminate", "terminated", ""),
		"timed_out":       ran("timed_out", "", waits(600), begins),
	}
}

// The test brings runs into each state and tries each control.
func TestControlsMatchReference(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		o.Hold("GET /slow", 200, `{}`)
		o.Answer("GET /bad", 503, `{}`)
		table := platform.ReadControls(t)
		for state, begin := range runsInState(s, o) {
			row := table[state]
			require.NotEmpty(t, row, "the reference has no row %q", state)
			t.Run(state, func(t *testing.T) {
				t.Parallel()
				id := begin(t)
				requireOffered(t, row, s.Run(t, id))
				for _, control := range []string{"cancel", "terminate", "pause", "unpause"} {
					if row[control] != "yes" {
						requireNoEffect(t, s, control, id, row[control])
					}
				}
				requireReplayed(t, s, id)
				for _, control := range []string{"pause", "unpause", "cancel", "terminate"} {
					if row[control] == "yes" {
						requireEffect(t, s, control, begin(t))
					}
				}
			})
		}
	})
}

// requireOffered compares the controls in the API's response with the table.
func requireOffered(t *testing.T, row map[string]string, r *signalboxv1.Run) {
	t.Helper()
	for control, cell := range row {
		require.Equal(t, cell == "yes" || cell == "yes ¹", slices.Contains(r.GetControls(), control), "%s: %s", control, cell)
	}
}

// requireNoEffect calls a control that is refused, or has no effect.
func requireNoEffect(t *testing.T, s *platform.Server, control, id, cell string) {
	t.Helper()
	before := s.Run(t, id)
	_, err := s.Control(t.Context(), control, id, "in vain")
	if cell == "no effect" {
		require.NoError(t, err, control)
	} else {
		reason, code := platform.Reason(err)
		require.Equal(t, []any{cell, connect.CodeFailedPrecondition}, []any{reason, code}, control)
	}
	after := s.Run(t, id)
	require.Equal(t, []any{before.GetStatus(), before.GetWaitingKind(), before.GetQueuedReason(),
		before.GetCancelRequested(), before.GetError(), before.GetControls()},
		[]any{after.GetStatus(), after.GetWaitingKind(), after.GetQueuedReason(), after.GetCancelRequested(),
			after.GetError(), after.GetControls()}, control)
}

// requireEffect calls a control and requires its effect.
func requireEffect(t *testing.T, s *platform.Server, control, id string) {
	t.Helper()
	r, err := s.Control(t.Context(), control, id, "because of "+control)
	require.NoError(t, err, control)
	switch control {
	case "pause":
		awaitPaused(t, s, id, true)
		requireEffect(t, s, "unpause", id)
	case "unpause":
		r = awaitPaused(t, s, id, false)
		require.NotContains(t, platform.Ended(), r.GetStatus())
		requireEffect(t, s, "cancel", id)
	case "cancel":
		r = s.Await(t, id, soon, "canceled")
		require.Equal(t, "because of cancel", r.GetCancelReason())
		for _, step := range s.Steps(t, id) {
			require.Contains(t, []string{"canceled", "failed", "completed"}, step.GetStatus(), step.GetPath())
		}
	case "terminate":
		require.Equal(t, []string{"terminated", "because of terminate"}, []string{r.GetStatus(), r.GetTerminateReason()},
			"the response shows it")
		require.Equal(t, "Terminated by local", r.GetError().GetTitle())
	}
}

// awaitPaused waits until a run is paused, or is not. The response to the control has it too, unless the machine is
// slow.
func awaitPaused(t *testing.T, s *platform.Server, id string, paused bool) (r *signalboxv1.Run) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if r = s.Run(t, id); (r.GetWaitingKind() == "paused") != paused {
			return fmt.Sprintf("it is %s %s", r.GetStatus(), r.GetWaitingKind())
		}
		return ""
	})
	return r
}

// requireReplayed replays a run that had an input, and ends the new run.
func requireReplayed(t *testing.T, s *platform.Server, id string) {
	t.Helper()
	before := s.Run(t, id)
	r, err := s.Control(t.Context(), "replay", id, "once more")
	require.NoError(t, err)
	made := s.Run(t, r.GetId())
	require.Equal(t, []string{id, "replay", before.GetVersion(), before.GetDocumentHash(), before.GetInput().GetJson()},
		[]string{made.GetReplayOf(), made.GetTrigger(), made.GetVersion(), made.GetDocumentHash(), made.GetInput().GetJson()})
	after := s.Run(t, id)
	require.Equal(t, []string{made.GetId()}, after.GetReplays())
	require.Equal(t, before.GetStatus(), after.GetStatus())
	_, _ = s.Control(t.Context(), "terminate", made.GetId(), "it was only a test") // it may have ended
}

// There is a Temporal and no worker: every possible control works without one.
func TestControlsOfRunWithoutWorker(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		s := platform.StartServer(t, platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Roles: []string{platform.API},
		})
		name := s.Publish(t, platform.Document("idle", hello))
		table := platform.ReadControls(t)
		var id string
		platform.Eventually(t, soon, func() string { // until the server has connected
			r, err := s.TryStart(t.Context(), name, "{}")
			if err != nil {
				return err.Error()
			}
			id = r.GetId()
			return ""
		})
		requireOffered(t, table["queued: worker"], s.Run(t, id))
		requireNoEffect(t, s, "unpause", id, "no effect")
		requireReplayed(t, s, id)
		r, err := s.Control(t.Context(), "pause", id, "for later")
		require.NoError(t, err)
		require.Equal(t, "worker", r.GetQueuedReason(), "it waits for a worker")
		requireEffect(t, s, "terminate", s.Start(t, name, "{}").GetId())

		r, err = s.Control(t.Context(), "cancel", id, "enough")
		require.NoError(t, err)
		require.True(t, r.GetCancelRequested())
		row := table["queued: worker, cancel requested"]
		requireOffered(t, row, s.Run(t, id))
		for _, control := range []string{"cancel", "pause", "unpause"} {
			requireNoEffect(t, s, control, id, row[control])
		}
		requireEffect(t, s, "terminate", id)
	})
}

// The answer that a run waits for arrives at the moment of the cancellation: whichever takes effect, the row agrees
// with Temporal.
func TestCancelThatRacesCompletion(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		w := newEnvironment(t, store)
		o := origin.New(t)
		cancels := make(chan string)
		o.Handle("GET /race", func(c origin.Call) origin.Answer {
			cancels <- strings.TrimPrefix(c.Query, "run=")
			return origin.Answer{Status: 200, Body: `{}`}
		})
		name := w.Publish(t, platform.Document("race",
			"  - last: {call: http, with: {method: get, endpoint: '"+o.URL+"/race', query: {run: '${ $workflow.id }'}}}\n"))
		const races = 200
		var racing sync.WaitGroup
		for range races {
			racing.Go(func() {
				id := <-cancels
				_, err := w.Control(t.Context(), "cancel", id, "a race")
				if reason, _ := platform.Reason(err); err != nil && reason != "RUN_ENDED" {
					t.Errorf("cancel run %s: %v", id, err)
				}
			})
		}
		ids := make([]string, races)
		for i := range ids {
			ids[i] = w.Start(t, name, "").GetId()
		}
		racing.Wait()
		won := map[string]int{}
		for _, id := range ids {
			r := w.Await(t, id, soon, "completed", "canceled")
			now, err := w.client.DescribeWorkflowExecution(t.Context(), id, "")
			require.NoError(t, err)
			require.Equal(t, r.GetStatus(), strings.ToLower(now.GetWorkflowExecutionInfo().GetStatus().String()), id)
			require.True(t, r.GetCancelRequested() || r.GetStatus() == "completed", id)
			won[r.GetStatus()]++
		}
		promise.Record(t, promise.Figure{
			Promise: "E3", What: "cancels that race completion: runs whose status is Temporal's; won by completion, by the " +
				"cancel", Aim: "all", Trials: races,
			Figure: fmt.Sprintf("%d; %d, %d", len(ids), won["completed"], won["canceled"]),
		})
	})
}

// Executions are deleted in Temporal directly, while no worker runs that would detect it first.
func TestControlsOfRunDeletedInTemporal(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		temporal := platform.StartTemporal(t)
		options := platform.ServerOptions{Temporal: temporal.Address, Store: store, Port: platform.FreePort(t)}
		w := &environment{Server: platform.StartServer(t, options), store: store, temporal: temporal,
			client: platform.DialTemporal(t, temporal.Address)}
		name := w.Publish(t, platform.Document("lost", waits(600)))
		lost := map[string]string{}
		for _, control := range []string{"cancel", "terminate", "pause"} {
			lost[control] = w.Start(t, name, "").GetId()
			w.Await(t, lost[control], soon, "waiting")
		}
		w.Terminate()
		_, ended := w.WaitFor(soon)
		require.True(t, ended)
		options.Roles = []string{platform.API}
		w.Server = platform.StartServer(t, options)
		awaitConnected(t, w.Server)
		for _, id := range lost {
			w.deleteExecution(t, id)
		}

		for control, status := range map[string]string{"cancel": "canceled", "terminate": "terminated"} {
			id := lost[control]
			r, err := w.Control(t.Context(), control, id, "it is gone")
			require.NoError(t, err, control)
			require.Equal(t, []string{status, status}, []string{r.GetStatus(), w.row(t, name, id).GetStatus()})
			require.Equal(t, map[string]string{"cancel": "Execution missing", "terminate": "Terminated by local"}[control],
				r.GetError().GetTitle())
			require.Equal(t, []string{"pause:canceled"}, platform.Statuses(w.Steps(t, id)))
			entries := w.audited(t, id, "run."+control)
			require.Len(t, entries, 1)
			require.Equal(t, []string{"it is gone", "local"}, []string{entries[0].GetReason(), entries[0].GetActor()})
			requireNoEffect(t, w.Server, control, id, "RUN_ENDED")
			require.Len(t, w.audited(t, id, "run."+control), 1, "a refused control is not audited")
		}
		requireNoEffect(t, w.Server, "pause", lost["pause"], "EXECUTION_MISSING")
		require.Empty(t, w.audited(t, lost["pause"], "run.pause"))
		requireOneLine(t, w.CLI(t, "run", "terminate", "none", "--reason", "x"), platform.ExitNotFound, `"none"`)
	})
}

// deleteExecution deletes a run's execution in Temporal, and waits until it is deleted.
func (w *environment) deleteExecution(t *testing.T, id string) {
	t.Helper()
	_, err := w.client.WorkflowService().DeleteWorkflowExecution(t.Context(),
		&workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
		})
	require.NoError(t, err)
	platform.Eventually(t, soon, func() string {
		if _, err := w.client.DescribeWorkflowExecution(t.Context(), id, ""); err == nil {
			return "Temporal still has the execution"
		}
		return ""
	})
}
