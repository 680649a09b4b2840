package integration_test

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// bundle is the part of an export of one run that the tests check.
type bundle struct {
	Format string
	Run    struct {
		ID, Status, WaitingKind, CancelReason, ReplayOf string
		Children, Replays                               []string
		Temporal                                        struct{ WorkflowID, RunID string }
	}
	Version struct{ Source string }
	Steps   []struct {
		Path, Task, Status string
		Attempts           []struct {
			Number, HTTPStatus int
			StartTime, EndTime time.Time
			Outcome            string
		}
	}
	Waits  []struct{ Task, WaitingKind string }
	Events []struct {
		Event      struct{ ID, Type string }
		Deliveries []struct{ RunID, Status string }
	}
	Audit []struct{ Action, Reason, Subject string }
}

func (b bundle) tasks() (list []string) {
	for _, s := range b.Steps {
		list = append(list, s.Task+":"+s.Status)
	}
	return list
}

func exported(t *testing.T, s *platform.Server, id string) bundle {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.json")
	r := s.CLI(t, "run", "export", id, "--file", path)
	require.Equal(t, platform.ExitOK, r.Code, r.String())
	require.Empty(t, r.Stdout)
	text := readFile(t, path)
	require.Contains(t, s.CLI(t, "run", "export", id).Stdout, id, "on standard output as well")
	var b bundle
	require.NoError(t, json.Unmarshal([]byte(text), &b), text)
	require.Equal(t, "signalbox.run/1", b.Format)
	return b
}

// awaitWaiting waits until a run waits for something of a kind.
func awaitWaiting(t *testing.T, s *platform.Server, id, kind string) {
	t.Helper()
	platform.Eventually(t, soon, func() string {
		if r := s.Await(t, id, soon, "waiting"); r.GetWaitingKind() != kind {
			return "run " + id + " waits for " + r.GetWaitingKind()
		}
		return ""
	})
}

// The exported run was started by an event, has had a child and a call that failed at first, was woken by another
// event, waits, and is canceled and replayed.
func TestExportContainsWholeRun(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		o := origin.New(t)
		o.Sequence("GET /shaky", origin.Answer{Status: 503, Body: `{}`}, origin.Answer{Status: 200, Body: `{}`})
		kind := fmt.Sprintf("export.%08x", rand.Uint32())
		childRun := s.Publish(t, platform.Document("kid", hello))
		source := platform.Document("exported",
			subflowVersion(childRun, "latest", "Ada", "")+
				strings.Replace(retries(o.URL+"/shaky"), "minutes: 10", "milliseconds: 10", 1)+
				"  - hear:\n      listen: {to: {one: {with: {type: "+kind+".go}}}}\n"+
				waits(600), "schedule: {on: {one: {with: {type: "+kind+".begin}}}}\n")
		name := s.Publish(t, source)
		sendTogether(t, s, kind+".begin", 1)
		id := runsBy(t, s, name, 1)[0].GetId()
		awaitWaiting(t, s, id, "event")
		sendTogether(t, s, kind+".go", 1)
		awaitWaiting(t, s, id, "timer")
		// The steps of an earlier workflow task may be written after those of a later one.
		var b bundle
		platform.Eventually(t, soon, func() string {
			b = exported(t, s, id)
			if !slices.Equal(b.tasks(), []string{
				"r:completed", "attempt:completed", "get:failed", "get:completed", "hear:completed", "pause:waiting"}) {
				return fmt.Sprint("the steps are ", b.tasks())
			}
			return ""
		})
		require.Equal(t, []string{id, "waiting", "timer", id},
			[]string{b.Run.ID, b.Run.Status, b.Run.WaitingKind, b.Run.Temporal.WorkflowID})
		require.Len(t, b.Run.Children, 1)
		require.Equal(t, source, b.Version.Source)
		require.Len(t, b.Steps[1].Attempts, 2)
		require.Len(t, b.Events, 2)
		for i, e := range b.Events {
			require.Equal(t, []string{kind + ".begin", kind + ".go"}[i], e.Event.Type)
			require.Len(t, e.Deliveries, 1, "the deliveries to this run only")
			require.Equal(t, id, e.Deliveries[0].RunID)
		}
		require.Len(t, b.Waits, 1)
		require.Equal(t, []string{"pause", "timer"}, []string{b.Waits[0].Task, b.Waits[0].WaitingKind})

		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "cancel", id, "--reason", "seen enough").Code)
		s.Await(t, id, soon, "canceled")
		require.Equal(t, platform.ExitOK, s.CLI(t, "run", "replay", id, "--reason", "once more").Code)
		b = exported(t, s, id)
		require.Equal(t, []string{"canceled", "seen enough"}, []string{b.Run.Status, b.Run.CancelReason})
		require.Len(t, b.Run.Replays, 1)
		require.Empty(t, b.Waits)
		require.Equal(t, []string{"run.cancel seen enough", "run.start "},
			[]string{b.Audit[0].Action + " " + b.Audit[0].Reason, b.Audit[1].Action + " " + b.Audit[1].Reason})
	})
}

// The test exports lists of runs in both formats.
func TestListExport(t *testing.T) {
	eachServer(t, func(t *testing.T, s *platform.Server) {
		name := s.Publish(t, platform.Document("listed", fails))
		ids := startMany(t, s, name, 20)
		for _, id := range ids {
			s.Await(t, id, soon, "failed")
		}
		var listed []string
		for _, r := range s.AllRuns(t, name, 7) {
			listed = append(listed, r.GetId())
		}
		path := filepath.Join(t.TempDir(), "runs.csv")
		require.Equal(t, platform.ExitOK,
			s.CLI(t, "run", "export", "--workflow", name, "--status", "failed", "--since", "1h", "--file", path).Code)
		table, err := csv.NewReader(strings.NewReader(readFile(t, path))).ReadAll()
		require.NoError(t, err)
		require.Equal(t, "id", table[0][0])
		var inTable, inLines []string
		for _, row := range table[1:] {
			inTable = append(inTable, row[0])
			require.Contains(t, row, "Out of stock")
		}
		require.Equal(t, listed, inTable)
		for line := range strings.Lines(
			s.CLI(t, "run", "export", "--workflow", name, "--trigger", "api", "--format", "json").Stdout) {
			var r printedRun
			require.NoError(t, json.Unmarshal([]byte(line), &r))
			require.Equal(t, "Out of stock", r.Error.Title)
			inLines = append(inLines, r.ID)
		}
		require.Equal(t, listed, inLines)
		require.Empty(t, s.CLI(t, "run", "export", "--workflow", name, "--status", "completed", "--format", "json").Stdout)

		res, err := http.Get(s.URL + "/v1/projects/default/runs:export?format=csv&workflow=" + name)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		require.Equal(t, []any{200, int64(-1), []string{"chunked"}},
			[]any{res.StatusCode, res.ContentLength, res.TransferEncoding}, "the length is not sent in advance")
		wrongExports(t, s, ids[0])
	})
}

func wrongExports(t *testing.T, s *platform.Server, id string) {
	folder := t.TempDir()
	file := filepath.Join(folder, "none")
	const usage, missing = platform.ExitUsage, platform.ExitNotFound
	for _, tt := range []struct {
		code int
		says string
		args []string
	}{
		{usage, "--all", nil},
		{usage, "--status chooses", []string{id, "--status", "failed"}},
		{usage, "one argument too many", []string{id, id}},
		{usage, `"odd"`, []string{"--status", "odd"}},
		{usage, `"xml"`, []string{"--all", "--format", "xml"}},
		{usage, `"tomorrow"`, []string{"--since", "tomorrow"}},
		{usage, "cannot be written", []string{"--all", "--file", filepath.Join(folder, "none", "x")}},
		{usage, `"odd"`, []string{"--stuck", "odd", "--file", file}},
		{usage, `"odd"`, []string{"--trigger", "odd", "--file", file}},
		{usage, "not before", []string{"--since", "1h", "--until", "2h", "--file", file}},
		{usage, "--all: all runs are selected", []string{"--all", "--status", "failed", "--file", file}},
		{missing, "RUN_NOT_FOUND", []string{"no-such-run", "--file", file}},
		{missing, "PROJECT_NOT_FOUND", []string{"--all", "--project", "nowhere", "--file", file}},
	} {
		requireOneLine(t, s.CLI(t, append([]string{"run", "export"}, tt.args...)...), tt.code, tt.says)
	}
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Empty(t, left, "an interrupted export leaves no file")
	for _, query := range []string{
		"format=xml", "statuses=odd", "since=yesterday", "nothing=1", "stuck=odd", "trigger=odd"} {
		status, body, err := s.Get(t.Context(), "/v1/projects/default/runs:export?"+query)
		require.NoError(t, err)
		require.Equal(t, 400, status, "%s: %s", query, body)
		require.Contains(t, body, "INVALID_ARGUMENT")
	}
}
