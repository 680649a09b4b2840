package privilege_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// A missing right is reported with what is missing, where, and what to do.
func TestMissingRightsAreExplained(t *testing.T) {
	t.Parallel()
	e := start(t)
	change := func(statement string) {
		t.Helper()
		_, err := e.admin.Exec(t.Context(), statement)
		require.NoError(t, err, statement)
	}
	e.Server = e.launch(t, platform.API)
	worker := e.launch(t, platform.Worker, quick()...)
	e.AwaitAPI(t)
	worker.AwaitReady(t)
	hello := e.publish(t, "hello", "  - greet: {set: {a: 1}}\n")
	e.begun(t, hello, "", "completed")

	change("REVOKE INSERT ON runs FROM " + runtime)
	_, err := e.TryStart(t.Context(), hello, "")
	require.ErrorContains(t, err, "permission denied for table runs: grant it to the user of the dsn: run grants.sql")
	e.run(t, owner, "postgres/grants.sql")
	e.begun(t, hello, "", "completed")

	platform.Eventually(t, soon, func() string {
		if !strings.Contains(worker.Output(), "Dispatcher owned") {
			return "the worker does not own the dispatcher"
		}
		return ""
	})
	require.NoError(t, e.redis.Client.Do(t.Context(), "ACL", "SETUSER", "signalbox", "-hset").Err())
	for _, s := range []*platform.Server{e.Server, worker} {
		platform.Eventually(t, soon, func() string {
			if _, ready, err := s.Get(t.Context(), "/readyz"); err != nil ||
				!strings.Contains(ready, "redis refuses hset on keys of the prefix") {
				return "the readiness does not name the command: " + ready
			}
			return ""
		})
	}
	platform.Eventually(t, soon, func() string {
		if _, after, lost := strings.Cut(worker.Output(), "Ownership lost"); !lost ||
			!strings.Contains(after, `ERR The user executing the script can't run this command`) {
			return "the log does not have the error of Redis after the loss"
		}
		return ""
	})
	require.Equal(t, 1, strings.Count(worker.Output(), "Ownership lost"),
		"the dispatcher is not owned and lost again and again")
	require.NoError(t, e.redis.Client.Do(t.Context(), "ACL", "SETUSER", "signalbox", "+hset").Err())
	platform.Eventually(t, soon, func() string {
		if _, ready, err := worker.Get(t.Context(), "/readyz"); err != nil || strings.Contains(ready, `"degraded"`) {
			return "the right is not found again: " + ready
		}
		return ""
	})

	change("CREATE DATABASE empty")
	change("GRANT CONNECT ON DATABASE empty TO " + runtime)
	r := platform.Run(t, platform.Command{Binary: platform.ServerBinary(t), Args: []string{
		"migrate", "up", "--store-driver", "postgres", "--store-dsn",
		strings.Replace(e.store(t, runtime).DSN, "/postgres?", "/empty?", 1),
	}})
	require.Equal(t, platform.ExitFailed, r.Code, r.String())
	require.Contains(t, r.Stderr,
		"permission denied for schema public: run `signalbox migrate up` as the owner of the tables")
}
