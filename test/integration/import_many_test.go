package integration_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
	"github.com/signalbox-dev/signalbox/test/promise"
)

// mostMemory is the memory limit of an import, in MiB, however many runs there are.
const mostMemory = 128

// The test imports more runs than are read at a time: some thousands, and a million at full length. The memory use of
// the import does not grow with them.
func TestManyRunsOfAnOlderEngine(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		runs := promise.Trials(2_000, 1_000_000)
		source := platform.SQLite(t)
		series := fmt.Sprintf("(WITH RECURSIVE n(value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < %d) "+
			"SELECT value FROM n)", runs)
		id := "printf('%08d', value)"
		if store.Driver == "postgres" {
			source = platform.Postgres(t)
			series, id = fmt.Sprintf("generate_series(1, %d) AS s(value)", runs), "lpad(CAST(value AS TEXT), 8, '0')"
		}
		statements := strings.Split(legacySchema, ";\n")
		for _, table := range []string{"steps", "waits", "snapshots"} {
			statements = append(statements, fmt.Sprintf("CREATE INDEX %[1]s_run ON workflow_run_%[1]s (run_id)", table))
		}
		execSQL(t, source, append(statements,
			`INSERT INTO workflow_runs SELECT `+id+
				`, 'shop', 'order', '1.0.0', CASE value % 3 WHEN 0 THEN 'db' WHEN 1 THEN 'temporal' END,
CASE value % 10 WHEN 0 THEN 'RUNNING' WHEN 1 THEN 'WAITING' WHEN 2 THEN 'FAILED' ELSE 'COMPLETED' END,
'{"order": 1}', '{"ok": true}', NULL, '2026-03-01 12:00:00+00:00', '2026-03-01 12:00:01+00:00', NULL, NULL FROM `+series,
			`INSERT INTO workflow_run_steps SELECT `+id+`, `+id+
				`, 'charge', 'http', 'COMPLETED', 1, '{"a": 1}', '{"b": 2}', NULL,
'2026-03-01 12:00:02+00:00', '2026-03-01 12:00:03+00:00' FROM `+series,
			`INSERT INTO workflow_run_waits SELECT `+id+`, `+id+`, 'event', 'OPEN', '2026-03-01 12:00:02+00:00', NULL FROM `+
				series,
			`INSERT INTO workflow_run_snapshots SELECT `+id+`, `+id+`, '{"state": 1}', '2026-03-01 12:00:02+00:00' FROM `+
				series)...)
		settled := 0
		for n := 1; n <= runs; n++ {
			if n%3 != 1 && n%10 < 2 {
				settled++
			}
		}
		first := importOlder(t, source, store)
		for what, count := range map[string]int{
			"new, imported": runs, "steps": runs, "of these canceled, as their engine is gone": settled} {
			require.Regexp(t, fmt.Sprintf(`%s +%d\n`, what, count), first)
		}
		again := importOlder(t, source, store)
		require.Regexp(t, fmt.Sprintf(`left alone +%d\n`, runs), again)
		memory := max(importMemory(t, first), importMemory(t, again))
		require.LessOrEqual(t, memory, mostMemory)
		promise.Record(t, promise.Figure{
			Promise: "E11", What: fmt.Sprintf("runs of an older engine's database (%s) imported, and looked at again; memory "+
				"of the process", store.Driver),
			Aim: fmt.Sprintf("%d MiB", mostMemory), Trials: runs,
			Figure: fmt.Sprintf("%s, %s; %d MiB", importTook(t, first), importTook(t, again), memory),
		})
	})
}

func importMemory(t *testing.T, said string) int {
	t.Helper()
	found := regexp.MustCompile(`memory +(\d+) MiB`).FindStringSubmatch(said)
	require.Len(t, found, 2, said)
	memory, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	return memory
}

func importTook(t *testing.T, said string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`took +(\S+)`).FindStringSubmatch(said)
	require.Len(t, found, 2, said)
	took, err := time.ParseDuration(found[1])
	require.NoError(t, err)
	return promise.Round(took)
}
