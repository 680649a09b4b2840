package integration_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	_ "github.com/jackc/pgx/v5/stdlib" // to read every table of Postgres
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/keyring"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// The planted values, each in another kind of location.
const (
	plantedName   = "planted-under-a-name"
	plantedPlace  = "planted-at-a-place"
	plantedResult = "planted-in-a-result"
	plantedEvent  = "planted-in-an-event"
	plantedNews   = "planted-in-the-news"
	plantedOnce   = "planted-in-a-grant"
	plantedKid    = "planted-by-a-child"
)

// passingDocument passes a value on in an event and to a child, and uses a sensitive value of the child that its own
// document does not declare.
const passingDocument = `  - ask:
      call: http
      with: {method: post, endpoint: '%[1]s/grant'}
  - tell:
      emit: {event: {with: {type: granted, data: {note: '${ "it is " + .access_token }'}}}}
  - kid:
      run: {workflow: {namespace: %[2]s, name: heir, version: latest, input: {note: '${ "from " + .data.note }'}}}
  - keep:
      set: {got: '${ .told }'}
`

// childDocument requests a value and returns it under another name.
const childDocument = `  - ask:
      call: http
      with: {method: post, endpoint: '%[1]s/heirloom'}
  - give:
      set: {told: '${ "kid says " + .password }'}
`

// eventDocument is started by another run's event.
const eventDocument = `  - keep:
      set: {said: '${ "heard: " + .[0].data.note }'}
`

// failingDocument passes its sensitive values on, requests another one, and fails with all of them in the error.
const failingDocument = `  - ask:
      call: http
      with: {method: post, endpoint: '%[1]s/token', body: '${ {note: ("card " + .card.number), password: .password} }'}
  - keep:
      set: {said: '${ "got " + .access_token }', n: 7}
  - fail:
      call: http
      with: {method: post, endpoint: '%[1]s/echo', body: '${ . }'}
`

// askingDocument has a safe call refused, in a text that quotes its query: it runs as a local activity, whose failure
// is in a marker.
const askingDocument = `  - ask:
      call: http
      with: {method: get, endpoint: '%[1]s/echo', query: {note: '${ .password }'}}
`

// A sensitive value is in no readable place: not in the database, in Temporal, in logs, in metrics or in responses.
// Administrators may read it, and the audit log records that.
func TestSensitiveValuesDoNotLeak(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		site := origin.New(t)
		site.Handle("POST /token", func(origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusOK, Body: `{"access_token":"` + plantedResult + `"}`}
		})
		site.Handle("POST /echo", func(c origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusBadRequest, Body: "no: " + c.Body + " " + plantedName + " " + plantedPlace,
				Type: "text/plain"}
		})
		site.Handle("GET /echo", func(c origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusBadRequest, Body: "no: " + c.Path + " " + plantedName, Type: "text/plain"}
		})
		site.Handle("POST /grant", func(origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusOK, Body: `{"access_token":"` + plantedOnce + `"}`}
		})
		site.Handle("POST /heirloom", func(origin.Call) origin.Answer {
			return origin.Answer{Status: http.StatusOK, Body: `{"password":"` + plantedKid + `"}`}
		})
		temporal := platform.StartTemporal(t)
		s := platform.StartServer(t,
			platform.ServerOptions{Temporal: temporal.Address, Store: store, Args: []string{"--log-level", "debug"}})
		document := strings.Replace(platform.Document("secretive", fmt.Sprintf(failingDocument, site.URL)), "do:\n",
			"  metadata: {sensitive: [/input/card/number]}\ndo:\n", 1)
		name := s.Publish(t, document)
		input := `{"card": {"number":"` + plantedPlace + `"}, "password":"` + plantedName + `", "n": 1.0}`
		id := s.Start(t, name, input).GetId()
		r := s.Await(t, id, soon, "failed")
		require.True(t, r.GetRedacted())
		require.Equal(t, `{"card": {"number":"`+redact.Mark+`"}, "password":"`+redact.Mark+`", "n": 1.0}`,
			r.GetInput().GetJson(), "the other values are unchanged")
		asks := s.Publish(t, platform.Document("asks", fmt.Sprintf(askingDocument, site.URL)))
		s.Await(t, s.Start(t, asks, `{"password":"`+plantedName+`"}`).GetId(), soon, "failed")
		// A replay receives the unredacted input.
		again, err := s.Runs.ReplayRun(t.Context(),
			connect.NewRequest(&signalboxv1.ReplayRunRequest{Project: platform.DefaultProject, Id: id, Reason: "again"}))
		require.NoError(t, err)
		s.Await(t, again.Msg.GetRun().GetId(), soon, "failed")
		bodies := map[string]int{}
		for _, route := range []string{"POST /token", "POST /echo"} {
			for _, c := range site.Calls(route) {
				bodies[c.Path+" "+c.Body]++
			}
		}
		require.Len(t, bodies, 2, "both runs sent the same values")
		for body := range bodies {
			require.Contains(t, body, "planted-")
		}

		eventRunDocument := startByEvent(t, s)
		requireAbsent(t, "answers", runOutput(t, s, id)+runOutput(t, s, eventRunDocument)+eventOutput(t, s))
		requireAbsent(t, "what Temporal shows",
			temporalOutput(t, temporal.Address, id)+temporalOutput(t, temporal.Address, eventRunDocument))
		for _, of := range passOn(t, s, site.URL) {
			requireAbsent(t, "what others were given", apiOutput(t, s, of)+temporalOutput(t, temporal.Address, of))
		}
		requireAbsent(t, "what was refused", refusedStarts(t, s))
		requireAbsent(t, "events",
			s.CLI(t, "event", "list", "-o", "json").String()+s.CLI(t, "event", "show", "--position", "5", "-o", "json").String())
		unredacted(t, s, id, input)
		_, metrics, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		requireAbsent(t, "metrics", metrics)
		s.Terminate()
		_, ended := s.WaitFor(soon)
		require.True(t, ended)
		requireAbsent(t, "the log", s.Output())
		requireAbsent(t, "the database", databaseContents(t, store))
		requireAbsent(t, "Temporal", files(t, temporal.File))
	})
}

// schemaDocument accepts passwords of digits only, in its input or in the event that starts it.
const schemaDocument = `schedule: {on: {one: {with: {type: picky}}}}
input:
  schema:
    document:
      properties: {password: {pattern: '^[0-9]+$'}}
      items: {properties: {data: {properties: {password: {pattern: '^[0-9]+$'}}}}}
`

// refusedStarts has a start and an event refused for a sensitive value in the input, and returns all output about them.
func refusedStarts(t *testing.T, s *platform.Server) string {
	t.Helper()
	name := s.Publish(t, platform.Document("picky", "  - a:\n      set: {n: 1}\n", schemaDocument))
	_, err := s.TryStart(t.Context(), name, `{"password":"`+plantedName+`"}`)
	require.ErrorContains(t, err, plantedName, "the caller's own input may be in the error")
	postEvent(t, s, "picky", `{"password":"`+plantedEvent+`"}`)
	var shown string
	platform.Eventually(t, soon, func() string {
		shown = s.CLI(t, "event", "show", "picky", "-o", "json").String()
		if !strings.Contains(shown, `does not meet \"pattern\"`) {
			return "the delivery is not refused: " + shown
		}
		return ""
	})
	return shown
}

// requireAbsent searches a text for the planted values.
func requireAbsent(t *testing.T, where, text string) {
	t.Helper()
	require.NotEmpty(t, text, where)
	for _, planted := range []string{
		plantedName, plantedPlace, plantedResult, plantedEvent, plantedNews, plantedOnce, plantedKid} {
		if at := strings.Index(text, planted); at >= 0 {
			t.Errorf("%s is in %s: …%q…", planted, where, text[max(0, at-300):min(len(text), at+100)])
		}
	}
}

// passOn makes a run pass on a received value, and a batch replay the run, and returns the IDs of all runs involved.
func passOn(t *testing.T, s *platform.Server, site string) []string {
	t.Helper()
	heirs := s.Publish(t, platform.Document("heir", fmt.Sprintf(childDocument, site)))
	hearers := s.Publish(t, platform.Document("hearsay", eventDocument,
		"schedule: {on: {one: {with: {type: granted}}}}\n"))
	grants := s.Publish(t, platform.Document("granted",
		fmt.Sprintf(passingDocument, site, strings.TrimSuffix(heirs, "/heir"))))
	id := s.Start(t, grants, `{}`).GetId()
	r := s.Await(t, id, soon, "completed")
	require.JSONEq(t, `{"got":"kid says `+redact.Mark+`"}`, r.GetOutput().GetJson())
	list, err := s.Runs.GetRun(t.Context(),
		connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id, Unredacted: true}))
	require.NoError(t, err)
	require.JSONEq(t, `{"got":"kid says `+plantedKid+`"}`, list.Msg.GetRun().GetOutput().GetJson())
	b := startBatch(t, s, &signalboxv1.StartBatchRequest{Action: "replay", RunIds: []string{id}, Rate: 500})
	require.Eventually(t, func() bool {
		return len(s.AllRuns(t, heirs, 9)) == 2 && len(s.AllRuns(t, hearers, 9)) == 2
	}, soon, 20*time.Millisecond)
	requireAbsent(t, "a batch", s.CLI(t, "batch", "show", b.GetId(), "-o", "json").String())
	ids := []string{id}
	for _, name := range []string{heirs, hearers, grants} {
		for _, one := range s.AllRuns(t, name, 9) {
			done := s.Await(t, one.GetId(), soon, "completed")
			require.True(t, done.GetRedacted(), name)
			if name == hearers {
				require.JSONEq(t, `{"said":"heard: it is `+redact.Mark+`"}`, done.GetOutput().GetJson())
				require.Contains(t, done.GetInput().GetJson(), `"it is `+redact.Mark+`"`)
			}
			if name == heirs {
				require.JSONEq(t, `{"note":"from it is `+redact.Mark+`"}`, done.GetInput().GetJson())
			}
		}
		ids = append(ids, s.AllRuns(t, name, 1)[0].GetId())
	}
	return ids[1:]
}

// runOutput returns all output about a run.
func runOutput(t *testing.T, s *platform.Server, id string) string {
	t.Helper()
	var all strings.Builder
	all.WriteString(apiOutput(t, s, id))
	for _, args := range [][]string{
		{"run", "show", id}, {"run", "steps", id}, {"run", "list"}, {"run", "show", id, "-o", "json"}, {"audit", "list"}} {
		all.WriteString(s.CLI(t, args...).String())
	}
	return all.String()
}

// apiOutput returns the API's responses for a run, and for the list of runs.
func apiOutput(t *testing.T, s *platform.Server, id string) string {
	t.Helper()
	var all strings.Builder
	for _, path := range []string{
		"/v1/projects/default/runs/" + id, "/v1/projects/default/runs/" + id +
			"/steps", "/v1/projects/default/runs", "/v1/projects/default/audit",
		"/v1/projects/default/runs/" + id +
			":export", "/v1/projects/default/runs:export?format=csv", "/v1/projects/default/runs:export?format=json",
		"/v1/projects/default/audit:export?format=json",
	} {
		status, body, err := s.Get(t.Context(), path)
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, status, path+": "+body)
		all.WriteString(body)
	}
	return all.String()
}

// unredacted requires that administrators can read the planted values, and that the audit log records it.
func unredacted(t *testing.T, s *platform.Server, id, input string) {
	t.Helper()
	got, err := s.Runs.GetRun(t.Context(),
		connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id, Unredacted: true}))
	require.NoError(t, err)
	require.Equal(t, input, got.Msg.GetRun().GetInput().GetJson(), "byte-identical")
	steps, err := s.Runs.ListSteps(t.Context(),
		connect.NewRequest(&signalboxv1.ListStepsRequest{Project: platform.DefaultProject, Id: id, Unredacted: true}))
	require.NoError(t, err)
	text, err := json.Marshal(steps.Msg)
	require.NoError(t, err)
	for _, planted := range []string{plantedName, plantedPlace, plantedResult} {
		require.Contains(t, string(text), planted)
	}
	require.Contains(t, s.CLI(t, "audit", "list").Stdout, "run.view_unredacted")
}

// databaseContents returns every value in a database: the bytes of SQLite's files, every row of Postgres.
func databaseContents(t *testing.T, store platform.Store) string {
	t.Helper()
	if store.Driver == "sqlite" {
		return files(t, store.DSN)
	}
	db, err := sql.Open("pgx", store.DSN)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	ctx, all := t.Context(), strings.Builder{}
	for _, table := range texts(t, func() (*sql.Rows, error) {
		return db.QueryContext(ctx,
			`SELECT quote_ident(table_schema) || '.' || quote_ident(table_name) FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema')`)
	}) {
		for _, row := range texts(t, func() (*sql.Rows, error) {
			return db.QueryContext(ctx, `SELECT t::text FROM `+table+` AS t`)
		}) {
			all.WriteString(row)
		}
	}
	return all.String()
}

func texts(t *testing.T, query func() (*sql.Rows, error)) (list []string) {
	t.Helper()
	rows, err := query()
	require.NoError(t, err)
	defer func() { require.NoError(t, rows.Close()) }()
	for rows.Next() {
		var text string
		require.NoError(t, rows.Scan(&text))
		list = append(list, text)
	}
	require.NoError(t, rows.Err())
	return list
}

// files returns the bytes of a SQLite database with its log.
func files(t *testing.T, path string) string {
	t.Helper()
	names, err := filepath.Glob(path + "*")
	require.NoError(t, err)
	var all strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		all.Write(content)
	}
	return all.String()
}

// A server without its key shows the redacted values, reports what it cannot decrypt, and replays only edited inputs.
func TestServerWithoutItsKey(t *testing.T) {
	t.Parallel()
	temporal := platform.StartTemporal(t)
	options := platform.ServerOptions{Temporal: temporal.Address, Store: platform.SQLite(t)}
	s := platform.StartServer(t, options)
	name := s.Publish(t, platform.Document("forgetful", "  - a:\n      set: {n: 1}\n"))
	id := s.Start(t, name, `{"password":"`+plantedName+`"}`).GetId()
	s.Await(t, id, soon, "completed")
	s.Terminate()
	_, ended := s.WaitFor(soon)
	require.True(t, ended)

	other := filepath.Join(t.TempDir(), "other.key")
	require.NoError(t, os.WriteFile(other, keyring.Generate(), 0o600))
	options.Env = append(options.Env, "SIGNALBOX_ENCRYPTION_KEYS=other="+other)
	s = platform.StartServer(t, options)
	require.Contains(t, s.Run(t, id).GetInput().GetJson(), redact.Mark)
	_, err := s.Runs.GetRun(t.Context(),
		connect.NewRequest(&signalboxv1.GetRunRequest{Project: platform.DefaultProject, Id: id, Unredacted: true}))
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, `the key "test"`)
	_, err = s.Runs.ReplayRun(t.Context(),
		connect.NewRequest(&signalboxv1.ReplayRunRequest{Project: platform.DefaultProject, Id: id, Reason: "again"}))
	require.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(err), "%v", err)
	edited, err := s.Runs.ReplayRun(t.Context(), connect.NewRequest(&signalboxv1.ReplayRunRequest{
		Project: platform.DefaultProject, Id: id, Reason: "again", Input: &signalboxv1.JsonValue{Json: `{}`},
	}))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		return s.Run(t, edited.Msg.GetRun().GetId()).GetStatus() == "completed"
	}, soon, 50*time.Millisecond)
}
