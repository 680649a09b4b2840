package integration_test

import (
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// bootstrap makes the first token of a database, without a server.
func bootstrap(t *testing.T, store platform.Store, args ...string) platform.Result {
	t.Helper()
	return platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: append([]string{"token", "create", "--bootstrap"}, args...),
		Env: []string{"SIGNALBOX_STORE_DRIVER=" + store.Driver, "SIGNALBOX_STORE_DSN=" + store.DSN},
	})
}

// The test makes the first token of a new database.
func TestBootstrapCreatesFirstToken(t *testing.T) {
	t.Parallel()
	eachStore(t, func(t *testing.T, store platform.Store) {
		t.Parallel()
		const text = `^sbx_[a-z2-7]{16}_[a-z2-7]{59}\n$`
		atOnce := make([]platform.Result, 5)
		var group sync.WaitGroup
		for i := range atOnce {
			group.Go(func() { atOnce[i] = bootstrap(t, store, "--name", "ada"+itoa(i)) })
		}
		group.Wait()
		first := ""
		for i, r := range atOnce {
			if r.Code != platform.ExitOK {
				requireOneLine(t, r, platform.ExitRefused, "create token", "ada"+itoa(i))
				continue
			}
			require.Empty(t, first, "only the first token is made")
			first = "ada" + itoa(i)
			require.Regexp(t, text, r.Stdout)
			require.Contains(t, r.Stderr, "*=admin")
			require.NotContains(t, databaseContents(t, store), strings.TrimSpace(r.Stdout))
		}
		require.NotEmpty(t, first)

		requireOneLine(t, bootstrap(t, store, "--name", "x"), platform.ExitRefused, first, "--force", "[TOKEN_EXISTS]")
		requireOneLine(t, bootstrap(t, store, "--name", "x", "--role", "default=viewer"), platform.ExitRefused,
			"[TOKEN_EXISTS]")
		requireOneLine(t, bootstrap(t, store, "--name", first, "--force"), platform.ExitRefused, "name", "[TOKEN_EXISTS]")
		forced := bootstrap(t, store, "--name", "eve", "--force", "--expires", "12h", "-o", "json")
		require.Equal(t, platform.ExitOK, forced.Code, forced.String())
		var made struct {
			Secret string
			Token  struct{ Name, ExpireTime string }
		}
		forced.JSON(t, &made)
		require.Regexp(t, text, made.Secret+"\n")
		require.Equal(t, "eve", made.Token.Name)
		require.NotEmpty(t, made.Token.ExpireTime)
	})
}

// The test requests invalid tokens, and uses databases that do not exist.
func TestInvalidFirstTokensAreRefused(t *testing.T) {
	t.Parallel()
	store := platform.SQLite(t)
	const failed, usage = platform.ExitFailed, platform.ExitUsage
	named := func(args ...string) []string { return append([]string{"--name", "ada"}, args...) }
	for _, tt := range []struct {
		args []string
		code int
		says string
	}{
		{nil, usage, "--name is missing"},
		{[]string{"ada"}, usage, "one argument too many"},
		{[]string{"--name", "a b"}, failed, "INVALID_ARGUMENT"},
		{[]string{"--name", strings.Repeat("a", 64)}, failed, "1 to 63"},
		{named("--role", "default"), usage, "project=role"},
		{named("--role", "default=king"), failed, `"king" is not a role`},
		{named("--role", "default=admin", "--role", "default=viewer"), usage, "twice"},
		{named("--role", "nowhere=admin"), platform.ExitNotFound, "PROJECT_NOT_FOUND"},
		{named("--expires", "2020-01-01T00:00:00Z"), failed, "has passed"},
		{named("--expires", "soon"), usage, `"soon"`},
		{named("--config", "/none.yaml"), usage, "/none.yaml"},
		{named("--store-driver", "oracle"), usage, `"oracle"`},
		{named("--store-dsn", filepath.Join(store.DSN, "none", "signalbox.db")), failed, "open store"},
		{named("--store-driver", "postgres", "--store-dsn", "postgres://127.0.0.1:1/none"), failed, "127.0.0.1:1"},
	} {
		requireOneLine(t, bootstrap(t, store, tt.args...), tt.code, tt.says)
	}
	require.Equal(t, platform.ExitOK, bootstrap(t, store, named()...).Code, "the refused calls left nothing behind")

	lone := platform.Run(t, platform.Command{
		Binary: platform.ServerBinary(t), Args: []string{"token", "create", "--name", "ada", "--role", "a=admin", "--force"}})
	requireOneLine(t, lone, usage, "--bootstrap")
}
