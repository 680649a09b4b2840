package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// agreed is the limit for differences between rows and Temporal.
var agreed = promise.Limit(60 * time.Second)

// environment is a server with a Temporal and a database that the tests modify directly.
type environment struct {
	*platform.Server

	store    platform.Store
	temporal *platform.Temporal
	client   client.Client
}

func newEnvironment(t *testing.T, store platform.Store, env ...string) *environment {
	t.Helper()
	temporal := platform.StartTemporal(t)
	return &environment{
		Server: platform.StartServer(t, platform.ServerOptions{
			// longer than any wait here
			Temporal: temporal.Address, Store: store, Env: append(env, "SIGNALBOX_CALLS_TIMEOUT=5m"),
		}),
		store: store, temporal: temporal, client: platform.DialTemporal(t, temporal.Address),
	}
}

// row returns a run from the list: reading it alone would compare it with Temporal.
func (w *environment) row(t *testing.T, workflow, id string) *signalboxv1.Run {
	t.Helper()
	for _, r := range w.AllRuns(t, workflow, 100) {
		if r.GetId() == id {
			return r
		}
	}
	return nil
}

// awaitRow waits until the row of a run has a status.
func (w *environment) awaitRow(t *testing.T, limit time.Duration, workflow, id, status string) *signalboxv1.Run {
	t.Helper()
	var r *signalboxv1.Run
	platform.Eventually(t, limit, func() string {
		if r = w.row(t, workflow, id); r.GetStatus() == status {
			return ""
		}
		return fmt.Sprintf("run %s is %q, not %q: %v", id, r.GetStatus(), status, r.GetError())
	})
	return r
}

// audited returns the audit entries of one action on a run.
func (w *environment) audited(t *testing.T, id, action string) []*signalboxv1.AuditEntry {
	t.Helper()
	res, err := w.Audit.ListAudit(t.Context(), connect.NewRequest(&signalboxv1.ListAuditRequest{
		Project: platform.DefaultProject, Subject: id, Action: action, PageSize: 100,
	}))
	require.NoError(t, err)
	return res.Msg.GetEntries()
}

func (w *environment) awaitAudited(t *testing.T, id, action string) {
	t.Helper()
	platform.Eventually(t, agreed, func() string {
		if len(w.audited(t, id, action)) == 0 {
			return fmt.Sprintf("run %s has no audit entry %q", id, action)
		}
		return ""
	})
}

// requireExecutions checks the number of Temporal's executions of a run.
func (w *environment) requireExecutions(t *testing.T, id string, count int) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		list, err := w.client.ListWorkflow(t.Context(),
			&workflowservice.ListWorkflowExecutionsRequest{Query: fmt.Sprintf("WorkflowId = '%s'", id)})
		if err != nil || len(list.GetExecutions()) != count {
			return fmt.Sprintf("run %s has %d executions, not %d: %v", id, len(list.GetExecutions()), count, err)
		}
		return ""
	})
}

// reset makes Temporal execute a run again from its first workflow task.
func (w *environment) reset(t *testing.T, id string) string {
	t.Helper()
	first := int64(0)
	for _, event := range platform.History(t, w.client, id).GetEvents() {
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			first = event.GetEventId()
			break
		}
	}
	res, err := w.client.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
		Reason: "behind our back", WorkflowTaskFinishEventId: first, RequestId: "reset-" + id,
	})
	require.NoError(t, err)
	return res.GetRunId()
}

func (w *environment) forget(t *testing.T, id string) {
	t.Helper()
	execSQL(t, platform.Store{Driver: w.store.Driver, DSN: w.patient()},
		"DELETE FROM steps WHERE run_id = '"+id+"'", "DELETE FROM run_labels WHERE run_id = '"+id+
			"'", "DELETE FROM runs WHERE id = '"+id+"'")
}

// patient returns the database's address with a timeout that waits for the server's transactions.
func (w *environment) patient() string {
	if w.store.Driver == "sqlite" {
		return "file:" + w.store.DSN + "?_pragma=busy_timeout(10000)"
	}
	return w.store.DSN
}

func TestRowsAndTemporalAgreeAgain(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		w := newEnvironment(t, store)
		o := origin.New(t)
		o.Answer("POST /first", 200, `{"n":1}`)
		gate := o.Hold("POST /second", 200, `{"n":2}`)
		waiting := w.Publish(t, platform.Document("waiting", hello+waits(600)))
		calling := w.Publish(t, platform.Document("calling",
			waits(1)+postStep("first", o.URL+"/first")+postStep("second", o.URL+"/second")))
		short := w.Publish(t, platform.Document("short", hello))
		begin := func(workflow string) string { return w.Start(t, workflow, `{"name":"Ada"}`).GetId() }
		terminated, deleted, untouched := begin(waiting), begin(waiting), begin(waiting)
		request := func(id, name string) (string, error) {
			res, err := w.Runs.StartRun(t.Context(), connect.NewRequest(&signalboxv1.StartRunRequest{
				Project: platform.DefaultProject, Workflow: waiting, RequestId: id,
				Input:  &signalboxv1.JsonValue{Json: fmt.Sprintf(`{"name":%q}`, name)},
				Labels: map[string]string{"order": id},
			}))
			if err != nil {
				return "", err
			}
			return res.Msg.GetRun().GetId(), nil
		}
		must := func(id string, err error) string {
			require.NoError(t, err)
			return id
		}
		lost, repeated := must(request("order-7", "Ada")), must(request("order-8", "Ada"))
		redone, ended, again := begin(calling), begin(short), begin(short)
		for _, id := range []string{terminated, deleted, lost, repeated, untouched} {
			w.awaitRow(t, soon, waiting, id, "waiting")
		}
		<-gate.Arrived
		for _, id := range []string{ended, again} {
			w.awaitRow(t, soon, short, id, "completed")
		}

		require.NoError(t, w.client.TerminateWorkflow(t.Context(), terminated, "", "behind our back"))
		_, err := w.client.WorkflowService().DeleteWorkflowExecution(t.Context(),
			&workflowservice.DeleteWorkflowExecutionRequest{
				Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: deleted},
			})
		require.NoError(t, err)
		newer := w.reset(t, redone)
		w.reset(t, again)
		for _, id := range []string{lost, repeated} {
			w.forget(t, id)
		}
		_, err = request("order-8", "Bea")
		require.Equal(t, connect.CodeAlreadyExists, connect.CodeOf(err), err)
		require.Equal(t, repeated, must(request("order-8", "Ada")), "the request is answered with the run whose row is lost")
		w.forget(t, ended)
		_, err = w.client.ExecuteWorkflow(t.Context(),
			client.StartWorkflowOptions{ID: "stranger", TaskQueue: "signalbox-default"},
			"signalbox.run", map[string]any{
				"runId": "stranger", "project": "default", "documentHash": "sha256:none", "interpreter": 1})
		require.NoError(t, err)

		t.Run("terminated", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, agreed, waiting, terminated, "terminated")
			require.Len(t, w.audited(t, terminated, "run.finish"), 1)
			w.requireExecutions(t, terminated, 1)
		})
		t.Run("deleted", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, agreed, waiting, deleted, "failed")
			r := w.Run(t, deleted)
			require.True(t, strings.HasSuffix(r.GetError().GetType(), "execution_missing"), r.GetError())
			require.Equal(t, "Execution missing", r.GetError().GetTitle())
			require.Contains(t, r.GetError().GetDetail(), w.temporal.Address)
			require.Equal(t, []string{"greet:completed", "pause:canceled"}, platform.Statuses(w.Steps(t, deleted)))
			require.Len(t, w.audited(t, deleted, "run.execution_missing"), 1)
		})
		t.Run("reset", func(t *testing.T) {
			t.Parallel()
			<-gate.Arrived // by the new execution
			w.awaitAudited(t, redone, "run.follow_reset")
			require.Equal(t, newer, w.row(t, calling, redone).GetTemporal().GetRunId())
			gate.Open()
			// The new execution's own records arrive: the row needs no repair.
			w.awaitRow(t, 20*time.Second, calling, redone, "completed")
			require.Equal(t, []string{"pause:completed", "first:completed", "second:completed"},
				platform.Statuses(w.Steps(t, redone)))
			require.Len(t, w.audited(t, redone, "run.follow_reset"), 1)
			w.requireExecutions(t, redone, 2)
		})
		t.Run("reset after its end", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, 0, short, again, "completed")
		})
		t.Run("row lost", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, agreed, waiting, lost, "waiting")
			r := w.Run(t, lost)
			require.Equal(t, []string{"api", "order-7", `{"name":"Ada"}`},
				[]string{r.GetTrigger(), r.GetRequestId(), r.GetInput().GetJson()})
			require.Equal(t, map[string]string{"order": "order-7"}, r.GetLabels())
			require.Equal(t, w.Run(t, untouched).GetActor(), r.GetActor())
			require.Equal(t, []string{"greet:completed", "pause:waiting"}, platform.Statuses(w.Steps(t, lost)))
			require.Len(t, w.audited(t, lost, "run.adopt"), 1)
			w.requireExecutions(t, lost, 1)
		})
		t.Run("row lost, and its request repeated", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, agreed, waiting, repeated, "waiting")
			require.Equal(t, []string{"greet:completed", "pause:waiting"}, platform.Statuses(w.Steps(t, repeated)))
			w.requireExecutions(t, repeated, 1)
		})
		t.Run("row of an ended run lost", func(t *testing.T) {
			t.Parallel()
			w.awaitRow(t, agreed, short, ended, "completed")
			require.JSONEq(t, `{"message":"Hello, Ada!"}`, w.Run(t, ended).GetOutput().GetJson())
			require.Len(t, w.audited(t, ended, "run.adopt"), 1)
		})
		t.Run("foreign", func(t *testing.T) {
			t.Parallel()
			platform.Eventually(t, agreed, func() string {
				if !strings.Contains(w.Output(), "foreign_execution") {
					return "the foreign execution was not reported"
				}
				return ""
			})
		})
		t.Run("untouched", func(t *testing.T) {
			t.Parallel()
			w.awaitAudited(t, terminated, "run.finish")
			require.Equal(t, "waiting", w.row(t, waiting, untouched).GetStatus())
			require.Len(t, w.audited(t, untouched, ""), 1, "only its start is audited")
		})
	})
}

func TestReopenedExecutionIsReportedOnce(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		w := newEnvironment(t, store)
		o := origin.New(t)
		gate := o.Hold("POST /only", 200, `{"n":1}`)
		name := w.Publish(t, platform.Document("reopened", postStep("only", o.URL+"/only")))
		id := w.Start(t, name, "").GetId()
		<-gate.Arrived
		_, err := w.Runs.CancelRun(t.Context(),
			connect.NewRequest(&signalboxv1.CancelRunRequest{Project: platform.DefaultProject, Id: id}))
		require.NoError(t, err)
		w.awaitRow(t, soon, name, id, "canceled")
		w.reset(t, id)
		w.awaitAudited(t, id, "run.reopened_in_temporal")
		require.Equal(t, "canceled", w.row(t, name, id).GetStatus())
		gate.Open()
		platform.Eventually(t, soon, func() string {
			found, err := w.client.DescribeWorkflowExecution(t.Context(), id, "")
			if err != nil || found.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
				return fmt.Sprintf("the new execution has not ended: %v", err)
			}
			return ""
		})
		require.Equal(t, "canceled", w.row(t, name, id).GetStatus(), "an end is final")
		require.Len(t, w.audited(t, id, "run.reopened_in_temporal"), 1)
	})
}

// Temporal restarts at the same address without its data.
func TestTemporalRestartsWithoutData(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		w := newEnvironment(t, store)
		name := w.Publish(t, platform.Document("emptied", waits(600)))
		var started []string
		for range 5 {
			started = append(started, w.Start(t, name, "").GetId())
		}
		for _, id := range started {
			w.awaitRow(t, soon, name, id, "waiting")
		}
		w.temporal.Kill()
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(w.temporal.File + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
				require.NoError(t, err)
			}
		}
		w.temporal.Restart(t)
		ctx, cancel := context.WithTimeout(t.Context(), agreed)
		defer cancel()
		for _, id := range started {
			deadline, _ := ctx.Deadline()
			w.awaitRow(t, time.Until(deadline), name, id, "failed")
			require.Len(t, w.audited(t, id, "run.execution_missing"), 1)
		}
		short := w.Publish(t, platform.Document("afterwards", hello))
		platform.Eventually(t, 2*soon, func() string {
			r, err := w.TryStart(t.Context(), short, "")
			if err != nil {
				return err.Error()
			}
			w.Await(t, r.GetId(), soon, "completed")
			return ""
		})
	})
}
