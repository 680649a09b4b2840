package integration_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// outcomes returns the outcomes of a step's attempts, with the status of those that were answered.
func outcomes(step *signalboxv1.Step) (all []string) {
	for _, a := range step.GetAttempts() {
		text := a.GetOutcome()
		if a.GetHttpStatus() != 0 {
			text += fmt.Sprintf(" %d", a.GetHttpStatus())
		}
		all = append(all, text)
	}
	return all
}

// openAfter opens a gate some time after the first request has arrived at it.
func openAfter(t *testing.T, gate *origin.Gate, delay time.Duration) {
	t.Helper()
	go func() {
		<-gate.Arrived
		<-time.After(delay)
		gate.Open()
	}()
}

func TestSlowCallIsSentOnce(t *testing.T) {
	t.Parallel()
	s := sqliteServer.Get(t)
	for name, delay := range map[string]time.Duration{"four seconds": 4 * time.Second, "ten seconds": 10 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := origin.New(t)
			openAfter(t, o.Hold("GET /slow", 200, `{"ok":true}`), delay)
			id := s.Start(t, s.Publish(t, platform.Document("slow", getStep("slow", o.URL+"/slow"))), "").GetId()
			require.JSONEq(t, `{"ok":true}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
			require.Len(t, o.Calls("GET /slow"), 1)
			step := s.Steps(t, id)[0]
			require.Equal(t, []string{"answered 200"}, outcomes(step))
			a := step.GetAttempts()[0]
			require.GreaterOrEqual(t, a.GetEndTime().AsTime().Sub(a.GetStartTime().AsTime()), delay-100*time.Millisecond)

			shown := s.CLI(t, "run", "steps", id, "-o", "wide")
			require.Regexp(t, `(?m)^1 +slow +1 +\S+Z +1?\d(\.\d+)?s +answered +200 `, shown.Stdout, shown.String())
			kept := exported(t, s, id).Steps[0].Attempts
			require.Len(t, kept, 1)
			require.Equal(t, []any{1, "answered", 200}, []any{kept[0].Number, kept[0].Outcome, kept[0].HTTPStatus})
			require.Equal(t, a.GetStartTime().AsTime(), kept[0].StartTime)
			require.Equal(t, a.GetEndTime().AsTime(), kept[0].EndTime)
		})
	}
}

func TestLargeAnswerIsSentOnce(t *testing.T) {
	t.Parallel()
	s := sqliteServer.Get(t)
	o := origin.New(t)
	o.Answer("GET /large", 200, `"`+strings.Repeat("x", 200<<10)+`"`)
	tasks := getStep("large", o.URL+"/large") + "  - size: {set: {length: '${ length }'}}\n"
	id := s.Start(t, s.Publish(t, platform.Document("large", tasks)), "").GetId()
	require.JSONEq(t, `{"length":204800}`, s.Await(t, id, soon, "completed").GetOutput().GetJson())
	require.Len(t, o.Calls("GET /large"), 1)
	require.Equal(t, []string{"answered 200"}, outcomes(s.Steps(t, id)[0]))
}

// description is that of a service, at the address of the description.
const description = `{"openapi": "3.1.0", "paths": {"/{path}": {"get": {"operationId": "read", "parameters": [` +
	`{"name": "path", "in": "path", "required": true, "schema": {"type": "string"}}]}}}}`

// describedStep returns a task that reads a URL by the description beside it.
func describedStep(url string) string {
	base, path, _ := strings.Cut(url, "/lost")
	return "  - lost:\n      call: openapi\n      with:\n        document: {endpoint: " + base + "/openapi.json}\n" +
		"        operationId: read\n        parameters: {path: lost" + path + "}\n"
}

// The only worker is killed while a call is in flight: in the local activity, and after the call was
// handed over to an activity.
func TestCallOfKilledWorkerIsTheFirstAttempt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		route  string
		tasks  func(url string) string
		inward time.Duration
		rounds int
	}{
		"local":       {"GET /lost", func(url string) string { return getStep("lost", url) }, 0, 1},
		"handed over": {"GET /lost", func(url string) string { return getStep("lost", url) }, 3 * time.Second, 1},
		"unsafe":      {"POST /lost", func(url string) string { return postStep("lost", url) }, 0, 1},
		"described":   {"GET /lost", describedStep, 0, promise.Trials(1, 20)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := origin.New(t)
			o.Answer("GET /openapi.json", 200, description)
			temporal := platform.StartTemporal(t)
			options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
			s := platform.StartServer(t, options)
			for round := range tc.rounds {
				path := strconv.Itoa(round)
				gate := o.Hold(tc.route+path, 200, `{"ok":true}`)
				id := s.Start(t, s.Publish(t, platform.Document("lost-"+path, tc.tasks(o.URL+"/lost"+path))), "").GetId()
				<-gate.Arrived
				<-time.After(tc.inward)
				s.Kill()
				s = platform.StartServer(t, options)
				<-gate.Arrived
				gate.Open()
				s.Await(t, id, soon, "completed")
				require.Len(t, o.Calls(tc.route+path), 2)
				require.Equal(t, []string{"unknown", "answered 200"}, outcomes(s.Steps(t, id)[0]))
			}
			if name == "described" {
				promise.Record(t, promise.Figure{
					Promise: "programs", What: "worker killed in a described call: sent again, the first attempt recorded", Aim: "all",
					Trials: tc.rounds, Figure: fmt.Sprintf("%d of %d", tc.rounds, tc.rounds),
				})
			}
		})
	}
}

func TestCallThatMustNotRepeatIsSentOnce(t *testing.T) {
	t.Parallel()
	o := origin.New(t)
	gate := o.Hold("GET /once", 200, `{"ok":true}`)
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	s := platform.StartServer(t, options)
	tasks := `  - guarded:
      try:
        - once:
            call: http
            with: {method: get, endpoint: ` + o.URL + `/once}
            metadata: {signalbox.repeat: never}
      catch:
        as: problem
        errors: {with: {type: https://serverlessworkflow.io/spec/1.0.0/errors/communication}}
        do:
          - note: {set: {title: '${ $problem.title }', status: '${ $problem.status }'}}
`
	id := s.Start(t, s.Publish(t, platform.Document("once", tasks)), "").GetId()
	<-gate.Arrived
	s.Kill()
	s = platform.StartServer(t, options)
	run := s.Await(t, id, soon, "completed")
	require.JSONEq(t, `{"title":"Outcome unknown","status":504}`, run.GetOutput().GetJson())
	require.Len(t, o.Calls("GET /once"), 1)
	require.Equal(t, []string{"unknown"}, outcomes(s.Steps(t, id)[1]))
}

// The server is stopped while a call is in flight that was handed over to an activity.
func TestStopWaitsForSlowCall(t *testing.T) {
	t.Parallel()
	o := origin.New(t)
	gate := o.Hold("GET /slow", 200, `{"ok":true}`)
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t), Port: platform.FreePort(t)}
	s := platform.StartServer(t, options)
	id := s.Start(t, s.Publish(t, platform.Document("drained", getStep("slow", o.URL+"/slow"))), "").GetId()
	<-gate.Arrived
	<-time.After(2 * time.Second)
	s.Terminate()
	<-time.After(time.Second)
	gate.Open()
	code, ended := s.WaitFor(soon)
	require.True(t, ended, "the server did not stop")
	require.Equal(t, platform.ExitOK, code, s.Output())
	s = platform.StartServer(t, options)
	s.Await(t, id, soon, "completed")
	require.Len(t, o.Calls("GET /slow"), 1)
	require.Equal(t, []string{"answered 200"}, outcomes(s.Steps(t, id)[0]))
}

func TestForkOfSafeCallsUsesFewEvents(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	s := platform.StartServer(t, platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)})
	o := origin.New(t)
	o.Answer("GET /now", 200, `1`)
	var tasks strings.Builder
	tasks.WriteString("  - all:\n      fork:\n        branches:\n")
	const calls = 200
	for i := range calls {
		fmt.Fprintf(&tasks, "          - c%d: {call: http, with: {method: get, endpoint: %s/now}}\n", i, o.URL)
	}
	name := s.Publish(t, platform.Document("wide", tasks.String()))
	client := platform.DialTemporal(t, temporal.Address)
	for range 3 {
		id := s.Start(t, name, "").GetId()
		run := s.Await(t, id, soon, "completed")
		took := run.GetEndTime().AsTime().Sub(run.GetStartTime().AsTime())
		events := len(platform.History(t, client, id).GetEvents())
		t.Logf("%d calls took %s and left %d events", calls, took.Round(time.Millisecond), events)
		require.Less(t, events, 300)
	}
	require.Len(t, o.Calls("GET /now"), 3*calls)
}
