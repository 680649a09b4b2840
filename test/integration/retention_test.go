package integration_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite" // to change times in SQLite

	"github.com/signalbox-dev/signalbox/test/platform"
)

// age makes rows older by two hours: retention deletes nothing younger than one.
func age(t *testing.T, store platform.Store, statements ...string) {
	t.Helper()
	driver := map[string]string{"sqlite": "sqlite", "postgres": "pgx"}[store.Driver]
	db, err := sql.Open(driver, store.DSN)
	require.NoError(t, err)
	for _, statement := range statements {
		_, err := db.ExecContext(t.Context(), strings.ReplaceAll(statement, "2h", "7200000000"))
		require.NoError(t, err)
	}
	require.NoError(t, db.Close())
}

// Retention deletes finished runs, events and audit entries that exceed its age or count limit, and keeps everything
// open.
func TestRetentionDeletesFinishedData(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		options := platform.ServerOptions{
			Temporal: platform.StartTemporal(t).Address, Store: store, Port: platform.FreePort(t)}
		s := platform.StartServer(t, options)
		eventWorkflow := s.Publish(t, platform.Document("heard", short, "schedule: {on: {one: {with: {type: old.news}}}}\n"))
		sendTogether(t, s, "old.news", 5)
		for _, r := range runsBy(t, s, eventWorkflow, 5) {
			s.Await(t, r.GetId(), soon, "completed")
		}
		childRun := s.Publish(t, platform.Document("kid", hello))
		parents := s.Publish(t, platform.Document("parents", subflowVersion(childRun, "latest", "Ada", "")))
		expired := s.Start(t, parents, "{}").GetId()
		s.Await(t, expired, soon, "completed")
		open := s.Start(t, s.Publish(t, platform.Document("open", subflowVersion(childRun, "latest", "Ada", "")+waits(600))),
			"{}").GetId()
		awaitWaiting(t, s, open, "timer")
		stays := s.Run(t, open).GetChildren()[0]
		again, err := s.Control(t.Context(), "replay", expired, "once more")
		require.NoError(t, err)
		recent := s.Await(t, again.GetId(), soon, "completed")
		newest := s.CLI(t, "event", "list", "--type", "old.news", "--limit", "1", "-o", "json").Stdout
		kept := regexp.MustCompile(`"position": (\d+),[^}]*"id": "(old.news-\d)"`).FindStringSubmatch(newest)
		require.Len(t, kept, 3, newest)
		s.Terminate()
		_, ended := s.WaitFor(soon)
		require.True(t, ended)

		age(t, store,
			`UPDATE runs SET created_at = created_at - 2h, status_at = status_at - 2h, ended_at = ended_at - 2h WHERE id NOT IN ('`+recent.GetId()+`', '`+recent.GetChildren()[0]+`')`,
			`UPDATE events SET received_at = received_at - 2h WHERE position < `+kept[1])
		options.Env = []string{
			"SIGNALBOX_RETENTION_INTERVAL=1s", "SIGNALBOX_RETENTION_RUNS_MAX_AGE=1h", "SIGNALBOX_RETENTION_EVENTS_MAX_AGE=1h",
			"SIGNALBOX_RETENTION_AUDIT_MAX_COUNT=3",
		}
		// Without Temporal the reconciler finds no execution that ended a moment ago and has lost its row.
		temporal := options.Temporal
		options.Temporal = noTemporal
		s = platform.LaunchServer(t, options)
		s.AwaitAPI(t)
		platform.Eventually(t, soon, func() string {
			if left := len(s.AllRuns(t, "", 100)); left != 4 {
				return fmt.Sprintf("%d runs are left", left)
			}
			return ""
		})
		for _, id := range []string{open, stays, recent.GetId(), recent.GetChildren()[0]} {
			require.Equal(t, platform.ExitOK, s.CLI(t, "run", "show", id).Code, "open, referenced and recent runs are kept")
		}
		require.Equal(t, "waiting", s.Run(t, open).GetStatus())
		// References to a deleted run remain.
		require.Equal(t, expired, s.Run(t, recent.GetId()).GetReplayOf())
		require.Equal(t, expired, exported(t, s, recent.GetId()).Run.ReplayOf)
		for _, args := range [][]string{
			{"show"}, {"steps"}, {"export"}, {"watch"}, {"cancel", "--reason", "x"}, {"replay", "--reason", "x"}} {
			requireOneLine(t, s.CLI(t, append([]string{"run", args[0], expired}, args[1:]...)...), platform.ExitNotFound,
				"RUN_NOT_FOUND")
		}
		platform.Eventually(t, soon, func() string {
			listed := s.CLI(t, "event", "list", "-o", "json").Stdout
			if n := strings.Count(listed, `"id": "old.news-`); n != 1 || !strings.Contains(listed, kept[2]) {
				return fmt.Sprintf("%d events are left: %s", n, listed)
			}
			return ""
		})
		require.Equal(t, platform.ExitOK, s.CLI(t, "event", "show", kept[2]).Code, "also after its run was deleted")
		platform.Eventually(t, soon, func() string {
			entries := s.CLI(t, "audit", "list", "-o", "json").Stdout
			deletions := strings.Count(entries, `"action": "retention.delete"`)
			if n := strings.Count(entries, `"action"`) - deletions; n > 3 || deletions == 0 {
				return fmt.Sprintf("%d entries are left: %s", n, entries)
			}
			return ""
		})
		_, metrics, err := s.Get(t.Context(), "/metrics")
		require.NoError(t, err)
		require.Contains(t, metrics, `signalbox_retention_deleted_total{kind="runs"} 7`)
		// Deleted data is not found, and the remaining data works.
		s.Terminate()
		_, ended = s.WaitFor(soon)
		require.True(t, ended)
		options.Temporal = temporal
		s = platform.StartServer(t, options)
		sendTogether(t, s, "old.news", 1)
		runsBy(t, s, eventWorkflow, 1)
	})
}
