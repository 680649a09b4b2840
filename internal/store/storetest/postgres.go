package storetest

import (
	"context"
	"crypto/rand"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// PostgresVariable names a server on which databases may be created, as a URL.
const PostgresVariable = "SIGNALBOX_TEST_POSTGRES"

// Postgres makes an empty database and returns its URL; it is dropped when the test ends. Without a server in the
// environment the test is skipped and says so.
func Postgres(t testing.TB) string {
	t.Helper()
	server := os.Getenv(PostgresVariable)
	if server == "" {
		t.Skipf("no Postgres: set %s to the URL of a server where databases may be created", PostgresVariable)
	}
	name := "signalbox_test_" + strings.ToLower(rand.Text())
	execute(t.Context(), t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		// The test's own context has ended by now.
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		execute(ctx, t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	u, err := url.Parse(server)
	require.NoError(t, err, "%s must be a URL", PostgresVariable)
	u.Path = "/" + name
	limits := u.Query()
	limits.Set("connect_timeout", "60") // on a busy machine
	u.RawQuery = limits.Encode()
	return u.String()
}

func execute(ctx context.Context, t testing.TB, server, statement string) {
	t.Helper()
	c, err := pgx.Connect(ctx, server)
	require.NoError(t, err)
	_, err = c.Exec(ctx, statement)
	require.NoError(t, err)
	require.NoError(t, c.Close(ctx))
}
