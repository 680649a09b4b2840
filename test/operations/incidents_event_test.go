package operations_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/signalbox-dev/signalbox/internal/engine/contract"
	"github.com/signalbox-dev/signalbox/test/feed"
	"github.com/signalbox-dev/signalbox/test/platform"
)

const hello = "  - note:\n      set: {seen: true}\n"

// publishEvents publishes an event per second that starts a run, until the end of the test.
func (w *watched) publishEvents(t *testing.T) {
	t.Helper()
	kind := fmt.Sprintf("io.example.%x", time.Now().UnixNano())
	w.Publish(t, feed.Starter("starts", kind))
	feed.Start(t, feed.Options{Type: kind, PerSecond: 1, Servers: []*platform.Server{w.Server}})
}

// eventIncidents are those of the inbox.
func eventIncidents() map[string]incident {
	return map[string]incident{
		"an event that the workflow's schema rejects": {
			breaks: func(t *testing.T, w *watched) {
				w.names["WORKFLOW"] = w.Publish(t, picky("1.0.0", "integer"))
				out := w.CLI(t, "event", "send", "--type", "io.example.picky", "--source", "/picky", "--id", "4711", "--data",
					`{"n":"text"}`)
				require.Zero(t, out.Code, out)
				w.faulted = time.Now()
				w.names["ID"] = "4711"
			},
			repairs: func(t *testing.T, w *watched) {
				w.Publish(t, picky("1.0.1", "string"))
				w.fix(t, "DeadLetters", `signalbox event redeliver ID --project NAME --reason "the cause is corrected"`)
			},
			alerts: []expected{{
				name: "DeadLetters", severity: "ticket", sees: []string{"4711"}, verifies: []string{"no events"},
			}},
		},
		"Temporal refuses new runs": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.Publish(t, feed.Starter("starts", "io.example.starts"))
				w.frontend.Fail("StartWorkflowExecution", serviceerror.NewPermissionDenied("starts are not allowed", ""))
				out := w.CLI(t, "event", "send", "--type", "io.example.starts", "--source", "/starts", "--id", "4711", "--data",
					"1")
				require.Zero(t, out.Code, out)
				w.faulted = time.Now()
				w.names["ID"] = "4711"
			},
			repairs: func(t *testing.T, w *watched) {
				w.frontend.Clear()
				w.fix(t, "DeadLetters", `for position in $(signalbox event list --project NAME --dead --since 24h --limit 0 -q '.[].position'); do signalbox event redeliver --position $position --project NAME --reason "the cause is corrected"; done`)
			},
			alerts: []expected{{
				name: "DeadLetters", severity: "ticket", sees: []string{"4711", "starts are not allowed"},
				verifies: []string{"no events"},
			}},
		},
		"Temporal refuses signals": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.publishEvents(t) // so that the dispatcher does not park
				w.awaitDispatcher(t, "routing")
				kind := "io.example.waits"
				run := w.Start(t, w.Publish(t, feed.Collector("collects", kind)), "")
				w.Await(t, run.GetId(), patience, "waiting")
				w.frontend.Fail("SignalWorkflowExecution", serviceerror.NewPermissionDenied("signals are not allowed", ""))
				out := w.CLI(t, "event", "send", "--type", kind, "--source", "/waits", "--id", "4711")
				require.Zero(t, out.Code, out)
				w.faulted = time.Now()
				w.names["ID"] = "4711"
			},
			repairs: func(t *testing.T, w *watched) {
				w.frontend.Clear()
				w.fix(t, "InboxLag", `signalbox event redeliver ID --project NAME --reason "the cause is corrected"`)
			},
			alerts: []expected{{
				name: "InboxLag", severity: "page", sees: []string{`state +routing`, "4711", "signals are not allowed"},
				verifies: []string{dispatching, "no events"},
			}},
		},
		"Temporal refuses the doorbell of a dispatcher": {
			parts: parts{frontend: true},
			breaks: func(t *testing.T, w *watched) {
				w.awaitDispatcher(t, "parked")
				w.frontend.Fail("SignalWorkflowExecution", serviceerror.NewPermissionDenied("signals are not allowed", ""))
				out := w.CLI(t, "event", "send", "--type", "io.example.waits", "--source", "/waits", "--id", "4711")
				require.Zero(t, out.Code, out)
				w.faulted = time.Now()
				w.names["ID"] = "4711"
			},
			repairs: func(_ *testing.T, w *watched) { w.frontend.Clear() },
			alerts: []expected{{
				name: "InboxLag", severity: "page", sees: []string{`state +parked`, `lag +[1-9]`},
				verifies: []string{dispatching, "no events"},
			}},
		},
		"a webhook whose receiver answers with errors": {
			breaks: func(t *testing.T, w *watched) {
				var works atomic.Bool
				receiver := httptest.NewServer(http.HandlerFunc(func(res http.ResponseWriter, _ *http.Request) {
					if !works.Load() {
						res.WriteHeader(http.StatusInternalServerError)
					}
				}))
				t.Cleanup(receiver.Close)
				w.undo = func() { works.Store(true) }
				w.names["WEBHOOK"] = "pager"
				out := w.CLI(t, "webhook", "create", "pager", "--url", receiver.URL, "--type", "io.example.*")
				require.Zero(t, out.Code, out)
				out = w.CLI(t, "event", "send", "--type", "io.example.alarm", "--source", "/alarms", "--id", "1")
				require.Zero(t, out.Code, out)
				w.faulted = time.Now()
			},
			repairs: func(t *testing.T, w *watched) {
				w.undo()
				out := w.CLI(t, "webhook", "deliveries", "pager", "-o", "json", "--jq", ".[0].id")
				require.Zero(t, out.Code, out)
				w.names["ID"] = strings.TrimSpace(out.Stdout)
				w.fix(t, "WebhookDeliveriesFailing", "signalbox webhook redeliver ID --project NAME")
			},
			alerts: []expected{{
				name: "WebhookDeliveriesFailing", severity: "ticket", sees: []string{"pager", "500"},
				verifies: []string{"delivered"},
			}},
		},
	}
}

func (w *watched) awaitDispatcher(t *testing.T, state string) {
	t.Helper()
	platform.Eventually(t, patience, func() string {
		d, err := w.dispatcher(t)
		if err != nil || d.GetState() != state {
			return fmt.Sprintf("the dispatcher is %s: %v", d.GetState(), err)
		}
		return ""
	})
}

// picky is a workflow that events start, with an input whose number has a type.
func picky(version, number string) string {
	return "document: {dsl: '1.0.3', namespace: shop, name: picky, version: '" + version + "'}\n" +
		"input: {schema: {format: json, document: {type: array, items: {type: object, properties: {data: {type: object, " +
		"properties: {n: {type: " + number + "}}}}}}}}\n" +
		"schedule: {on: {one: {with: {type: io.example.picky}}}}\n" + "do:\n" + hello
}

// runIncidents are those of runs and of problems.
func runIncidents() map[string]incident {
	return map[string]incident{
		"the database refuses an event of a run": {
			breaks: func(t *testing.T, w *watched) {
				w.names["ID"] = w.retry(t)
			},
			repairs: func(t *testing.T, w *watched) { w.exec(t, "DROP TRIGGER refuse ON events") },
			alerts: []expected{{
				name: "RunsStuck", severity: "page", sees: []string{"ACTIVITY_RETRYING", "no room"}, verifies: []string{"no runs"},
			}},
			also: []string{"ProblemsUnacknowledged"},
		},
		"a problem that no person acknowledges": {
			breaks: func(t *testing.T, w *watched) {
				w.retry(t)
				w.awaitProblem(t, "ACTIVITY_RETRYING")
			},
			alerts: []expected{
				{name: "ProblemsUnacknowledged", severity: "page", sees: []string{"ACTIVITY_RETRYING"},
					fixes:    []string{`signalbox problem acknowledge ID --note "I act on it"`},
					verifies: []string{`(?m)^open +0|0 open|acknowledged`}},
				{name: "AcknowledgeTimeHigh", severity: "ticket", after: true, sees: []string{"acknowledged"},
					verifies: []string{"mean|average"}},
			},
			settles: func(t *testing.T, w *watched) {
				for _, name := range []string{"first", "second", "third"} {
					w.fail(t, name)
					w.awaitProblem(t, name)
					w.fix(t, "AcknowledgeTimeHigh", `signalbox problem acknowledge ID --note "I act on it"`)
				}
			},
			also: []string{"RunsStuck"},
		},
		"failed runs that no person acknowledges": {
			breaks: func(t *testing.T, w *watched) {
				w.fail(t, "fails")
				w.awaitProblem(t, "fails")
			},
			alerts: []expected{{
				name: "ProblemsUnacknowledged", severity: "ticket", sees: []string{"fails"},
				fixes: []string{`signalbox problem snooze ID --until 12h`}, verifies: []string{`(?m)^open +0|0 open|snoozed`},
			}},
		},
		"a task that fails again and again": {
			parts: parts{workers: 1, args: []string{"--runs-retrying-attempts", "3"}},
			breaks: func(t *testing.T, w *watched) {
				w.faulted = time.Now()
				w.names["ID"] = w.again(t)
			},
			alerts: []expected{{
				name: "RunsRetrying", severity: "ticket", sees: []string{`retrying\.default`, `\d+ attempts failed`, "refused"},
				fixes:    []string{`signalbox problem acknowledge PROBLEM --note "the partner is closed until Monday"`},
				verifies: []string{"acknowledged"},
			}},
		},
		// The run is started while no worker is alive; afterwards the only worker serves another project.
		"a run whose task blocks its worker": {
			parts: parts{workers: 1, args: []string{"--runs-poison-after", "1m"}},
			breaks: func(t *testing.T, w *watched) {
				w.stop(t, 0)
				w.names["ID"] = w.Start(t, w.Publish(t, platform.Document("blocks", hello)), "").GetId()
				w.restart(t, 0, "--projects", side)
				w.faulted = time.Now()
				w.block(t)
			},
			alerts: []expected{{
				name: "PoisonRuns", severity: "ticket", sees: []string{"POISON", "DEADLOCK"},
				fixes: []string{"signalbox project set NAME --end-poison"}, verifies: []string{"no runs"},
			}},
			also: []string{"NoPollers", "ProjectWithoutWorkers", "DispatcherMissing", "RunsStuck", "ProblemsUnacknowledged"},
		},
		"an execution deleted in Temporal": {
			breaks: func(t *testing.T, w *watched) {
				name := w.Publish(t, platform.Document("waits", "  - wait:\n      wait: {hours: 10}\n"))
				id := w.Start(t, name, "").GetId()
				w.Await(t, id, patience, "waiting")
				w.faulted = time.Now()
				_, err := w.client.WorkflowService().DeleteWorkflowExecution(t.Context(),
					&workflowservice.DeleteWorkflowExecutionRequest{
						Namespace: w.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: id},
					})
				require.NoError(t, err)
			},
			alerts: []expected{{
				name: "ReconcileCorrections", severity: "ticket", sees: []string{"execution_missing"},
				verifies: []string{"compared with Temporal"},
			}},
			also: []string{"ProblemsUnacknowledged", "RunsStuck"},
		},
	}
}

// retriesForever are tasks of which one fails, and is attempted again each second.
const retriesForever = `  - attempt:
      try:
        - refuse: {raise: {error: {type: 'https://example.com/errors/refused', status: 503, title: refused}}}
      catch: {retry: {delay: {seconds: 1}}}
`

// again starts a run that attempts a failing task again and again, waits for its problem, and returns the run's ID.
func (w *watched) again(t *testing.T) string {
	t.Helper()
	id := w.Start(t, w.Publish(t, platform.Document("again", retriesForever)), "").GetId()
	w.awaitProblem(t, "RUN_RETRYING")
	w.names["PROBLEM"] = w.names["ID"]
	return id
}

// block polls the task queue of the project default under the ID of a worker, as one with a deadlock in its code does.
func (w *watched) block(t *testing.T) {
	t.Helper()
	release := make(chan struct{})
	hangs := worker.New(w.client, "signalbox-default", worker.Options{Identity: w.workers[0].id})
	hangs.RegisterWorkflowWithOptions(func(workflow.Context) error {
		<-release
		return nil
	}, workflow.RegisterOptions{Name: contract.RunWorkflow})
	require.NoError(t, hangs.Start())
	t.Cleanup(func() {
		close(release)
		hangs.Stop()
	})
}

// retry starts a run whose activity fails again and again, since the database refuses its event. It returns the run's
// ID.
func (w *watched) retry(t *testing.T) string {
	t.Helper()
	w.exec(t, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room'; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.type = 'retold') EXECUTE FUNCTION refuse()`)
	name := w.Publish(t, platform.Document("retold",
		"  - tell:\n      emit: {event: {with: {type: retold, source: /retold, data: {note: seen}}}}\n"))
	w.faulted = time.Now()
	return w.Start(t, name, "").GetId()
}

// fail runs a workflow that fails.
func (w *watched) fail(t *testing.T, name string) {
	t.Helper()
	workflow := w.Publish(t, platform.Document(name,
		"  - fail:\n      raise: {error: {type: 'https://example.com/errors/refused', status: 400, title: refused}}\n"))
	w.Await(t, w.Start(t, workflow, "").GetId(), patience, "failed")
}

// awaitProblem waits until a problem is listed that has a text, and makes it the one of the runbooks' commands.
func (w *watched) awaitProblem(t *testing.T, text string) {
	t.Helper()
	platform.Eventually(t, 5*time.Minute, func() string {
		var list []json.RawMessage
		w.CLI(t, "problem", "list", "-o", "json").JSON(t, &list)
		for _, each := range list {
			var problem struct{ ID string }
			require.NoError(t, json.Unmarshal(each, &problem))
			if strings.Contains(string(each), text) {
				w.names["ID"] = problem.ID
				return ""
			}
		}
		return fmt.Sprintf("%s is not in %s", text, list)
	})
}
