package integration_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"

	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// outcome is a kind of task with an outcome. Its run has a planted value as .password, which the task uses in every
// text that it can.
type outcome struct {
	tasks, head string
	status      string
	// drive brings a started run to its outcome; nil where the run ends by itself.
	drive func(t *testing.T, run string)
	// check requires that the history shows the outcome; nil where the status does.
	check func(t *testing.T, run string)
}

// outcomesOfTasks returns all kinds of tasks, each with every outcome that it can have. A text %[1]s in tasks is the
// address of the service.
func outcomesOfTasks(s *platform.Server, temporal *platform.Temporal, o *origin.Origin,
	child string) map[string]outcome {
	const (
		get        = `call: http, with: {method: get, endpoint: '%[1]s/ROUTE', query: {note: '${ .password }'}}`
		post       = `call: http, with: {method: post, endpoint: '%[1]s/ROUTE', headers: {X-Note: '${ .password }'}, body: '${ {note: .password} }'}`
		retry      = `retry: {delay: {milliseconds: 1}, limit: {attempt: {count: 4}}}`
		problem    = `{type: 'https://example.com/no', status: 400, title: '${ "no " + .password }', detail: '${ "because " + .password }'}`
		correlated = `{with: {type: news, data: '${ .password != "" }'}, correlate: {who: {from: .data.who, expect: '${ .password }'}}}`
	)
	cancel := func(t *testing.T, id string) {
		t.Helper()
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "enough").Code)
	}
	waiting := func(t *testing.T, id string) {
		t.Helper()
		s.Await(t, id, soon, "waiting", "running")
		platform.Eventually(t, soon, func() string {
			for _, step := range s.Steps(t, id) {
				if step.GetStatus() == "waiting" || step.GetStatus() == "running" {
					return ""
				}
			}
			return "no step is open"
		})
		cancel(t, id)
	}
	// inHistory requires an event of a type in one of the run's executions.
	inHistory := func(typ enums.EventType) func(t *testing.T, id string) {
		return func(t *testing.T, id string) {
			t.Helper()
			for _, history := range platform.Histories(t, platform.DialTemporal(t, temporal.Address), id) {
				for _, e := range history.GetEvents() {
					if e.GetEventType() == typ {
						return
					}
				}
			}
			t.Errorf("the history has no event %v", typ)
		}
	}
	all := map[string]outcome{
		"set":             {tasks: `{set: {note: '${ "x " + .password }'}}`},
		"set fails":       {tasks: `{set: {note: '${ .password | tonumber }'}}`, status: "failed"},
		"set fails in ok": {tasks: `{set: {note: '${ error(.password) }'}}`, status: "failed"},
		"input fails":     {tasks: `{input: {from: '${ .password | tonumber }'}, set: {n: 1}}`, status: "failed"},
		"output fails":    {tasks: `{set: {p: '${ .password }'}, output: {as: '${ .p | error }'}}`, status: "failed"},
		"export":          {tasks: `{set: {p: '${ .password }'}, export: {as: '${ {kept: .p} }'}}`},
		"if fails":        {tasks: `{if: '${ .password | error }', set: {n: 1}}`, status: "failed"},
		"switch":          {tasks: `{switch: [{one: {when: '${ .password == "x" }', then: end}}, {two: {then: continue}}]}`},
		"switch fails":    {tasks: `{switch: [{one: {when: '${ .password | error }', then: end}}]}`, status: "failed"},
		"raise":           {tasks: `{raise: {error: ` + problem + `}}`, status: "failed"},
		"caught": {tasks: `{try: [{a: {raise: {error: ` + problem +
			`}}}], catch: {as: e, do: [{b: {set: {said: '${ $e.detail }'}}}]}}`},
		"caught, retried": {tasks: `{try: [{a: {raise: {error: ` + problem + `}}}], catch: {` + retry + `}}`,
			status: "failed"},
		"retry waits": {
			tasks: `{try: [{a: {raise: {error: ` + problem +
				`}}}], catch: {retry: {delay: {minutes: 10}, limit: {attempt: {count: 4}}}}}`,
			status: "canceled", drive: waiting,
		},
		"for": {tasks: `{for: {in: '${ [.password, .password] }', each: p}, do: [{a: {set: {n: '${ $p }'}}}]}`},
		"for fails": {tasks: `{for: {in: '${ [.password] }', each: p}, do: [{a: {set: {n: '${ $p | error }'}}}]}`,
			status: "failed"},
		"fork":           {tasks: `{fork: {branches: [{a: {set: {n: '${ .password }'}}}, {b: {set: {m: '${ .password }'}}}]}}`},
		"wait":           {tasks: `{wait: {milliseconds: 1}}`},
		"wait canceled":  {tasks: `{wait: {minutes: 10}}`, status: "canceled", drive: waiting},
		"wait timed out": {tasks: `{timeout: {after: {milliseconds: 50}}, wait: {minutes: 10}}`, status: "failed"},
		"run timed out": {tasks: `{wait: {minutes: 10}}`, head: "timeout: {after: {milliseconds: 50}}\n",
			status: "timed_out"},
		"emit": {tasks: `{emit: {event: {with: {type: nothing.hears, subject: '${ .password }', data: {note: '${ .password }'}}}}}`},
		"emit fails": {tasks: `{emit: {event: {with: {type: nothing.hears, data: '${ .password | error }'}}}}`,
			status: "failed"},
		"listen canceled": {tasks: `{listen: {to: {one: ` + correlated + `}}}`, status: "canceled", drive: waiting},
		"listen timed out": {
			tasks: `{timeout: {after: {milliseconds: 50}}, listen: {to: {one: ` + correlated + `}}}`, status: "failed",
		},
		"listen": {
			tasks: `{listen: {to: {one: ` + correlated + `}}}`,
			drive: func(t *testing.T, id string) {
				t.Helper()
				s.Await(t, id, soon, "waiting")
				value := plantedFor("listen")
				postEvent(t, s, "news", `{"who":"`+value+`","password":"`+value+`"}`)
			},
		},
		"terminated": {
			tasks: `{wait: {minutes: 10}}`, status: "terminated",
			drive: func(t *testing.T, id string) {
				t.Helper()
				s.Await(t, id, soon, "waiting")
				_, err := s.Control(t.Context(), "terminate", id, "enough")
				require.NoError(t, err)
			},
		},
		"paused": {
			tasks: `{do: [{a: {wait: {minutes: 10}}}]}`, status: "canceled",
			drive: func(t *testing.T, id string) {
				t.Helper()
				s.Await(t, id, soon, "waiting")
				_, err := s.Control(t.Context(), "pause", id, "enough")
				require.NoError(t, err)
				cancel(t, id)
			},
		},
		"continued as new": {
			tasks: `{for: {in: '${ [range(60)] }', each: i}, do: [{a: {set: {password: '${ .password }', n: '${ [range(200000)] | length }'}}}]}`,
			check: inHistory(enums.EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW),
		},
		"child": {tasks: `{run: {workflow: ` + child + `, input: {password: '${ .password }'}}}}`},
		"child fails": {tasks: `{run: {workflow: ` + child + `, input: {fails: true, password: '${ .password }'}}}}`,
			status: "failed"},
		"child canceled": {tasks: `{run: {workflow: ` + child + `, input: {waits: true, password: '${ .password }'}}}}`,
			status: "canceled", drive: func(t *testing.T, id string) {
				t.Helper()
				s.Await(t, childOf(t, s, id), soon, "waiting")
				cancel(t, id)
			}},
		"race": {tasks: `{fork: {compete: true, branches: [{slow: {` + strings.ReplaceAll(post, "ROUTE", "held") +
			`}}, {fast: {set: {n: '${ .password }'}}}]}}`},
	}
	for method, call := range map[string]string{"GET": get, "POST": post} {
		to := func(route string) string { return strings.ReplaceAll(call, "ROUTE", route) }
		echo := func(status int) func(c origin.Call) origin.Answer {
			return func(c origin.Call) origin.Answer {
				return origin.Answer{Status: status, Body: `{"said":"` + c.Header.Get("X-Note") + c.Query + `"}`}
			}
		}
		o.Handle(method+" /answers", echo(http.StatusOK))
		o.Handle(method+" /refuses", echo(http.StatusBadRequest))
		o.Handle(method+" /fails", echo(http.StatusServiceUnavailable))
		o.Handle(method+" /large", func(c origin.Call) origin.Answer {
			a := echo(http.StatusOK)(c)
			a.Body = `{"more":"` + strings.Repeat("x", 100<<10) + `","said":"` + c.Header.Get("X-Note") + c.Query + `"}`
			return a
		})
		o.Hold(method+" /held", http.StatusOK, `{}`)
		late := o.Hold(method+" /late", http.StatusOK, `{}`)
		o.Handle(method+" /breaks", func(c origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusOK, Body: "{" + c.Header.Get("X-Note") + c.Query, Type: "application/json"}
		})
		name := func(what string) string { return strings.ToLower(method) + " " + what }
		all[name("answered")] = outcome{tasks: `{` + to("answers") + `}`}
		all[name("refused")] = outcome{tasks: `{` + to("refuses") + `}`, status: "failed"}
		all[name("not JSON")] = outcome{tasks: `{` + to("breaks") + `}`, status: "failed"}
		all[name("large")] = outcome{tasks: `{` + to("large") + `}`}
		all[name("retried")] = outcome{tasks: `{try: [{a: {` + to("fails") + `}}], catch: {` + retry + `}}`, status: "failed"}
		all[name("timed out")] = outcome{
			tasks: `{timeout: {after: {milliseconds: 200}}, ` + to("held") + `}`, status: "failed"}
		all[name("canceled")] = outcome{tasks: `{` + to("held") + `}`, status: "canceled", drive: waiting}
		all[name("unreachable")] = outcome{
			tasks: `{` + strings.ReplaceAll(to("x"), "%[1]s", "http://127.0.0.1:1") + `}`, status: "failed"}
		all[name("handed over")] = outcome{
			tasks: `{` + to("late") + `}`,
			drive: func(t *testing.T, id string) {
				t.Helper()
				platform.Eventually(t, soon, func() string {
					for _, e := range platform.RawHistory(t, platform.DialTemporal(t, temporal.Address), id).GetEvents() {
						if e.GetEventType() == enums.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED {
							return ""
						}
					}
					return "no activity has the call"
				})
				late.Open()
			},
			check: inHistory(enums.EVENT_TYPE_ACTIVITY_TASK_COMPLETED),
		}
	}
	return all
}

// plantedFor is the planted value of an outcome. It has no character that an encoding would leave as it is by chance.
func plantedFor(name string) string { return "planted/" + strings.ReplaceAll(name, " ", "+") + "/4711" }

// childOf waits for the newest child of a run, and returns its ID.
func childOf(t *testing.T, s *platform.Server, id string) string {
	t.Helper()
	return child(t, s, id).GetId()
}

// TestNothingPlainReachesTemporal runs every kind of task through every outcome with planted values, and searches the
// bytes of Temporal's database for them, in every encoding that the redaction knows.
func TestNothingPlainReachesTemporal(t *testing.T) {
	t.Parallel()
	o := origin.New(t)
	temporal := platform.StartTemporal(t)
	store := platform.SQLite(t)
	s := platform.StartServer(t,
		platform.ServerOptions{Temporal: temporal.Address, Store: store, Args: []string{"--log-level", "debug"}})
	kid := s.Publish(t, platform.Document("kid", `  - fail:
      if: '${ .fails == true }'
      raise: {error: {type: 'https://example.com/no', status: 400, title: '${ .password }', detail: '${ .password }'}}
  - rest:
      if: '${ .waits == true }'
      wait: {minutes: 10}
  - give: {set: {told: '${ .password }'}}
`))
	namespace, short, _ := strings.Cut(kid, "/")
	all := outcomesOfTasks(s, temporal, o, fmt.Sprintf("{namespace: %s, name: %s, version: latest", namespace, short))
	var searched atomic.Value // the ID of a run whose records are in all that is searched
	t.Run("outcomes", func(t *testing.T) {
		for name, of := range all {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				tasks := strings.ReplaceAll(of.tasks, "%[1]s", o.URL)
				workflow := s.Publish(t, platform.Document(strings.NewReplacer(",", "", " ", "-").Replace(strings.ToLower(name)),
					"  - a: "+tasks+"\n", of.head))
				id := s.Start(t, workflow, `{"password":"`+plantedFor(name)+`"}`).GetId()
				if of.drive != nil {
					of.drive(t, id)
				}
				status := of.status
				if status == "" {
					status = "completed"
				}
				r := s.Await(t, id, agreed, platform.Ended()...)
				require.Equal(t, status, r.GetStatus(), "%v", r.GetError())
				if of.check != nil {
					of.check(t, id)
				}
				if name == "get retried" {
					searched.Store(id)
				}
			})
		}
	})
	s.Terminate()
	_, ended := s.WaitFor(soon)
	require.True(t, ended)

	id, retried := searched.Load().(string)
	require.True(t, retried)
	var finder redact.Finder
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
		finder.Add(plantedFor(name))
	}
	for where, content := range map[string]string{
		"Temporal": files(t, temporal.File), "the database": databaseContents(t, store), "the log": s.Output()} {
		if !strings.Contains(content, id) {
			t.Errorf("%s lacks the ID of a run, so that the search finds nothing in it", where)
		}
		finder.Texts(content, func(index int) { t.Errorf("the value of %q is in %s", names[index], where) })
	}
}
