package integration_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/serviceerror"

	"github.com/signalbox-dev/signalbox/conn/conntest"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// alarmSchedule starts a workflow for each run that is stuck, except for the alarm's own runs.
const alarmSchedule = "schedule:\n  on:\n    one:\n      with: {type: io.signalbox.run.stuck, data: '${ .workflow | " +
	"endswith(\"/alarm\") | not }'}\n"

// The test brings runs into trouble with Temporal and with the database, one kind after the other, and out of it
// again. A workflow that the diagnoses start sends a request to an origin for each of them.
func TestStuckRunsStartAlarmWorkflow(t *testing.T) {
	t.Parallel()
	needPostgres(t)
	store, temporal, o := platform.Postgres(t), platform.StartTemporal(t), origin.New(t)
	f := conntest.Run(t, conntest.Options{Upstream: temporal.Address})
	w := &environment{
		Server: platform.StartServer(t, platform.ServerOptions{
			Temporal: f.Addr(), Store: store, Env: []string{stuckAfter, "SIGNALBOX_CALLS_TIMEOUT=5m"},
			Args: []string{"--log-level", "debug"},
		}), store: store, temporal: temporal, client: platform.DialTemporal(t, temporal.Address),
	}
	o.Answer("POST /alarm", 200, `{}`)
	body := "body: '${ .[0].data | {code, runId, detail, advice} }'"
	w.Publish(t, platform.Document("alarm",
		"  - tell:\n      call: http\n      with: {method: post, endpoint: "+o.URL+"/alarm, "+body+"}\n", alarmSchedule))
	alarmed := func(id, code string) {
		t.Helper()
		platform.Eventually(t, soon, func() string {
			for _, c := range o.Calls("POST /alarm") {
				if strings.Contains(c.Body, id) && strings.Contains(c.Body, `"`+code+`"`) {
					return ""
				}
			}
			return fmt.Sprintf("no alarm that run %s is stuck with %s", id, code)
		})
	}
	ids := []string{w.retriedActivity(t, alarmed), w.closedExecution(t, o, alarmed), w.startNotConfirmed(t, f, alarmed),
		w.lostConnection(t, f, o, alarmed)}

	for _, id := range ids {
		requireAbsent(t, "answers", apiOutput(t, w.Server, id)+w.CLI(t, "run", "show", id).Stdout)
		requireAbsent(t, "what Temporal shows", temporalOutput(t, temporal.Address, id))
	}
	requireAbsent(t, "events", w.CLI(t, "event", "list", "-o", "json").Stdout)
	for _, c := range o.Calls("POST /alarm") {
		requireAbsent(t, "what the alarm sent", c.Body)
	}
	requireAbsent(t, "the database", databaseContents(t, store))
	requireAbsent(t, "the log", w.Output())
}

// retriedActivity makes the database refuse an event that a run emits, with an error text that repeats its sensitive
// value.
func (w *environment) retriedActivity(t *testing.T, alarmed func(id, code string)) string {
	t.Helper()
	execSQL(t, w.store,
		`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'no room for %', '`+
			plantedName+`'; END $$`,
		`CREATE TRIGGER refuse BEFORE INSERT ON events FOR EACH ROW WHEN (NEW.type = 'retold') EXECUTE FUNCTION refuse()`)
	name := w.Publish(t, platform.Document("retold",
		"  - tell:\n      emit: {event: {with: {type: retold, source: /retold, data: {note: '${ .password }'}}}}\n"))
	id := w.Start(t, name, `{"password":"`+plantedName+`"}`).GetId()
	awaitStuck(t, w.Server, id, "ACTIVITY_RETRYING", soon)
	// A diagnosis that was made during an attempt names no next one; a later diagnosis does.
	retrying := regexp.MustCompile(`activity \S+ has failed \d+ times: .*no room for ⟦redacted⟧.*the next attempt is at `)
	platform.Eventually(t, soon, func() string {
		if v := w.Run(t, id).GetStuck(); !retrying.MatchString(v.GetDetail()) {
			return "the diagnosis is " + v.String()
		}
		return ""
	})
	require.Contains(t, w.CLI(t, "run", "list", "--stuck", "activity_retrying").Stdout, id)
	alarmed(id, "ACTIVITY_RETRYING")
	execSQL(t, w.store, "DROP TRIGGER refuse ON events", "DROP FUNCTION refuse()")
	w.awaitUnstuck(t, id, "completed")
	return id
}

// closedExecution ends an execution in Temporal directly while the run's row cannot be written.
func (w *environment) closedExecution(t *testing.T, o *origin.Origin, alarmed func(id, code string)) string {
	t.Helper()
	gate := o.Hold("POST /closed", 200, `{}`)
	defer gate.Open()
	id := w.Start(t, w.Publish(t, platform.Document("closed", postStep("slow", o.URL+"/closed"))), "{}").GetId()
	<-gate.Arrived
	w.Await(t, id, soon, "running")
	execSQL(t, w.store,
		`CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'it cannot be written'; END $$`,
		`CREATE TRIGGER keep BEFORE UPDATE ON runs FOR EACH ROW WHEN (NEW.id = '`+id+
			`' AND NEW.status = 'terminated') EXECUTE FUNCTION keep()`)
	require.NoError(t, w.client.TerminateWorkflow(t.Context(), id, "", "behind our back"))
	v := awaitStuck(t, w.Server, id, "EXECUTION_CLOSED", soon)
	require.Contains(t, v.GetDetail(), "Terminated")
	require.Contains(t, v.GetAdvice(), "signalbox system reconcile")
	alarmed(id, "EXECUTION_CLOSED")
	execSQL(t, w.store, "DROP TRIGGER keep ON runs", "DROP FUNCTION keep()")
	w.awaitUnstuck(t, id, "terminated")
	return id
}

// startNotConfirmed prevents Temporal from receiving the start of a run.
func (w *environment) startNotConfirmed(t *testing.T, f *conntest.Frontend, alarmed func(id, code string)) string {
	t.Helper()
	name := w.Publish(t, platform.Document("unconfirmed", hello))
	f.Fail("StartWorkflowExecution", serviceerror.NewUnavailable("the history service is away"))
	id := w.Start(t, name, "").GetId()
	require.Equal(t, "starting", w.Run(t, id).GetQueuedReason())
	v := awaitStuck(t, w.Server, id, "NOT_STARTED", soon)
	require.Contains(t, v.GetDetail(), "has not confirmed the start")
	require.Contains(t, v.GetAdvice(), "signalbox system status")
	f.Clear("StartWorkflowExecution")
	w.awaitUnstuck(t, id, "completed")
	alarmed(id, "NOT_STARTED")
	return id
}

// lostConnection disconnects Temporal while a run is in progress.
func (w *environment) lostConnection(t *testing.T, f *conntest.Frontend, o *origin.Origin,
	alarmed func(id, code string)) string {
	t.Helper()
	gate := o.Hold("POST /lost", 200, `{}`)
	defer gate.Open()
	id := w.Start(t, w.Publish(t, platform.Document("lost", postStep("slow", o.URL+"/lost"))), "{}").GetId()
	<-gate.Arrived
	w.Await(t, id, soon, "running")
	f.Stop()
	v := awaitStuck(t, w.Server, id, "ENGINE_DISCONNECTED", soon)
	require.Contains(t, v.GetDetail(), "Temporal at "+f.Addr()+" cannot be used since ")
	require.Contains(t, v.GetAdvice(), "signalbox system status")
	require.NoError(t, f.Restart())
	gate.Open()
	w.awaitUnstuck(t, id, "completed")
	alarmed(id, "ENGINE_DISCONNECTED")
	return id
}

// awaitUnstuck waits until a run has ended and its diagnosis is removed.
func (w *environment) awaitUnstuck(t *testing.T, id, status string) {
	t.Helper()
	w.Await(t, id, 2*soon, status)
	platform.Eventually(t, soon, func() string {
		if code := w.Run(t, id).GetStuck().GetCode(); code != "" {
			return "it is still stuck with " + code
		}
		return ""
	})
}
