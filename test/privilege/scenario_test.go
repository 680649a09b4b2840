package privilege_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The documents of the scenario. All of them are in the workflow namespace p.
const (
	waits   = "  - rest: {wait: {hours: 1}}\n"
	listens = "  - ask: {listen: {to: {one: {with: {type: go}}}}}\n"
)

func document(name, tasks string, head ...string) string {
	return "document:\n  dsl: '1.0.3'\n  namespace: p\n  name: " + name + "\n  version: '1.0.0'\n" +
		strings.Join(head, "") + "do:\n" + tasks
}

// publish publishes a document, and returns its full name.
func (e *environment) publish(t *testing.T, name, tasks string, head ...string) string {
	t.Helper()
	return e.Publish(t, document(name, tasks, head...))
}

// begun starts a run of a workflow and waits until it has the status.
func (e *environment) begun(t *testing.T, workflow, input, status string) string {
	t.Helper()
	id := e.Start(t, workflow, input).GetId()
	e.Await(t, id, soon, status)
	return id
}

func (e *environment) file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "workflow.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// definitions manages projects, workflows, drafts and views.
func (e *environment) definitions(t *testing.T) {
	t.Helper()
	e.cli(t, "project", "create", "side")
	e.cli(t, "project", "set", "side", "--description", "beside", "--max-steps", "1000")
	e.cli(t, "project", "list")
	draft := document("draft", waits)
	e.cli(t, "workflow", "save", e.file(t, draft))
	e.cli(t, "workflow", "save", e.file(t, draft+"# changed\n"))
	e.cli(t, "workflow", "publish", e.file(t, draft))
	e.cli(t, "workflow", "publish", e.file(t, strings.Replace(draft, "1.0.0", "1.1.0", 1)))
	e.cli(t, "workflow", "diff", "p/draft", "1.0.0", "1.1.0")
	e.cli(t, "workflow", "list")
	e.cli(t, "workflow", "pause", "p/draft")
	e.cli(t, "workflow", "unpause", "p/draft")
	e.cli(t, "workflow", "save", e.file(t, draft))
	e.cli(t, "workflow", "delete", "p/draft")
	function := e.file(t, "set: {double: '${ .n * 2 }'}\n")
	e.cli(t, "function", "publish", "double:1.0.0", function)
	e.cli(t, "function", "publish", "double:1.1.0", function)
	e.cli(t, "function", "list")
	e.begun(t, e.publish(t, "calls-function", "  - d: {call: 'double:1.0.0@default', with: {n: 4}}\n"), "", "completed")
	e.cli(t, "function", "show", "double:1.0.0")
	e.cli(t, "function", "delete", "double:1.1.0", "--yes")
	e.cli(t, "view", "save", "open", "--status", "waiting")
	e.cli(t, "view", "save", "open", "--status", "running", "--revision", "1")
	e.cli(t, "view", "delete", "open")
}

// runs executes runs of every kind, and each control.
func (e *environment) runs(t *testing.T) {
	t.Helper()
	o := origin.New(t)
	o.Sequence("GET /shaky", origin.Answer{Status: 503, Body: `{}`}, origin.Answer{Status: 200, Body: `{}`})
	o.Hold("POST /slow", 200, `{}`)
	o.Answer("POST /bad", 400, `{}`)
	e.publish(t, "child", "  - rest: {wait: {milliseconds: 50}}\n")
	calls := e.publish(t, "calls", `  - again:
      try: [{get: {call: http, with: {method: get, endpoint: `+o.URL+`/shaky}}}]
      catch: {retry: {delay: {milliseconds: 10}, limit: {attempt: {count: 3}}}}
  - child: {run: {workflow: {namespace: p, name: child, version: latest}}}
  - tell: {emit: {event: {with: {source: /p, type: told, data: {card: '${ $workflow.input.card }'}}}}}
  - keep: {set: {n: '${ ($workflow.input.large | length) }'}}
`, "  metadata: {labels: {kind: calls}, sensitive: [/input/card]}\n")
	id := e.begun(t, calls, `{"card":"4711-4711","large":"`+strings.Repeat("x", 200_000)+`"}`, "completed")
	for _, args := range [][]string{{"show"}, {"steps"}, {"summary"}, {"export"}} {
		e.cli(t, "run", args[0], id)
	}
	e.cli(t, "run", "step", id, "1", "--unredacted")
	e.cli(t, "run", "replay", id, "--reason", "again")
	e.cli(t, "run", "list", "--label", "kind=calls")
	e.cli(t, "run", "count")
	e.cli(t, "run", "export", "--all")
	e.cli(t, "workflow", "grid", calls)
	e.begun(t, e.publish(t, "loop", `  - each:
      for: {each: i, in: '${ [range(10500)] }'}
      do: [{one: {set: {i: 1}}}]
`), "", "completed")

	slow := e.publish(t, "slow", "  - call: {call: http, with: {method: post, endpoint: "+o.URL+"/slow}}\n")
	canceled := e.begun(t, slow, "", "running")
	e.cli(t, "run", "cancel", canceled, "--reason", "enough")
	e.Await(t, canceled, soon, "canceled")
	sleeps := e.publish(t, "sleeps", waits)
	paused := e.begun(t, sleeps, "", "waiting")
	e.cli(t, "run", "pause", paused, "--reason", "look")
	e.cli(t, "run", "unpause", paused, "--reason", "go on")
	e.cli(t, "run", "terminate", paused, "--reason", "enough")
	e.Await(t, paused, soon, "terminated")
	e.begun(t, e.publish(t, "bad", "  - call: {call: http, with: {method: post, endpoint: "+o.URL+"/bad}}\n"), "",
		"failed")
}

// programs executes a script, and cancels one that does not end.
func (e *environment) programs(t *testing.T) {
	t.Helper()
	runner := e.launch(t, platform.Runner, "SIGNALBOX_PROJECTS="+platform.DefaultProject)
	runner.AwaitReady(t)
	e.cli(t, "project", "set", platform.DefaultProject, "--runners", "script")
	script := func(name, code string) string {
		return e.publish(t, name, "  - s: {run: {script: {language: js, code: '"+code+"'}}}\n")
	}
	e.cli(t, "run", "logs", e.begun(t, script("script", "console.log(7)"), "", "completed"))
	endless := e.begun(t, script("endless", "for (;;) {}"), "", "running")
	e.called(t, "role=runner call=WorkflowService/RecordActivityTaskHeartbeat")
	e.cli(t, "run", "cancel", endless, "--reason", "enough")
	e.Await(t, endless, soon, "canceled")
	stop(t, runner)
	e.called(t, "role=runner call=WorkflowService/ShutdownWorker")
}

// events sends events that start and wake runs, also by two events together, and has a delivery that fails.
func (e *environment) events(t *testing.T) {
	t.Helper()
	asks := e.begun(t, e.publish(t, "asks", listens), "", "waiting")
	gone := e.begun(t, "p/asks", "", "waiting")
	e.cli(t, "run", "cancel", gone, "--reason", "enough")
	e.publish(t, "together", "  - done: {set: {a: 1}}\n", `schedule:
  on:
    all:
      - {with: {type: left}, correlate: {n: {from: .data.n}}}
      - {with: {type: right}, correlate: {n: {from: .data.n}}}
`)
	e.publish(t, "picky", "  - done: {set: {a: 1}}\n", "schedule: {on: {one: {with: {type: picked}}}}\n"+
		"input: {schema: {document: {type: array, items: {required: [never]}}}}\n")
	for _, kind := range []string{"go", "left", "right", "picked", "left"} {
		e.cli(t, "event", "send", "--type", kind, "--source", "/p", "--data", `{"n":1}`)
	}
	e.Await(t, asks, soon, "completed")
	e.until(t, "p/together", "run", "list", "--workflow", "p/together", "--status", "completed")
	e.until(t, "picked", "event", "list", "--dead")
	var list []struct{ Position json.Number }
	require.NoError(t, json.Unmarshal([]byte(e.cli(t, "event", "list", "--dead", "-o", "json")), &list))
	e.cli(t, "event", "show", "--position", list[0].Position.String())
	e.cli(t, "event", "redeliver", "--position", list[0].Position.String(), "--reason", "again")
	e.cli(t, "workflow", "delete", "p/together")

	// The first task takes one of the earlier events, of which it looks through one, and the second does not take it
	// again.
	early := e.begun(t, e.publish(t, "early", "  - begin: {listen: {to: {one: {with: {type: begin}}}}}\n"+
		"  - first: {listen: {to: {one: {with: {type: early}}}}}\n  - second: {listen: {to: {one: {with: {type: "+
		"early}}}}}\n"), "", "waiting")
	for _, kind := range []string{"early", "early", "begin"} {
		e.cli(t, "event", "send", "--type", kind, "--source", "/p")
	}
	e.until(t, "EVENTS_NOT_SEARCHED", "run", "show", early)
	e.cli(t, "event", "send", "--type", "early", "--source", "/p")
	e.Await(t, early, soon, "completed")
}

// webhooks has a webhook that is managed, and deliveries to it, also of the failure of a run.
func (e *environment) webhooks(t *testing.T) {
	t.Helper()
	o := origin.New(t)
	o.Answer("POST /hook", http.StatusNoContent, "")
	e.cli(t, "webhook", "create", "hook", "--url", o.URL+"/hook", "--type", "other")
	e.cli(t, "webhook", "update", "hook", "--type", "hooked")
	e.cli(t, "webhook", "list")
	e.cli(t, "webhook", "test", "hook")
	e.cli(t, "webhook", "rotate-secret", "hook")
	e.cli(t, "event", "send", "--type", "hooked", "--source", "/p")
	e.until(t, "hooked", "webhook", "deliveries", "hook", "--status", "delivered")
	var list []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(e.cli(t, "webhook", "deliveries", "hook", "-o", "json")), &list))
	e.cli(t, "webhook", "delivery", list[0].ID)
	e.cli(t, "webhook", "redeliver", list[0].ID, "--reason", "again")
	e.cli(t, "webhook", "update", "hook", "--type", "io.signalbox.run.failed")
	e.begun(t, "p/bad", "", "failed")
	e.until(t, "io.signalbox.run.failed", "webhook", "deliveries", "hook", "--status", "delivered")
	e.cli(t, "webhook", "pause", "hook", "--reason", "enough")
	e.cli(t, "webhook", "unpause", "hook")
	e.cli(t, "webhook", "show", "hook")
	e.cli(t, "webhook", "delete", "hook")
}

// schedules has a schedule that fires, is paused and deleted.
func (e *environment) schedules(t *testing.T) {
	t.Helper()
	ticks := e.publish(t, "ticks", "  - done: {set: {a: 1}}\n", "schedule: {every: {seconds: 5}}\n") // a slow machine ends as many
	e.until(t, ticks, "run", "list", "--workflow", ticks)
	e.cli(t, "workflow", "show", ticks)
	e.cli(t, "workflow", "publish",
		e.file(t, strings.Replace(document("ticks", waits, "schedule: {every: {hours: 1}}\n"), "1.0.0", "1.1.0", 1)))
	e.called(t, "UpdateSchedule")
	e.cli(t, "workflow", "stop", ticks, "--reason", "enough")
	e.until(t, "paused", "workflow", "show", ticks)
	platform.Eventually(t, soon, func() string {
		if r := e.CLI(t, "workflow", "delete", ticks); r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
}

// quotas has runs that wait for a slot, and for steps.
func (e *environment) quotas(t *testing.T) {
	t.Helper()
	e.cli(t, "quota", "set", "--concurrent-runs", "1000", "--steps", "1000000", "--period", "1h")
	e.begun(t, "p/child", "", "completed")
	e.cli(t, "quota", "set", "--steps", "1")
	waiting := e.Start(t, e.publish(t, "three", "  - a: {set: {n: 1}}\n  - b: {set: {n: 2}}\n  - c: {set: {n: 3}}\n"),
		"").GetId()
	platform.Eventually(t, soon, func() string {
		if r := e.Run(t, waiting); r.GetWaitingKind() != "quota" {
			return "it waits for " + r.GetWaitingKind()
		}
		return ""
	})
	e.cli(t, "quota", "resume", waiting, "--reason", "important")
	e.cli(t, "quota", "set", "--steps", "none", "--concurrent-runs", "1")
	first, second := e.Start(t, "p/sleeps", "").GetId(), e.Start(t, "p/sleeps", "").GetId()
	require.Equal(t, "admission", e.Run(t, second).GetQueuedReason())
	e.cli(t, "quota", "set", "--concurrent-runs", "none")
	e.Await(t, second, soon, "waiting")
	e.cli(t, "run", "terminate", first, "--reason", "enough")
	e.Await(t, waiting, soon, "completed")
}

// batches replays, pauses, retries and cancels many runs.
func (e *environment) batches(t *testing.T) {
	t.Helper()
	e.cli(t, "batch", "start", "--action", "replay", "--workflow", "p/child", "--reason", "again", "--wait")
	e.cli(t, "batch", "start", "--action", "cancel", "--workflow", "p/sleeps", "--reason", "enough", "--wait")
	var list []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(e.cli(t, "batch", "list", "-o", "json")), &list))
	e.cli(t, "batch", "show", list[0].ID, "--items")
	_ = e.CLI(t, "batch", "retry", list[0].ID, "--reason", "again") // refused: no item has failed
}

// system uses what operators of the whole platform use.
func (e *environment) system(t *testing.T) {
	t.Helper()
	e.cli(t, "system", "maintenance", "on", "--reason", "a test")
	e.cli(t, "system", "maintenance", "off")
	e.cli(t, "system", "status")
	e.cli(t, "system", "reconcile")
	e.cli(t, "system", "reset-breaker")
	e.cli(t, "worker", "list")
	e.cli(t, "dispatcher", "list")
	e.cli(t, "dispatcher", "show", "default")
	e.cli(t, "dispatcher", "reconcile")
	e.cli(t, "dispatcher", "handover", "default", "--reason", "a test")
	e.cli(t, "project", "annotations")
	e.cli(t, "audit", "list")
	e.cli(t, "audit", "export")
}

// access creates the first token, signs in and out, and revokes the token.
func (e *environment) access(t *testing.T) {
	t.Helper()
	r := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: []string{
			"token", "create", "--bootstrap", "--name", "ada", "--store-driver", "postgres", "--store-dsn", e.options.Store.DSN,
			"--store-auto-migrate=false",
		},
	})
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	token := strings.TrimSpace(r.Stdout)
	s := e.launch(t, platform.API, "SIGNALBOX_AUTH_MODE=tokens")
	s.AwaitAPI(t)
	status, body, err := s.Do(t.Context(), http.MethodPost, "/v1/session:sign-in",
		http.Header{"Content-Type": {"application/json"}},
		strings.NewReader(fmt.Sprintf(`{"token":%q}`, token)))
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status, body)
	var signedIn struct {
		Current struct{ Session struct{ ID string } }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &signedIn))
	ci := s.CLI(t, "token", "create", "--name", "ci", "--role", "default=viewer", "--token", token, "-o", "json")
	var created struct{ Token struct{ ID string } }
	ci.JSON(t, &created)
	for _, args := range [][]string{
		{"token", "sessions"}, {"token", "revoke-session", signedIn.Current.Session.ID},
		{"token", "list"}, {"token", "revoke", created.Token.ID},
	} {
		r := s.CLI(t, append(args, "--token", token)...)
		require.Equal(t, platform.ExitOK, r.Code, r.String())
	}
	stop(t, s)
}

// faults loses a project's only worker, the owner of a dispatcher, a row and the connection to Temporal.
func (e *environment) faults(t *testing.T, first, second *platform.Server) {
	t.Helper()
	// Only an execution without a row that has been open for a while is adopted, so this begins first.
	lost := e.begun(t, "p/sleeps", "", "waiting")
	for _, statement := range []string{"DELETE FROM steps WHERE run_id = $1", "DELETE FROM runs WHERE id = $1"} {
		_, err := e.admin.Exec(t.Context(), statement, lost)
		require.NoError(t, err)
	}
	side := e.launch(t, platform.Worker, append(quick(), "SIGNALBOX_PROJECTS=side")...)
	side.AwaitReady(t)
	e.until(t, "dispatcher-side-signalbox-side", "dispatcher", "show", "side")
	e.cli(t, "workflow", "publish", "--project", "side",
		e.file(t, document("unserved", "  - rest: {wait: {seconds: 3}}\n")))
	large := `{"text":"` + strings.Repeat("large ", 5000) + `"}`
	platform.Eventually(t, soon, func() string { // the API reads later that a worker serves the project
		if r := e.CLI(t, "run", "start", "p/unserved", "--project", "side", "--request-id", "unserved", "--input",
			large); r.Code != platform.ExitOK {
			return r.String()
		}
		return ""
	})
	e.until(t, "waiting", "run", "list", "--project", "side")
	side.Kill()
	e.until(t, "p/unserved", "run", "list", "--project", "side", "--stuck", "any")
	e.until(t, `"id"`, "problem", "list", "--project", "side", "-o", "json")
	var problems []struct{ ID string }
	require.NoError(t, json.Unmarshal([]byte(e.cli(t, "problem", "list", "--project", "side", "-o", "json")), &problems))
	e.cli(t, "problem", "acknowledge", problems[0].ID)

	// A worker fails the task of a run whose large input is lost.
	_, err := e.admin.Exec(t.Context(),
		"DELETE FROM payloads WHERE run_id IN (SELECT id FROM runs WHERE workflow = 'p/unserved')")
	require.NoError(t, err)
	blind := e.launch(t, platform.Worker, append(quick(), "SIGNALBOX_PROJECTS=side")...)
	e.until(t, "TASK_FAILING", "run", "list", "--project", "side", "--stuck", "any")
	blind.Kill()
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(first.Output()+second.Output(), "terminated by the supervisor") {
			return "the supervisor has not ended the dispatcher of the project without a worker"
		}
		return ""
	})

	first.Kill()
	third := e.launch(t, platform.Worker, quick()...)
	third.AwaitReady(t)
	second.Kill()
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(second.Output()+third.Output(), `"outcome":"takeover"`) {
			return "no worker has taken over"
		}
		return ""
	})
	e.cli(t, "system", "reconcile")
	e.until(t, "run.adopt", "audit", "list", "--subject", lost)
	e.temporal.Freeze()
	e.until(t, "hung", "system", "status")
	e.temporal.Thaw()
	e.until(t, `"state": "connected"`, "system", "status", "-o", "json")
	e.until(t, "hung", "project", "annotations")
	e.cli(t, "run", "terminate", lost, "--reason", "enough")
	e.Await(t, lost, soon, "terminated")
	third.AwaitReady(t) // a worker that is disconnected stops without a call
	stop(t, third)
	e.called(t, "role=worker call=WorkflowService/ShutdownWorker")
	stop(t, e.Server)
}

// stop stops a server as a service manager does, and waits until it has ended.
func stop(t *testing.T, s *platform.Server) {
	t.Helper()
	s.Terminate()
	_, ended := s.WaitFor(soon)
	require.True(t, ended, "%s has not ended", s.Name)
}

// retention starts a server that deletes all but the newest of everything.
func (e *environment) retention(t *testing.T) {
	t.Helper()
	for _, statement := range []string{ // younger ones are kept in any case
		"UPDATE payloads SET created_at = created_at - 90000000000",
		"UPDATE runs SET created_at = created_at - 7200000000, status_at = status_at - 7200000000, ended_at = ended_at - " +
			"7200000000",
	} {
		_, err := e.admin.Exec(t.Context(), statement)
		require.NoError(t, err)
	}
	env := []string{"SIGNALBOX_RETENTION_INTERVAL=1s"}
	for _, kind := range []string{"RUNS", "EVENTS", "AUDIT", "OWNERS", "BATCHES"} {
		env = append(env, "SIGNALBOX_RETENTION_"+kind+"_MAX_COUNT=1", "SIGNALBOX_RETENTION_"+kind+"_MAX_AGE=1h")
	}
	e.Server = e.launch(t, platform.API, env...)
	e.AwaitAPI(t)
	for _, kind := range []string{"runs", "events", "audit"} {
		platform.Eventually(t, soon, func() string {
			_, metrics, err := e.Get(t.Context(), "/metrics")
			if found := `signalbox_retention_deleted_total{kind="` + kind + `"}`; err != nil ||
				!strings.Contains(metrics, found) || strings.Contains(metrics, found+" 0\n") {
				return "none of the " + kind + " is deleted"
			}
			return ""
		})
	}
}

// quick returns settings of workers that notice a dead one soon.
func quick() []string {
	return []string{
		"SIGNALBOX_DISPATCH_TTL=4s", "SIGNALBOX_DISPATCH_RENEW=1s", "SIGNALBOX_DISPATCH_HEARTBEAT=1s",
		"SIGNALBOX_DISPATCH_STALE_AFTER=5s",
		"SIGNALBOX_PROJECTS=default", "SIGNALBOX_RUNS_STUCK_AFTER=2s",
	}
}

// called waits until Temporal has allowed a call.
func (e *environment) called(t *testing.T, call string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if !strings.Contains(e.temporal.Output(), call+"\n") {
			return "no server has made the call " + call
		}
		return ""
	})
}
