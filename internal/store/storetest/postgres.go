package storetest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// PostgresVariable is the environment variable with the URL of a server on which databases may be created.
const PostgresVariable = "SIGNALBOX_TEST_POSTGRES"

// Postgres creates an empty database and returns its URL; it is dropped when the test ends. Without a server in the
// environment the test is skipped with a message.
func Postgres(t testing.TB) string {
	t.Helper()
	return create(t, "")
}

// PostgresLike is [Postgres] with a copy of another database, by its URL. That database must not be in use meanwhile. A
// copy takes a fraction of the time of the migrations.
func PostgresLike(t testing.TB, template string) string {
	t.Helper()
	u, err := url.Parse(template)
	require.NoError(t, err)
	return create(t, " TEMPLATE "+strings.TrimPrefix(u.Path, "/"))
}

func create(t testing.TB, options string) string {
	t.Helper()
	server := os.Getenv(PostgresVariable)
	if server == "" {
		t.Skipf("no Postgres: set %s to the URL of a server where databases may be created", PostgresVariable)
	}
	name := "signalbox_test_" + strings.ToLower(rand.Text())
	execute(t.Context(), t, server, "CREATE DATABASE "+name+options)
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
	for ctx.Err() == nil && inUse(err) {
		_, err = c.Exec(ctx, statement)
	}
	require.NoError(t, err)
	require.NoError(t, c.Close(ctx))
}

// inUse reports whether there are still connections to the template: the server waits some seconds for them to close.
func inUse(err error) bool {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	return ok && refused.Code == "55006"
}
