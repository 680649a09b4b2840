package platform

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
)

// PostgresVariable is the environment variable with the URL of a Postgres server on which the tests may create
// databases.
const PostgresVariable = "SIGNALBOX_TEST_POSTGRES"

// HasPostgres reports whether a Postgres server is configured.
func HasPostgres() bool { return os.Getenv(PostgresVariable) != "" }

// Postgres creates a database, which is dropped at the end of t.
func Postgres(t T) Store {
	t.Helper()
	server := os.Getenv(PostgresVariable)
	target, err := url.Parse(server)
	if err != nil || server == "" {
		t.Fatalf("%s must be the URL of a Postgres server: %v", PostgresVariable, err)
	}
	name := fmt.Sprintf("signalbox_test_%016x", rand.Uint64())
	Execute(t.Context(), t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		Execute(ctx, t, server, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)")
	})
	target.Path = "/" + name
	return Store{Driver: "postgres", DSN: target.String()}
}

// Execute executes one statement on a Postgres, by a connection of its own.
func Execute(ctx context.Context, t T, dsn, statement string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	_, err = conn.Exec(ctx, statement)
	if closing := conn.Close(ctx); err == nil {
		err = closing
	}
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
