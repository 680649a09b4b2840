package database

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/signalbox-dev/signalbox/test/platform"
)

// Session is a connection to a Postgres, until the test ends.
type Session struct{ *pgx.Conn }

// Connect opens a session.
func Connect(t platform.T, dsn string) *Session {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatalf("connect to Postgres: %v", err)
	}
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) }) // this releases its locks
	return &Session{c}
}

// Do executes a statement, which must succeed.
func (s *Session) Do(t platform.T, statement string, args ...any) {
	t.Helper()
	if _, err := s.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
