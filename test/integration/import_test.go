package integration_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/require"

	signalboxv1 "github.com/signalbox-dev/signalbox/api/signalbox/v1"
	"github.com/signalbox-dev/signalbox/internal/redact"
	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// legacySchema is an older engine's database, with the tables that docs/migration.md describes.
const legacySchema = `
CREATE TABLE workflow_runs (id TEXT PRIMARY KEY, project TEXT NOT NULL, workflow TEXT NOT NULL, version TEXT, engine TEXT, status TEXT NOT NULL,
  input JSON, output JSON, error TEXT, created_at TIMESTAMPTZ NOT NULL, started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ, note TEXT);
CREATE TABLE workflow_run_steps (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, name TEXT NOT NULL, kind TEXT, status TEXT NOT NULL, attempt INTEGER,
  input JSON, output JSON, error TEXT, started_at TIMESTAMPTZ, completed_at TIMESTAMPTZ);
CREATE TABLE workflow_run_waits (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, created_at TIMESTAMPTZ, resolved_at TIMESTAMPTZ);
CREATE TABLE workflow_run_snapshots (id TEXT PRIMARY KEY, run_id TEXT NOT NULL, snapshot JSON NOT NULL, created_at TIMESTAMPTZ);`

// legacyRun returns a run of an older engine: with a step that has ended, a step and a wait that have not, and a
// snapshot.
func legacyRun(engine, status string) (id string, statements []string) {
	id = engine + "-" + strings.ToLower(status)
	column, completed, output := "'"+engine+"'", "NULL", "NULL"
	if engine == "null" {
		column = "NULL"
	}
	if status == "COMPLETED" {
		completed, output = "'2026-03-01 12:00:09+00:00'", `'{"ok": true}'`
	}
	return id, []string{
		fmt.Sprintf(`INSERT INTO workflow_runs VALUES ('%s', 'shop', 'order', '1.2.0', %s, '%s', '{"n": 1, "password": "planted-4711"}', %s, NULL,
'2026-03-01 12:00:00+00:00', '2026-03-01 12:00:01+00:00', %s, 'kept')`, id, column, status, output, completed),
		fmt.Sprintf(`INSERT INTO workflow_run_steps VALUES
('%[1]s-a', '%[1]s', 'check', 'set', 'COMPLETED', 1, NULL, '5', NULL, '2026-03-01 12:00:02+00:00', '2026-03-01 12:00:03+00:00'),
('%[1]s-b', '%[1]s', 'charge', 'http', '%[2]s', 2, '{"a": 1}', NULL, NULL, '2026-03-01 12:00:03+00:00', %[3]s)`, id, status, completed),
		fmt.Sprintf(`INSERT INTO workflow_run_waits VALUES ('%[1]s-w', '%[1]s', 'event', 'OPEN', '2026-03-01 12:00:04+00:00', NULL)`, id),
		fmt.Sprintf(`INSERT INTO workflow_run_snapshots VALUES ('%[1]s-s', '%[1]s', '{"state": {"x": [1, 2]}}', '2026-03-01 12:00:05+00:00')`, id),
	}
}

// newLegacyDatabase makes a database with a run of each engine in each state, and returns the expected status of each
// after the import.
func newLegacyDatabase(t *testing.T, source platform.Store) map[string]string {
	t.Helper()
	statements, become := strings.Split(legacySchema, ";\n"), map[string]string{}
	for _, engine := range []string{"null", "db", "temporal"} {
		for status, here := range map[string]string{"RUNNING": "canceled", "WAITING": "canceled", "COMPLETED": "completed"} {
			if engine == "temporal" {
				here = strings.ToLower(status)
			}
			id, made := legacyRun(engine, status)
			become[id], statements = here, append(statements, made...)
		}
	}
	execSQL(t, source, statements...)
	return become
}

// The test imports runs beside a running server, by the command and then by the server itself, and uses the operations
// that imported runs support.
func TestImportOfOlderEngine(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		source := platform.SQLite(t)
		if store.Driver == "postgres" {
			source = platform.Postgres(t)
		}
		become := newLegacyDatabase(t, source)
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t), Env: []string{stuckAfter},
		}
		w := &environment{Server: platform.StartServer(t, options), store: store}
		first := importOlder(t, source, store)
		require.Regexp(t, `new, imported +9\n`, first)
		require.Regexp(t, `of these canceled, as their engine is gone +4\n`, first)
		w.requireImported(t, become)
		before := w.importedRuns(t, become)
		require.Len(t, w.audited(t, "", "run.import"), 1)

		again := importOlder(t, source, store)
		require.Regexp(t, `new, imported +0\n`, again)
		require.Regexp(t, `changed, imported again +0\n`, again)
		require.Regexp(t, `left alone +9\n`, again)
		require.Equal(t, before, w.importedRuns(t, become), "it changes nothing")
		require.Len(t, w.audited(t, "", "run.import"), 1)

		w.requireControlsRefused(t, become)
		w.replayImported(t)

		w.Terminate()
		_, ended := w.WaitFor(soon)
		require.True(t, ended)
		options.Env = append(options.Env, "SIGNALBOX_MIGRATION_FROM="+source.DSN, "SIGNALBOX_MIGRATION_PROJECT=default",
			"SIGNALBOX_MIGRATION_INTERVAL=1s")
		w.Server = platform.StartServer(t, options)
		w.followSource(t, source, become)
		for _, said := range []string{w.Output(), databaseContents(t, store)} {
			require.NotContains(t, said, "planted-4711")
		}
	})
}

// importOlder runs the command, and returns its output.
func importOlder(t *testing.T, source, store platform.Store) string {
	t.Helper()
	r := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t),
		Args:   []string{"migrate", "import", "--from", source.DSN, "--project", platform.DefaultProject},
		Env:    []string{"SIGNALBOX_STORE_DRIVER=" + store.Driver, "SIGNALBOX_STORE_DSN=" + store.DSN, platform.WithKeys(t)},
		Limit:  promise.Length(soon, 2*time.Hour),
	})
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	require.NotContains(t, r.String(), "planted-4711")
	return r.Stdout
}

// importedRuns returns the API's responses for the runs.
func (w *environment) importedRuns(t *testing.T, become map[string]string) map[string]string {
	t.Helper()
	shown := map[string]string{}
	for id := range become {
		for _, path := range []string{"", "/steps"} {
			status, body, err := w.Get(t.Context(), "/v1/projects/default/runs/"+id+path)
			require.NoError(t, err)
			require.Equal(t, 200, status, body)
			shown[id] += body
		}
	}
	return shown
}

// requireImported checks the list and each run.
func (w *environment) requireImported(t *testing.T, become map[string]string) {
	t.Helper()
	listed := map[string]string{}
	for _, r := range w.AllRuns(t, "legacy/order", 4) {
		listed[r.GetId()] = r.GetStatus()
	}
	require.Equal(t, become, listed)
	list := w.CLI(t, "run", "list", "--workflow", "legacy/order", "--status", "canceled").Stdout
	for _, engine := range []string{"null", "db", "temporal"} {
		for _, status := range []string{"running", "waiting", "completed"} {
			id := engine + "-" + status
			require.Equal(t, become[id] == "canceled", strings.Contains(list, id), list)
			w.requireImportedRun(t, id, engine, status, become[id])
		}
	}
}

// requireImportedRun checks the output for one run.
func (w *environment) requireImportedRun(t *testing.T, id, engine, status, here string) {
	t.Helper()
	r, steps := w.Run(t, id), w.Steps(t, id)
	require.Equal(t, []string{
		here, "import", strings.Replace(engine, "null", "", 1), "1.2.0", `{"n":1,"password":"` + redact.Mark + `"}`},
		[]string{r.GetStatus(), r.GetTrigger(), r.GetLegacyEngine(), r.GetVersion(),
			strings.ReplaceAll(r.GetInput().GetJson(), " ", "")}, id)
	require.Nil(t, r.GetStuck(), id)
	kept, _ := platform.Decode(t, r.GetLegacy()).(map[string]any)
	row, _ := kept["row"].(map[string]any)
	require.Equal(t, []any{"kept", strings.ToUpper(status)}, []any{row["note"], row["status"]}, "the original row")
	require.Contains(t, fmt.Sprint(kept["snapshots"]), "map[state:map[x:[1 2]]]")
	waits := fmt.Sprint(kept["waits"])
	last := map[string]string{"running": "running", "waiting": "waiting", "completed": "completed"}[status]
	if here == "canceled" {
		last = "canceled"
		require.Equal(t, "Engine gone", r.GetError().GetTitle(), id)
		require.NotNil(t, r.GetEndTime(), id)
	} else {
		require.Nil(t, r.GetError(), id)
	}
	require.Equal(t, here != "canceled", strings.Contains(waits, "OPEN"), waits)
	require.Equal(t, []string{"check:completed", "charge:" + last}, platform.Statuses(steps), id)
	if engine == "temporal" { // one of each status
		shown := w.CLI(t, "run", "show", id)
		require.Equal(t, platform.ExitOK, shown.Code, shown.String())
		require.Contains(t, shown.Stdout, here)
		require.NotContains(t, apiOutput(t, w.Server, id)+shown.Stdout, "planted-4711")
	}
}

// requireControlsRefused calls each control of each run.
func (w *environment) requireControlsRefused(t *testing.T, become map[string]string) {
	t.Helper()
	row := platform.ReadControls(t)["imported, in any state"]
	require.NotEmpty(t, row)
	require.Equal(t, "waiting", exported(t, w.Server, "temporal-waiting").Run.Status)
	for id := range become {
		r := w.Run(t, id)
		require.Equal(t, []string{"replay", "export"}, r.GetControls(), id)
		for _, control := range []string{"cancel", "terminate", "pause", "unpause"} {
			require.Equal(t, "RUN_IMPORTED", row[control])
			requireNoEffect(t, w.Server, control, id, row[control])
		}
		resumed, err := w.Quotas.ResumeQuota(t.Context(),
			connect.NewRequest(&signalboxv1.ResumeQuotaRequest{
				Project: platform.DefaultProject, RunIds: []string{id}, Reason: "urgent"}))
		if slices.Contains(platform.Ended(), r.GetStatus()) {
			reason, code := platform.Reason(err)
			require.Equal(t, []any{"RUN_ENDED", connect.CodeFailedPrecondition}, []any{reason, code}, id)
			continue
		}
		require.NoError(t, err)
		require.Zero(t, resumed.Msg.GetResumed(), "runs that the control does not apply to are skipped")
	}
}

// replayImported replays a run once its workflow is published.
func (w *environment) replayImported(t *testing.T) {
	t.Helper()
	const id = "db-waiting"
	_, err := w.Control(t.Context(), "replay", id, "once more")
	reason, code := platform.Reason(err)
	require.Equal(t, []any{"RUN_IMPORTED", connect.CodeFailedPrecondition}, []any{reason, code},
		"no workflow of that name is published")
	source := regexp.MustCompile(`namespace: t\w+`).
		ReplaceAllString(platform.Document("order", "  - same:\n      set: ${ . }\n"), "namespace: legacy")
	require.Equal(t, "legacy/order", w.Publish(t, source))
	replay := func(args ...string) platform.Result {
		return w.CLI(t, append([]string{"run", "replay", id, "--reason", "once more", "-o", "json"}, args...)...)
	}
	requireOneLine(t, replay(), platform.ExitRefused, "RUN_IMPORTED")
	// the mark of a redacted value is not an input
	requireOneLine(t, replay("--version", "latest"), platform.ExitRefused, "RUN_IMPORTED")
	res := replay("--version", "latest", "--wait", "--patch", `[{"op":"replace","path":"/password","value":"none"}]`)
	require.Equal(t, platform.ExitOK, res.Code, res.String())
	var made printedRun
	res.JSON(t, &made)
	require.Equal(t, []any{"completed", "1.0.0", map[string]any{"n": 1.0, "password": redact.Mark}},
		[]any{made.Status, made.Version, made.Output})
	require.Equal(t, id, w.Run(t, made.ID).GetReplayOf())
	require.Equal(t, []string{made.ID}, w.Run(t, id).GetReplays())
}

// followSource updates the older engine's database while a server follows it.
func (w *environment) followSource(t *testing.T, source platform.Store, become map[string]string) {
	t.Helper()
	id, late := legacyRun("db", "SUSPENDED")
	slices.Reverse(late) // the run comes last, so that a poll reads all of it
	patient := source
	if patient.Driver == "sqlite" {
		patient.DSN = "file:" + source.DSN + "?_pragma=busy_timeout(10000)"
	}
	execSQL(t, patient, append(late,
		`UPDATE workflow_runs SET status = 'COMPLETED', output = '7', completed_at = '2026-05-01 08:31:00+00:00' WHERE id = 'null-waiting'`,
		`UPDATE workflow_runs SET status = 'FAILED', error = 'it broke', completed_at = '2026-05-01 08:31:00+00:00' WHERE id = 'temporal-running'`)...)
	become[id], become["null-waiting"], become["temporal-running"] = "canceled", "completed", "failed"
	platform.Eventually(t, soon, func() string {
		listed := map[string]string{}
		for _, r := range w.AllRuns(t, "legacy/order", 100) {
			if r.GetTrigger() == "import" {
				listed[r.GetId()] = r.GetStatus()
			}
		}
		if fmt.Sprint(listed) != fmt.Sprint(become) {
			return fmt.Sprintf("the runs are %v", listed)
		}
		return ""
	})
	require.Equal(t, []string{"Engine gone", "it broke"},
		[]string{w.Run(t, id).GetError().GetTitle(), w.Run(t, "temporal-running").GetError().GetDetail()})
	require.JSONEq(t, "7", w.Run(t, "null-waiting").GetOutput().GetJson())
	for _, still := range []string{"temporal-waiting", "db-completed"} {
		require.Equal(t, become[still], w.Run(t, still).GetStatus())
		require.Nil(t, w.Run(t, still).GetStuck(), still)
	}
	entries := w.audited(t, "", "run.import")
	require.Greater(t, len(entries), 1)
	require.Equal(t, "system", entries[0].GetActorKind())
	platform.Eventually(t, soon, func() string { // a poll is counted when it is over
		_, metrics, err := w.Get(t.Context(), "/metrics")
		for _, line := range []string{
			`signalbox_migration_runs_total{kind="new"} 1`, `signalbox_migration_runs_total{kind="changed"} 2`} {
			if err != nil || !strings.Contains(metrics, line+"\n") {
				return line + " is not there"
			}
		}
		return ""
	})
}
