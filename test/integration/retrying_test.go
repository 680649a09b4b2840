package integration_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/origin"
	"github.com/signalbox-dev/signalbox/test/platform"
)

// TestRetryingRunsAreAProblem: runs that attempt a failing task again are found by it, named as a problem with the last
// error, and the problem ends when an attempt succeeds.
func TestRetryingRunsAreAProblem(t *testing.T) {
	t.Parallel()
	s := platform.StartServer(t, platform.ServerOptions{
		Temporal: platform.StartTemporal(t).Address, Store: platform.SQLite(t),
		Env: []string{"SIGNALBOX_RUNS_RETRYING_ATTEMPTS=2"},
	})
	o := origin.New(t)
	o.Answer("GET /pay", 503, `{}`)
	tasks := strings.Replace(retries(o.URL+"/pay"), "minutes: 10", "milliseconds: 500", 1)
	tasks = strings.Replace(tasks, "count: 5", "count: 100000", 1)
	name := s.Publish(t, platform.Document("retrying", tasks))
	id := s.Start(t, name, "").GetId()
	calm := s.Start(t, s.Publish(t, platform.Document("calm", waits(600))), "").GetId()

	printed := func(parts []string, args ...string) {
		t.Helper()
		platform.Eventually(t, platform.Patience, func() string {
			out := s.CLI(t, args...)
			for _, part := range parts {
				if !strings.Contains(out.Stdout, part) {
					return "no " + part + " in " + out.String()
				}
			}
			return ""
		})
	}
	printed([]string{`"RUN_RETRYING"`, `"retrying"`, "attempts of task attempt failed", name}, "problem", "list", "-o", "json")
	printed([]string{"of at most 100001 attempts failed", "503"}, "run", "show", id)
	for _, task := range []string{"any", "attempt", "/do/0/attempt"} {
		out := s.CLI(t, "run", "list", "--retrying", task, "-o", "json")
		require.Contains(t, out.Stdout, id, task)
		require.NotContains(t, out.Stdout, calm, task)
	}
	require.NotContains(t, s.CLI(t, "run", "list", "--retrying", "other", "-o", "json").Stdout, id)

	o.Answer("GET /pay", 200, `{}`)
	s.Await(t, id, soon, "completed")
	require.NotContains(t, s.CLI(t, "problem", "list", "-o", "json").Stdout, "RUN_RETRYING", "nothing is retried any more")
	require.NotContains(t, s.CLI(t, "run", "list", "--retrying", "any", "-o", "json").Stdout, id)
}
